package slack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/slack-go/slack"
)

const (
	// metadataType is the event type of the metadata that each message carries.
	metadataType = "nudge_reply"
	// lookBack is how far back a card is looked for, and skew how far Slack's clock and ours may be apart.
	lookBack = 30 * 24 * time.Hour
	skew     = time.Minute
	lookPage = 200
	mostPage = 5
)

// mark names one message of a reply: the reply's key, the message's place among those of the reply, and a digest of what
// it says, since another data file would use the same keys. A file has its name alone for a mark, which holds all that.
type mark struct {
	key    string
	part   int
	digest string
	file   string
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

func (m mark) metadata(card string) slack.SlackMetadata {
	payload := map[string]any{"key": m.key, "part": m.part, "digest": m.digest}
	if card != "" {
		payload["card"] = card
	}
	return slack.SlackMetadata{EventType: metadataType, EventPayload: payload}
}

// readMark reads a message's metadata. They may come from anybody, so nothing is taken for granted.
func readMark(m slack.SlackMetadata) (mark, string, bool) {
	if m.EventType != metadataType {
		return mark{}, "", false
	}
	key, _ := m.EventPayload["key"].(string)
	digest, _ := m.EventPayload["digest"].(string)
	card, _ := m.EventPayload["card"].(string)
	part := -1
	switch n := m.EventPayload["part"].(type) {
	case float64:
		part = int(n)
	case string:
		part, _ = strconv.Atoi(n)
	}
	return mark{key: key, part: part, digest: digest}, card, key != "" || card != ""
}

// found is what a look into a conversation brought.
type found struct {
	marks map[mark]string   // → ts, of a file that of its message
	cards map[string]string // card → ts
	whole bool              // nothing was left out
}

// lookUp reads what the bot has said in a conversation since an instant, as far as Slack gives it in a few pages.
func (s *Slack) lookUp(ctx context.Context, channel, thread string, since time.Time) (found, error) {
	f := found{marks: map[mark]string{}, cards: map[string]string{}}
	oldest := fmt.Sprintf("%d.000000", since.Unix())
	cursor := ""
	for range mostPage {
		messages, next, err := s.page(ctx, channel, thread, oldest, cursor)
		if err != nil {
			return f, fmt.Errorf("look up what was said in %s: %w", channel, err)
		}
		for _, m := range messages {
			if !s.own(m) {
				continue
			}
			for _, file := range m.Files {
				f.marks[mark{file: file.Name}] = m.Timestamp
			}
			if mark, card, ok := readMark(m.Metadata); ok {
				f.marks[mark] = m.Timestamp
				if card != "" {
					f.cards[card] = m.Timestamp
				}
			}
		}
		if cursor = next; cursor == "" {
			f.whole = true
			break
		}
	}
	return f, nil
}

// own reports whether a message is the bot's. Before it is known who the bot is, any bot's is.
func (s *Slack) own(m slack.Message) bool {
	me := s.me()
	if m.BotID == "" {
		return me.user != "" && m.User == me.user
	}
	return me.bot == "" || m.BotID == me.bot
}

func (s *Slack) page(ctx context.Context, channel, thread, oldest, cursor string) ([]slack.Message, string, error) {
	if thread != "" {
		messages, _, next, err := s.api.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{
			ChannelID: channel, Timestamp: thread, Oldest: oldest, Cursor: cursor, Limit: lookPage, IncludeAllMetadata: true,
		})
		return messages, next, err
	}
	history, err := s.api.GetConversationHistoryContext(ctx, &slack.GetConversationHistoryParameters{
		ChannelID: channel, Oldest: oldest, Cursor: cursor, Limit: lookPage, IncludeAllMetadata: true,
	})
	if err != nil {
		return nil, "", err
	}
	return history.Messages, history.ResponseMetaData.NextCursor, nil
}
