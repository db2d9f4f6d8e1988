package demo

import "strings"

// groups returns the named groups of a match, or nil.
func groups(p *pattern, text string) map[string]string {
	m := p.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	found := map[string]string{}
	for i, name := range p.SubexpNames() {
		if name != "" && m[i] != "" {
			found[name] = strings.TrimSpace(m[i])
		}
	}
	return found
}

var (
	listFiles = []*pattern{
		phrase(`(?:list|ls|show|see|give|display|view)(?: me)?(?: (?:all|a list|of|the|my|your|our))*(?: (?:files?|folders?|directory|workspace|documents?|file list))+(?: (?:in|of|under|inside)(?: (?:the|my))?(?: (?:folder|directory))? (?P<dir>\S+?)(?: (?:folder|directory))?)?(?: (?:here|there|again))*`),
		phrase(`(?:list|ls|dir)(?: (?:the )?(?:folder|directory)? ?(?P<dir>\S+/?))?`),
		phrase(`(?:what|which)(?: other)? (?:files|documents)(?: .*)?`),
		phrase(`what(?:'s| is| are| do you have| do i have) (?:all )?(?:in |on )?(?:the |my |your )?(?:files|workspace|folder|directory|folder (?P<dir>\S+))(?: here| there)?`),
		phrase(`(?:are there|do i have|do we have|have i got)(?: any)? files(?: .*)?`),
		phrase(`(?:the |my |all )?files`),
	}
	hereFolder = phrase(`(?:the|my|your|here|there|all|everything|workspace|files|it|folder|directory|\.)`)
)

func listIntent(_ *reading, c clause) act {
	for _, p := range listFiles {
		if m := groups(p, c.plain); m != nil {
			arguments := map[string]any{}
			if dir := unquote(m["dir"]); dir != "" && !hereFolder.MatchString(dir) {
				arguments["path"] = dir
			}
			return func(t *turn) { t.perform("list_files", arguments) }
		}
		if p.MatchString(c.plain) {
			return func(t *turn) { t.perform("list_files", map[string]any{}) }
		}
	}
	return nil
}

var (
	readAny  = phrase(`(?:read|cat)(?: out)?(?: me| us)?(?: again)? (?P<what>.+)`)
	readSure = []*pattern{
		phrase(`(?:show|open|print|display|view|see|check|give|look (?:at|in|into)|tell me)(?: me| us)?(?: (?:again|what's in|what is in|what's inside|what is inside))? (?P<what>.+)`),
		phrase(`what(?:'s| is| does| stands| do)(?: it)?(?: written)?(?: in| inside)? (?P<what>.+?)(?: say| contain| look like)?`),
	}
)

func readIntent(r *reading, c clause) act {
	if m := groups(readAny, c.plain); m != nil {
		if len(r.attached) > 0 && meansAttached.MatchString(m["what"]) {
			return readAttached
		}
		if names := r.names(m["what"], false); names != nil {
			return eachFile(names, "read_file")
		}
		if anyFile.MatchString(m["what"]) {
			return withChosen("read", func(t *turn, path string) { t.perform("read_file", map[string]any{"path": path}) })
		}
	}
	for _, p := range readSure {
		if m := groups(p, c.plain); m != nil {
			if len(r.attached) > 0 && meansAttached.MatchString(m["what"]) {
				return readAttached
			}
			if names := r.names(m["what"], true); names != nil {
				return eachFile(names, "read_file")
			}
		}
	}
	return nil
}

var deleteWords = phrase(`(?:delete|remove|erase|rm|trash|throw away|get rid of)(?: me)?(?: (?P<what>.+))?`)

func deleteIntent(r *reading, c clause) act {
	m := groups(deleteWords, c.plain)
	if m == nil {
		return nil
	}
	if names := r.names(m["what"], false); names != nil {
		return eachFile(names, "delete_file")
	}
	return withChosen("delete", func(t *turn, path string) { t.perform("delete_file", map[string]any{"path": path}) })
}

// eachFile calls a tool for each of some files.
func eachFile(names []string, tool string) act {
	return func(t *turn) {
		for _, name := range names {
			t.perform(tool, map[string]any{"path": name})
		}
	}
}

// withChosen asks the person which of the files there are is meant, and goes on with that one.
func withChosen(verb string, then func(t *turn, path string)) act {
	return func(t *turn) {
		listed, ok := t.need("list_files", map[string]any{})
		if !ok {
			return
		}
		files := filesIn(listed.text)
		if !listed.went() || len(files) == 0 {
			t.fail("You didn't say which file to %s, and I saw none to choose from. %s", verb, report(listed))
			return
		}
		if !t.offers("ask_person") {
			t.fail("Which file shall I %s? There are: %s.", verb, strings.Join(files, ", "))
			return
		}
		reply, ok := t.need("ask_person", map[string]any{"question": "Which file shall I " + verb + "?", "choices": texts(files)})
		switch {
		case !ok:
		case reply.fate != answered:
			t.say("%s", report(reply))
		default:
			path := chosen(reply.text, files)
			if path == "" {
				t.say("You answered \"%s\", so I did not %s anything.", oneLine(reply.text), verb)
				return
			}
			then(t, path)
		}
	}
}

var nothing = phrase(`(?:no|none|nothing|neither|no file|none of them|cancel|stop|never mind|nvm)[.! ]*`)

// chosen finds the file that an answer means, or "".
func chosen(reply string, files []string) string {
	for _, f := range files {
		if strings.EqualFold(f, unquote(reply)) {
			return f
		}
	}
	for _, f := range files {
		if strings.Contains(strings.ToLower(reply), strings.ToLower(f)) {
			return f
		}
	}
	if nothing.MatchString(reply) {
		return ""
	}
	return nameIn(reply, false)
}

// texts makes a list that is encoded as a list also when it is empty.
func texts(list []string) []any {
	all := make([]any, len(list))
	for i, s := range list {
		all[i] = s
	}
	return all
}

var listedName = expression(`^(?:[-*] )?(` + "`[^`]+`|" + `[^\s()]+(?: [^\s()]+)*?)(?:\s{2,}.*|\t.*|\s+\(.*|,? \d.*)?$`)

// filesIn finds the names in a list of files, a few of them at most, for more would be no choice. Folders are no files.
func filesIn(list string) []string {
	const mostChoices = 5
	var files []string
	if emptyFile.MatchString(list) {
		return nil
	}
	for line := range strings.Lines(list) {
		m := listedName.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil || len(files) == mostChoices {
			continue
		}
		name := unquote(m[1])
		if strings.HasSuffix(name, "/") || strings.HasSuffix(name, ":") || strings.Count(name, " ") > 3 || strings.HasPrefix(name, "[") {
			continue
		}
		files = append(files, name)
	}
	return files
}
