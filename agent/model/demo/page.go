package demo

var (
	fetchWords    = phrase(`(?:fetch|open|read|visit|get|show|load|download|look at|summari[sz]e|check)(?: me)?(?: the)?(?: page| site| website| url)?(?: at)? [<` + "`\"" + `]?(?P<url>https?://[^\s<>"` + "`" + `]+)[>"` + "`" + `]?(?: .*)?`)
	scriptWords   = phrase(`(?:run|execute|evaluate)(?: (?:a|the|this|my))? (?:script|code|program)(?:\s*:\s*|\s+)(?P<source>.+)`)
	skillWords    = phrase(`(?:load|use|read|open)(?: the)? skill(?: called| named)? (?P<name>` + bareName + "|`[^`]+`|\"[^\"]+\"" + `)|(?:load|use)(?: the)? (?P<bare>` + bareName + `) skill`)
	delegateWords = phrase(`(?:delegate|hand|give)(?: this)? to (?:the )?(?:agent )?(?P<agent>` + bareName + `?)\s*(?::| to )\s*(?P<brief>.+)`)
	fence         = expression("(?s)^```[a-z]*\\n(.*?)\\n?```$")
)

func fetchIntent(_ *reading, c clause) act {
	m := groups(fetchWords, c.plain)
	if m == nil {
		return nil
	}
	url := sentenceEnd.ReplaceAllString(m["url"], "")
	return func(t *turn) {
		out, ok := t.call("fetch_page", map[string]any{"url": url})
		switch {
		case !ok:
		case out.fate == told || out.fate == worked:
			t.say("The page begins like this (I can quote it, but not understand it):\n%s", quote(out.text, longQuote/2))
		default:
			t.say("%s", report(out))
		}
	}
}

func scriptIntent(_ *reading, c clause) act {
	m := groups(scriptWords, c.raw)
	if m == nil {
		return nil
	}
	source := unquote(m["source"])
	if code := fence.FindStringSubmatch(m["source"]); code != nil {
		source = code[1]
	}
	return func(t *turn) { t.perform("run_script", map[string]any{"source": source}) }
}

func skillIntent(_ *reading, c clause) act {
	m := groups(skillWords, c.plain)
	if m == nil {
		return nil
	}
	name := unquote(m["name"] + m["bare"])
	return func(t *turn) { t.perform("load_skill", map[string]any{"name": name}) }
}

func delegateIntent(_ *reading, c clause) act {
	m := groups(delegateWords, c.raw)
	if m == nil || m["agent"] == "" {
		return nil
	}
	return func(t *turn) { t.perform("delegate", map[string]any{"agent": m["agent"], "brief": m["brief"]}) }
}
