package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nudge/memory"
)

const (
	maxResult = 32 << 10        // bytes of a result that the model reads
	stopGrace = 2 * time.Second // that a tool has to return after its context has ended
)

// batch runs the calls of the last answer: those that only read side by side at once, the others in the order asked
// for, none before an earlier one that a person has not decided about. All cards of the batch go out together.
func (a *actor) batch(ctx context.Context) (outcome, error) {
	ends := func(h heard) *halt { return a.cut(ctx, h) }
	if why, err := a.attend(ends); err != nil || why != nil {
		return a.haltOr(why, err)
	}
	if a.fresh {
		a.fresh = false
		if why, err := a.judge(); err != nil || why != nil {
			return a.haltOr(why, err)
		}
	}
	if why, err := a.perform(ctx, a.reads()...); err != nil || why != nil {
		return a.haltOr(why, err)
	}
	if err := a.share(); err != nil {
		return again, err
	}
	for a.ctx.Err() == nil {
		c := a.state.turn.next()
		if c == nil {
			return a.haltOr(a.stepDone(ctx))
		}
		if why, err := a.attend(ends); err != nil || why != nil {
			return a.haltOr(why, err)
		}
		if !c.done && c.card == nil {
			// What the call's policy depends on may have changed since the batch was judged.
			if err := a.judgeCall(c); err != nil {
				return again, err
			}
		}
		switch {
		case c.done: // answered in words
		case c.card != nil && c.card.verdict == "":
			return a.pause()
		default:
			if why, err := a.perform(ctx, c); err != nil || why != nil {
				return a.haltOr(why, err)
			}
		}
	}
	return settled, a.commit() // closing: the next start goes on from the journal
}

func (a *actor) haltOr(why *halt, err error) (outcome, error) {
	if err != nil || why == nil {
		return again, err
	}
	return a.halt(why)
}

// next is the first call, in the order asked for, that has no result.
func (t *turn) next() *call {
	for _, c := range t.batch {
		if !c.done {
			return c
		}
	}
	return nil
}

// judge decides what becomes of each call of a new batch: answered in words, asked about, or left to run.
func (a *actor) judge() (*halt, error) {
	t := a.state.turn
	limit, used := a.Limits.ToolCalls, t.used().toolCalls
	if asked := len(t.open()); limit > 0 && used+asked > limit {
		for _, c := range t.open() {
			text := fmt.Sprintf("not run: %d calls were asked for and %d of the turn's %d are left, so none of them was run", asked, max(limit-used, 0), limit)
			if err := a.answer(c, text, true); err != nil {
				return nil, err
			}
		}
		return &halt{reason: ToolLimit, say: fmt.Sprintf("I stopped at the limit of %d tool calls for one turn; the last %d asked for were not run.", limit, asked)}, nil
	}
	for _, c := range t.open() {
		if err := a.judgeCall(c); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (a *actor) judgeCall(c *call) error {
	if err := a.tools.prepare(a.state.turn, c); err != nil {
		return a.answer(c, err.Error(), true)
	}
	policy, err := a.policy(c, c.arguments)
	switch {
	case err != nil:
		return a.answer(c, "not run: "+err.Error(), true)
	case c.Name == askPerson:
		return a.askCard(c, policy, true)
	case policy != PolicyNo:
		return a.askCard(c, policy, false)
	}
	return nil
}

// invocation is a call as its tool gets it.
func (a *actor) invocation(c *call, arguments json.RawMessage) Invocation {
	t := a.state.turn
	return Invocation{
		Session: a.session, Turn: t.id, Call: c.ID, Key: fmt.Sprintf("%s/%d/%s", t.id, t.steps, c.ID),
		Person: t.person, Wake: t.wake, Arguments: arguments, Progress: func(string) {},
	}
}

// effectOf is what running a call can change.
func effectOf(tool *Tool, in Invocation) Effect {
	if tool.EffectOf != nil {
		return tool.EffectOf(in)
	}
	return tool.Effect
}

// reads are the calls that may run side by side at once, each of them once.
func (a *actor) reads() []*call {
	var reads []*call
	for _, c := range a.state.turn.batch {
		if !c.done && a.onlyReads(c) && a.twin(c) == nil {
			reads = append(reads, c)
		}
	}
	return reads
}

// onlyReads reports whether a call changes nothing and nobody is asked about it.
func (a *actor) onlyReads(c *call) bool {
	return c.card == nil && a.tools.prepare(a.state.turn, c) == nil && effectOf(c.tool, a.invocation(c, c.arguments)) == Read
}

// twin is the first call of the batch that reads the same as this one, if that is another.
func (a *actor) twin(c *call) *call {
	for _, other := range a.state.turn.batch {
		if other == c {
			return nil
		}
		if other.Name == c.Name && a.onlyReads(other) && bytes.Equal(other.arguments, c.arguments) {
			return other
		}
	}
	return nil
}

// share gives calls that read the same as another of the step its result.
func (a *actor) share() error {
	for _, c := range a.state.turn.open() {
		if !a.onlyReads(c) {
			continue
		}
		if twin := a.twin(c); twin != nil && twin.done {
			if err := a.answer(c, twin.result, twin.failed); err != nil {
				return err
			}
		}
	}
	return nil
}

// work is one call that is being run, and what came of it.
type work struct {
	call     *call
	in       Invocation
	tool     *Tool
	result   Result
	err      error
	took     time.Duration
	progress []string

	rewritten *string // the result as a hook wrote it
	withheld  string  // instead of a result that a hook could not decide about
}

// perform runs calls side by side: calling is journaled before, the results after, with the next commit.
func (a *actor) perform(ctx context.Context, calls ...*call) (*halt, error) {
	var works []*work
	for _, c := range calls {
		w, err := a.prepare(c)
		if err != nil {
			if err := a.answer(c, err.Error(), true); err != nil {
				return nil, err
			}
			continue
		}
		instead, why, err := a.permit(ctx, w, a.question(BeforeTool, a.state.turn.steps))
		if err != nil || why != nil || ctx.Err() != nil {
			return why, err
		}
		if instead != nil {
			if err := a.answer(c, instead.Text, instead.Failed); err != nil {
				return nil, err
			}
			continue
		}
		works = append(works, w)
	}
	for _, w := range works {
		c := w.call
		calling := toolCallEntry{
			Turn: w.in.Turn, Run: a.state.turn.run, Call: c.ID, Tool: w.tool.Name, Effect: w.effect(), Key: w.in.Key,
		}
		if !json.Valid([]byte(c.Arguments)) || !strings.HasPrefix(strings.TrimSpace(c.Arguments), "{") {
			calling.Arguments = string(c.arguments)
		}
		if err := a.add(calling); err != nil {
			return nil, err
		}
	}
	if works == nil {
		return nil, nil
	}
	if err := a.commitFor(works); err != nil {
		return nil, err
	}
	for _, w := range works {
		a.progress(w.tool.Name, callLine(w.tool.Name, w.in.Arguments))
	}
	a.runAll(ctx, works)
	if a.ctx.Err() != nil {
		// Closing: what was cut off is for the next start to judge, by its effect.
		works = slices.DeleteFunc(works, func(w *work) bool { return w.err != nil || w.result.Failed })
	}
	for _, w := range works {
		if err := a.review(ctx, w, a.question(AfterTool, a.state.turn.steps)); err != nil {
			return nil, err
		}
	}
	return nil, a.results(works)
}

// commitFor puts on disk that calls begin: before anything happens that a crash could leave unknown, and soon for those
// that are simply run again.
func (a *actor) commitFor(works []*work) error {
	if slices.ContainsFunc(works, func(w *work) bool { return w.effect() != Read }) {
		return a.commit()
	}
	return a.commitSoon()
}

// results journals what came of calls. What tools want written goes to disk with it at once: if it is refused there, the
// call has failed, and its result says so.
func (a *actor) results(works []*work) error {
	writes := slices.ContainsFunc(works, (*work).writes)
	if writes {
		if err := a.commit(); err != nil { // what a refusal takes back is the results alone
			return err
		}
	}
	for {
		for _, w := range works {
			if err := a.resultOf(w); err != nil {
				return err
			}
		}
		if !writes {
			return nil
		}
		err := a.commit()
		var refused *refusal
		if !errors.As(err, &refused) {
			return err
		}
		refused.work.err, refused.work.rewritten = refused.err, nil
		if err := a.reread(); err != nil {
			return err
		}
	}
}

// refusal is the error of a tool's Commit.
type refusal struct {
	work *work
	err  error
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

func (w *work) effect() Effect { return effectOf(w.tool, w.in) }

func (w *work) writes() bool { return w.err == nil && w.result.Commit != nil }

// prepare makes a call ready to run: the arguments are those that the model wrote or, after a card, those on the
// card. The error is for the model.
func (a *actor) prepare(c *call) (*work, error) {
	if err := a.tools.prepare(a.state.turn, c); err != nil {
		return nil, err
	}
	w := &work{call: c, tool: c.tool, in: a.invocation(c, c.arguments)}
	if c.key != "" {
		w.in.Key = c.key // the same for every try
	}
	if c.card == nil {
		return w, nil
	}
	w.in.Arguments = c.card.Arguments
	if a.digest(c.tool, w.in) != c.card.Digest {
		return nil, errors.New("not run: what this call depends on has changed since it was approved; look again and ask anew")
	}
	return w, nil
}

// runAll runs calls and returns when each has ended, passing their progress on.
func (a *actor) runAll(ctx context.Context, works []*work) {
	lines := make(chan func(), 16)
	ended := make(chan struct{}, len(works))
	done := make(chan struct{})
	for _, w := range works {
		w.in.Progress = func(line string) {
			select {
			case lines <- func() { w.progress = append(w.progress, line); a.progress(w.tool.Name, line) }:
			case <-done:
			}
		}
		go func() {
			runOne(ctx, w, a.toolTimeout(w.tool))
			ended <- struct{}{}
		}()
	}
	for left := len(works); left > 0; {
		select {
		case line := <-lines:
			line()
		case <-ended:
			left--
		}
	}
	close(done)
}

func (a *actor) toolTimeout(tool *Tool) time.Duration {
	if tool.Timeout > 0 {
		return tool.Timeout
	}
	return a.Limits.ToolTimeout
}

// runOne calls a tool's function within its time. A function that does not return when its context ends is left
// behind after a while, so that it cannot hold its session.
func runOne(ctx context.Context, w *work, timeout time.Duration) {
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it took longer than %s and was stopped; what it had done by then stands", timeout))
	defer cancel()
	type ending struct {
		result Result
		err    error
	}
	ended := make(chan ending, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				ended <- ending{err: errors.New("the tool failed unexpectedly; do not try it again with the same arguments")}
			}
		}()
		result, err := w.tool.Run(ctx, w.in)
		ended <- ending{result, err}
	}()
	var end ending
	select {
	case end = <-ended:
	case <-ctx.Done():
		grace := time.NewTimer(stopGrace)
		defer grace.Stop()
		select {
		case end = <-ended:
		case <-grace.C:
			end.err = errors.New("it did not stop when it was told to, so its outcome is unknown")
		}
	}
	if end.err != nil && ctx.Err() != nil {
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, errStop):
			end.err = errors.New("the person stopped it while it ran; what it had done by then stands")
		default:
			end.err = cause
		}
	}
	w.result, w.err, w.took = end.result, end.err, time.Since(began)
}

// resultOf journals what came of a call.
func (a *actor) resultOf(w *work) error {
	t := a.state.turn
	for _, line := range w.progress {
		if err := a.add(progressEntry{Turn: t.id, Run: t.run, Call: w.call.ID, Tool: w.tool.Name, Line: line}); err != nil {
			return err
		}
	}
	text, failed := w.words()
	entry := toolResultEntry{
		Turn: t.id, Run: t.run, Call: w.call.ID, Tool: w.tool.Name, Failed: failed, Ran: true, Took: w.took, Size: len(text),
	}
	bounded, save := a.tools.bounded(t, w.tool.Name, editedBy(w.call.card)+text)
	if entry.Text = bounded; save != nil {
		a.also(func(tx memory.Tx) error { return save(tx, a.session) })
	}
	entry.Broken = errors.Is(w.err, ErrPermanent)
	if w.tool.EndsTurn && !failed {
		entry.Ended = text
	}
	a.commitResult(w)
	return a.add(entry)
}

// words is the result as the model reads it.
func (w *work) words() (text string, failed bool) {
	switch {
	case w.withheld != "":
		return w.withheld, true
	case w.err != nil && w.rewritten == nil:
		return w.err.Error(), true
	case w.rewritten != nil:
		return *w.rewritten, w.err != nil || w.result.Failed
	}
	return w.result.Text, w.result.Failed
}

// commitResult writes what the tool wants written together with its result.
func (a *actor) commitResult(w *work) {
	if !w.writes() {
		return
	}
	a.also(func(tx memory.Tx) error {
		if err := w.result.Commit(tx); err != nil {
			return &refusal{w, err}
		}
		return nil
	})
	look, after := w.result.Look, w.result.After
	a.then(func() {
		a.Look(look...)
		a.Outgoing()
		if after != nil {
			after()
		}
	})
}

// answer gives a call a result in words, without running it.
func (a *actor) answer(c *call, text string, failed bool) error {
	t := a.state.turn
	return a.add(toolResultEntry{Turn: t.id, Run: t.run, Call: c.ID, Tool: c.Name, Text: text, Failed: failed, Size: len(text)})
}

// withdraw answers a call that is not going to run; if a person was asked about it, the card says so.
func (a *actor) withdraw(c *call, text string, by Person) error {
	if k := c.card; k != nil && k.verdict == "" {
		if err := a.close(k, decidedEntry{Verdict: Withdrawn, By: by.ID, Name: by.Name, Text: text}); err != nil {
			return err
		}
	}
	return a.answer(c, text, false)
}

// callLine says in one line what is being run.
func callLine(tool string, arguments json.RawMessage) string {
	return oneLine(tool + " " + string(arguments))
}
