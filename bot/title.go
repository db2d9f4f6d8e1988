package bot

import "strings"

// Title makes the title of a conversation of a person's first words: their first line or sentence, cut between words.
func Title(words string, limit int, cut Cut) string {
	words, _, _ = strings.Cut(strings.TrimSpace(words), "\n")
	words = strings.Join(strings.Fields(words), " ")
	for _, end := range []string{". ", "! ", "? "} {
		if at := strings.Index(words, end); at > 0 {
			words = words[:at+1]
		}
	}
	words = strings.TrimSuffix(words, ".")
	title := cut(words, limit)
	if title == words {
		return title
	}
	title = strings.TrimSuffix(title, "…")
	if at := strings.LastIndexByte(title, ' '); at > 0 {
		title = title[:at]
	}
	return strings.TrimRight(title, " ,;:-") + "…"
}
