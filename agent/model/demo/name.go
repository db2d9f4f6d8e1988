package demo

import (
	"slices"
	"strings"
)

// fileName is the pattern of a name that is surely a file's: quoted, or with a dot or a slash in it.
const fileName = "(?:`[^`]+`|\"[^\"]+\"|“[^”]+”|'[^']+'|[\\p{L}\\p{N}_~@+./-]*[\\p{L}\\p{N}_-](?:\\.|/)[\\p{L}\\p{N}_~@+./-]*[\\p{L}\\p{N}_/])"

// bareName is the pattern of any name without spaces.
const bareName = `[\p{L}\p{N}_~@+./-]+`

var (
	surelyFile = expression("^" + fileName + "$")
	anyName    = expression("^" + bareName + "$")
	nameLead   = expression(`(?i)^(?:(?:the|my|our|your|this|these|both|all|of|contents?|text|files?|documents?|called|named|a|an|one|me)\s+)+`)
	nameGiven  = expression(`(?i)\bfiles?\b|\bcalled\b|\bnamed\b`)
	nameJoin   = expression(`(?i)\s*(?:,\s*(?:and\s+)?|;|&)\s*|\s+(?:and|or|plus)\s+(?:also\s+)?`)
	nameTail   = expression(`(?i)\s+(?:again|too|as well|please|file|now|there|here)$`)
	itself     = expression(`(?i)^(?:it|that|this|that file|this file|the file|the same file|it again)$`)
	anyFile    = expression(`(?i)^(?:a|an|one|some|any|the|my|of|them|these|files?|documents?|something|anything|everything|all|stuff|things?|\s)+$`)
)

// names finds the names of files in some words. One word is a name even if it doesn't look like a file's, unless
// sure is asked for.
func (r *reading) names(text string, sure bool) []string {
	text = strings.TrimSpace(nameTail.ReplaceAllString(strings.TrimSpace(text), ""))
	if itself.MatchString(text) {
		if r.it == "" {
			return nil
		}
		return []string{r.it}
	}
	if anyFile.MatchString(text) {
		return nil
	}
	var found []string
	for _, part := range splitNames(text) {
		if name := r.pathOf(nameIn(part, sure)); name != "" && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	if len(found) > 0 {
		r.it = found[len(found)-1]
	}
	return found
}

// splitNames parts a list of names, but not inside quotes.
func splitNames(text string) []string {
	quoted := quotation.FindAllStringIndex(text, -1)
	var parts []string
	start := 0
	for _, at := range nameJoin.FindAllStringIndex(text, -1) {
		if !inside(quoted, at[0]) {
			parts = append(parts, text[start:at[0]])
			start = at[1]
		}
	}
	return nonEmpty(append(parts, text[start:]))
}

// nameIn finds the one name in a piece of a list, or returns "".
func nameIn(part string, sure bool) string {
	part = nameTail.ReplaceAllString(strings.TrimSpace(part), "")
	if q := quotation.FindString(part); q != "" {
		return unquote(q)
	}
	rest := nameLead.ReplaceAllString(part, "")
	called := rest != part && nameGiven.MatchString(part)
	for _, word := range strings.Fields(rest) {
		if word = sentenceEnd.ReplaceAllString(word, ""); surelyFile.MatchString(word) {
			return word
		}
	}
	if rest = sentenceEnd.ReplaceAllString(rest, ""); (called || !sure) && anyName.MatchString(rest) && !anyFile.MatchString(rest) {
		return rest
	}
	return ""
}

// unquote takes the quotes off a text that is quoted as a whole.
func unquote(text string) string {
	text = strings.TrimSpace(text)
	for _, pair := range []string{"``", `""`, "“”", "''"} {
		marks := []rune(pair)
		open, end := string(marks[0]), string(marks[1])
		if len(text) > len(open)+len(end)-1 && strings.HasPrefix(text, open) && strings.HasSuffix(text, end) {
			inner := text[len(open) : len(text)-len(end)]
			if !strings.Contains(inner, open) && !strings.Contains(inner, end) {
				return strings.TrimSpace(inner)
			}
		}
	}
	return text
}
