package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Markdown is the export for people to read, with times in a zone. Nothing that was said can be taken for a part of the
// document: words are quoted, and what tools read and wrote is fenced.
func (s SessionExport) Markdown(zone *time.Location) string {
	d := document{zone: zone}
	d.session(s, "#")
	return d.String()
}

// Markdown is the export for people to read, with times in a zone.
func (p PersonExport) Markdown(zone *time.Location) string {
	d := document{zone: zone}
	d.printf("# What is kept of %s\n\n", p.Person)
	for _, fact := range [][2]string{{"Name", p.Name}, {"Time zone", p.Zone}, {"Language", p.Locale}, {"Spoke last in", p.Home}} {
		if fact[1] != "" {
			d.printf("- %s: %s\n", fact[0], oneLine(fact[1]))
		}
	}
	for _, day := range p.Spent {
		d.printf("- Spent on %s: $%.4f\n", day.Day, day.USD)
	}
	for _, s := range p.Sessions {
		d.session(s, "\n##")
	}
	d.lines("\n## Said in shared conversations", p.Said)
	d.lines("\n## Said in shared conversations and not taken up yet", p.Mail)
	if len(p.Cards) > 0 {
		d.printf("\n## Cards\n")
	}
	for _, k := range p.Cards {
		d.card(k)
	}
	if len(p.Rules) > 0 {
		d.printf("\n## Allowed without asking\n")
	}
	for _, r := range p.Rules {
		d.printf("\n**%s** %s, saved %s with card %s, until %s\n", r.ID, r.Tool, d.at(r.Saved), r.Card, d.at(r.Until))
		d.fenced(string(r.Arguments) + withOpen(r.Open))
	}
	return d.String()
}

// document is Markdown being written.
type document struct {
	strings.Builder
	zone *time.Location
}

func (d *document) printf(format string, args ...any) { fmt.Fprintf(d, format, args...) }

func (d *document) at(at time.Time) string { return at.In(d.zone).Format("2006-01-02 15:04") }

func (d *document) session(s SessionExport, level string) {
	d.printf("%s Session %s\n", level, s.Session)
	if !s.Began.IsZero() {
		d.printf("\nFrom %s to %s, %s.\n", d.at(s.Began), d.at(s.LastUsed), d.zoneName(s.LastUsed))
	}
	if s.OpenTurn != "" {
		d.printf("\nTurn %s is under way.\n", s.OpenTurn)
	}
	for _, line := range s.Lines {
		d.line(line)
	}
	d.lines("\n**Not taken up yet**", s.Mail)
	d.lines("\n**Not delivered yet**", s.Unsaid)
	for _, r := range s.Results {
		d.printf("\n**Saved result %s**, %s\n", r.ID, d.at(r.Saved))
		d.fenced(r.Text)
	}
}

func (d *document) lines(title string, lines []ExportedLine) {
	if len(lines) > 0 {
		d.printf("%s\n", title)
	}
	for _, line := range lines {
		d.line(line)
	}
}

func (d *document) line(l ExportedLine) {
	who := string(l.By)
	switch {
	case l.Kind == ExportAnswer, l.Kind == ExportKind(Final):
		who = "Nudge"
	case l.Heartbeat != "":
		who = "heartbeat " + l.Heartbeat
	}
	d.printf("\n**%s**", l.Kind)
	for _, of := range []string{who, l.Tool, string(l.Decision), string(l.Reason), l.Session} {
		if of != "" {
			d.printf(" %s", oneLine(of))
		}
	}
	if l.Card != "" {
		d.printf(" (card %s)", l.Card)
	}
	if l.Failed {
		d.printf(" (failed)")
	}
	if !l.At.IsZero() {
		d.printf(", %s", d.at(l.At))
	}
	d.printf("\n")
	if len(l.Arguments) > 0 {
		d.fenced(string(l.Arguments))
	}
	d.open(l.Open)
	if l.Evidence != "" {
		d.fenced(l.Evidence)
	}
	switch {
	case l.Text == "":
	case l.Kind == ExportResult, l.Kind == ExportProgress:
		d.fenced(l.Text)
	default:
		d.quoted(l.Text)
	}
}

func (d *document) card(k ExportedCard) {
	d.printf("\n**%s** %s, asked %s", k.Card, k.Tool, d.at(k.Asked))
	switch {
	case k.Decision == "":
		d.printf(", waits until %s", d.at(k.Expires))
	case k.By == "":
		d.printf(", %s %s", k.Decision, d.at(k.Decided))
	default:
		d.printf(", %s by %s %s", k.Decision, k.By, d.at(k.Decided))
	}
	d.printf("\n")
	for _, arguments := range []json.RawMessage{k.Arguments, k.Edited} {
		if len(arguments) > 0 {
			d.fenced(string(arguments))
		}
	}
	d.open(k.Open)
	if k.Text != "" {
		d.quoted(k.Text)
	}
}

// open says what the rule leaves open that was saved with a decision.
func (d *document) open(open []Opening) {
	if len(open) > 0 {
		d.fenced("allowed from then on with " + OpenText(open))
	}
}

func (d *document) quoted(text string) {
	d.printf("> %s\n", strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n> "))
}

// fenced writes a text between fences that are longer than any in it.
func (d *document) fenced(text string) {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	d.printf("%s\n%s\n%s\n", fence, strings.TrimRight(text, "\n"), fence)
}
