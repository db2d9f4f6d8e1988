package agent

import (
	"strings"
	"testing"

	"nudge/agent/compact"
	"nudge/agent/model"
)

// Words that several said in one breath are parted by the names before them; what cannot be told apart goes.
func TestBlankingOfJoinedWords(t *testing.T) {
	b := &blanking{
		forgetting: &forgetting{Forgetting: Forgetting{Accounts: []PersonID{"discord:1"}}, hide: strings.NewReplacer()},
		names:      map[string]bool{"Ann": true}, others: map[string]bool{"Bob": true},
	}
	const gone = removedWords
	for _, c := range []struct {
		what, text, want string
		from             PersonID
		ids              int
	}{
		{"hers alone", "Ann: buy milk", gone, "discord:1", 1},
		{"hers alone, in paragraphs", "Ann: buy milk\n\nNote: two of them", gone, "discord:1", 1},
		{"his alone", "Bob: buy milk", "Bob: buy milk", "discord:2", 1},
		{"his alone, quoting nobody", "Bob: Ann: she said so", "Bob: Ann: she said so", "discord:2", 1},
		{"both, hers last", "Bob: no bread\n\nAnn: buy milk", "Bob: no bread\n\n" + gone, "discord:1", 2},
		{"both, his last", "Ann: buy milk\n\nBob: no bread", gone + "\n\nBob: no bread", "discord:2", 2},
		{"both, hers in paragraphs", "Ann: buy milk\n\nNote: two\n\nBob: no bread", gone + "\n\n" + gone + "\n\nBob: no bread", "discord:2", 2},
		{"a flood of hers", "Ann: buy milk\n\nAnn: and eggs", gone + "\n\n" + gone, "discord:1", 2},
		{"somebody who is not known", "Eve: no bread\n\nAnn: buy milk", gone + "\n\n" + gone, "discord:1", 2},
	} {
		e := &messageEntry{Provenance: Human, From: c.from, Text: c.text, IDs: make([]string, c.ids)}
		b.words = b.saidIn(e)
		if b.message(e); e.Text != c.want {
			t.Errorf("%s: %q became %q, want %q", c.what, c.text, e.Text, c.want)
		}
	}
}

// Words are found again wherever they are quoted, except where they are so short that they stand everywhere.
func TestBlankingOfQuotes(t *testing.T) {
	b := &blanking{forgetting: &forgetting{hide: strings.NewReplacer()}, names: map[string]bool{"Ann": true}, words: []string{"buy a new boiler", "ok", ""}}
	for text, want := range map[string]string{
		"You said: buy a new boiler, so I did": "You said: " + removedWords + ", so I did",
		"not run: the person said: ok":         "not run: the person said: " + removedWords,
		"ok":                                   removedWords,
		"a broken token":                       "a broken token",
		"Ann: buy a new boiler":                removedWords,
	} {
		if got := b.without(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	b.marks = marksIn([]string{"write to ann@example.org, or call +49 170 1234567 about order-17", "nothing of note"})
	const before, after = "I wrote to ann@example.org of order-17 and noted it", "I wrote to " + removedMark + " of " + removedMark + " and noted it"
	if got := b.derived(before); got != after {
		t.Errorf("%q became %q, want %q", before, got, after)
	}
	if got := b.withoutIn(`{"x":"buy a new boiler"}`); got != `{"x":"`+removedWords+`"}` {
		t.Errorf("arguments became %s", got)
	}
}

// A checkpoint has the conversation in it, and a summary may have anything.
func TestBlankingOfWhatSumsUp(t *testing.T) {
	b := &blanking{forgetting: &forgetting{Forgetting: Forgetting{Accounts: []PersonID{"discord:1"}}, hide: strings.NewReplacer(`"discord:1"`, `"gone"`)}}
	const secret = "a secret of hers"
	for _, e := range []entry{
		checkpointEntry{View: []model.Message{{Role: model.User, Text: secret}}, Plan: secret},
		compactedEntry{Change: compact.Change{Note: secret, Left: compact.Left{Summary: secret}}},
		modelCallEntry{Summary: true, Text: secret},
		decidedEntry{By: "discord:1", Name: secret, Text: secret},
		turnEntry{Person: Person{ID: "discord:1", Name: secret}},
	} {
		line, err := encode(e, now())
		if err != nil {
			t.Fatal(err)
		}
		blank, err := b.line(line)
		if err != nil || strings.Contains(string(blank.Data), secret) || strings.Contains(string(blank.Data), "discord:1") {
			t.Errorf("%s became %s, %v", line.Kind, blank.Data, err)
		}
		if !blank.At.Equal(line.At) {
			t.Errorf("%s is of another time", line.Kind)
		}
		if _, err := decode(blank); err != nil {
			t.Errorf("%s cannot be read: %v", line.Kind, err)
		}
	}
}
