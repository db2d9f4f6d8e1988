package diary

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/philippgille/chromem-go"

	"nudge/memory"
)

func person(n int) string { return fmt.Sprintf("slack:T1:U%07d", n) }

var vocabulary = strings.Fields(`project deadline meeting garden kitchen daughter brother birthday office train bicycle coffee
tea allergy peanuts doctor passport flight hotel berlin zurich lisbon server database backup password keyboard monitor invoice
customer contract lawyer tax salary holiday mountain river camera guitar piano concert ticket museum novel recipe bread cheese
swimming running marathon shoes jacket winter summer morning evening weekend friday monday report review release branch deploy`)

// sentence is 12 words.
func sentence(seed int) string {
	var words []string
	for i := range 12 {
		words = append(words, vocabulary[(seed*31+i*i*17+i*seed)%len(vocabulary)])
	}
	return strings.Join(words, " ") + fmt.Sprintf(" %d", seed)
}

// aliasesOf are 5 of two words each.
func aliasesOf(seed int) (list []string) {
	for i := range 5 {
		list = append(list, vocabulary[(seed*13+i*29)%len(vocabulary)]+" "+vocabulary[(seed*3+i*7)%len(vocabulary)])
	}
	return list
}

// fill writes notes for people, the same for each, many in one transaction.
func fill(tb testing.TB, d *Diary, people, notes int) {
	tb.Helper()
	drafts := make([]Draft, notes)
	for i := range drafts {
		draft, err := d.Draft(context.Background(), Note{Text: sentence(i), Aliases: aliasesOf(i), Scope: Private, Said: day(1 + i%28)})
		if err != nil {
			tb.Fatal(err)
		}
		drafts[i] = draft
	}
	inOne := max(2000/notes, 1)
	for first := 0; first < people; first += inOne {
		err := d.Store.Update(context.Background(), func(tx memory.Tx) error {
			for p := first; p < min(first+inOne, people); p++ {
				for _, draft := range drafts {
					t := draft.trait()
					t.model, t.vectors = draft.model, draft.vectors
					if err := save(tx, person(p), draft.Note, t); err != nil {
						return err
					}
				}
				if err := touch(tx, person(p), d.Embedder.Model()); err != nil {
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

func filled(b *testing.B, people, notes int) *Diary {
	b.Helper()
	d := newDiary(b, Config{Store: openStore(b, filepath.Join(b.TempDir(), "nudge.db")), Room: 256 << 20})
	fill(b, d, people, notes)
	return d
}

// oneQuery is what rides along with a turn, fourQueries what a model asks for.
var (
	oneQuery    = []string{"which train to the museum"}
	fourQueries = []string{"which train to the museum", "railway exhibition", "gallery by rail", "museum trip"}
)

func recallOf(b *testing.B, d *Diary, p int, queries []string) {
	b.Helper()
	if _, err := d.Recall(context.Background(), View{person(p), Private}, queries, 10); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRecall looks for something among one person's notes, with their index in memory (warm) and without (cold).
func BenchmarkRecall(b *testing.B) {
	for _, notes := range []int{100, 1000, 10000} {
		d := filled(b, 1, notes)
		for _, queries := range [][]string{oneQuery, fourQueries} {
			b.Run(fmt.Sprintf("warm/notes=%d/queries=%d", notes, len(queries)), func(b *testing.B) {
				least := time.Hour
				for b.Loop() {
					begun := time.Now()
					recallOf(b, d, 0, queries)
					least = min(least, time.Since(begun))
				}
				b.ReportMetric(least.Seconds()*1e3, "ms/least")
			})
		}
		b.Run(fmt.Sprintf("cold/notes=%d", notes), func(b *testing.B) {
			least := time.Hour
			for b.Loop() {
				d.shelf.clear()
				begun := time.Now()
				recallOf(b, d, 0, oneQuery)
				least = min(least, time.Since(begun))
			}
			b.ReportMetric(least.Seconds()*1e3, "ms/least")
			b.ReportMetric(least.Seconds()*1e6/float64(notes), "µs/note")
		})
	}
}

// BenchmarkAmongMany looks for something among the 1,000 notes of one person, alone and among 100 who have as many, and in a
// collection of chromem's that has all 100,000 and a filter, as one would without an index for each person. They take turns, and
// of each the least disturbed turn counts.
func BenchmarkAmongMany(b *testing.B) {
	alone, many := filled(b, 1, 1000), filled(b, 100, 1000)
	all := together(b, many, 100)
	vector := many.queryVector(context.Background(), oneQuery)
	ways := []func(){
		func() { recallOf(b, alone, 0, oneQuery) },
		func() { recallOf(b, many, 0, oneQuery) },
		func() {
			if _, err := all.QueryEmbedding(context.Background(), vector, 10, map[string]string{"person": person(0)}, nil); err != nil {
				b.Fatal(err)
			}
		},
	}
	least, times := []time.Duration{time.Hour, time.Hour, time.Hour}, []int{50, 50, 1}
	for b.Loop() {
		for i, way := range ways {
			for range times[i] {
				begun := time.Now()
				way()
				least[i] = min(least[i], time.Since(begun))
			}
		}
	}
	b.ReportMetric(least[1].Seconds()*1e3, "ms/recall")
	b.ReportMetric(least[1].Seconds()/least[0].Seconds(), "many/alone")
	b.ReportMetric(least[2].Seconds()/least[1].Seconds(), "chromem/recall")
}

// together is one collection with the notes of all people.
func together(b *testing.B, d *Diary, people int) *chromem.Collection {
	b.Helper()
	c, err := chromem.NewDB().CreateCollection("all", nil, refuseToEmbed)
	if err != nil {
		b.Fatal(err)
	}
	err = d.Store.View(context.Background(), func(tx memory.Tx) error {
		return tx.Table(tableTrait).Scan("", func(name string, row []byte) error {
			t, err := decodeTrait(row)
			if err != nil {
				return err
			}
			whose, _, _ := strings.Cut(name, "\x00")
			return c.AddDocument(context.Background(), chromem.Document{ID: name, Embedding: t.vectors[0], Metadata: map[string]string{"person": whose}})
		})
	})
	if err != nil || c.Count() < people {
		b.Fatal(c.Count(), err)
	}
	return c
}

// BenchmarkMemory has 100 of many people look for something, each of whom has 50 notes, and reports what their indexes take.
// NUDGE_BENCH_PEOPLE says how many people there are.
func BenchmarkMemory(b *testing.B) {
	people, active := 1000, 100
	if n, err := strconv.Atoi(os.Getenv("NUDGE_BENCH_PEOPLE")); err == nil {
		people = n
	}
	d := filled(b, people, 50)
	for b.Loop() {
		d.shelf.clear()
		before := heap()
		for p := range active {
			recallOf(b, d, p*people/active, oneQuery)
		}
		b.ReportMetric(float64(heap()-before)/float64(active)/1024, "KB/active")
		b.ReportMetric(float64(d.shelf.used)/float64(active)/1024, "KB/counted")
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
