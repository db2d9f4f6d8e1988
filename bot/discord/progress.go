package discord

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"nudge/agent"
	"nudge/bot/wire"
)

const (
	progressLimit = 300 // characters of a line of progress
	typingFor     = time.Hour
	farewell      = 2 * time.Second // for taking progress away when the program ends
)

// progress shows what is being done in each conversation: that the bot is typing, and one message a turn, with a Stop button,
// which is edited as things go on and deleted at the end.
type progress struct {
	d       *Discord
	flushes sync.WaitGroup

	mu     sync.Mutex
	turns  map[string]*bulletin // by conversation
	closed bool
}

// bulletin is what is shown of one turn. Its mu is held while Discord is called, so that edits keep their order.
type bulletin struct {
	place place
	over  context.Context // ends with it
	end   context.CancelFunc
	wake  chan struct{} // there is something to be shown
	shown bool          // it has begun; guarded by progress

	mu      sync.Mutex
	turn    string  // "" before a line of its was shown
	at      message // zero before it is posted
	pending string  // what the next edit will say; "" for nothing
	unsure  string  // the channel in which it may stand, when nobody knows whether it was posted
	ended   bool
}

func newProgress(d *Discord) *progress { return &progress{d: d, turns: map[string]*bulletin{}} }

// expect makes a bulletin for words that may begin a turn; nil where there is one. It is made before the words are given away,
// since their turn may be over soon, and nothing is shown of it before it begins.
func (p *progress) expect(at place) *bulletin {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.turns[at.String()] != nil {
		return nil
	}
	return p.make(at)
}

// make makes a bulletin. The caller holds mu.
func (p *progress) make(at place) *bulletin {
	over, end := context.WithCancel(context.Background())
	b := &bulletin{place: at, over: over, end: end, wake: make(chan struct{}, 1)}
	p.turns[at.String()] = b
	return b
}

// begin shows that the bot is typing, until the turn ends.
func (p *progress) begin(b *bulletin) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b == nil || b.shown || b.over.Err() != nil || p.closed {
		return
	}
	b.shown = true
	p.flushes.Go(func() { p.run(b) })
}

// forget takes a bulletin back of which nothing came.
func (p *progress) forget(b *bulletin) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b != nil && !b.shown && p.turns[b.place.String()] == b {
		b.end()
		delete(p.turns, b.place.String())
	}
}

// of is the bulletin of a conversation; nil when there is none.
func (p *progress) of(address string) *bulletin {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turns[address]
}

// ofTurn is the bulletin of a turn, which takes the place of one of an earlier turn; nil at the end.
func (p *progress) ofTurn(ctx context.Context, at place, turn string) *bulletin {
	if b := p.of(at.String()); b != nil {
		b.mu.Lock()
		earlier := b.turn != "" && b.turn != turn
		b.mu.Unlock()
		if !earlier {
			return b
		}
		if err := p.end(ctx, at.String()); err != nil {
			p.d.log.Warn("cannot take away the progress of an earlier turn", "error", err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	if b := p.turns[at.String()]; b != nil {
		return b
	}
	return p.make(at)
}

// show shows a line. Lines that come too fast are left out, but for the last.
func (p *progress) show(ctx context.Context, at place, r agent.Reply) {
	text := cut(strings.TrimSpace(r.Text), progressLimit)
	if text == "" {
		return
	}
	b := p.ofTurn(ctx, at, r.Turn)
	if b == nil {
		return
	}
	b.mu.Lock()
	b.turn, b.pending = r.Turn, text
	b.mu.Unlock()
	p.begin(b)
	b.look()
}

// look lets what is pending be shown. It does not block.
func (b *bulletin) look() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// run shows what there is of a turn until it ends.
func (p *progress) run(b *bulletin) {
	began := time.Now()
	typing := time.NewTimer(0)
	defer typing.Stop()
	for {
		select {
		case <-b.over.Done():
			return
		case <-typing.C:
			if time.Since(began) < typingFor {
				p.write(b)
				typing.Reset(p.d.timing.Typing)
			}
		case <-b.wake:
			// What is done at once needs no message that is taken away again.
			if wire.Sleep(b.over, p.d.timing.Edit-time.Since(began)) != nil {
				return
			}
			wait := p.d.timing.Edit
			if err := p.flush(b); err != nil {
				if b.over.Err() != nil {
					return
				}
				wait = max(wait, retryAfter(err))
				p.d.log.Warn("cannot show progress", "error", err)
			}
			if wire.Sleep(b.over, wait) != nil {
				return
			}
		}
	}
}

// write shows that the bot is typing, where there is already somewhere to do so.
func (p *progress) write(b *bulletin) {
	channel, err := p.d.rooms.channel(b.over, b.place)
	if err == nil {
		err = p.d.api.typing(b.over, channel)
	}
	if err != nil && b.over.Err() == nil {
		p.d.log.Debug("cannot show that something is being written", "error", err)
	}
}

// flush shows what is pending.
func (p *progress) flush(b *bulletin) error {
	channel, err := p.d.rooms.channel(b.over, b.place)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	text := b.pending
	if b.ended || text == "" {
		return nil
	}
	b.pending = ""
	shown := unlinked(escape(text))
	components := []discordgo.MessageComponent{row(button(actionStop, "", "Stop", discordgo.DangerButton))}
	// What was begun is ended, so that it is known where the message stands.
	ctx := context.WithoutCancel(b.over)
	if b.at.id != "" {
		err := p.d.api.edit(ctx, b.at, shown, components)
		if done(err, codeUnknownMessage, codeArchived, codeOld) {
			return nil
		}
		return fmt.Errorf("edit the progress in %s: %w", channel, err)
	}
	if err := p.post(ctx, b, channel, post{text: shown, components: components}); err != nil {
		b.pending = text
		b.look()
		return err
	}
	return nil
}

// post posts the message of a bulletin. Where it is not known whether it stands there, the same post finds it. The caller holds
// the bulletin's mu.
func (p *progress) post(ctx context.Context, b *bulletin, channel string, m post) error {
	id, err := p.d.api.post(ctx, channel, nonceOf("progress "+b.place.String()+" "+b.turn, 0, ""), sendingOf(m, b.place, channel, ""))
	if err != nil {
		if unsure(err) {
			b.unsure = channel
		}
		return fmt.Errorf("post the progress in %s: %w", channel, err)
	}
	b.at, b.unsure = message{channel, id}, ""
	return nil
}

// end takes away the progress of a conversation. After an error it can be tried again.
func (p *progress) end(ctx context.Context, address string) error {
	b := p.of(address)
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

// take takes a message away.
func (p *progress) take(ctx context.Context, b *bulletin) error {
	b.end() // what waits holds nothing up
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended, b.pending = true, ""
	if b.unsure != "" {
		if err := p.post(ctx, b, b.unsure, post{text: "…"}); err != nil {
			return err
		}
	}
	if b.at.id == "" {
		return nil
	}
	if err := p.d.api.remove(ctx, b.at); err != nil {
		return fmt.Errorf("take away the progress in %s: %w", b.at.channel, err)
	}
	b.at = message{}
	return nil
}

// pressed takes away a message whose Stop button was pressed and which belongs to no turn that is known, such as one from before
// a restart. All others are taken away when their turn is settled.
func (p *progress) pressed(ctx context.Context, at place, m message) {
	if b := p.of(at.String()); b != nil {
		b.mu.Lock()
		known := b.at == m
		b.mu.Unlock()
		if known {
			return
		}
	}
	if err := p.d.api.remove(ctx, m); err != nil && ctx.Err() == nil {
		p.d.log.Warn("cannot take away old progress", "error", err)
	}
}

// close takes away all progress, as far as there is time for it, and shows none any more. It returns when nothing of it runs.
func (p *progress) close() {
	p.mu.Lock()
	p.closed = true
	all := p.turns
	p.turns = map[string]*bulletin{}
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	for _, b := range all {
		err := p.take(ctx, b)
		for err != nil && limited(err) && wire.Sleep(ctx, retryAfter(err)) == nil { // many end at once
			err = p.take(ctx, b)
		}
		if err != nil {
			p.d.log.Warn("cannot take away progress", "error", err)
		}
	}
	p.flushes.Wait()
}
