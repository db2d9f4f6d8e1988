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
	knownFor = time.Hour       // what is known of a person is asked again after that
	askFor   = 2 * time.Second // a message does not wait longer for its author's name
	mostKept = 10_000
)

// directory knows people's names and zones, and the channels of their direct messages.
type directory struct {
	api *slack.Client

	mu     sync.Mutex
	people map[string]profile // by user
	direct map[string]string  // user → channel
}

type profile struct {
	name, zone string
	at         time.Time
}

func newDirectory(api *slack.Client) *directory {
	return &directory{api: api, people: map[string]profile{}, direct: map[string]string{}}
}

// lookup gives a person's name and zone; both are "" when Slack does not tell in time.
func (d *directory) lookup(ctx context.Context, user string) (name, zone string) {
	d.mu.Lock()
	known, ok := d.people[user]
	d.mu.Unlock()
	if ok && time.Since(known.at) < knownFor {
		return known.name, known.zone
	}
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	u, err := d.api.GetUserInfoContext(ctx, user)
	if err != nil {
		return known.name, known.zone
	}
	p := profile{cmp.Or(u.Profile.DisplayName, u.RealName, u.Profile.RealName, u.Name), u.TZ, time.Now()}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.people) >= mostKept {
		clear(d.people)
	}
	d.people[user] = p
	return p.name, p.zone
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
