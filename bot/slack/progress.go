package slack

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slack-go/slack"

	"nudge/agent"
)

const (
	progressLimit = 300             // characters of a line of progress
	statusFor     = time.Minute     // Slack takes a status away after two
	farewell      = 2 * time.Second // for taking progress away when the program ends
)

// progress shows what is being done in each conversation: one message a turn, with a Stop button, which is edited as
// things go on and deleted at the end.
type progress struct {
	s       *Slack
	flushes sync.WaitGroup
	mute    atomic.Bool // Slack does not take a status from this app

	mu     sync.Mutex
	turns  map[string]*bulletin // by conversation
	closed bool
}

// bulletin is the message of one turn. Its mu is held while Slack is called, so that edits keep their order.
type bulletin struct {
	turn    string
	address string
	thread  string

	mu      sync.Mutex
	at      message // zero before it is posted
	pending string  // what the next edit will say; "" for nothing
	edited  time.Time
	status  time.Time
	timer   *time.Timer // set while something is pending that waits for its time or its turn
	ended   bool
	over    context.Context // ends with it, so that nothing waits for an edit that nobody needs
	end     context.CancelFunc
}

func newBulletin(at place, r agent.Reply) *bulletin {
	over, end := context.WithCancel(context.Background())
	return &bulletin{turn: r.Turn, address: r.Address, thread: at.thread, over: over, end: end}
}

func newProgress(s *Slack) *progress { return &progress{s: s, turns: map[string]*bulletin{}} }

// show shows a line. Lines that come too fast are left out, but for the last.
func (p *progress) show(ctx context.Context, at place, r agent.Reply) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	b, last := p.turns[r.Address], (*bulletin)(nil)
	if b == nil || b.turn != r.Turn {
		last, b = b, newBulletin(at, r)
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
	if b.at.ts != "" || b.timer != nil {
		p.later(b, p.s.timing.Edit-time.Since(b.edited))
		return nil
	}
	return p.flush(nowOrNever(ctx), at, b)
}

// later lets what is pending be shown after a while, when there is room for it among what all conversations show and say.
// The caller holds b.mu.
func (p *progress) later(b *bulletin, wait time.Duration) {
	if b.timer != nil || b.ended {
		return
	}
	method := "chat.update"
	if b.at.ts == "" {
		method = "chat.postMessage"
	}
	p.flushes.Add(1)
	b.timer = time.AfterFunc(max(wait, 0), func() {
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

// flush posts or edits the message. What there is no room for now is shown later. The caller holds b.mu.
func (p *progress) flush(ctx context.Context, at place, b *bulletin) error {
	text := b.pending
	b.pending, b.edited = "", time.Now()
	wait, err := p.put(ctx, at, b, text)
	if limited(err) {
		wait, err = max(retryAfter(err), p.s.timing.Edit), nil
	}
	if wait > 0 {
		b.pending = text
		p.later(b, wait)
		return nil
	}
	if err == nil {
		p.setStatus(nowOrNever(ctx), b)
	}
	return err
}

// put posts or edits the message, or says how long a first message has to wait, which takes nobody's turn.
func (p *progress) put(ctx context.Context, at place, b *bulletin, text string) (wait time.Duration, err error) {
	options := append(quiet(), slack.MsgOptionText(escape(text), false), slack.MsgOptionBlocks(section(text),
		row(b.address, button(actionStop, b.turn, "Stop", slack.StyleDanger))))
	if b.at.ts != "" {
		if _, _, _, err := p.s.api.UpdateMessageContext(ctx, b.at.channel, b.at.ts, options...); err != nil {
			return 0, fmt.Errorf("edit the progress in %s: %w", b.at.channel, err)
		}
		return 0, nil
	}
	channel, err := p.s.directory.channel(ctx, at)
	if err != nil {
		return 0, err
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
	b.at = message{channel, ts}
	return 0, nil
}

// setStatus lets Slack show under a thread that the bot is at work. The caller holds b.mu.
func (p *progress) setStatus(ctx context.Context, b *bulletin) {
	if b.thread == "" || p.mute.Load() || time.Since(b.status) < statusFor {
		return
	}
	b.status = time.Now()
	p.status(ctx, b, "is working…")
}

func (p *progress) status(ctx context.Context, b *bulletin, text string) {
	err := p.s.api.SetAssistantThreadsStatusContext(ctx, slack.AssistantThreadsSetStatusParameters{
		ChannelID: b.at.channel, ThreadTS: b.thread, Status: text,
	})
	if code(err) != "" {
		p.mute.Store(true)
	}
}

// end takes away the progress of a conversation. After an error it can be tried again.
func (p *progress) end(ctx context.Context, address string) error {
	p.mu.Lock()
	b := p.turns[address]
	p.mu.Unlock()
	if b == nil {
		return nil
	}
	if err := p.take(ctx, b); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turns[address] == b {
		delete(p.turns, address)
	}
	return nil
}

// take takes a message away: deleted, or settled where it cannot be.
func (p *progress) take(ctx context.Context, b *bulletin) error {
	b.end() // what waits holds nothing up
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended, b.pending = true, ""
	if b.timer != nil && b.timer.Stop() {
		p.flushes.Done()
	}
	b.timer = nil
	if b.at.ts == "" {
		return nil
	}
	if err := p.remove(ctx, b.at); err != nil {
		return err
	}
	if !b.status.IsZero() && !p.mute.Load() {
		p.status(ctx, b, "")
	}
	b.at = message{}
	return nil
}

func (p *progress) remove(ctx context.Context, at message) error {
	_, _, err := p.s.api.DeleteMessageContext(ctx, at.channel, at.ts)
	if done(err, "message_not_found", "channel_not_found", "is_archived") {
		return nil
	}
	if code(err) != "" && retryAfter(err) == 0 {
		options := append(quiet(), slack.MsgOptionText("Done.", false), slack.MsgOptionBlocks())
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

// pressed takes away a message whose Stop button was pressed and that belongs to no turn that is known, such as one from
// before a restart. All others are taken away when their turn is settled.
func (p *progress) pressed(ctx context.Context, address string, at message) {
	p.mu.Lock()
	b := p.turns[address]
	p.mu.Unlock()
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

// close takes away all progress, as far as there is time for it, and shows none any more. It returns when nothing of it runs.
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
