package discord

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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

// recall makes sure of what earlier tries of a reply have said. As long as Discord knows the nonces nothing has to be done: what
// stands there is not said again. After that the channel is looked through.
func (d *Discord) recall(ctx context.Context, t *bot.Try[string], channel string, posts []post, nonces []string) error {
	if t.Unsure.IsZero() || time.Since(t.Unsure) < d.timing.Nonce {
		return nil
	}
	if d.me().user == "" {
		return errors.New("it is not known yet which messages are the bot's own")
	}
	after := idAt(t.Unsure.Add(-skew))
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
			t.Unsure = time.Time{}
			return nil
		}
	}
	return &bot.SendError{Blind: true, Err: errors.New("too much was said in the channel since then to look through")}
}

// recognise takes note of a message that is one of a reply's: the bot's own, with the same nonce, or with the same words and
// buttons, since Discord does not keep nonces.
func (d *Discord) recognise(t *bot.Try[string], m stands, posts []post, nonces []string) {
	if m.Author.ID != d.me().user {
		return
	}
	var nonce string
	_ = json.Unmarshal(m.Nonce, &nonce) // a number is not ours
	for i, p := range posts {
		if _, found := t.Said[nonces[i]]; found {
			continue
		}
		if nonce == nonces[i] || nonce == "" && strings.TrimSpace(p.text) == m.Content && (p.card == "" || strings.Contains(string(m.Components), p.card)) {
			t.Said[nonces[i]] = m.ID
			return
		}
	}
}
