package diary

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nudge/memory"
	"nudge/memory/bolt"
)

func TestNothingFits(t *testing.T) {
	d := newDiary(t, Config{})
	if got := recall(t, d, annPrivate, "home"); len(got) != 0 {
		t.Errorf("an empty diary has %q", got)
	}
	remember(t, d, ann, Note{Text: "Lives in Bern", Aliases: []string{"home", "city of residence"}})
	for query, want := range map[string]int{"home city": 1, "favourite opera": 0, "": 0, " \n": 0, "the of and": 0} {
		if got := recall(t, d, annPrivate, query); len(got) != want {
			t.Errorf("%q finds %q", query, got)
		}
	}
}

// The same words in another spelling are one note, whatever was retried; a negation is another.
func TestDuplicates(t *testing.T) {
	d := newDiary(t, Config{})
	writes := []string{"Likes tea", "likes tea ", "Likes tea.", "Likes  tea", "Likes café", "Likes cafe\u0301", "Does not like tea"}
	for range 3 {
		for _, text := range writes {
			remember(t, d, ann, Note{Text: text, Said: day(1)})
		}
	}
	if notes := notesOf(t, d, annPrivate); len(notes) != 3 {
		t.Errorf("there are %d notes, not 3: %+v", len(notes), notes)
	}
	got := recall(t, d, annPrivate, "likes tea cafe")
	if len(got) != 3 {
		t.Errorf("recalled %q", got)
	}
}

func TestDuplicateKeepsAliasesAndIsNewer(t *testing.T) {
	d := newDiary(t, Config{})
	first, _ := remember(t, d, ann, Note{Text: "Likes tea", Aliases: []string{"beverage"}, Said: day(1)})
	second, change := remember(t, d, ann, Note{Text: "likes tea!", Aliases: []string{"hot drink", "Beverage"}, Said: day(9)})
	if change != Same || second.ID != first.ID || !second.Said.Equal(day(9)) || len(second.Aliases) != 2 {
		t.Errorf("%s: %+v", change, second)
	}
	if _, change := remember(t, d, ann, Note{Text: "Likes tea", Said: day(2)}); change != Same {
		t.Error(change)
	}
	if n := notesOf(t, d, annPrivate)[0]; !n.Said.Equal(day(9)) {
		t.Errorf("a late write makes the note older: %s", n.Said)
	}
}

// What was stated last holds, in whatever order it was written; what is only similar stays.
func TestContradictions(t *testing.T) {
	notes := []Note{
		{Text: "I live in Bern", About: "home", Said: day(1)},
		{Text: "I moved to Zurich", About: "Home", Aliases: []string{"where I live"}, Said: day(20)},
		{Text: "I use Bun for tests", About: "test runner", Said: day(25)},
		{Text: "I also use Bun as runtime", About: "JavaScript runtime", Said: day(26)},
	}
	for _, order := range [][]int{{0, 1, 2, 3}, {1, 0, 2, 3}, {3, 2, 1, 0}} {
		d := newDiary(t, Config{})
		for _, i := range order {
			remember(t, d, ann, notes[i])
		}
		for _, query := range []string{"where do I live", "Bern"} {
			hits, err := d.Recall(t.Context(), annPrivate, []string{query}, 10)
			if err != nil {
				t.Fatal(err)
			}
			if len(hits) != 1 || hits[0].Text != "I moved to Zurich" || hits[0].Before == nil || hits[0].Before.Text != "I live in Bern" {
				t.Errorf("written in the order %v, %q finds %+v", order, query, hits)
			}
		}
		if got := recall(t, d, annPrivate, "what do I use Bun for"); len(got) != 2 {
			t.Errorf("of two notes about Bun there are %q", got)
		}
		if got := notesOf(t, d, annPrivate); len(got) != 4 {
			t.Errorf("%d notes are kept", len(got))
		}
	}
}

// A fact that changes back and forth, and is written in any order, has the chain of its statements in their order.
func TestChains(t *testing.T) {
	d := newDiary(t, Config{})
	for _, i := range []int{3, 1, 4, 2} {
		remember(t, d, ann, Note{Text: fmt.Sprintf("state %d", i), About: "state", Said: day(i)})
	}
	remember(t, d, ann, Note{Text: "state 2", About: "state", Said: day(9)}) // again
	var chain []string
	byID := map[string]Note{}
	for _, n := range notesOf(t, d, annPrivate) {
		byID[n.ID] = n
	}
	for _, n := range byID {
		if n.Newer != "" {
			continue
		}
		for at := n; at.ID != ""; at = byID[at.Older] {
			chain = append(chain, at.Text)
			if at.Older != "" && byID[at.Older].Newer != at.ID {
				t.Errorf("%q does not point back to %q", byID[at.Older].Text, at.Text)
			}
		}
	}
	if want := []string{"state 2", "state 4", "state 3", "state 1"}; !slices.Equal(chain, want) {
		t.Errorf("the chain is %q", chain)
	}
	present := recall(t, d, annPrivate, "state 1")
	if len(present) != 1 || present[0] != "state 2" {
		t.Errorf("present: %q", present)
	}
	id := ""
	for _, n := range byID {
		if n.Text == "state 2" {
			id = n.ID
		}
	}
	if err := remove(t, d, annPrivate, id); err != nil {
		t.Fatal(err)
	}
	if got := recall(t, d, annPrivate, "state 1"); len(got) != 1 || got[0] != "state 4" {
		t.Errorf("after the newest was deleted: %q", got)
	}
}

// Each sees the own notes and no others, by every way in, also after a restart; whoever is not named sees nothing.
func TestIsolation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nudge.db")
	hints := map[string]string{
		"slack:T0TEST:U1": "PIN hint is blue", "slack:T0TEST:U11": "PIN hint is red", "discord:800:1": "PIN hint is green",
		"slack:T0OTHER:U1": "PIN hint is black",
		// Two pairs of names whose SHA-256 begin with the same four bytes.
		"slack:T0TEST:U0004197": "alice secret PIN hint", "slack:T0TEST:U0092445": "bob secret PIN hint",
	}
	look := func(d *Diary) {
		for person, hint := range hints {
			if got := recall(t, d, View{person, Private}, "PIN hint"); !slices.Equal(got, []string{hint}) {
				t.Errorf("%s recalls %q", person, got)
			}
			notes := notesOf(t, d, View{person, Private})
			if len(notes) != 1 || notes[0].Text != hint {
				t.Errorf("%s lists %+v", person, notes)
			}
			for other := range hints {
				if other == person {
					continue
				}
				if _, err := d.Edit(t.Context(), View{other, Private}, notes[0].ID, "mine"); !errors.Is(err, ErrUnknownNote) {
					t.Errorf("%s edits a note of %s: %v", other, person, err)
				}
				if err := remove(t, d, View{other, Private}, notes[0].ID); !errors.Is(err, ErrUnknownNote) {
					t.Errorf("%s deletes a note of %s: %v", other, person, err)
				}
			}
		}
		for _, nobody := range []string{"", "slack:T0TEST:U1' OR 1", "../slack:T0TEST:U11", "slack:T0TEST:U", "slack:T0TEST:U1\x00", "\x00"} {
			if hits, _ := d.Recall(t.Context(), View{nobody, Private}, []string{"PIN hint"}, 10); len(hits) > 0 {
				t.Errorf("%q recalls %+v", nobody, hits)
			}
		}
		if _, err := d.Recall(t.Context(), View{"slack:T0TEST:U1", ""}, []string{"PIN hint"}, 10); err == nil {
			t.Error("a place that is not named is looked into")
		}
	}
	store, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := New(Config{Store: store})
	for person, hint := range hints {
		remember(t, d, person, Note{Text: hint})
	}
	look(d)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	look(New(Config{Store: openStore(t, path)}))
}

func TestScope(t *testing.T) {
	d := newDiary(t, Config{})
	remember(t, d, ann, Note{Text: "Salary is 90,000", Scope: Private})
	inChannel, _ := remember(t, d, ann, Note{Text: "Salary review is in May", Scope: "slack:T1:C1"})
	remember(t, d, ann, Note{Text: "Salary questions go to Bob", Scope: "slack:T1:C2"})
	for scope, want := range map[string]int{Private: 3, "slack:T1:C1": 1, "slack:T1:C2": 1, "slack:T1:C": 0, "slack:T1:C3": 0} {
		if got := recall(t, d, View{ann, scope}, "salary"); len(got) != want {
			t.Errorf("in %s: %q", scope, got)
		}
		if got := notesOf(t, d, View{ann, scope}); len(got) != want {
			t.Errorf("in %s there are listed %d", scope, len(got))
		}
	}
	if err := remove(t, d, View{ann, "slack:T1:C2"}, inChannel.ID); !errors.Is(err, ErrUnknownNote) {
		t.Errorf("deleted from another channel: %v", err)
	}
	if got := recall(t, d, View{"slack:T1:U2", "slack:T1:C1"}, "salary"); len(got) != 0 {
		t.Errorf("another in the channel recalls %q", got)
	}
	// The same words in private are a note of their own, and are shown once.
	remember(t, d, ann, Note{Text: "salary review is in May."})
	if got := recall(t, d, annPrivate, "salary review"); len(got) != 3 {
		t.Errorf("in private: %q", got)
	}
}

// Counts hold over restarts, and a note that was deleted does not come back.
func TestRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nudge.db")
	counts := []int{}
	for start := range 3 {
		store, err := bolt.Open(path, bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		d := New(Config{Store: store})
		switch start {
		case 0:
			for _, text := range []string{"note one", "note two", "note three"} {
				remember(t, d, ann, Note{Text: text})
			}
		case 1:
			recall(t, d, annPrivate, "note")
			if err := remove(t, d, annPrivate, notesOf(t, d, annPrivate)[0].ID); err != nil {
				t.Fatal(err)
			}
		}
		counts = append(counts, len(recall(t, d, annPrivate, "note")))
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(counts, []int{3, 2, 2}) {
		t.Error(counts)
	}
}

// Readers meet no error and no deleted note while others write and delete.
func TestRace(t *testing.T) {
	d := newDiary(t, Config{})
	ctx := context.Background()
	var wait sync.WaitGroup
	const ops = 60
	for w := range 4 {
		wait.Go(func() {
			for i := range ops {
				if _, _, err := d.Remember(ctx, ann, Note{Text: fmt.Sprintf("note w-%d", (w+i)%10), Scope: Private}); err != nil {
					t.Error(err)
				}
			}
		})
		wait.Go(func() {
			for range ops {
				if notes := notesOf(t, d, annPrivate); len(notes) > 0 {
					if err := remove(t, d, annPrivate, notes[0].ID); err != nil && !errors.Is(err, ErrUnknownNote) {
						t.Error(err)
					}
				}
			}
		})
		wait.Go(func() {
			for range ops {
				if _, err := d.Recall(ctx, annPrivate, []string{"note w"}, 1000); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	for _, n := range notesOf(t, d, annPrivate) {
		if err := remove(t, d, annPrivate, n.ID); err != nil {
			t.Fatal(err)
		}
	}
	if got := recall(t, d, annPrivate, "note w"); len(got) != 0 {
		t.Errorf("deleted and found: %q", got)
	}
	if err := d.Store.View(ctx, func(tx memory.Tx) error {
		return Check(tx, func(problem string) { t.Error(problem) })
	}); err != nil {
		t.Fatal(err)
	}
}

func TestEdit(t *testing.T) {
	d := newDiary(t, Config{})
	n, _ := remember(t, d, ann, Note{Text: "The cat is called Mia", Aliases: []string{"pet"}, Said: day(1)})
	edited, err := d.Edit(t.Context(), annPrivate, n.ID, "The cat is called Mimi")
	if err != nil || edited.ID != n.ID {
		t.Fatal(edited, err)
	}
	if got := recall(t, d, annPrivate, "pet"); !slices.Equal(got, []string{"The cat is called Mimi"}) {
		t.Error(got)
	}
	if _, err := d.Edit(t.Context(), annPrivate, n.ID, " . "); !errors.Is(err, ErrBlank) {
		t.Error(err)
	}
	if len(notesOf(t, d, annPrivate)) != 1 {
		t.Error("an edit that fails leaves something else behind")
	}
}

// Nothing of a forgotten diary is left in the compacted data file, nor of a deleted note.
func TestErase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nudge.db")
	store, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := New(Config{Store: store})
	deleted, _ := remember(t, d, ann, Note{Text: "the vault word is xylophonequartz", Aliases: []string{"zanzibarlemon"}, About: "vaultsubject"})
	remember(t, d, "slack:T1:U2", Note{Text: "the vault word is marmaladebison", Aliases: []string{"ultramarinefox"}})
	remember(t, d, "slack:T1:U22", Note{Text: "keepsakeword stays"})
	recall(t, d, annPrivate, "vault")
	if err := remove(t, d, annPrivate, deleted.ID); err != nil {
		t.Fatal(err)
	}
	var gone Forgotten
	if err := store.Update(t.Context(), func(tx memory.Tx) (err error) {
		gone, err = d.Forget(tx, "slack:T1:U2")
		return err
	}); err != nil || gone != (Forgotten{Notes: 1, Vectors: 1}) {
		t.Fatal(gone, err)
	}
	if got := recall(t, d, View{"slack:T1:U2", Private}, "vault word"); len(got) > 0 {
		t.Errorf("forgotten and found: %q", got)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := bolt.Compact(path, bolt.Options{}); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"xylophonequartz", "zanzibarlemon", "vaultsubject", "marmaladebison", "ultramarinefox", deleted.ID} {
		if bytes.Contains(file, []byte(secret)) {
			t.Errorf("%q is in the data file", secret)
		}
	}
	if !bytes.Contains(file, []byte("keepsakeword")) {
		t.Error("what was to stay is gone, or this test looks for bytes that are never there")
	}
}

func TestMove(t *testing.T) {
	d := newDiary(t, Config{})
	remember(t, d, "slack:T1:U1", Note{Text: "I live in Bern", About: "home", Said: day(1)})
	remember(t, d, "discord:7", Note{Text: "I live in Zurich", About: "home", Said: day(2)})
	remember(t, d, "discord:7", Note{Text: "Likes tea", Said: day(3)})
	for _, from := range []string{"discord:7", "slack:T1:U1"} {
		if err := d.Store.Update(t.Context(), func(tx memory.Tx) error {
			_, err := d.Move(tx, from, "person:x", from)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if got := notesOf(t, d, View{from, Private}); len(got) != 0 {
			t.Errorf("left with %s: %+v", from, got)
		}
	}
	hits, err := d.Recall(t.Context(), View{"person:x", Private}, []string{"where do I live"}, 10)
	if err != nil || len(hits) != 1 || hits[0].Text != "I live in Zurich" || hits[0].Before == nil {
		t.Errorf("%+v, %v", hits, err)
	}
}

func TestRefused(t *testing.T) {
	d := newDiary(t, Config{})
	for name, n := range map[string]Note{
		"blank": {Text: " \n", Scope: Private}, "only marks": {Text: "…", Scope: Private}, "no scope": {Text: "tea"},
		"too long": {Text: strings.Repeat("a", MaxText+1), Scope: Private},
	} {
		if _, _, err := d.Remember(t.Context(), ann, n); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, _, err := d.Remember(t.Context(), "", Note{Text: "tea", Scope: Private}); err == nil {
		t.Error("a note of nobody's is taken")
	}
}

func TestAge(t *testing.T) {
	for ago, want := range map[time.Duration]string{
		time.Hour: "today", 24 * time.Hour: "1 day ago", 59 * 24 * time.Hour: "59 days ago", 60 * 24 * time.Hour: "2 months ago", 800 * 24 * time.Hour: "2 years ago",
	} {
		if got := (Note{Said: day(30).Add(-ago)}).Age(day(30)); got != want {
			t.Errorf("%s: %q, not %q", ago, got, want)
		}
	}
}
