package slack

import (
	"encoding/json"

	"fmt"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"nudge/agent"
	"nudge/bot/bottest/slacktest"
)

// updateVariable, when set, has the pictures written anew.
const updateVariable = "NUDGE_UPDATE_PICTURES"

// pictures are all kinds of cards, questions and forms, as they stand in Slack.
func pictures() map[string]agent.Reply {
	expires := time.Date(2026, 12, 4, 9, 0, 0, 0, time.UTC)
	always := time.Date(2026, 12, 31, 9, 0, 0, 0, time.UTC)
	card := func(tool, arguments, text string) agent.Reply {
		return agent.Reply{
			Kind: agent.Approval, ID: "k7mn3qx2ab", Tool: tool, Arguments: json.RawMessage(arguments), Text: text, Expires: &expires,
			MayDecide: []string{"slack:T0TEST:U0ANN"}, Address: annsDM,
		}
	}
	decided := func(verdict agent.Verdict, by, text string) agent.Reply {
		return agent.Reply{Kind: agent.DecidedMark, ID: "k7mn3qx2ab", Tool: "delete_file", Decision: verdict, By: by, Text: text, Address: annsDM, Told: `{"path":"reports/2026/november.md"}`}
	}
	all := map[string]agent.Reply{
		"approval":        card("delete_file", `{"path":"reports/2026/november.md"}`, ""),
		"approval-diff":   card("write_file", `{"content":"# Plan\n\n1. ship it\n2. rest\n","path":"plan.md"}`, "plan.md\n- 1. rest\n+ 1. ship it\n+ 2. rest"),
		"approval-hidden": card("run_command", `{"cmd":"rm -rf ~/\u202e gnp.eciov <!channel> *b* `+"```"+`"}`, ""),
		"approval-long":   card("write_file", `{"content":"`+strings.Repeat("a line of a long file\\n", 400)+`","path":"long.md"}`, ""),
		"approval-owner":  card("deploy", `{"version":"v2"}`, "Deploys to everybody."),
		"question":        {Kind: agent.Ask, ID: "q7mn3qx2ab", Text: "Which colour shall it be?", Choices: []string{"red", "green"}, Deadline: &expires, Address: annsDM},
		"question-long":   {Kind: agent.Ask, ID: "q7mn3qx2ab", Text: "Which way?", Choices: []string{"the short one", "the other, of which there is more to say than a button can have, as it goes on and on"}, Address: annsDM},
		"question-many":   {Kind: agent.Ask, ID: "q7mn3qx2ab", Text: "Which of these?", Address: annsDM},
		"offer":           {Kind: agent.Notice, ID: "o7mn3qx2ab", Text: "I stopped at the limit of 20 steps for one turn.", Choices: []string{"Continue"}, Deadline: &expires, Address: annsDM},
		"unknown":         {Kind: agent.Notice, ID: "u7mn3qx2ab", Text: "I was interrupted while deploy ran, and its outcome is unknown.", Choices: []string{"Run again", "Leave it"}, Deadline: &expires, Address: annsDM},
		"approved":        decided(agent.Approve, "slack:T0TEST:U0ANN", ""),
		"approved-always": decided(agent.Always, "slack:T0TEST:U0ANN", ""),
		"edited":          decided(agent.Edit, "slack:T0TEST:U0ANN", ""),
		"denied":          decided(agent.Deny, "terminal:ann", "keep it"),
		"expired":         decided(agent.Expire, "", ""),
		"withdrawn":       decided(agent.Withdrawn, "slack:T0TEST:U0ANN", "not run: the person said: never mind"),
	}
	answered := decided(agent.AnswerIt, "slack:T0TEST:U0ANN", "red & <blue>")
	answered.Tool, answered.Told = "ask_person", "Which colour shall it be?"
	all["answered"] = answered
	hidden := all["approved"]
	hidden.Told = "{\"cmd\":\"`ls` *b* <!channel>\"}"
	all["approved-code"] = hidden
	for i := range 30 {
		many := all["question-many"]
		many.Choices = append(many.Choices, fmt.Sprintf("server %02d", i))
		all["question-many"] = many
	}
	owner := all["approval-owner"]
	owner.Parked = true
	owner.MayDecide = []string{"slack:T0TEST:U0BOB", "terminal:ann"}
	all["approval-owner"] = owner
	withRule := all["approval"]
	withRule.Always = &always
	all["approval-always"] = withRule
	edited := all["edited"]
	edited.Told = "-  \"path\": \"reports/2026/october.md\"\n+  \"path\": \"reports/2026/november.md\""
	all["edited"] = edited
	saved := all["approved-always"]
	saved.Always, saved.Rule = &always, "r7mn3qx2ab"
	all["approved-always"] = saved
	saved.Tool, saved.Told = "run_command", `{"env":"staging","name":"deploy","version":"v1.2"}`
	saved.Open = []agent.Opening{{Name: "version", Within: "that matches v[0-9]*_`*<"}}
	all["approved-open"] = saved
	open := withRule
	open.Tool, open.Arguments = saved.Tool, json.RawMessage(saved.Told)
	open.Open = append([]agent.Opening{{Name: "env", Within: "of staging, production, \"a\u202eb\""}}, saved.Open...)
	all["approval-open"] = open
	return all
}

// TestPictures compares what stands in Slack with how it was looked at last, and keeps it short: one message that fits on a
// screen, with its buttons in one row.
func TestPictures(t *testing.T) {
	t.Setenv("TZ", "UTC")
	for name, r := range pictures() {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, brisk)
			d.tell("card", r)
			said := d.server.ByBot(slacktest.DM("U0ANN"))
			m := said[len(said)-1]
			picture := drawn(m)
			if n := strings.Count(picture, "\n"); n > 32 || len(m.Blocks) > 6 {
				t.Errorf("it has %d lines in %d blocks", n, len(m.Blocks))
			}
			compare(t, name, picture)
		})
	}
}

// TestPicturesOfForms does so for forms.
func TestPicturesOfForms(t *testing.T) {
	card := pictures()["approval-always"]
	d := newDesk(t, brisk)
	d.in.schemas = map[string]string{"delete_file": many}
	card.Arguments = json.RawMessage(manyArguments)
	channel, ts := d.ask(card)
	for name, action := range map[string]string{"form-edit": actionEdit, "form-deny": actionDeny, "form-always": actionAlways} {
		view, opened := d.click("U0ANN", channel, ts, action)
		if !opened {
			t.Fatalf("%s does not open", action)
		}
		compare(t, name, drawnForm(view))
	}
	d = newDesk(t, brisk)
	channel, ts = d.ask(pictures()["approval-open"])
	view, opened := d.click("U0ANN", channel, ts, actionAlways)
	if !opened {
		t.Fatal("a form with something to leave open does not open")
	}
	compare(t, "form-open", drawnForm(view))
}

func compare(t *testing.T, name, picture string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if os.Getenv(updateVariable) != "" {
		if err := os.WriteFile(file, []byte(picture), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if picture != string(want) {
		t.Errorf("%s is\n%s\nand was\n%s", name, picture, want)
	}
}

// drawn is a message as letters can show it.
func drawn(m slacktest.Message) string {
	var b strings.Builder
	for _, f := range m.Files {
		fmt.Fprintf(&b, "{file %s}\n", f.Name)
	}
	if len(m.Blocks) == 0 {
		fmt.Fprintf(&b, "%s\n", stamped(html.UnescapeString(m.Text)))
	}
	draw(&b, m.Blocks)
	return b.String()
}

func drawnForm(v slacktest.View) string {
	var b strings.Builder
	fmt.Fprintf(&b, "== %s ==\n", v.Title)
	draw(&b, v.Blocks)
	fmt.Fprintf(&b, "                    [Cancel] [%s]\n", v.Submit)
	return b.String()
}

// stamped is a text whose instants of Slack's are the ones that it shows where it cannot.
func stamped(text string) string {
	for {
		before, rest, found := strings.Cut(text, "<!date^")
		if !found {
			return text
		}
		date, after, _ := strings.Cut(rest, ">")
		_, shown, _ := strings.Cut(date, "|")
		if at, err := time.Parse("2006-01-02 15:04 UTC", shown); err == nil && time.Since(at).Abs() < time.Hour {
			shown = "now"
		}
		text = before + shown + after
	}
}

func draw(b *strings.Builder, blocks []slacktest.Block) {
	for _, block := range blocks {
		switch block.Type {
		case "section":
			fmt.Fprintf(b, "%s\n", stamped(block.Text.Text))
		case "context":
			fmt.Fprintf(b, "  (%s)\n", stamped(block.Elements[0].Label()))
		case "rich_text":
			drawRich(b, block.Elements)
		case "actions":
			for _, e := range block.Elements {
				b.WriteString(element(e) + " ")
			}
			b.WriteByte('\n')
		case "input":
			drawInput(b, block)
		}
	}
}

func drawRich(b *strings.Builder, elements []slacktest.Element) {
	for _, e := range elements {
		text := ""
		for _, part := range e.Parts {
			text += part.Label()
		}
		if e.Type == "rich_text_preformatted" {
			text = "  | " + strings.ReplaceAll(text, "\n", "\n  | ")
		}
		fmt.Fprintf(b, "%s\n", text)
	}
}

func drawInput(b *strings.Builder, block slacktest.Block) {
	label := block.Label.Text
	if block.Optional {
		label += " (optional)"
	}
	fmt.Fprintf(b, "%s\n    %s\n", label, strings.ReplaceAll(element(*block.Element), "\n", "\n    "))
	if block.Hint != nil {
		fmt.Fprintf(b, "    %s\n", block.Hint.Text)
	}
}

func element(e slacktest.Element) string {
	switch e.Type {
	case "button":
		style := ""
		_ = json.Unmarshal(e.Style, &style)
		return "[" + map[string]string{"primary": "*", "danger": "!"}[style] + e.Label() + "]"
	case "static_select":
		shown := fmt.Sprintf("%d options", len(e.Options))
		if e.Selected != nil {
			shown = e.Selected.Text.Text
		}
		return "[" + shown + " v]"
	case "radio_buttons":
		var out []string
		for _, o := range e.Options {
			mark := "( )"
			if e.Selected != nil && *e.Selected == o {
				mark = "(o)"
			}
			out = append(out, mark+" "+o.Text.Text)
		}
		return strings.Join(out, "  ")
	case "checkboxes":
		var out []string
		for _, o := range e.Options {
			mark := "[ ]"
			if slices.Contains(e.Several, o) {
				mark = "[x]"
			}
			out = append(out, mark+" "+o.Text.Text)
		}
		return strings.Join(out, "  ")
	case "number_input":
		return strings.TrimSpace("#" + e.Initial + " " + e.Min + ".." + e.Max)
	}
	return "_" + e.Initial + "_"
}
