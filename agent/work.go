package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"nudge/memory"
)

const (
	maxResult = 32 << 10        // bytes of a result that the model reads
	stopGrace = 2 * time.Second // that a tool has to return after its context has ended
)

// work is one call that is being run, and what came of it.
type work struct {
	call   *call
	in     Invocation
	tool   *Tool
	result Result
	err    error
	took   time.Duration
	labels Labels // as the call was labelled when it began and when it ended

	mu       sync.Mutex
	progress []string // guarded by mu until the call has ended
	ended    bool     // guarded by mu

	rewritten *string // the result as a hook wrote it
	withheld  string  // instead of a result that a hook could not decide about
}

// perform runs calls side by side: calling is journaled before, the results after, with the next commit.
func (a *actor) perform(ctx context.Context, calls ...*call) error {
	works, err := a.ready(ctx, calls)
	if err != nil || works == nil {
		return err
	}
	if err := a.begin(works); err != nil {
		return err
	}
	a.runAll(ctx, works)
	if a.ctx.Err() != nil {
		// Closing: what was cut off is for the next start to judge, by its effect.
		works = slices.DeleteFunc(works, func(w *work) bool { return w.err != nil || w.result.Failed })
	}
	if err := a.review(ctx, works); err != nil {
		return err
	}
	return a.results(works)
}

// ready makes those calls ready that may run; the others are answered in words.
func (a *actor) ready(ctx context.Context, calls []*call) ([]*work, error) {
	var works []*work
	for _, c := range calls {
		w, refusal := a.readyCall(c)
		if refusal != nil {
			if err := a.answer(c, refusal.Error(), true); err != nil {
				return nil, err
			}
			continue
		}
		instead, err := a.permit(ctx, w, a.question(BeforeTool, a.state.turn.steps))
		if err != nil {
			return nil, err
		}
		if instead != nil {
			text, save := a.box().bounded(a.state.turn, w.tool.Name, instead.Text, false)
			a.saveFor(a.session, save)
			if err := a.answer(c, text, instead.Failed); err != nil {
				return nil, err
			}
			continue
		}
		// A hook may have taken long: what was approved, or needed no approval, must still be what runs.
		if w, refusal = a.readyCall(c); refusal == nil && c.card == nil && len(a.hooksAt(BeforeTool)) > 0 && !a.free(c) {
			refusal = errNotFree
		}
		if refusal != nil {
			if err := a.answer(c, refusal.Error(), true); err != nil {
				return nil, err
			}
			continue
		}
		works = append(works, w)
	}
	return works, nil
}

var errNotFree = errors.New("not run: while it was checked it became a call that a person is asked about; look again and ask anew")

// begin puts on disk that calls begin, and with it the answer that asked for them, before anything acts on it.
func (a *actor) begin(works []*work) error {
	for _, w := range works {
		calling := toolCallEntry{
			Turn: w.in.Turn, Run: a.state.turn.run, Call: w.call.ID, Tool: w.tool.Name, Effect: w.effect(), Key: w.in.Key,
		}
		if rule := w.call.rule; rule != nil {
			calling.Rule, calling.RuleOf = rule.ID, rule.Person
			left, err := rule.left(w.in.Arguments)
			if err != nil {
				return err
			}
			calling.Left = string(left)
		}
		if !json.Valid([]byte(w.call.Arguments)) || !strings.HasPrefix(strings.TrimSpace(w.call.Arguments), "{") {
			calling.Arguments = string(w.call.arguments)
		}
		if err := a.add(calling); err != nil {
			return err
		}
		if line, ok := a.progressLine(w.tool.Name, oneLine(w.tool.Name+" "+string(w.in.Arguments))); ok {
			a.then(func() { a.Live(line) }) // whoever looks from now on finds it in the journal
		}
	}
	return a.commit()
}

// results journals what came of calls. What tools want written goes to disk with it at once: if it is refused there, the
// call has failed, and its result says so.
func (a *actor) results(works []*work) error {
	writes := slices.ContainsFunc(works, (*work).writes)
	saves := false
	if writes {
		if err := a.commit(); err != nil { // what a refusal takes back is the results alone
			return err
		}
	}
	for {
		for _, w := range works {
			saved, err := a.resultOf(w)
			if err != nil {
				return err
			}
			saves = saves || saved
		}
		if !writes && !saves { // what was saved may be read by the next call
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

// readyCall makes a call ready to run: the arguments are those that the model wrote or, after a card, those on the
// card. The error is for the model.
func (a *actor) readyCall(c *call) (*work, error) {
	if err := a.box().prepare(a.state.turn, c); err != nil {
		return nil, err
	}
	w := &work{call: c, tool: c.tool, in: a.invocation(c, c.arguments)}
	if c.key != "" {
		w.in.Key = c.key // the same for every try
	}
	switch {
	case c.card != nil:
		w.in.Arguments = c.card.Arguments
		w.in.stands = a.unchanged(c.tool, w.in, c.card.Digest, strings.Contains(c.card.Why, warning))
		if err := w.in.stands(); err != nil {
			return nil, err
		}
		return w, a.stillMay(c.card, c.tool, w.in)
	case c.rule != nil:
		w.in.stands = a.unchanged(c.tool, w.in, a.digest(c.tool, w.in), false)
		return w, a.ruleStands(c)
	}
	w.in.stands = asFree(c.tool, w.in)
	return w, nil
}

var errChanged = errors.New("not run: what this call depends on has changed since it was approved; look again and ask anew")

// unchanged is what says that a call depends on something else than it did, or that a person would have to be warned of it
// who was not. Whoever runs the tool may call it.
func (a *actor) unchanged(tool *Tool, in Invocation, digest string, warned bool) func() error {
	return func() error {
		if a.digest(tool, in) != digest || !warned && caution(tool, in) != "" {
			return errChanged
		}
		return nil
	}
}

// asFree is what says that a call about which nobody is asked has become another, or one that a person is asked about.
func asFree(tool *Tool, in Invocation) func() error {
	judge := func() (Policy, error) {
		if tool.Judge == nil {
			return tool.Policy, nil
		}
		policy, _, err := tool.Judge(in)
		return policy, err
	}
	before, fault := judge()
	return func() error {
		policy, err := judge()
		switch {
		case fault != nil: // the tool says so itself
			return nil
		case err != nil:
			return err
		case policy != before || caution(tool, in) != "":
			return errNotFree
		}
		return nil
	}
}

// runAll runs calls side by side and returns when each has ended, passing their progress on.
func (a *actor) runAll(ctx context.Context, works []*work) {
	for _, w := range works {
		line, watched := a.progressLine(w.tool.Name, "")
		w.in.Progress = func(text string) {
			if line := line; w.note(text) && watched {
				line.Text = text
				a.Live(line)
			}
		}
	}
	var others sync.WaitGroup
	for _, w := range works[1:] {
		others.Go(func() { runOne(ctx, w, a.toolTimeout(w.tool)) })
	}
	runOne(ctx, works[0], a.toolTimeout(works[0].tool))
	others.Wait()
}

// note keeps a line of progress. It reports false once the call has ended: what a function that was left behind says is
// of no interest.
func (w *work) note(line string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return false
	}
	w.progress = append(w.progress, line)
	return true
}

// end closes the progress of a call.
func (w *work) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
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
	w.labels = labelsOf(w.tool, w.in)
	w.result, w.err = within(ctx, stopGrace, func() (Result, error) { return w.tool.Run(ctx, w.in) })
	w.labels = w.labels.with(labelsOf(w.tool, w.in)) // what it read may have been deleted since, or come while it ran
	w.took = time.Since(began)
	w.end()
	switch {
	case errors.Is(w.err, errPanicked):
		w.err = errors.New("the tool failed unexpectedly; do not try it again with the same arguments")
	case errors.Is(w.err, errLeftBehind):
		w.err = errors.New("it did not stop when it was told to, so its outcome is unknown")
	case errors.As(w.err, new(notRun)):
	case w.err != nil && errors.Is(context.Cause(ctx), errStop):
		w.err = errors.New("the person stopped it while it ran; what it had done by then stands")
	case w.err != nil && ctx.Err() != nil:
		w.err = context.Cause(ctx)
	}
}

// How functions of others end that do not end well.
var (
	errPanicked   = errors.New("it panicked")
	errLeftBehind = errors.New("it did not return when its context ended")
)

// within calls a function of somebody else's, which may panic or hang: one that has not returned a while after ctx ended
// is left behind.
func within[T any](ctx context.Context, grace time.Duration, fn func() (T, error)) (result T, err error) {
	type end struct {
		result T
		err    error
	}
	ended := make(chan end, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				ended <- end{err: fmt.Errorf("%w: %v", errPanicked, p)}
			}
		}()
		result, err := fn()
		ended <- end{result, err}
	}()
	select {
	case e := <-ended:
		return e.result, e.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case e := <-ended:
		return e.result, e.err
	case <-timer.C:
		return result, errLeftBehind
	}
}

// resultOf journals what came of a call, and reports whether the whole of it is saved.
func (a *actor) resultOf(w *work) (saved bool, err error) {
	t := a.state.turn
	for _, line := range w.progress {
		if err := a.add(progressEntry{Turn: t.id, Run: t.run, Call: w.call.ID, Tool: w.tool.Name, Line: line}); err != nil {
			return false, err
		}
	}
	entry, save := w.entry(a.box(), t, editedBy(w.call.card))
	entry.Run = t.run
	a.saveFor(a.session, save)
	a.commitResult(w)
	return save != nil, a.add(entry)
}

// entry is what came of a call as the model reads it in a turn, after words about it; save, if not nil, keeps the whole of
// it.
func (w *work) entry(box *toolbox, t *turn, before string) (e toolResultEntry, save func(tx memory.Tx, session string) error) {
	text, failed := w.words()
	e = toolResultEntry{
		Turn: w.in.Turn, Call: w.in.Call, Tool: w.tool.Name, Failed: failed, Ran: true, Took: w.took, Size: len(text),
		Broken: errors.Is(w.err, ErrPermanent), Ends: w.tool.EndsTurn && !failed, Origin: w.originOf(),
	}
	e.Text, save = box.bounded(t, w.tool.Name, before+text, e.Origin.Outside != "")
	return e, save
}

// saveFor keeps a long result for a session with the next commit; save is nil when there is none.
func (a *actor) saveFor(session string, save func(tx memory.Tx, session string) error) {
	if save != nil {
		a.also(func(tx memory.Tx) error { return save(tx, session) })
	}
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
