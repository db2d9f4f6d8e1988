package discord

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"nudge/bot"
	"nudge/bot/wire"
)

// How long after something was said it is still taken up, which is less than keys of what was heard are known for; for how
// long a channel is looked into after something was heard there; and how many channels are at a start.
const (
	heardFor      = 48 * time.Hour
	liveFor       = 30 * 24 * time.Hour
	mostBookmarks = 500
	mostMissed    = 20 // pages of a hundred messages of one channel
)

// keptHeard is the name of the texts that are bookmarks.
const keptHeard = "heard "

// bookmarks say how far each channel was heard in which the bot is talked with, so that what is said while nobody listens is
// heard later. They are kept a moment after they have moved: what is found again then is known by its key.
type bookmarks struct {
	mu    sync.Mutex
	in    map[string]bookmark // by channel
	moved map[string]bool     // channels whose bookmarks are not kept yet
	wake  chan struct{}
}

// bookmark is how far one channel was heard.
type bookmark struct {
	about string // the person of direct messages, or discord:GUILD:CHANNEL
	last  message
}

func newBookmarks() *bookmarks {
	return &bookmarks{in: map[string]bookmark{}, moved: map[string]bool{}, wake: make(chan struct{}, 1)}
}

// aboutOf is what a bookmark of a channel is about.
func aboutOf(user, guild, channel string) string {
	if guild == "" {
		return string(personID(user))
	}
	return platform + ":" + guild + ":" + channel
}

// guild is that of the channel; "" for direct messages.
func (b bookmark) guild() string {
	if parts := strings.Split(b.about, ":"); len(parts) == 3 {
		return parts[1]
	}
	return ""
}

// move notes that a channel was heard up to a message. It never goes back.
func (b *bookmarks) move(to bookmark) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if had, known := b.in[to.last.channel]; known && !later(to.last.id, had.last.id) {
		return
	}
	b.in[to.last.channel] = to
	b.moved[to.last.channel] = true
	if len(b.in) > 2*mostBookmarks {
		b.thin()
	}
	b.look()
}

// thin drops the channels that have been silent for longest. The caller holds mu.
func (b *bookmarks) thin() {
	all := slices.SortedFunc(maps.Values(b.in), func(x, y bookmark) int { return compareIDs(y.last.id, x.last.id) })
	for _, at := range all[mostBookmarks:] {
		at.last.id = ""
		b.in[at.last.channel], b.moved[at.last.channel] = at, true
	}
}

// begin notes a channel in which the bot has spoken, if nothing is known of it. What was said there just before may not have
// been heard yet.
func (b *bookmarks) begin(about string, said message) {
	b.mu.Lock()
	heard := b.in[said.channel].last.id != ""
	b.mu.Unlock()
	if !heard && isID(said.id) {
		b.move(bookmark{about, message{said.channel, idAt(instant(said.id).Add(-skew))}})
	}
}

// drop forgets a channel in which nothing can be heard.
func (b *bookmarks) drop(channel string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	had, known := b.in[channel]
	if !known {
		return
	}
	had.last.id = ""
	b.in[channel], b.moved[channel] = had, true
	b.look()
}

func (b *bookmarks) look() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// all are the bookmarks that moved last, the newest first.
func (b *bookmarks) all() (all []bookmark) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, at := range b.in {
		if at.last.id != "" {
			all = append(all, at)
		}
	}
	slices.SortFunc(all, func(x, y bookmark) int { return compareIDs(y.last.id, x.last.id) })
	return all[:min(len(all), mostBookmarks)]
}

// load reads what an earlier process has kept. Channels that have been silent for long, or are too many, are forgotten.
func (b *bookmarks) load(kept map[string]string, now time.Time) {
	var found []bookmark
	for name, text := range kept {
		about, ours := strings.CutPrefix(name, keptHeard)
		last, ok := parseMessage(text)
		if ours && ok {
			found = append(found, bookmark{about, last})
		}
	}
	slices.SortFunc(found, func(x, y bookmark) int { return compareIDs(y.last.id, x.last.id) })
	for i, at := range found {
		b.move(at)
		if i >= mostBookmarks || now.Sub(instant(at.last.id)) > liveFor {
			b.drop(at.last.channel)
		}
	}
}

// changes takes what has moved since it was kept.
func (b *bookmarks) changes() map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	changes := map[string]string{}
	for channel := range b.moved {
		at := b.in[channel]
		text := at.last.String()
		if at.last.id == "" {
			text = ""
			delete(b.in, channel)
		}
		changes[keptHeard+at.about] = text
	}
	clear(b.moved)
	return changes
}

// keep keeps bookmarks as they move, until ctx ends.
func (b *bookmarks) keep(ctx context.Context, d *Discord, in bot.Receiver) {
	pending := map[string]string{}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-b.wake:
			_ = wire.Sleep(ctx, d.timing.Keep) // what moves meanwhile is kept together
		}
		maps.Copy(pending, b.changes())
		if len(pending) == 0 {
			continue
		}
		keeping, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
		err := in.Keep(keeping, platform, pending)
		cancel()
		if err == nil {
			pending = map[string]string{}
		} else {
			d.log.Error("cannot keep how far was heard in discord; trying again", "error", err)
			b.look()
		}
	}
}

// compareIDs says which of two ids was given earlier.
func compareIDs(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

func later(a, b string) bool { return compareIDs(a, b) > 0 }

// recollect reads how far an earlier process has heard.
func (d *Discord) recollect(ctx context.Context, in bot.Receiver) error {
	for wait := d.timing.Again; ; wait = min(2*wait, 30*d.timing.Again) {
		kept, err := in.Kept(ctx, platform)
		if err == nil {
			d.bookmarks.load(kept, time.Now())
			return nil
		}
		d.log.Error("cannot read how far was heard in discord; trying again", "error", err)
		if err := wire.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// catchUp hears what was said in a channel after its bookmark, of which no event has come.
func (d *Discord) catchUp(ctx context.Context, in bot.Receiver, from bookmark) {
	after := from.last.id
	if oldest := idAt(time.Now().Add(-heardFor)); later(oldest, after) {
		after = oldest
	}
	for range mostMissed {
		missed, err := d.missed(ctx, from.last.channel, after)
		if err != nil {
			if ctx.Err() == nil {
				d.log.Warn("cannot look for what was said while there was no link", "channel", from.last.channel, "error", err)
			}
			if status(err) == http.StatusForbidden || status(err) == http.StatusNotFound {
				d.bookmarks.drop(from.last.channel)
			}
			return
		}
		for _, m := range missed {
			m.Guild = from.guild() // which the API does not tell
			if d.spoken(m) {
				d.message(ctx, in, m)
			}
			after = m.ID
		}
		if ctx.Err() != nil {
			return
		}
		d.bookmarks.move(bookmark{from.about, message{from.last.channel, after}})
		if len(missed) < pageLength {
			return
		}
	}
	d.log.Warn("so much was said while there was no link that the rest of it is not read", "channel", from.last.channel)
}

// meet hears what people have said who wrote to the bot for the first time while there was no session. It goes from one to the next
// slowly, as Discord does not like many direct messages to be opened, and stops when it says so.
func (d *Discord) meet(ctx context.Context, in bot.Receiver) {
	known := map[string]bool{}
	for _, at := range d.bookmarks.all() {
		known[at.about] = true
	}
	for _, user := range d.people {
		about := aboutOf(user, "", "")
		if !isID(user) || known[about] {
			continue
		}
		channel, err := d.rooms.direct(ctx, user)
		switch {
		case ctx.Err() != nil:
			return
		case limited(err), code(err) == codeOpenTooFast:
			d.log.Warn("discord lets no more direct messages be opened to look for first words; the rest is looked for at the next start", "error", err)
			return
		case err != nil:
			d.log.Debug("cannot look for somebody's first words", "person", personID(user), "error", err)
		default:
			at := bookmark{about, message{channel, idAt(time.Now().Add(-heardFor))}}
			d.bookmarks.move(at)
			d.lanes.Do(channel, func() { d.catchUp(ctx, in, at) })
		}
		if wire.Sleep(ctx, d.timing.Meet) != nil {
			return
		}
	}
}

// missed is what was said in a channel after a message, a page of it, oldest first. It is asked for until there is an answer;
// the error is one that stays.
func (d *Discord) missed(ctx context.Context, channel, after string) (missed []said, err error) {
	for wait := d.timing.Again; ; wait = min(2*wait, 30*d.timing.Again) {
		err = d.api.page(ctx, channel, after, &missed)
		if err == nil {
			slices.SortFunc(missed, func(a, b said) int { return compareIDs(a.ID, b.ID) })
			return missed, nil
		}
		if ctx.Err() != nil || status(err) != 0 {
			return nil, err
		}
		if err := wire.Sleep(ctx, max(wait, retryAfter(err))); err != nil {
			return nil, err
		}
	}
}
