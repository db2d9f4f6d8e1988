package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/tool/workspace"
	"nudge/memory"
)

const (
	mostRead  = 32 << 10 // bytes of a result that the model reads
	mostSaved = 1 << 20  // bytes of a result that are kept
)

// archive is a store with results, and the tool that pages through them.
type archive struct {
	store memory.Store
	read  agent.Tool
}

func newArchive(t testing.TB) archive {
	a := archive{store: open(t)}
	saved := func(ctx context.Context, session, id string) (text string, found bool, err error) {
		err = a.store.View(ctx, func(tx memory.Tx) (err error) {
			text, found, err = agent.Saved(tx, session, id)
			return err
		})
		return text, found, err
	}
	for _, tool := range workspace.Tools(workspace.Config{Dirs: workspace.Dirs{Dir: t.TempDir()}, Saved: saved}) {
		if tool.Name == "read_file" {
			a.read = tool
		}
	}
	return a
}

// update changes the store.
func (a archive) update(t rapid.TB, fn func(memory.Tx) error) {
	t.Helper()
	if err := a.store.Update(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}

// way finds what the model is told of the way to the whole.
var way = regexp.MustCompile(`\n\[… (\d+) bytes left out; read_file with path "result:([a-z2-7]+)" and an offset pages through (.*) …\]\n`)

// put saves a long result and returns its id and what the model reads.
func (a archive) put(t rapid.TB, session, text string) (id, bounded string) {
	t.Helper()
	bounded, save := agent.SaveResult("read_file", agenttest.Ann.ID, text)
	told := way.FindStringSubmatch(bounded)
	if save == nil || told == nil {
		t.Fatalf("of %d bytes nothing is saved, or it is not told: %.60q", len(text), bounded)
	}
	a.update(t, func(tx memory.Tx) error { return save(tx, session) })
	return told[2], bounded
}

func (a archive) get(t rapid.TB, session, id string) (text string, found bool) {
	t.Helper()
	err := a.store.View(context.Background(), func(tx memory.Tx) (err error) {
		text, found, err = agent.Saved(tx, session, id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return text, found
}

// rows counts what is in the store, besides the results the rows by which they age.
func (a archive) rows(t rapid.TB) (n int) {
	t.Helper()
	err := a.store.View(context.Background(), func(tx memory.Tx) error {
		n = 0
		count := func(string, []byte) error { n++; return nil }
		if err := tx.Table("saved").Scan("", count); err != nil {
			return err
		}
		counts := 0 // of people; those of files count for nobody
		if err := tx.Table("saved by person").Scan("", func(string, []byte) error { counts++; return nil }); err != nil {
			return err
		}
		err := tx.Table("saved by time").Scan("", func(_ string, of []byte) error {
			n++
			if len(of) > 0 {
				counts--
			}
			return nil
		})
		if counts != 0 && err == nil {
			err = fmt.Errorf("%d more results are counted for people than are theirs", counts)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// whole pages through a result as the pages say. The last page ends its last line, whether the result does or not.
func (a archive) whole(t rapid.TB, session, id string) string {
	t.Helper()
	var whole strings.Builder
	for offset := 1; offset > 0; {
		arguments, err := json.Marshal(map[string]any{"path": agent.SavedPrefix + id, "offset": offset})
		if err != nil {
			t.Fatal(err)
		}
		result, err := a.read.Run(context.Background(), agent.Invocation{Session: session, Person: agent.Person{ID: "terminal:ann"}, Arguments: arguments})
		if err != nil {
			t.Fatal(err)
		}
		if kept, cut := agent.Bound(result.Text, mostRead); cut || kept != result.Text {
			t.Fatalf("a page of %d bytes is bounded", len(result.Text))
		}
		at := strings.LastIndex(strings.TrimSuffix(result.Text, "\n"), "\n") + 1
		text, note := result.Text[:at], result.Text[at:]
		if strings.Contains(note, "cut; ") {
			text = strings.TrimSuffix(text, "\n")
		}
		whole.WriteString(text)
		before := offset
		if _, next, more := strings.Cut(note, "go on with offset "); !more {
			offset = 0
		} else if _, err := fmt.Sscanf(next, "%d;", &offset); err != nil || offset <= before {
			t.Fatalf("from %d it goes on with %q: %v", before, next, err)
		}
	}
	return whole.String()
}

// longText has lines of all lengths, and runes and emoji wherever a cut may fall.
var longText = rapid.Custom(func(t *rapid.T) string {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{"x", "é", "🏷", "👩‍👩‍👧", "👍🏽", "e\u0301", "a line\n", "a line\r\n", "\uFFFD", "\u0301"}),
		rapid.StringMatching(`[a-z… \[\]]{1,30}`),
	)
	var text strings.Builder
	for text.Len() <= mostRead {
		part := piece.Draw(t, "part")
		text.WriteString(strings.Repeat(part, rapid.IntRange(1, 30_000/len(part)).Draw(t, "times")))
		text.WriteString(rapid.SampledFrom([]string{"", "\n", "\r\n", "\r"}).Draw(t, "end"))
	}
	return text.String()
})

func TestWhatWasLeftOutCanBePagedThrough(t *testing.T) {
	a := newArchive(t)
	rapid.Check(t, func(t *rapid.T) {
		text := longText.Draw(t, "text")
		session := rapid.SampledFrom([]string{"terminal:ann", "slack:T1:C1:1", strings.Repeat("x", memory.MaxID)}).Draw(t, "session")
		id, bounded := a.put(t, session, text)
		whole := a.whole(t, session, id)
		if !strings.HasSuffix(text, "\n") {
			whole = strings.TrimSuffix(whole, "\n")
		}
		if whole != text {
			t.Fatalf("%d bytes came back of %d", len(whole), len(text))
		}
		told := way.FindStringSubmatchIndex(bounded)
		head, tail, left := bounded[:told[0]], bounded[told[1]:], 0
		if _, err := fmt.Sscan(bounded[told[2]:told[3]], &left); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(whole, head) || !strings.HasSuffix(whole, tail) || len(head)+left+len(tail) != len(whole) || len(bounded) > mostRead {
			t.Fatalf("the model reads %d and %d bytes of %d, and that %d are left out", len(head), len(tail), len(whole), left)
		}
	})
}

func TestASavedResultIsOfOneSession(t *testing.T) {
	a := newArchive(t)
	text := strings.Repeat("private ", 10_000)
	id, _ := a.put(t, "slack:T1:C1", text)
	for _, session := range []string{"", "slack:T1:C1/", "slack:T1:C1:1", "slack:T1", "slack:T1:c1", "slack:T1:C1/" + id} {
		for _, of := range []string{id, "", "../" + id, "/" + id, strings.Repeat("x", 2000)} {
			if got, found := a.get(t, session, of); found {
				t.Errorf("%q read %.20q of %q", session, got, of)
			}
		}
	}
	if got, found := a.get(t, "slack:T1:C1", id); got != text || !found {
		t.Errorf("its own session read %.20q, %v", got, found)
	}
	for _, of := range []string{"", id[1:], id + "x", strings.ToUpper(id)} {
		if got, found := a.get(t, "slack:T1:C1", of); found {
			t.Errorf("%q is %.20q", of, got)
		}
	}
}

func TestSavedResultsAgeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newArchive(t)
		var ids []string
		for i := range 5 {
			id, _ := a.put(t, fmt.Sprint("session ", i), strings.Repeat(fmt.Sprint("result ", i, "\n"), 10_000))
			ids = append(ids, id)
			time.Sleep(time.Hour)
		}
		// Got again, the first one is the youngest.
		if again, _ := a.put(t, "session 0", strings.Repeat("result 0\n", 10_000)); again != ids[0] || a.rows(t) != 10 {
			t.Errorf("got again, %s is %s, and there are %d rows", ids[0], again, a.rows(t))
		}
		sweep := func(age time.Duration, limit, want int) {
			t.Helper()
			removed := -1
			a.update(t, func(tx memory.Tx) (err error) {
				removed, err = agent.SweepSaved(tx, time.Now().Add(-age), limit)
				return err
			})
			if removed != want {
				t.Errorf("of what is older than %s %d went, want %d", age, removed, want)
			}
		}
		left := func(want ...int) {
			t.Helper()
			var found []int
			for i, id := range ids {
				if _, ok := a.get(t, fmt.Sprint("session ", i), id); ok {
					found = append(found, i)
				}
			}
			if fmt.Sprint(found) != fmt.Sprint(want) || a.rows(t) != 2*len(want) {
				t.Errorf("%v are left in %d rows, want %v", found, a.rows(t), want)
			}
		}
		sweep(4*time.Hour, 9, 0) // the second is exactly that old
		sweep(4*time.Hour-1, 0, 0)
		sweep(4*time.Hour-1, 9, 1)
		left(0, 2, 3, 4)
		sweep(time.Minute, 2, 2)
		left(0, 4)
		sweep(-time.Minute, 2, 2)
		left()
		sweep(-time.Minute, 2, 0)
	})
}

func TestSavedResultsAreErasedWithTheirSession(t *testing.T) {
	a := newArchive(t)
	one, two := strings.Repeat("one ", 10_000), strings.Repeat("two ", 10_000)
	gone, _ := a.put(t, "ann", one)
	a.put(t, "ann", two)
	kept, _ := a.put(t, "ann:1", one)
	for _, want := range []int{2, 0} {
		removed := -1
		a.update(t, func(tx memory.Tx) (err error) {
			removed, err = agent.EraseSaved(tx, "ann")
			return err
		})
		if removed != want {
			t.Errorf("%d were erased, want %d", removed, want)
		}
	}
	if _, found := a.get(t, "ann", gone); found {
		t.Error("an erased result is there")
	}
	if got, found := a.get(t, "ann:1", kept); !found || got != one || a.rows(t) != 2 {
		t.Errorf("of another session there is %.20q, %v, in %d rows", got, found, a.rows(t))
	}
}

// However many sessions a person begins, no more is kept of their results than a bound, the newest, and others' stay.
func TestSoMuchIsSavedForOnePerson(t *testing.T) {
	const most = 5
	agent.SavedAtMost(t, most*(mostRead+100))
	synctest.Test(t, func(t *testing.T) {
		a := newArchive(t)
		of := func(person agent.PersonID, n int) (session, id string) {
			session = fmt.Sprint(person, ":", n)
			bounded, save := agent.SaveResult("read_file", person, fmt.Sprintf("%010d", n)+strings.Repeat("x", mostRead))
			a.update(t, func(tx memory.Tx) error { return save(tx, session) })
			time.Sleep(time.Second)
			return session, way.FindStringSubmatch(bounded)[2]
		}
		type result struct{ session, id string }
		var bobs, anns []result
		for n := range 3 {
			session, id := of("api:bob", n)
			bobs = append(bobs, result{session, id})
		}
		for n := range most + 5 {
			session, id := of("api:ann", n)
			anns = append(anns, result{session, id})
		}
		kept := 0
		for n, r := range anns {
			if _, found := a.get(t, r.session, r.id); found {
				kept++
			} else if kept > 0 {
				t.Errorf("result %d is gone, and an older one is kept", n)
			}
		}
		if kept != most {
			t.Errorf("%d of one person's are kept, want %d", kept, most)
		}
		for n, r := range bobs {
			if _, found := a.get(t, r.session, r.id); !found {
				t.Errorf("result %d of somebody else is gone", n)
			}
		}
		if n := a.rows(t); n != 2*(most+len(bobs)) {
			t.Errorf("they take %d rows", n)
		}
		consistent(t, a.store)
	})
}

func TestAtMostOneMiBIsSaved(t *testing.T) {
	a := newArchive(t)
	exact := strings.Repeat("x", mostSaved)
	id, bounded := a.put(t, "ann", exact)
	if got, _ := a.get(t, "ann", id); got != exact || !strings.Contains(bounded, "pages through all of it …]") {
		t.Errorf("of exactly 1 MiB %d bytes were kept", len(got))
	}
	long := "x" + strings.Repeat("🏷", 600_000)
	id, bounded = a.put(t, "ann", long)
	got, _ := a.get(t, "ann", id)
	head, note, _ := strings.Cut(got, "\n[… ")
	missing := 0
	if _, err := fmt.Sscanf(note, "%d bytes more were not saved …]\n", &missing); err != nil || len(head)+missing != len(long) || !strings.HasPrefix(long, head) {
		t.Errorf("%d bytes are kept and %d not, of %d, %v", len(head), missing, len(long), err)
	}
	if len(got) > mostSaved || len(got) < mostSaved-10 || !utf8.ValidString(got) || !strings.Contains(bounded, "pages through its first MiB …]") || !strings.HasSuffix(bounded, "🏷") {
		t.Errorf("%d bytes were kept, and the model reads …%q", len(got), bounded[mostRead/2-100:mostRead/2+100])
	}
	if whole := a.whole(t, "ann", id); whole != got {
		t.Errorf("%d bytes came back of %d", len(whole), len(got))
	}
}

func TestWhatIsNoTextIsNotSavedAsItIs(t *testing.T) {
	a := newArchive(t)
	bounded, save := agent.SaveResult("read_file", agenttest.Ann.ID, strings.Repeat("\x00\xff", 1<<20))
	if bounded != "binary, 2097152 bytes" || save != nil {
		t.Errorf("a binary is %q, saved %v", bounded, save != nil)
	}
	if bounded, save := agent.SaveResult("read_file", agenttest.Ann.ID, strings.Repeat("x", mostRead)); len(bounded) != mostRead || save != nil {
		t.Errorf("what fits has %d bytes, saved %v", len(bounded), save != nil)
	}
	id, _ := a.put(t, "ann", strings.Repeat("a longer text \xff and text \x00\n", 10_000))
	if got, _ := a.get(t, "ann", id); got != strings.Repeat("a longer text \uFFFD and text \uFFFD\n", 10_000) {
		t.Errorf("bad bytes are kept as %.40q", got)
	}
}

// A result whose transaction fails, or is run twice, leaves nothing or one.
func TestSavingIsAllOrNothing(t *testing.T) {
	a := newArchive(t)
	_, save := agent.SaveResult("read_file", agenttest.Ann.ID, strings.Repeat("x", 100_000))
	failed := fmt.Errorf("no")
	err := a.store.Update(context.Background(), func(tx memory.Tx) error {
		if err := save(tx, "ann"); err != nil {
			return err
		}
		return failed
	})
	if err == nil || a.rows(t) != 0 {
		t.Errorf("%v, and %d rows are left", err, a.rows(t))
	}
	for range 2 {
		a.update(t, func(tx memory.Tx) error { return save(tx, "ann") })
	}
	if a.rows(t) != 2 {
		t.Errorf("saved twice it has %d rows", a.rows(t))
	}
}
