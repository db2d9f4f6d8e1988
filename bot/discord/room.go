package discord

import (
	"context"
	"fmt"
	"sync"

	"nudge/bot"
	"nudge/bot/wire"
)

// rooms knows where conversations are: the channels of direct messages, and which rooms of servers are threads.
type rooms struct {
	api    *api
	dms    *bot.Recent[string] // user → channel
	known  *bot.Recent[room]   // by id
	begun  *bot.Recent[bool]   // threads that are there, by id
	flat   *bot.Recent[string] // messages under which there can be no thread → their channel
	titles *bot.Recent[string] // threads that may be begun → what they shall be called
	names  *bot.Recent[string] // people → what they are called

	mu        sync.Mutex
	beginning map[string]chan struct{} // threads that are being begun; each is closed when that has ended
}

func newRooms(a *api) *rooms {
	return &rooms{
		api: a, dms: bot.NewRecent[string](5000), known: bot.NewRecent[room](20_000), begun: bot.NewRecent[bool](5000), flat: bot.NewRecent[string](1000),
		titles: bot.NewRecent[string](1000), names: bot.NewRecent[string](5000),
		beginning: map[string]chan struct{}{},
	}
}

// met remembers a room of which Discord has told.
func (r *rooms) met(of room) {
	if !isID(of.ID) {
		return
	}
	if of.isThread() {
		r.begun.Put(of.ID, true)
	}
	r.known.Put(of.ID, of) // the last, so that who knows the room finds all that is known of it
}

// room tells what is known of a room, and asks where nothing is.
func (r *rooms) room(ctx context.Context, id string) (room, error) {
	if of, known := r.known.Get(id); known {
		return of, nil
	}
	of, err := r.api.room(ctx, id)
	if err != nil {
		return room{}, fmt.Errorf("ask for the channel %s: %w", id, err)
	}
	r.met(of)
	return of, nil
}

// channel is where a conversation is held. A thread that is not there is begun.
func (r *rooms) channel(ctx context.Context, p place) (string, error) {
	if p.user != "" {
		return r.direct(ctx, p.user)
	}
	if channel := r.there(p); channel != "" {
		return channel, nil
	}
	release, err := r.alone(ctx, p.thread)
	if err != nil {
		return "", err
	}
	defer release()
	if channel := r.there(p); channel != "" {
		return channel, nil
	}
	return r.begin(ctx, p)
}

// there is where a conversation of a server is held already; "" when that is not known.
func (r *rooms) there(p place) string {
	if channel, flat := r.flat.Get(p.thread); flat {
		return channel
	}
	if begun, _ := r.begun.Get(p.thread); begun {
		return p.thread
	}
	return ""
}

// alone lets one at a time begin a thread: what is said there first, or the sign that something is being written.
func (r *rooms) alone(ctx context.Context, thread string) (release func(), err error) {
	for {
		r.mu.Lock()
		other, busy := r.beginning[thread]
		if !busy {
			mine := make(chan struct{})
			r.beginning[thread] = mine
			r.mu.Unlock()
			return func() {
				r.mu.Lock()
				defer r.mu.Unlock()
				delete(r.beginning, thread)
				close(mine)
			}, nil
		}
		r.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, &wire.UnsentError{Err: ctx.Err()}
		}
	}
}

// direct is the channel of a person's direct messages.
func (r *rooms) direct(ctx context.Context, user string) (string, error) {
	if channel, known := r.dms.Get(user); known {
		return channel, nil
	}
	channel, err := r.api.openDM(ctx, user)
	if err != nil {
		return "", fmt.Errorf("open the direct messages of %s: %w", user, err)
	}
	r.dms.Put(user, channel)
	return channel, nil
}

// begin begins the thread of a conversation under its message. Where there can be none, what is said stands in the channel.
func (r *rooms) begin(ctx context.Context, p place) (string, error) {
	title, _ := r.titles.Get(p.thread)
	if title == "" {
		title = "Nudge"
	}
	err := r.api.beginThread(ctx, message{p.channel, p.thread}, title)
	switch code(err) {
	case codeMissing, codeMostThreads, codeWrongType:
		r.flat.Put(p.thread, p.channel)
		return p.channel, nil
	case codeHasThread, codeUnknownMessage: // of the second kind are threads that were begun without a message
		err = nil
	}
	if err != nil {
		return "", fmt.Errorf("begin a thread in %s: %w", p.channel, err)
	}
	r.begun.Put(p.thread, true)
	return p.thread, nil
}

const titleLimit = 80 // of the hundred characters that Discord takes

// titleOf makes the name of a thread of the words that begin it.
func titleOf(words string) string { return bot.Title(words, titleLimit, cut) }
