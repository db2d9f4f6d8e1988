package discord

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"nudge/bot"
)

const (
	nonceLength = 24 // of the 25 characters that Discord takes
	skew        = time.Minute
	pageLength  = 100
	mostPages   = 5
)

// nonceOf names one message of a reply: by the reply's key, the message's place among those of the reply, and what it says,
// since another data file would use the same keys.
func nonceOf(key string, part int, text string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s", key, part, text))
	return hex.EncodeToString(sum[:])[:nonceLength]
}

// ledger knows which messages of which replies stand in Discord, for replies that are not wholly said.
type ledger struct {
	mu    sync.Mutex
	tries map[string]*try // by key
}

// try is a reply that is being said.
type try struct {
	said   map[string]string // nonce → message
	unsure time.Time         // when the first message was sent whose fate is not known
}

func newLedger() *ledger { return &ledger{tries: map[string]*try{}} }

// of gives what is known of the tries of a reply. Those of an earlier process, of which nothing is known, make it unsure.
func (l *ledger) of(d bot.Delivery) *try {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tries[d.Key]
	if t == nil {
		t = &try{said: map[string]string{}, unsure: d.Doubtful}
	}
	if d.Key != "" {
		l.tries[d.Key] = t
	}
	return t
}

// partly reports whether something of a reply was said, or may have been.
func (l *ledger) partly(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tries[key]
	return t != nil && (len(t.said) > 0 || !t.unsure.IsZero())
}

func (l *ledger) forget(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.tries, key)
}

// doubt notes that what was sent just now may have been said in spite of an error.
func (t *try) doubt(err error) {
	if unsure(err) && t.unsure.IsZero() {
		t.unsure = time.Now()
	}
}

// recall makes sure of what earlier tries of a reply have said. As long as Discord knows the nonces nothing has to be done: what
// stands there is not said again. After that the channel is looked through.
func (d *Discord) recall(ctx context.Context, t *try, channel string, posts []post, nonces []string) error {
	if t.unsure.IsZero() || time.Since(t.unsure) < d.timing.Nonce {
		return nil
	}
	if d.me().user == "" {
		return errors.New("it is not known yet which messages are the bot's own")
	}
	after := idAt(t.unsure.Add(-skew))
	for range mostPages {
		var page []stands
		err := d.api.page(ctx, channel, after, &page)
		if code(err) != 0 && !lasting(err) {
			// Discord does not let the bot look there, and will not later.
			return &bot.SendError{Blind: true, Err: err}
		}
		if err != nil {
			return fmt.Errorf("look up what was said in %s: %w", channel, err)
		}
		for _, m := range page {
			d.recognise(t, m, posts, nonces)
			if later(m.ID, after) {
				after = m.ID
			}
		}
		if len(page) < pageLength {
			t.unsure = time.Time{}
			return nil
		}
	}
	return &bot.SendError{Blind: true, Err: errors.New("too much was said in the channel since then to look through")}
}

// recognise takes note of a message that is one of a reply's: the bot's own, with the same nonce, or with the same words and
// buttons, since Discord does not keep nonces.
func (d *Discord) recognise(t *try, m stands, posts []post, nonces []string) {
	if m.Author.ID != d.me().user {
		return
	}
	var nonce string
	_ = json.Unmarshal(m.Nonce, &nonce) // a number is not ours
	for i, p := range posts {
		if _, found := t.said[nonces[i]]; found {
			continue
		}
		if nonce == nonces[i] || nonce == "" && strings.TrimSpace(p.text) == m.Content && (p.card == "" || strings.Contains(string(m.Components), p.card)) {
			t.said[nonces[i]] = m.ID
			return
		}
	}
}
