package slack

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slack-go/slack"

	"nudge/agent"
	"nudge/bot"
)

const (
	progressLimit = 300             // characters of a line of progress
	mostLines     = 20              // that are shown at once
	farewell      = 2 * time.Second // for taking progress away when the program ends
)

// progress shows what is being done in each conversation: one message a turn, which grows as things go on and is deleted at
// the end. Where Slack shows a Stop button itself it is streamed; elsewhere it is posted with a button, and edited.
type progress struct {
	s       *Slack
	since   time.Time // what an earlier turn has shown may have been left by an earlier process
	flushes sync.WaitGroup

	mu     sync.Mutex
	turns  map[string]*bulletin // by conversation
	askers map[string]asker     // who spoke last in a thread, by conversation
	closed bool
}

// bulletin is the message of one turn. Its mu is held while Slack is called, so that edits keep their order.
type bulletin struct {
	turn    string // "" before a line of its was shown; guarded by progress
	address string
	thread  string
	asker   asker // zero when nobody is known to have asked
	began   time.Time
	halted  atomic.Bool // somebody has pressed Stop: nothing more is shown

	mu      sync.Mutex
	channel string // "" before anything is shown
	presence
	stream  *stream // nil when the message is posted and edited
	at      message // zero before it is posted
	lines   []string
	pending string // what the next edit will say; "" for nothing
	edited  time.Time
	timer   timer // set while something is pending that waits for its time or its turn
	ended   bool
	over    context.Context // ends with it, so that nothing waits for an edit that nobody needs
	end     context.CancelFunc
}

func newProgress(s *Slack) *progress {
	return &progress{s: s, since: s.time.Now(), turns: map[string]*bulletin{}, askers: map[string]asker{}}
}

// show shows a line. Lines that come too fast are left out, but for the last.
func (p *progress) show(ctx context.Context, at place, r agent.Reply) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	b, last := p.turns[r.Address], (*bulletin)(nil)
	if b == nil || !b.isOf(r.Turn) {
		last, b = b, p.newBulletin(at)
		b.turn = r.Turn
		p.turns[r.Address] = b
	}
	p.mu.Unlock()
	if last != nil {
		if err := p.take(ctx, last); err != nil {
			p.s.log.Warn("cannot take away the progress of an earlier turn", "error", err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return nil
	}
	b.pending = cut(r.Text, progressLimit)
	if b.pending == "" {
		return nil
	}
	b.lines = append(b.lines, b.pending)
	b.lines = b.lines[max(0, len(b.lines)-mostLines):]
	if b.at.ts != "" || b.timer != nil {
		p.later(b, p.s.timing.Edit-p.s.time.Now().Sub(b.edited))
		return nil
	}
	return p.flush(nowOrNever(ctx), at, b)
}

// newBulletin is one of which nothing is shown yet. The caller holds mu.
func (p *progress) newBulletin(at place) *bulletin {
	over, end := context.WithCancel(context.Background())
	return &bulletin{address: at.String(), thread: at.thread, asker: p.askers[at.String()], began: p.s.time.Now(), over: over, end: end}
}

// isOf reports whether a bulletin is that of a turn, which it becomes if it is nobody's yet. The caller holds the
// progress' mu.
func (b *bulletin) isOf(turn string) bool {
	if b.turn == "" {
		b.turn = turn
	}
	return b.turn == turn
}

// expect makes a bulletin for words that may begin a turn in a thread; nil where there is one, or nothing could be shown
// without a line of progress. It is made before the words are given away, since their turn may be over soon.
func (p *progress) expect(at place, by asker) *bulletin {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at.thread == "" || p.closed || p.turns[at.String()] != nil {
		return nil
	}
	b := p.newBulletin(at)
	b.asker = by
	p.turns[at.String()] = b
	return b
}

// asked remembers who spoke last in a thread, so that what is done there later, as after a decision, is streamed to them.
func (p *progress) asked(at place, by asker) {
	if at.thread == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.askers) >= mostKept {
		clear(p.askers)
	}
	p.askers[at.String()] = by
}

// begin shows that what was expected is being done; nothing if it has been done already.
func (p *progress) begin(ctx context.Context, at place, b *bulletin) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended || b.halted.Load() {
		return
	}
	channel, err := p.s.directory.channel(ctx, at)
	if err != nil {
		return
	}
	p.attend(ctx, b, channel)
	p.setStatus(ctx, b, channel, thinking)
}

// forget takes a bulletin back of which nothing came.
func (p *progress) forget(b *bulletin) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b != nil && p.turns[b.address] == b {
		b.end()
		delete(p.turns, b.address)
	}
}

// spoke sets the status of a conversation again after something was said there, which takes it away.
func (p *progress) spoke(ctx context.Context, address string) {
	b := p.of(address)
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if text := b.status; text != "" && !b.ended {
		b.status = ""
		p.setStatus(ctx, b, b.channel, text)
	}
}

// later lets what is pending be shown after a while, when there is room for it among what all conversations show and say.
// The caller holds b.mu.
func (p *progress) later(b *bulletin, wait time.Duration) {
	if b.timer != nil || b.ended {
		return
	}
	method := "chat.update"
	switch {
	case b.at.ts == "":
		method = "chat.postMessage"
	case b.stream != nil && !b.stream.over:
		method = "chat.appendStream"
	}
	p.flushes.Add(1)
	b.timer = p.s.time.AfterFunc(max(wait, 0), func() {
		defer p.flushes.Done()
		ctx, err := p.s.limiter.leave(inPassing(b.over), method)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.timer = nil
		at, ok := parsePlace(b.address)
		switch {
		case b.ended || b.pending == "" || !ok:
			return
		case err == nil:
			// A message that was sent must become known, or it would stay.
			err = p.flush(context.WithoutCancel(ctx), at, b)
		case limited(err):
			p.later(b, retryAfter(err))
			return
		}
		if err != nil {
			p.s.log.Warn("cannot show progress", "error", err)
		}
	})
}

// flush shows what is pending. What there is no room for now is shown later. The caller holds b.mu.
func (p *progress) flush(ctx context.Context, at place, b *bulletin) error {
	text, lines := b.pending, b.lines
	b.pending, b.lines, b.edited = "", nil, p.s.time.Now()
	if b.halted.Load() {
		return nil
	}
	wait, err := p.put(ctx, at, b, text, lines)
	if limited(err) {
		wait, err = max(retryAfter(err), p.s.timing.Edit), nil
	}
	if wait > 0 {
		b.pending, b.lines = text, lines
		p.later(b, wait)
	}
	return err
}

// put streams, posts or edits the message, or says how long a first message has to wait, which takes nobody's turn.
func (p *progress) put(ctx context.Context, at place, b *bulletin, text string, lines []string) (wait time.Duration, err error) {
	channel, err := p.s.directory.channel(ctx, at)
	if err != nil {
		return 0, err
	}
	p.attend(ctx, b, channel)
	if streamed, err := p.grow(ctx, b, channel, lines); streamed || err != nil {
		return 0, err
	}
	options := append(quiet(true), slack.MsgOptionText(escape(text), false), slack.MsgOptionBlocks(section(text),
		row(b.address, button(actionStop, b.address, "Stop", slack.StyleDanger))),
		slack.MsgOptionMetadata(p.markOf(b.turn).metadata("")))
	if b.at.ts != "" {
		if _, _, _, err := p.s.api.UpdateMessageContext(ctx, b.at.channel, b.at.ts, options...); err != nil {
			return 0, fmt.Errorf("edit the progress in %s: %w", b.at.channel, err)
		}
		p.setStatus(ctx, b, channel, working)
		return 0, nil
	}
	if wait := p.s.pace.free(channel); wait > 0 {
		return wait, nil
	}
	if at.thread != "" {
		options = append(options, slack.MsgOptionTS(at.thread))
	}
	_, ts, err := p.s.api.PostMessageContext(ctx, channel, options...)
	if err != nil {
		return 0, fmt.Errorf("post the progress in %s: %w", channel, err)
	}
	b.at, b.status = message{channel, ts}, "" // a message takes the status away
	p.setStatus(ctx, b, channel, working)
	return 0, nil
}

// grow shows lines in a streamed message, if this turn's is one or can be: where Slack shows a Stop button itself, for
// somebody who has asked. It reports false where the message has to be posted instead.
func (p *progress) grow(ctx context.Context, b *bulletin, channel string, lines []string) (streamed bool, err error) {
	if b.stream == nil {
		asked := direct(channel) || b.asker.user != ""
		if b.at.ts != "" || !b.native || !asked || p.s.refused.has(methodStream, channel) {
			return false, nil
		}
		b.stream = &stream{s: p.s, channel: channel, thread: b.thread, to: b.asker}
	}
	if !b.stream.over {
		if err = b.stream.show(ctx, lines); err == nil {
			b.at, b.status = message{channel, b.stream.ts}, ""
			p.setStatus(ctx, b, channel, working)
			return true, nil
		}
		p.s.refused.note(methodStream, channel, err)
		if begun := b.stream.ts != ""; begun && code(err) == "message_not_in_streaming_state" {
			b.stream.over = true // perhaps by a Stop that is on its way here, so nothing else is shown for this line
			return true, nil
		} else if begun && (limited(err) || code(err) == "") {
			return true, err
		}
	}
	return false, p.drop(ctx, b)
}

// drop takes a streamed message away in whose place another will be posted. The caller holds b.mu.
func (p *progress) drop(ctx context.Context, b *bulletin) error {
	if err := b.stream.stop(ctx); err != nil {
		return err
	}
	if b.at.ts != "" {
		if err := p.remove(ctx, b.at); err != nil {
			return err
		}
	}
	b.stream, b.at = nil, message{}
	return nil
}

// end takes away the progress of a conversation whose turn has ended or waits. After an error it can be tried again.
func (p *progress) end(ctx context.Context, at place, turn string) error {
	address := at.String()
	b := p.of(address)
	if b == nil {
		if err := p.leftBehind(ctx, at); err != nil {
			return err
		}
		return p.sweep(ctx, at, turn)
	}
	if err := p.take(ctx, b); err != nil {
		return err
	}
	p.mu.Lock()
	if p.turns[address] == b {
		delete(p.turns, address)
	}
	p.mu.Unlock()
	return p.sweep(ctx, at, turn)
}

// leftBehind ends the session of a thread in which a turn has ended of which nothing is known here: it may have begun in an
// earlier process, and Slack would show its Stop button for ever.
func (p *progress) leftBehind(ctx context.Context, at place) error {
	if at.thread == "" {
		return nil
	}
	channel, err := p.s.directory.channel(ctx, at)
	if err != nil || p.s.refused.has(methodSession, channel) {
		return err
	}
	if err := p.rest(ctx, channel, at.thread); limited(err) || unsure(err) {
		return err
	}
	return nil
}

// markOf names what this process shows of a turn.
func (p *progress) markOf(turn string) mark {
	return mark{key: "progress " + turn, digest: digestOf(p.since.Format(time.RFC3339Nano))}
}

// sweep takes away what an earlier process has posted of a turn's progress, which could not take it away when it was killed.
// What Slack does not let the bot look for stays.
func (p *progress) sweep(ctx context.Context, at place, turn string) error {
	began, known := agent.TurnBegan(turn)
	if !known || !began.Before(p.since) {
		return nil
	}
	channel, err := p.s.directory.channel(ctx, at)
	if err != nil {
		return err
	}
	f, err := p.s.lookUp(ctx, channel, at.thread, began.Add(-skew))
	if limited(err) || unsure(err) {
		return err
	}
	for m, ts := range f.marks {
		if m.key != p.markOf(turn).key {
			continue
		}
		if err := p.remove(ctx, message{channel, ts}); err != nil {
			return err
		}
	}
	return nil
}

// take takes a message away: deleted, or settled where it cannot be.
func (p *progress) take(ctx context.Context, b *bulletin) error {
	b.end() // what waits holds nothing up
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended, b.pending, b.lines = true, "", nil
	if b.timer != nil && b.timer.Stop() {
		p.flushes.Done()
	}
	b.timer = nil
	if err := p.leave(ctx, b); err != nil {
		return err
	}
	if b.stream != nil {
		if err := b.stream.stop(ctx); err != nil {
			return err
		}
	}
	if b.at.ts == "" {
		return nil
	}
	if err := p.remove(ctx, b.at); err != nil {
		return err
	}
	b.at = message{}
	return nil
}

func (p *progress) remove(ctx context.Context, at message) error {
	_, _, err := p.s.api.DeleteMessageContext(ctx, at.channel, at.ts)
	if code(err) == "streaming_state_conflict" {
		if err := stopStream(ctx, p.s, at); err != nil {
			return err
		}
		_, _, err = p.s.api.DeleteMessageContext(ctx, at.channel, at.ts)
	}
	if done(err, "message_not_found", "channel_not_found", "is_archived") {
		return nil
	}
	if code(err) != "" && retryAfter(err) == 0 {
		options := append(quiet(true), slack.MsgOptionText("Done.", false), slack.MsgOptionBlocks())
		_, _, _, err = p.s.api.UpdateMessageContext(ctx, at.channel, at.ts, options...)
		if code(err) != "" {
			return nil // there is nothing more that could be done about it
		}
	}
	if err != nil {
		return fmt.Errorf("take away the progress in %s: %w", at.channel, err)
	}
	return nil
}

// of is the bulletin of a conversation; nil when there is none.
func (p *progress) of(address string) *bulletin {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turns[address]
}

// pressed is called when the Stop button of a message was pressed, and told whether that was taken, as a repeat is not:
// it is about what has been stopped already. The message is taken away if it belongs to no turn that is known, such as
// one from before a restart. All others are taken away when their turn is settled.
func (p *progress) pressed(ctx context.Context, address string, at message, taken bool) {
	b := p.of(address)
	if b != nil && taken {
		b.halted.Store(true)
	}
	if b != nil {
		b.mu.Lock()
		known := b.at == at
		b.mu.Unlock()
		if known {
			return
		}
	}
	if err := p.remove(ctx, at); err != nil && ctx.Err() == nil {
		p.s.log.Warn("cannot take away old progress", "error", err)
	}
}

// stopped is called when Slack's own Stop button was pressed in a thread, which ends a stream there. If that was taken,
// nothing more is shown, and what is left under the thread goes at once; if it was declined, the turn goes on, and so
// does the button. A repeat is about what has been stopped already, and must not touch what has begun since.
func (p *progress) stopped(ctx context.Context, at place, channel string, admission bot.Admission) {
	b := p.of(at.String())
	if b == nil {
		if err := p.rest(ctx, channel, at.thread); err != nil && ctx.Err() == nil {
			p.s.log.Warn("cannot show that nothing is done", "error", err)
		}
		return
	}
	if admission == bot.Repeat {
		return
	}
	if admission == bot.Taken {
		b.halted.Store(true)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stream != nil {
		b.stream.over = true
	}
	if admission != bot.Taken {
		b.processing = false
		p.attend(ctx, b, channel)
		return
	}
	if err := p.leave(ctx, b); err != nil && ctx.Err() == nil {
		p.s.log.Warn("cannot show that a turn was stopped", "error", err)
	}
}

// close takes away all progress, as far as there is time for it, and shows none any more. It returns when nothing of it
// runs.
func (p *progress) close() {
	p.mu.Lock()
	p.closed = true
	var all []*bulletin
	for _, b := range p.turns {
		all = append(all, b)
	}
	p.turns = map[string]*bulletin{}
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	for _, b := range all {
		if err := p.take(ctx, b); err != nil && !ended(err) {
			p.s.log.Warn("cannot take away progress", "error", err)
		}
	}
	p.flushes.Wait()
}
