package diary

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"nudge/memory"
)

// Whatever is noted, edited, joined and parted, everybody has what they said, with whichever accounts are theirs, and
// what others said only while they are one person with these. What nobody knows the origin of stays where it is.
func TestNotesGoWithTheAccountInWhichTheyWereSaid(t *testing.T) {
	type saying map[string]map[string]bool // text → the accounts that said it; "" for nobody knows
	accounts := []string{"slack:T1:U1", "discord:1", "api:x"}
	rapid.Check(t, func(rt *rapid.T) {
		d := newDiary(t, Config{})
		update := func(fn func(tx memory.Tx) error) {
			if err := d.Store.Update(t.Context(), fn); err != nil {
				rt.Fatal(err)
			}
		}
		whose, said := map[string]string{}, map[string]saying{}
		for _, a := range accounts {
			whose[a], said[a] = a, saying{}
		}
		members := func(person string) (all []string) {
			for _, a := range accounts {
				if whose[a] == person {
					all = append(all, a)
				}
			}
			return all
		}
		say := func(rt *rapid.T, n int, account string) {
			note := Note{Text: fmt.Sprintf("fact %d", n), Scope: Private, Said: day(1 + n), Origin: Origin{Account: account}}
			if n%2 == 0 {
				note.About = "the weather"
			}
			by := account
			if rapid.IntRange(0, 4).Draw(rt, "origin") == 0 {
				note.Origin.Account, by = "", ""
			}
			if _, _, err := d.Remember(t.Context(), whose[account], note); err != nil {
				rt.Fatal(err)
			}
			texts := said[whose[account]]
			if texts[note.Text] == nil {
				texts[note.Text] = map[string]bool{}
			}
			texts[note.Text][by] = true
		}
		join := func(one, other string, step int) {
			to := fmt.Sprintf("person:%d", step)
			said[to] = saying{}
			for _, was := range []string{whose[one], whose[other]} {
				only := ""
				if m := members(was); len(m) == 1 {
					only = m[0]
				}
				update(func(tx memory.Tx) error {
					_, err := d.Move(tx, was, to, only)
					return err
				})
				for text, by := range said[was] {
					if by[""] && only != "" {
						by = map[string]bool{only: true}
					}
					if said[to][text] == nil {
						said[to][text] = map[string]bool{}
					}
					maps.Copy(said[to][text], by)
				}
				for _, a := range members(was) {
					whose[a] = to
				}
				delete(said, was)
			}
		}
		part := func(account string) {
			was, went := whose[account], 0
			whose[account], said[account] = account, saying{}
			for text, by := range said[was] {
				if !by[account] {
					continue
				}
				went++
				said[account][text] = map[string]bool{account: true}
				if delete(by, account); len(by) == 0 {
					delete(said[was], text)
				}
			}
			update(func(tx memory.Tx) error {
				n, err := d.Part(tx, was, account)
				if n != went {
					rt.Fatalf("%d notes went with %s, want %d", n, account, went)
				}
				return err
			})
		}
		edit := func(person string, step int) {
			texts := slices.Sorted(maps.Keys(said[person]))
			for _, n := range notesOf(t, d, View{person, Private}) {
				if n.Text != texts[0] {
					continue
				}
				text := fmt.Sprintf("edited %d", step)
				if _, err := d.Edit(t.Context(), View{person, Private}, n.ID, text); err != nil {
					rt.Fatal(err)
				}
				said[person][text] = said[person][n.Text]
				delete(said[person], n.Text)
			}
		}
		for step := range rapid.IntRange(1, 25).Draw(rt, "steps") {
			one, other := rapid.SampledFrom(accounts).Draw(rt, "one"), rapid.SampledFrom(accounts).Draw(rt, "other")
			switch kind := rapid.IntRange(0, 4).Draw(rt, "kind"); {
			case kind == 0 && whose[one] != whose[other]:
				join(one, other, step)
			case kind == 1 && len(members(whose[one])) > 1:
				part(one)
			case kind == 2 && len(said[whose[one]]) > 0:
				edit(whose[one], step)
			default:
				say(rt, rapid.IntRange(0, 5).Draw(rt, "fact"), one)
			}
			for _, a := range accounts {
				var got []string
				for _, n := range notesOf(t, d, View{whose[a], Private}) {
					got = append(got, n.Text)
				}
				slices.Sort(got)
				if want := slices.Sorted(maps.Keys(said[whose[a]])); !slices.Equal(got, want) {
					rt.Fatalf("%s has %q, want %q", a, got, want)
				}
			}
			update(func(tx memory.Tx) error { return Check(tx, func(problem string) { rt.Fatal(problem) }) })
		}
	})
}
