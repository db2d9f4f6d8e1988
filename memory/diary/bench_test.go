package diary

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"nudge/memory"
)

// fill writes notes of some 12 words and 5 aliases for people, many in one transaction.
func fill(tb testing.TB, d *Diary, people, notes int) {
	tb.Helper()
	for p := 0; p < people; p++ {
		var drafts []Draft
		for i := range notes {
			draft, err := d.Draft(context.Background(), Note{Text: sentence(p*7919 + i), Aliases: aliasesOf(p*7919 + i), Scope: Private, Said: day(1 + i%28)})
			if err != nil {
				tb.Fatal(err)
			}
			drafts = append(drafts, draft)
		}
		err := d.Store.Update(context.Background(), func(tx memory.Tx) error {
			for _, draft := range drafts {
				if _, _, err := d.Put(tx, person(p), draft); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
}

func person(n int) string { return fmt.Sprintf("slack:T1:U%07d", n) }

var vocabulary = strings.Fields(`project deadline meeting garden kitchen daughter brother birthday office train bicycle coffee
tea allergy peanuts doctor passport flight hotel berlin zurich lisbon server database backup password keyboard monitor invoice
customer contract lawyer tax salary holiday mountain river camera guitar piano concert ticket museum novel recipe bread cheese
swimming running marathon shoes jacket winter summer morning evening weekend friday monday report review release branch deploy`)

func sentence(seed int) string {
	var words []string
	for i := range 12 {
		words = append(words, vocabulary[(seed*31+i*i*17+i*seed)%len(vocabulary)])
	}
	return strings.Join(words, " ") + fmt.Sprintf(" %d", seed)
}

func aliasesOf(seed int) []string {
	var list []string
	for i := range 5 {
		list = append(list, vocabulary[(seed*13+i*29)%len(vocabulary)]+" "+vocabulary[(seed*3+i*7)%len(vocabulary)])
	}
	return list
}

func BenchmarkRecall(b *testing.B) {
	for _, notes := range []int{100, 1000, 10000} {
		d := newDiary(b, Config{Store: openStore(b, filepath.Join(b.TempDir(), "nudge.db")), Room: 256 << 20})
		fill(b, d, 1, notes)
		v := View{person(0), Private}
		for name, queries := range map[string][]string{"1": {"which train to the museum"}, "4": {"which train to the museum", "railway exhibition", "gallery by rail", "museum trip"}} {
			b.Run(fmt.Sprintf("warm/%d/queries=%s", notes, name), func(b *testing.B) {
				for b.Loop() {
					if _, err := d.Recall(context.Background(), v, queries, 10); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(fmt.Sprintf("cold/%d", notes), func(b *testing.B) {
			for b.Loop() {
				d.shelf.clear()
				if _, err := d.Recall(context.Background(), v, []string{"which train to the museum"}, 10); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*notes), "ns/note")
		})
	}
}
