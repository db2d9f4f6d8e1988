package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/memory"
	"nudge/memory/bolt"
	"nudge/memory/memorytest"
)

// The sweep plays one long conversation again and again, and each time the program dies at another point of it: before
// or after one of its commits, or one of the things that it does outside itself. Then it starts again, and what comes of
// the conversation is compared with the one that nothing disturbed.

// performance is one whole conversation, with what came of it.
type performance struct {
	program
	out    *outside
	points int     // of its last life
	trace  []point // of them, where it is known
	left   *remains

	deaths   []string // where it died
	wreckage wreckage
}

func newPerformance(p program, out *outside) *performance {
	return &performance{program: p, out: out, wreckage: wreckage{map[string]bool{}, map[string]bool{}, map[string]bool{}}}
}

// died takes a death, after which the store has what is left.
func (p *performance) died(m mishap, at string) {
	p.deaths = append(p.deaths, fmt.Sprintf("%s, %s", m, at))
	p.wreckage.add(p.left)
}

// perform plays a conversation in a bubble, with a mishap for each of the program's first lives.
func perform(t *testing.T, p program, spoil func(memory.Store) memory.Store, mishaps ...mishap) (done *performance) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		dir := memorytest.Dir(t)
		disk, err := bolt.Open(filepath.Join(dir, storeFile), bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = disk.Close() }()
		s, faulty := newStage(p, &outside{}, dir, disk, spoil)
		done = newPerformance(p, s.out)
		for {
			s.mishap = mishap{}
			if died := len(done.deaths); len(mishaps) > died {
				s.mishap = mishaps[died]
			}
			over := s.live()
			left, err := examine(disk)
			if err != nil {
				t.Fatal(err)
			}
			done.left, done.points, done.trace = left, s.count, s.points
			if over && !s.isDead() {
				return
			}
			done.died(s.mishap, s.at(s.mishap.at))
			if len(done.deaths) > len(mishaps) {
				t.Fatalf("the program ended by itself; it complains of %v", s.out.of(wasWrong))
			}
			faulty.Revive()
		}
	})
	return done
}

// remains is what a conversation leaves in the store.
type remains struct {
	entries []noted // of each session in their order
	spent   agent.Money
	open    []string // what should have been done with
}

func examine(store memory.Store) (*remains, error) {
	left := &remains{}
	err := store.View(context.Background(), func(tx memory.Tx) error {
		*left = remains{}
		var sessions []string
		err := tx.Journal().Sessions("", func(session string, _ memory.Entry) error { sessions = append(sessions, session); return nil })
		for _, session := range sessions {
			err = errors.Join(err, tx.Journal().Read(session, 0, func(e memory.Entry) error {
				left.entries = append(left.entries, noteEntry(session, e))
				return nil
			}))
		}
		mail, mailErr := tx.Inbox().Sessions()
		for _, session := range mail {
			left.open = append(left.open, "mail of "+session)
		}
		for _, table := range []string{"open", "owed", "waiting"} {
			err = errors.Join(err, tx.Table(table).Scan("", func(key string, _ []byte) error {
				left.open = append(left.open, table+" "+key)
				return nil
			}))
		}
		return errors.Join(err, mailErr,
			tx.Due().Scan(func(r memory.DueRow) error { left.open = append(left.open, "due "+r.Key); return nil }),
			tx.Outbox().List(0, func(p memory.Parcel) error { left.open = append(left.open, "a reply for "+p.Conversation); return nil }),
			tx.Table("spend").Scan("", func(_ string, value []byte) error {
				var spent int64
				_, err := fmt.Sscan(string(value), &spent)
				left.spent += agent.Money(spent)
				return err
			}))
	})
	return left, err
}

// of are the entries of a kind.
func (r *remains) of(kind string) []noted {
	return slices.DeleteFunc(slices.Clone(r.entries), func(n noted) bool { return n.kind != kind })
}

// wakes counts the turns that heartbeats began.
func (r *remains) wakes() (n int) {
	for _, e := range r.of("turn_started") {
		if agent.WakeOwner(e.session) != "" {
			n++
		}
	}
	return n
}

// lost are the model calls that a death cut off.
func (r *remains) lost() []noted {
	return slices.DeleteFunc(r.of("model_lost"), func(n noted) bool { return n.Unsent })
}

// toll is what deaths cost.
type toll struct {
	lost    int // model calls
	unknown int // calls with effects that may or may not have run
	results int // results of calls that are known to have run
}

// wreckage is what was under way when the program died, by what was on disk: each thing by the entry that began it.
type wreckage struct{ lost, unknown, results map[string]bool }

func (w *wreckage) toll() toll { return toll{len(w.lost), len(w.unknown), len(w.results)} }

// add takes what is under way in a store.
func (w *wreckage) add(left *remains) {
	asking, calling, returned := map[string]string{}, map[string]string{}, map[string]bool{}
	for _, e := range left.entries {
		call, begun := e.session+e.Turn+e.Call, fmt.Sprint(e.session, e.seq)
		switch {
		case e.kind == "model_asked":
			asking[e.session] = begun
		case e.kind == "model_call", e.kind == "model_lost":
			delete(asking, e.session)
		case e.kind == "tool_call" && e.Effect == agent.Effectful:
			calling[call], returned[call] = begun, false
		case e.kind == "tool_ran":
			returned[call] = true
		case e.kind == "tool_result":
			delete(calling, call)
		}
	}
	for _, begun := range asking {
		w.lost[begun] = true
	}
	for call, begun := range calling {
		if returned[call] {
			w.results[begun] = true
		} else {
			w.unknown[begun] = true
		}
	}
}

// comparison sets a conversation in which the program died beside the same one that nothing disturbed.
type comparison struct {
	*performance
	calm  *performance
	toll  toll // what the deaths cost, as far as can be told from outside
	found []string
}

func (c *comparison) errorf(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

// compare tells what is wrong with a conversation, by the rules alone if calm is nil.
func (p *performance) compare(calm *performance) []string {
	c := &comparison{performance: p, calm: calm}
	for _, h := range p.out.of(wasWrong) {
		c.errorf("%s", h.Text)
	}
	for _, what := range p.left.open {
		c.errorf("at the end there is %s", what)
	}
	c.answers()
	c.deeds()
	c.words()
	c.money()
	c.deliveries()
	if told := p.toldUnknown(""); told != c.toll.unknown {
		c.errorf("people were told %d times that an outcome is unknown, which it was %d times", told, c.toll.unknown)
	}
	due := p.wreckage.toll()
	if p.again && c.toll.unknown > due.unknown && c.toll.unknown <= len(p.deaths) {
		due.unknown = c.toll.unknown // a yes to running it again that a death overtook is asked for once more
	}
	if c.toll != due {
		c.errorf("%d deaths cost %+v, and not %+v", len(p.deaths), c.toll, due)
	}
	return c.found
}

// spoken is what a person reads as an answer, or in the place of one.
func (p *performance) spoken() (lines []string) {
	for _, r := range agenttest.Only(p.out.replies(), agent.Final, agent.Notify, agent.Notice, agent.Fault) {
		if !strings.Contains(r.Text, "its outcome is unknown") {
			lines = append(lines, r.Text)
		}
	}
	return lines
}

// toldUnknown counts how often a person was told that the outcome of a call of a tool is unknown.
func (p *performance) toldUnknown(tool string) (n int) {
	for _, r := range agenttest.Only(p.out.replies(), agent.Notice) {
		if strings.Contains(r.Text, tool+" ran, and its outcome is unknown") {
			n++
		}
	}
	return n
}

// runs is how often a call was run.
func (p *performance) runs(tool, x string) (n int) {
	for _, h := range p.out.of(wasRun) {
		if h.Tool == tool && h.X == x {
			n++
		}
	}
	return n
}

// answers holds that each answer is the one that was due, but for what it must say of calls that a death cut off.
func (c *comparison) answers() {
	got := c.spoken()
	for _, r := range c.out.replies() {
		if c.again && asksAgain(r) {
			c.toll.unknown++
		}
	}
	for _, want := range c.says() {
		line := ""
		if len(got) > 0 {
			line = got[0]
		}
		if of, parked := strings.CutPrefix(want, "told: "); parked && line != want {
			c.parked(of)
			continue
		}
		got = got[min(len(got), 1):]
		parts, wants := strings.Split(line, "; "), strings.Split(want, "; ")
		act, first, _ := strings.Cut(wants[0], ": ")
		if len(parts) != len(wants) || !doneWords.MatchString(first) || !strings.HasPrefix(parts[0], act+": ") {
			if line != want {
				c.errorf("it says %q, and not %q", line, want)
			}
			continue
		}
		parts[0], wants[0] = strings.TrimPrefix(parts[0], act+": "), first
		for i, due := range wants {
			if why := c.part(due, parts[i], slices.Contains(parts[:i], interruptedWords)); why != "" {
				c.errorf("%s says %q of what should be %q: %s", act, parts[i], due, why)
			}
		}
	}
	for _, line := range got {
		c.errorf("it says %q besides", line)
	}
}

// What the model, and so its answer, says of calls that a death cut off.
const (
	interruptedWords = "interrupted, outcome unknown"
	lostWords        = "it ran, and its result was lost when the program ended"
	notStartedWords  = "not run, not started"
)

// part says why what is said of one call is neither as it was nor true after a death; "" when it is.
func (c *comparison) part(want, got string, afterUnknown bool) (why string) {
	call := doneWords.FindStringSubmatch(want)
	times, most := 0, 0
	if call != nil {
		times, most = c.runs(call[1], call[2]), c.most(call[1], call[2])
	}
	effect := call != nil && effects[call[1]] == agent.Effectful
	right := false
	switch {
	case got == want:
		right = call == nil || times >= 1 && times <= most && !(effect && afterUnknown)
	case got == notStartedWords:
		right = afterUnknown && times == 0
	case got == interruptedWords && effect:
		c.toll.unknown++
		right = times <= most && c.toldUnknown(call[1]) > 0
	case got == lostWords && effect:
		c.toll.results++
		right = times >= 1 && times <= most
	}
	if right {
		return ""
	}
	return fmt.Sprintf("it ran %d times", times)
}

// most is how often a call may be run: with effects once, and once more each time that a person said so.
func (c *comparison) most(tool, x string) int {
	if effects[tool] != agent.Effectful {
		return 1 + len(c.deaths)
	}
	most := 1
	for _, r := range c.out.replies() {
		if c.again && asksAgain(r) && r.Tool == tool && xOf(r.Arguments) == x {
			most++
		}
	}
	return most
}

// parked holds that a parked call which has no answer was declared unknown, to the person and to the model.
func (c *comparison) parked(done string) {
	call := doneWords.FindStringSubmatch(done)
	c.toll.unknown++
	if c.runs(call[1], call[2]) > 1 || c.toldUnknown(call[1]) == 0 {
		c.errorf("%q is not told, and it ran %d times", done, c.runs(call[1], call[2]))
	}
	if !slices.ContainsFunc(c.out.of(wasWarned), func(h happening) bool { return strings.Contains(h.Text, call[2]) }) {
		c.errorf("the model never reads that the outcome of %s %s is unknown", call[1], call[2])
	}
}

// deeds holds that nothing was done but what was due, each call under one key.
func (c *comparison) deeds() {
	keys, due := map[string]string{}, strings.Join(c.says(), "; ")
	for _, h := range c.out.of(wasRun) {
		call := h.Tool + " " + h.X
		if keys[call] == "" {
			keys[call] = h.Key
		}
		if keys[call] != h.Key && h.Tool != "notify" { // woken again, it is another call
			c.errorf("%s ran under the keys %s and %s", call, keys[call], h.Key)
		}
		if effects[h.Tool] != agent.Effectful {
			continue
		}
		if !strings.Contains(due+";", h.Tool+" done "+h.X+";") && !strings.Contains(due, h.Tool+" done "+h.X+" checked") {
			c.errorf("%s ran, which was not due", call)
		}
		if n := c.runs(h.Tool, h.X); n > c.most(h.Tool, h.X) {
			c.errorf("%s ran %d times", call, n)
		}
	}
}

// deliveries holds that each reply was delivered, and none that was not due.
func (c *comparison) deliveries() {
	times := map[uint64]int{}
	for _, h := range c.out.of(wasHeard) {
		if times[h.Parcel]++; times[h.Parcel] > 1+len(c.deaths) {
			c.errorf("a %s was delivered %d times", h.Reply.Kind, times[h.Parcel])
		}
	}
	settled := len(agenttest.Only(c.out.replies(), agent.SettledMark))
	for _, e := range c.left.of("run_stopped") {
		if e.Reason != agent.Waiting && agent.WakeOwner(e.session) == "" {
			settled--
		}
	}
	if settled != 0 {
		c.errorf("%d more turns are settled than ended", settled)
	}
	if c.calm == nil || c.toll.unknown+c.toll.results > 0 {
		return // the answers differ from any
	}
	want, got := c.calm.lines(c.toll.lost > 0), c.lines(c.toll.lost > 0)
	for i := range max(len(want), len(got)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			c.errorf("of %d and not %d replies, from the %d. on\n%s\nwas said, and not\n%s", len(got), len(want), i+1,
				strings.Join(got[min(i, len(got)):min(i+3, len(got))], "\n"), strings.Join(want[min(i, len(want)):min(i+3, len(want))], "\n"))
			return
		}
	}
}

var stepWords = regexp.MustCompile(` step \d+| \d+ steps|step_limit .*`)

// lines are the replies in short; without steps, if model calls were lost, which count.
func (p *performance) lines(stepless bool) []string {
	lines := strings.Split(strings.TrimSpace(agenttest.Lines(p.out.replies())), "\n")
	for i := range lines {
		if stepless {
			lines[i] = stepWords.ReplaceAllString(lines[i], "")
		}
	}
	return lines
}

// words holds that what a person said was taken up once.
func (c *comparison) words() {
	for _, cue := range c.cues() {
		if cue.message.Provenance != agent.Human || cue.message.Stop || cue.message.Text == "continue" {
			continue
		}
		taken := 0
		for _, e := range c.left.entries {
			if e.kind == "message" && slices.Contains(e.IDs, cue.key) || e.kind == "question_answered" && e.Text == cue.message.Text {
				taken++
			}
		}
		if taken != 1 {
			c.errorf("%s was taken up %d times", cue.key, taken)
		}
	}
}

// money holds that what was answered costs the same, and that what was lost is charged its reserve and marked.
func (c *comparison) money() {
	reserves, costs, unknown := map[string]agent.Money{}, map[string]agent.Money{}, map[string]bool{}
	var total agent.Money
	for _, e := range c.left.entries {
		step := fmt.Sprint(e.Turn, e.Step, e.Summary)
		switch e.kind {
		case "model_asked":
			reserves[e.Turn] = e.Reserve
			if (e.Reserve > 0) != c.priced {
				c.errorf("step %s reserves %d", step, e.Reserve)
			}
		case "model_lost":
			if !e.Unsent && (!e.Unknown || e.Charge != reserves[e.Turn]) || e.Unsent && e.Charge != 0 {
				c.errorf("a lost model call is charged %d and marked %t; its reserve was %d", e.Charge, e.Unknown, reserves[e.Turn])
			}
			unknown[e.Turn] = unknown[e.Turn] || e.Unknown
		}
		costs[e.Turn] += e.Cost + e.Charge
		total += e.Cost + e.Charge
	}
	if total != c.left.spent {
		c.errorf("%d was spent, and the journals come to %d", c.left.spent, total)
	}
	for _, r := range c.out.replies() {
		if r.Kind == agent.SettledMark && r.Reason != agent.StepLimit && (r.CostUSD != costs[r.Turn].USD() || r.Unknown != unknown[r.Turn]) {
			c.errorf("a turn is settled with $%f, unknown %t; its journal has $%f, unknown %t", r.CostUSD, r.Unknown, costs[r.Turn].USD(), unknown[r.Turn])
		}
	}
	c.toll.lost = len(c.left.lost())
	c.modelCalls()
	if c.calm != nil && c.trace != nil && c.sameRequests() && total != c.calm.left.spent {
		c.errorf("%d was spent, and not %d", total, c.calm.left.spent)
	}
}

// sameRequests reports whether the model read the same as undisturbed: nothing was lost, no wake was repeated, and the
// read that the Stop cut off was not cut off by a death before, which it is told in other words.
func (c *comparison) sameRequests() bool {
	stopped := slices.ContainsFunc(c.left.of("tool_result"), func(n noted) bool { return n.Tool == "slow" && strings.HasPrefix(n.Text, "not run") })
	return !stopped && c.toll == toll{} && c.left.wakes() == c.calm.left.wakes()
}

// modelCalls holds that the model was asked no more than it had to be. A wake that ended in the instant of a death is
// repeated, in two steps; a parked call that is unknown opens no turn. Where nothing is paid, what was asked in the last
// milliseconds may be asked again.
func (c *comparison) modelCalls() {
	wakes := c.left.wakes()
	for _, name := range c.acts {
		if name == "wake" {
			wakes--
		}
	}
	want := c.asks() + 2*wakes
	for _, line := range c.says() {
		if strings.HasPrefix(line, "told: ") && !slices.Contains(c.spoken(), line) {
			want--
		}
	}
	answers, steps := c.left.of("model_call"), 0
	for _, e := range answers {
		if !e.Summary {
			steps++
		}
	}
	if steps != want || wakes < 0 || wakes > len(c.deaths) {
		c.errorf("the model gave %d answers, and not %d, with %d more wakes", steps, want, wakes)
	}
	if c.calm != nil && len(answers)-steps != len(c.calm.left.of("model_call"))-c.asks() {
		c.errorf("the model gave %d summaries", len(answers)-steps)
	}
	journaled, sent := len(answers)+c.toll.lost, len(c.out.of(wasAsked))
	if c.priced && sent > journaled || journaled > sent+len(c.deaths) {
		c.errorf("the provider was asked %d times, and %d calls are journaled", sent, journaled)
	}
}

// A death before or after anything that the program does loses nothing and repeats nothing. Where nothing is paid,
// writes wait for what comes soon after: a model that answers at once has them made together, a slow one apart.
func TestSweep(t *testing.T) {
	t.Run("priced", func(t *testing.T) { sweep(t, everything(true, 0), every(1)) })
	t.Run("free", func(t *testing.T) { sweep(t, everything(false, 0), every(1)) })
	t.Run("free and slow", func(t *testing.T) { sweep(t, everything(false, time.Second), every(1)) })
	t.Run("with hooks", func(t *testing.T) { sweep(t, checked(), every(1)) })
}

// every is the share of the mishaps that are met, one in so many. With NUDGE_SWEEP=all it is all of them; with the race
// detector, under which everything takes several times as long, a part.
func every(n int) int {
	switch {
	case sweepsAll():
		return 1
	case raced():
		return 11 * n
	}
	return n
}

func sweepsAll() bool { return os.Getenv("NUDGE_SWEEP") == "all" }

func raced() bool {
	built, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(built.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// shards are how many conversations are played side by side.
const shards = 2

func sweep(t *testing.T, p program, oneIn int) {
	calm := perform(t, p, nil)
	if faults := calm.compare(calm); len(faults) > 0 {
		t.Fatalf("undisturbed:\n%s", strings.Join(faults, "\n"))
	}
	meet := calm.mishaps(oneIn)
	t.Logf("%s; %d deaths", calm.extent(), len(meet))
	inShards(t, meet, func(t *testing.T, m mishap) {
		done := perform(t, p, nil, m)
		if faults := done.compare(calm); len(faults) > 0 {
			t.Errorf("%s:\n%s", strings.Join(done.deaths, ", "), strings.Join(faults, "\n"))
		}
	})
}

func inShards(t *testing.T, meet []mishap, play func(t *testing.T, m mishap)) {
	for shard := range shards {
		t.Run(fmt.Sprint("shard ", shard), func(t *testing.T) {
			t.Parallel()
			for i := shard; i < len(meet); i += shards {
				play(t, meet[i])
			}
		})
	}
}

// mishaps are the deaths that can be met in a conversation, one in so many.
func (p *performance) mishaps(oneIn int) (meet []mishap) {
	i := 0
	for n := range p.points {
		for _, after := range []bool{false, true} {
			if i++; i%oneIn == 0 {
				meet = append(meet, mishap{n + 1, after})
			}
		}
	}
	return meet
}

// extent says how much there is to sweep.
func (p *performance) extent() string {
	counts := map[string]int{}
	for _, point := range p.trace {
		if point.ends {
			what, _, _ := strings.Cut(point.what, " ")
			counts[what]++
		}
	}
	return fmt.Sprintf("%d points, %d commits among them: %v", p.points, counts["commit"], counts)
}

// The same with a process of its own, which is killed, and with a file on disk.
func TestSweepByKill(t *testing.T) {
	for name, p := range map[string]program{"priced": everything(true, 0), "free": everything(false, 0)} {
		t.Run(name, func(t *testing.T) {
			calm := performInChildren(t, p, mishap{})
			if faults := calm.compare(calm); len(faults) > 0 {
				t.Fatalf("undisturbed:\n%s", strings.Join(faults, "\n"))
			}
			meet := calm.mishaps(every(7))
			t.Logf("%d points; %d deaths", calm.points, len(meet))
			inShards(t, meet, func(t *testing.T, m mishap) {
				done := performInChildren(t, p, m)
				if faults := done.compare(calm); len(faults) > 0 {
					t.Errorf("%s:\n%s", strings.Join(done.deaths, ", "), strings.Join(faults, "\n"))
				}
				if p.priced && len(done.deaths) != 1 { // without a price writes are a matter of milliseconds
					t.Errorf("%s was met %d times", m, len(done.deaths))
				}
			})
		})
	}
}

// childLife is what a child process is told of the life that it plays.
type childLife struct {
	Dir    string
	Acts   []string
	Priced bool
	Window int
	At     int
	After  bool
}

const childVariable = "NUDGE_SWEEP_CHILD"

// performInChildren plays a conversation in processes, of which the first is killed at a mishap.
func performInChildren(t *testing.T, p program, m mishap) *performance {
	t.Helper()
	dir, done := memorytest.Dir(t), newPerformance(p, nil)
	for over := false; !over; {
		life, err := json.Marshal(childLife{Dir: dir, Acts: p.acts, Priced: p.priced, Window: p.window, At: m.at, After: m.after})
		if err != nil {
			t.Fatal(err)
		}
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSweepChild$", "-test.timeout=2m")
		child.Env = append(os.Environ(), childVariable+"="+string(life))
		said, err := child.CombinedOutput()
		over = err == nil
		if !over && (child.ProcessState.Exited() || m.at == 0) {
			t.Fatalf("the child process ended by itself: %v\n%s", err, said)
		}
		if done.out, err = openOutside(filepath.Join(dir, outsideFile)); err != nil {
			t.Fatal(err)
		}
		if err := done.out.file.Close(); err != nil {
			t.Error(err)
		}
		store, err := bolt.Open(filepath.Join(dir, storeFile), bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		left, err := examine(store)
		_, checkErr := store.Check(t.Context(), func(problem string) { t.Errorf("the file after its death: %s", problem) }, nil)
		if err := errors.Join(err, checkErr, store.Close()); err != nil {
			t.Fatal(err)
		}
		if done.left = left; !over {
			done.died(m, "killed")
		}
		m = mishap{}
	}
	done.points = done.out.of(wasOver)[0].Count
	return done
}

// The files of a child's directory.
const (
	outsideFile = "outside.jsonl"
	storeFile   = "nudge.db"
)

// TestSweepChild is the child process; by itself it does nothing.
func TestSweepChild(t *testing.T) {
	told := os.Getenv(childVariable)
	if told == "" {
		return
	}
	var life childLife
	if err := json.Unmarshal([]byte(told), &life); err != nil {
		t.Fatal(err)
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	disk, err := bolt.Open(filepath.Join(life.Dir, storeFile), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := openOutside(filepath.Join(life.Dir, outsideFile))
	if err != nil {
		t.Fatal(err)
	}
	s, _ := newStage(program{acts: life.Acts, priced: life.Priced, window: life.Window}, out, life.Dir, disk, nil)
	s.mishap = mishap{life.At, life.After}
	s.die = func() {
		_ = self.Kill()
		select {}
	}
	if !s.live() {
		t.Error("the conversation did not come to its end")
	}
	out.note(happening{What: wasOver, Count: s.count})
	if err := errors.Join(disk.Close(), out.file.Close()); err != nil {
		t.Error(err)
	}
}

// A random walk: any acts in any order, with up to three deaths anywhere, by the rules alone.
func TestSweepAtRandom(t *testing.T) {
	names := slices.Sorted(maps.Keys(acts))
	names = slices.DeleteFunc(names, func(name string) bool { return name == "recall" || name == "guarded" })
	rapid.Check(t, func(rt *rapid.T) {
		p := program{
			acts:    append(rapid.SliceOfN(rapid.SampledFrom(names), 1, 6).Draw(rt, "acts"), "words"),
			priced:  rapid.Bool().Draw(rt, "priced"),
			window:  1 << 20,
			latency: time.Duration(rapid.IntRange(0, 1).Draw(rt, "seconds")) * time.Second,
			again:   rapid.Bool().Draw(rt, "again"),
		}
		meet := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) mishap {
			return mishap{rapid.IntRange(1, 60).Draw(rt, "at"), rapid.Bool().Draw(rt, "after")}
		}), 1, 3).Draw(rt, "deaths")
		done := perform(t, p, nil, meet...)
		if faults := done.compare(nil); len(faults) > 0 {
			rt.Fatalf("%s:\n%s", strings.Join(done.deaths, ", "), strings.Join(faults, "\n"))
		}
	})
}

// The sweep finds what it is there to find, and nothing but the sweep does: undisturbed, these programs are as good as
// any.
func TestSweepFindsWhatIsPlanted(t *testing.T) {
	for name, spoil := range map[string]func(memory.Store) memory.Store{
		"a reply in a second commit": func(store memory.Store) memory.Store { return lateReplies{store} },
		"a forgotten calling":        forgottenCalling,
		"a result before the effect": earlyResults,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := everything(true, 0)
			calm := perform(t, p, spoil)
			if faults := calm.compare(calm); len(faults) > 0 {
				t.Fatalf("undisturbed:\n%s", strings.Join(faults, "\n"))
			}
			meet := append(calm.mishaps(11), calm.mishaps(1)...) // those far apart first: it is soon found
			for n, m := range meet {
				done := perform(t, p, spoil, m)
				if faults := done.compare(calm); len(faults) > 0 {
					t.Logf("%d of %d, %s:\n%s", n+1, len(meet), strings.Join(done.deaths, ", "), strings.Join(faults, "\n"))
					return
				}
			}
			t.Error("it is not found")
		})
	}
}

// A turn that is given up because the program keeps ending in its middle may have a call that was cut off last: of that,
// too, nobody knows what became.
func TestACallThatWasCutOffBeforeItsTurnIsGivenUpIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deeds{}
		faulty := memorytest.NewFaulty(open(t))
		pay := d.tool("pay", agent.Effectful, "")
		run := pay.Run
		pay.Run = func(ctx context.Context, in agent.Invocation) (agent.Result, error) {
			faulty.Crash()
			return run(ctx, in)
		}
		m := &agenttest.Model{T: t, Script: once(agenttest.Call(1, "pay", `{}`)), Latency: time.Hour}
		w := agenttest.Start(t, agent.Config{Store: faulty, Model: m, Spec: agent.ModelSpec{MaxOutput: 1000}, Tools: []agent.Tool{pay}})
		w.Say("go")
		time.Sleep(time.Second)
		for range 2 {
			w.Restart()
			time.Sleep(time.Second)
		}
		w.Kill()
		m.Latency = 0
		w.Restart()
		w.Rest()
		w.Kill()
		faulty.Revive()
		w.Restart()
		w.Rest()
		if d.count("pay") != 1 || !strings.Contains(agenttest.Lines(w.Said()), "outcome is unknown") {
			t.Errorf("pay ran %d times, and its person reads:\n%s", d.count("pay"), agenttest.Lines(w.Said()))
		}
		w.Say("and now?")
		w.Rest()
		if got := resultOf(t, m, "pay-1"); !strings.Contains(got, "outcome unknown") {
			t.Errorf("of a call that ran the model reads %q", got)
		}
		w.Kill()
	})
}

// A death between the question about a call of unknown outcome and the wait for its answer does not ask a second time:
// who answers the first would be told that it was not run.
func TestACallOfUnknownOutcomeIsAskedAboutOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deeds{}
		faulty := memorytest.NewFaulty(open(t))
		pay := d.tool("pay", agent.Effectful, "")
		run := pay.Run
		pay.Run = func(ctx context.Context, in agent.Invocation) (agent.Result, error) {
			defer faulty.Crash()
			return run(ctx, in)
		}
		m := &agenttest.Model{T: t, Script: once(agenttest.Call(1, "pay", `{}`))}
		w := agenttest.Start(t, agent.Config{Store: faulty, Model: m, Spec: agent.ModelSpec{MaxOutput: 1000}, Tools: []agent.Tool{pay}})
		w.Say("go")
		w.Rest()
		w.Kill()
		faulty.Revive()
		faulty.FailAt(faulty.Count()+2, false) // the first is the card's
		w.Restart()
		w.Rest()
		w.Kill()
		faulty.Revive()
		w.Restart()
		w.Rest()
		cards := w.Said(agent.Notice)
		if len(cards) != 1 {
			t.Errorf("it is asked about %d times:\n%s", len(cards), agenttest.Lines(w.Said()))
		}
		w.Decide(cards[0].ID, agent.AnswerIt, agent.ChoiceLeave)
		if said := agenttest.Lines(w.Rest()); d.count("pay") != 1 || strings.Contains(said, "not run") || !strings.Contains(said, "final") {
			t.Errorf("pay ran %d times, and its person reads:\n%s", d.count("pay"), said)
		}
		w.Kill()
	})
}

// An idempotent call that was cut off is run again, unless its person stops the turn before: then it may have taken effect,
// and must not be said not to have run.
func TestAnIdempotentCallThatWasCutOffAndStoppedMayHaveRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deeds{}
		faulty := memorytest.NewFaulty(open(t))
		upsert := d.tool("upsert", agent.Idempotent, "")
		run := upsert.Run
		upsert.Run = func(ctx context.Context, in agent.Invocation) (agent.Result, error) {
			faulty.Crash()
			return run(ctx, in)
		}
		m := &agenttest.Model{T: t, Script: func(req model.Request) model.Answer {
			if agenttest.LastUser(req) == "and now?" {
				return agenttest.Say("done")
			}
			return once(agenttest.Call(1, "upsert", `{}`))(req)
		}}
		w := agenttest.Start(t, agent.Config{Store: faulty, Model: m, Spec: agent.ModelSpec{MaxOutput: 1000}, Tools: []agent.Tool{upsert}})
		w.Say("go")
		w.Rest()
		w.Kill()
		faulty.Revive()
		ag, err := agent.New(w.Config)
		if err != nil {
			t.Fatal(err)
		}
		w.Agent = ag
		w.Stop() // before the turn is taken up again
		w.Rest()
		w.Say("and now?")
		w.Rest()
		if got := resultOf(t, m, "upsert-1"); d.count("upsert") != 1 || strings.HasPrefix(got, "not run") {
			t.Errorf("of a call that ran %d times the model reads %q", d.count("upsert"), got)
		}
		w.Kill()
	})
}
