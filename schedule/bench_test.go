package schedule

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"nudge/memory"
	"nudge/memory/bolt"
)

// crowd is a clock over a data file with many heartbeats, each for a person of its own. Some fall due every minute of a wall
// clock that the test sets, the others not for years.
type crowd struct {
	store   *scales
	clock   *Clock
	at      atomic.Int64 // the wall clock, in nanoseconds
	checked atomic.Int64
}

// scales is a store that counts its commits, what is put into its rows, and the due rows that are looked at in order.
type scales struct {
	memory.Store
	commits, rows, bytes, scanned atomic.Int64
}

func (s *scales) View(ctx context.Context, fn func(memory.Tx) error) error {
	return s.Store.View(ctx, func(tx memory.Tx) error { return fn(weighing{tx, s}) })
}

func (s *scales) Update(ctx context.Context, fn func(memory.Tx) error) error {
	s.commits.Add(1)
	return s.Store.Update(ctx, func(tx memory.Tx) error { return fn(weighing{tx, s}) })
}

type weighing struct {
	memory.Tx
	scales *scales
}

func (w weighing) Table(name string) memory.Table { return weighedTable{w.Tx.Table(name), w.scales} }
func (w weighing) Due() memory.Due                { return weighedDue{w.Tx.Due(), w.scales} }

type weighedTable struct {
	memory.Table
	scales *scales
}

func (t weighedTable) Put(key string, value []byte) error {
	t.scales.rows.Add(1)
	t.scales.bytes.Add(int64(len(key) + len(value)))
	return t.Table.Put(key, value)
}

type weighedDue struct {
	memory.Due
	scales *scales
}

func (d weighedDue) Put(row memory.DueRow) error {
	d.scales.rows.Add(1)
	d.scales.bytes.Add(int64(len(row.Key) + 8 + len(row.Data)))
	return d.Due.Put(row)
}

func (d weighedDue) Scan(fn func(memory.DueRow) error) error {
	return d.Due.Scan(func(row memory.DueRow) error {
		d.scales.scanned.Add(1)
		return fn(row)
	})
}

type seldom struct{ of *crowd }

func (s seldom) Check(context.Context, string) (Finding, error) {
	s.of.checked.Add(1)
	return Finding{}, nil
}

func newCrowd(b *testing.B, people, due int) *crowd {
	b.Helper()
	store, err := bolt.Open(filepath.Join(b.TempDir(), "data"), bolt.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	c := &crowd{store: &scales{Store: store}}
	c.at.Store(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	for from := 0; from < people; from += 5000 {
		err := c.store.Update(b.Context(), func(tx memory.Tx) error {
			for i := from; i < min(from+5000, people); i++ {
				if err := Save(tx, beatOf(i, i < due), c.now()); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	c.clock = NewClock(Config{
		Store: c.store, Conditions: func(Heartbeat) (Condition, error) { return seldom{c}, nil },
		Wake: func(context.Context, Waking) (Ended, error) { b.Error("somebody was woken"); return Ended{}, nil },
	})
	c.clock.now = c.now
	return c
}

func beatOf(i int, due bool) Heartbeat {
	h := Heartbeat{
		Name: fmt.Sprintf("beat%06d", i), Cron: "@every 87600h", For: []string{fmt.Sprint("terminal:", i)}, Prompt: "Look.",
		Condition: Spec{Kind: "file", Path: "x", Test: "exists"},
	}
	if due {
		h.Cron = "@every 1m"
	}
	return h
}

func (c *crowd) now() time.Time { return time.Unix(0, c.at.Load()).UTC() }

// minute lets a minute pass and carries out what is due then.
func (c *crowd) minute(b *testing.B) {
	c.at.Add(int64(time.Minute))
	for {
		next, err := c.clock.pass(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		c.clock.begun.Wait()
		if next.After(c.now()) {
			return
		}
	}
}

// cpu is the processor time that this process has used.
func cpu(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

const (
	fewPeople  = 1_000
	manyPeople = 100_000
)

// BenchmarkDue compares the processor time of a due heartbeat among as many of few people's and of many people's, in turns.
func BenchmarkDue(b *testing.B) {
	const due = 500
	few, many := newCrowd(b, fewPeople, due), newCrowd(b, manyPeople, due)
	few.minute(b)
	many.minute(b)
	var used [2]time.Duration
	for b.Loop() {
		for i, c := range []*crowd{few, many} {
			before := cpu(b)
			c.minute(b)
			used[i] += cpu(b) - before
		}
	}
	each := func(i int) float64 { return float64(used[i].Microseconds()) / float64(b.N*due) }
	b.ReportMetric(each(0), "cpu-µs/due-few")
	b.ReportMetric(each(1), "cpu-µs/due")
	b.ReportMetric(each(1)/each(0), "many/few")
	b.ReportMetric(robfigDue(b, manyPeople)/robfigDue(b, fewPeople), "robfig-many/few")
}

// yearly is a schedule of robfig's that falls due every second, or at one of many times in years.
type yearly struct{ number int } // 0 for every second

func (y yearly) Next(at time.Time) time.Time {
	if y.number == 0 {
		return at.Truncate(time.Second).Add(time.Second)
	}
	return at.AddDate(10, 0, 0).Add(time.Duration(y.number*7919%86400) * time.Second)
}

// robfigDue is the processor time of robfig's own clock for each entry that falls due among so many, in µs.
func robfigDue(b *testing.B, entries int) float64 {
	const due = 10
	c, fired := cron.New(), atomic.Int64{}
	for i := range entries {
		c.Schedule(yearly{max(0, i-due+1)}, cron.FuncJob(func() { fired.Add(1) }))
	}
	c.Start()
	time.Sleep(time.Second)
	before, already := cpu(b), fired.Load()
	time.Sleep(4 * time.Second)
	used, ran := cpu(b)-before, fired.Load()-already
	<-c.Stop().Done()
	return float64(used.Microseconds()) / float64(ran)
}

// BenchmarkAdd adds heartbeats to many others while the clock runs, each with a commit of its own and several with one, and
// entries to robfig's clock that runs, in turns.
func BenchmarkAdd(b *testing.B) {
	c := newCrowd(b, manyPeople, 0)
	c.clock.now = time.Now
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.clock.Run(ctx)
	}()
	other := cron.New()
	for i := range manyPeople {
		other.Schedule(yearly{i + 1}, cron.FuncJob(func() {}))
	}
	other.Start()
	time.Sleep(time.Second) // both look at all that they have
	const round, several = 20, 400
	added := manyPeople
	alone := func() {
		for range round {
			added++
			if err := c.clock.Add(ctx, beatOf(added, false)); err != nil {
				b.Fatal(err)
			}
		}
	}
	together := func() {
		first := added + 1
		added += several
		err := c.store.Update(ctx, func(tx memory.Tx) error {
			for i := range several {
				if err := Save(tx, beatOf(first+i, false), time.Now()); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		c.clock.Look()
	}
	robfigs := func() {
		for i := range round {
			other.Schedule(yearly{added + i}, cron.FuncJob(func() {}))
		}
	}
	var used, made, writes [3]float64 // processor time in µs, allocations, and writes to files
	counts := [3]float64{round, several, round}
	commits, rows := c.store.commits.Load(), c.store.rows.Load()
	for b.Loop() {
		for i, way := range []func(){alone, together, robfigs} {
			allocated, written, begun := allocations(), ofProcess("syscw"), cpu(b)
			way()
			time.Sleep(100 * time.Millisecond) // what an added one sets off goes on after the call
			used[i] += float64((cpu(b) - begun).Microseconds()) / counts[i]
			made[i] += float64(allocations()-allocated) / counts[i]
			writes[i] += float64(ofProcess("syscw")-written) / counts[i]
		}
	}
	commits, rows = c.store.commits.Load()-commits-int64(b.N), c.store.rows.Load()-rows // but for those together
	cancel()
	<-done
	<-other.Stop().Done()
	n := float64(b.N)
	each := func(i int) float64 { return used[i] / n }
	b.ReportMetric(each(0), "cpu-µs/add")
	b.ReportMetric(each(1), "cpu-µs/add-of-several")
	b.ReportMetric(each(2), "robfig-cpu-µs/add")
	b.ReportMetric(each(2)/each(0), "robfig/alone")
	b.ReportMetric(each(2)/each(1), "robfig/of-several")
	b.ReportMetric(float64(commits)/(n*round), "commits/add")
	b.ReportMetric(float64(rows)/(n*(round+several)), "rows/add")
	b.ReportMetric(writes[0]/n, "writes/add")
	b.ReportMetric(made[0]/n, "allocs/add")
	b.ReportMetric(made[1]/n, "allocs/add-of-several")
}

func allocations() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// BenchmarkFalseTicks reports what a tick writes that wakes nobody: what is put into rows, what goes to the file, and by how
// much that grows.
func BenchmarkFalseTicks(b *testing.B) {
	const due = 100
	c := newCrowd(b, due, due)
	for range 2 * kept {
		c.minute(b) // until old outcomes are forgotten
	}
	commits, rows, written, ticks := c.store.commits.Load(), c.store.bytes.Load(), ofProcess("wchar"), c.checked.Load()
	for b.Loop() {
		c.minute(b)
	}
	each := float64(c.checked.Load() - ticks)
	b.ReportMetric(float64(c.store.bytes.Load()-rows)/each, "row-B/tick")
	b.ReportMetric(float64(c.store.commits.Load()-commits)/each, "updates/tick")
	if written > 0 {
		b.ReportMetric(float64(ofProcess("wchar")-written)/each, "written-B/tick")
	}
}

// ofProcess is what the system has counted of this process's writing: wchar, its bytes, or syscw, how often; 0 where that is not
// told.
func ofProcess(count string) int64 {
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		if name, number, found := bytes.Cut(bytes.TrimSpace(line), []byte(": ")); found && string(name) == count {
			n, _ := strconv.ParseInt(string(number), 10, 64)
			return n
		}
	}
	return 0
}
