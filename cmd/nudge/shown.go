package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf16"

	"nudge/bot/terminal"
)

// plainWriter writes out what would steer a terminal or turn the direction of writing, as JSON does: what people, models and pages
// have written is shown to an operator by commands, and must not change what stands around it. Each Write is of whole characters.
type plainWriter struct{ to io.Writer }

func (w plainWriter) Write(p []byte) (int, error) {
	text := string(p)
	if strings.ContainsFunc(text, terminal.Steers) {
		text = plain(text)
	}
	if _, err := io.WriteString(w.to, text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// plain is a text with \u001b for an escape, and so on. Within a string of JSON that stands for the same.
func plain(text string) string {
	var b strings.Builder
	for _, r := range text {
		if !terminal.Steers(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}
