package slack

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/slack-go/slack"
)

const (
	knownFor = time.Hour              // what is known of a person is asked again after that
	askFor   = 700 * time.Millisecond // a message does not wait longer for its author's name
	restFor  = 10 * time.Second       // nobody is asked for after Slack did not tell in time
	mostKept = 10_000
)

// directory knows people's names and zones, and the channels of their direct messages.
type directory struct {
	api *slack.Client

	mu     sync.Mutex
	people map[string]profile       // by user
	direct map[string]string        // user → channel
	asked  map[string]chan struct{} // by user; closed when what is being asked is known
	rests  time.Time                // until when nobody is asked for
}

type profile struct {
	name, zone string
	at         time.Time
}

func newDirectory(api *slack.Client) *directory {
	return &directory{api: api, people: map[string]profile{}, direct: map[string]string{}, asked: map[string]chan struct{}{}}
}

// lookup gives a person's name and zone, as they were known before when Slack does not tell in time; both are "" when they
// never were.
func (d *directory) lookup(ctx context.Context, user string) (name, zone string) {
	d.mu.Lock()
	known, ok := d.people[user]
	if ok && time.Since(known.at) < knownFor || time.Now().Before(d.rests) {
		d.mu.Unlock()
		return known.name, known.zone
	}
	answer, isAsked := d.asked[user]
	if !isAsked {
		answer = make(chan struct{})
		d.asked[user] = answer
	}
	d.mu.Unlock()
	if isAsked {
		select {
		case <-answer:
		case <-ctx.Done():
		}
	} else {
		d.ask(ctx, user)
		close(answer)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	known = d.people[user]
	return known.name, known.zone
}

// ask asks Slack for a person. Everybody's messages would wait for a Slack that does not tell, so that nobody is asked for
// for a while then.
func (d *directory) ask(ctx context.Context, user string) {
	within, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	u, err := d.api.GetUserInfoContext(within, user)
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.asked, user)
	switch {
	case ctx.Err() != nil:
	case limited(err):
		d.rests = time.Now().Add(min(retryAfter(err), restFor))
	case err != nil && code(err) == "":
		d.rests = time.Now().Add(restFor)
	case err == nil:
		if len(d.people) >= mostKept {
			clear(d.people)
		}
		d.people[user] = profile{cmp.Or(u.Profile.DisplayName, u.RealName, u.Profile.RealName, u.Name), u.TZ, time.Now()}
	}
}

// name is a person's name if it is known already, and otherwise "".
func (d *directory) name(user string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.people[user].name
}

// met remembers the channel of a person's direct messages.
func (d *directory) met(user, channel string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.direct) >= mostKept {
		clear(d.direct)
	}
	d.direct[user] = channel
}

// channel gives the channel of a conversation, which for direct messages may have to be opened.
func (d *directory) channel(ctx context.Context, p place) (string, error) {
	if p.user == "" {
		return p.channel, nil
	}
	d.mu.Lock()
	channel := d.direct[p.user]
	d.mu.Unlock()
	if channel != "" {
		return channel, nil
	}
	opened, _, _, err := d.api.OpenConversationContext(ctx, &slack.OpenConversationParameters{Users: []string{p.user}})
	if err != nil {
		return "", fmt.Errorf("open direct messages with %s: %w", p.user, err)
	}
	d.met(p.user, opened.ID)
	return opened.ID, nil
}
