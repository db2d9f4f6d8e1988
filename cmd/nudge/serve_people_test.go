package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"nudge/bot/bottest/slacktest"
)

var spokenCode = regexp.MustCompile(`[A-Z2-7]{5}-[A-Z2-7]{5}-[A-Z2-7]{5}`)

// run runs a command beside the running program and gives what it printed.
func (o *office) run(in string, args ...string) string {
	o.Helper()
	cmd := o.place.command(args...)
	cmd.Stdin = strings.NewReader(in)
	out, err := cmd.CombinedOutput()
	if err != nil {
		o.Fatalf("nudge %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// button waits for a message in a channel that has a button.
func (o *office) button(channel, label string) (found slacktest.Message) {
	o.Helper()
	o.until("there was a button "+label+" in "+channel, func() bool {
		for _, m := range o.slack.ByBot(channel) {
			if actionOf(m, label) != "" && len(m.Buttons()) > 0 {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

// TestSlackPeople takes somebody through all that can become of an account in Slack: a stranger, who is let in, becomes one person
// with an account at a terminal, and is forgotten while the program runs.
func TestSlackPeople(t *testing.T) {
	t.Parallel()
	o := openOffice(t, sayIt, fmt.Sprintf("[access]\nallow = [%q]\nowners = [%q]\n", personID(ann), personID(ann)))

	o.say(slacktest.Said{User: eve, Text: "say plum"})
	o.told(slacktest.DM(eve), "I have asked whoever decides that")
	card := o.button(slacktest.DM(ann), "Allow")
	if !strings.Contains(card.Text, personID(eve)) || strings.Contains(card.Text, "plum") {
		t.Errorf("the owner reads %q", card.Text)
	}
	o.press(ann, card, "Allow")
	o.settled(card)
	o.told(slacktest.DM(eve), "You are let in now")
	o.say(slacktest.Said{User: eve, Text: "say plum, for canary-6105"})
	o.told(slacktest.DM(eve), "It is plum.")

	code := spokenCode.FindString(o.run("/link new\n", "chat", "--user", "evelyn"))
	if code == "" {
		t.Fatal("there is no code")
	}
	o.say(slacktest.Said{User: eve, Text: "nudge link " + code})
	card = o.button(slacktest.DM(eve), "Join")
	o.press(eve, card, "Join")
	o.settled(card)
	if out := o.run("/approve\n/link\n", "chat", "--user", "evelyn"); !strings.Contains(out, personID(eve)+"  since") {
		t.Errorf("after both agreed: %s", out)
	}

	// Forgetting one account forgets the person.
	o.run("hello canary-6105\n", "chat", "--user", "evelyn")
	if out := o.run("", "forget", personID(eve), "--yes"); !strings.Contains(out, "terminal:evelyn") || !strings.Contains(out, "2 sessions") {
		t.Errorf("forgotten: %s", out)
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	o.run("", "backup", copied)
	files, err := filepath.Glob(filepath.Join(o.place.dir, "*", "nudge.db"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the data file: %q, %v", files, err)
	}
	for _, file := range append(files, copied) {
		data, err := os.ReadFile(file)
		if err != nil || bytes.Contains(data, []byte("canary-6105")) {
			t.Errorf("%s has what was said, or cannot be read: %v", file, err)
		}
	}
	audit := o.run("", "audit")
	for _, did := range []string{"allowed", "linked", "forgot"} {
		if !strings.Contains(audit, `"did":"`+did+`"`) {
			t.Errorf("the audit does not say %s:\n%s", did, audit)
		}
	}
	if strings.Contains(audit, eve) || strings.Contains(audit, "evelyn") {
		t.Errorf("the audit names who was forgotten:\n%s", audit)
	}
	// Who was forgotten is a stranger again.
	asked := len(o.model.Requests())
	o.say(slacktest.Said{User: eve, Text: "say pear"})
	o.button(slacktest.DM(ann), "Allow")
	if n := len(o.model.Requests()); n != asked {
		t.Errorf("%d more model calls", n-asked)
	}
}
