package slack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/markdown"
)

// Say says one reply, and returns "channel:ts" of the first message that it became, or of the card. Errors are of type
// [*bot.SendError].
func (s *Slack) Say(ctx context.Context, d bot.Delivery) (receipt string, err error) {
	p, ok := parsePlace(d.Address)
	if !ok {
		return "", &bot.SendError{Gone: true, Err: fmt.Errorf("%q is no conversation of slack's", d.Address)}
	}
	receipt, err = s.say(ctx, p, d)
	err = s.sendError(err)
	s.ledger.Close(d.Key, err)
	return receipt, err
}

func (s *Slack) say(ctx context.Context, p place, d bot.Delivery) (string, error) {
	switch d.Kind {
	case agent.Progress:
		return "", s.progress.show(ctx, p, d.Reply)
	case agent.WaitingMark, agent.SettledMark:
		return "", s.progress.end(ctx, p, d.Turn)
	case agent.SteerMark:
		return "", s.react(ctx, d.Reply)
	case agent.DecidedMark:
		receipt, err := s.decided(ctx, p, d)
		s.refreshHome(ctx, d.ID)
		return receipt, err
	case agent.Ask, agent.Approval:
		return s.card(ctx, p, d)
	case agent.Final:
		return s.tell(ctx, p, d, rendered)
	case agent.Notify:
		return s.notify(ctx, p, d)
	case agent.Notice, agent.Fault:
		if d.IsCard() {
			return s.card(ctx, p, d)
		}
		if d.To != "" && p.user == "" {
			return "", s.aside(ctx, p, d)
		}
		receipt, err := s.tell(ctx, p, d, verbatim)
		s.progress.spoke(ctx, d.Address)
		return receipt, err
	}
	return "", nil
}

// quiet are the options of everything that is said: Slack fetches no page that a text names. Of words that are to stay words it
// makes no links either: without that it looks for addresses, also without a scheme and also in code, and an edit makes names of
// words besides (docs.slack.dev/reference/methods/chat.postMessage and chat.update, under parse).
func quiet(words bool) []slack.MsgOption {
	options := []slack.MsgOption{slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl()}
	if words {
		options = append(options, slack.MsgOptionParse(false))
	}
	return options
}

// post is one message to be posted.
type post struct {
	text   string // in Slack's markup
	words  bool   // nothing in it is a link but what is marked as one
	blocks []slack.Block
	card   string
}

// postsOf are messages of these texts and nothing else.
func postsOf(texts []string) (posts []post) {
	for _, text := range texts {
		posts = append(posts, post{text: text})
	}
	return posts
}

// tell says a text in as many messages as it takes. One that is too long for that becomes a file, with its beginning and what
// it holds as the message. render makes Slack's markup of a text.
func (s *Slack) tell(ctx context.Context, p place, d bot.Delivery, render func(string) *markdown.Text) (string, error) {
	if strings.TrimSpace(d.Text) == "" {
		return "", nil
	}
	if length(d.Text) > wholeLimit {
		name := "answer-" + digestOf(d.Key + d.Text)[:8] + ".md"
		err := s.attach(ctx, p, d, name, d.Text)
		if uploadRefused(err) {
			return s.tellInParts(ctx, p, d, render)
		}
		if err != nil {
			return "", err
		}
		parts := []string{beginning(d.Text, render) + "… This is the beginning. The whole answer is in the file " + name + " above."}
		if outline := markdown.Outline(d.Text); outline != "" {
			parts = append(parts, messages(render(outline), outlineLimit)[0])
		}
		return s.postAll(ctx, p, d, []post{{text: strings.Join(parts, "\n\n")}})
	}
	return s.tellInParts(ctx, p, d, render)
}

// tellInParts says a text in as many messages as it takes.
func (s *Slack) tellInParts(ctx context.Context, p place, d bot.Delivery, render func(string) *markdown.Text) (string, error) {
	return s.postAll(ctx, p, d, postsOf(messages(render(d.Text), textLimit)))
}

// beginning is what is shown of a text that became a file, with what parts it from what follows. As much is rendered as can
// be, so that the cut is made where it is made between two messages.
func beginning(text string, render func(string) *markdown.Text) string {
	start := text[:whole(text, within(text, markdown.Longest))]
	parts := messages(render(start), excerptLimit)
	if len(parts) == 0 {
		return ""
	}
	return parts[0] + "\n\n"
}

// postAll posts messages in order, leaving out those that stand there from an earlier try.
func (s *Slack) postAll(ctx context.Context, p place, d bot.Delivery, posts []post) (receipt string, err error) {
	channel, err := s.directory.channel(ctx, p)
	if err != nil {
		return "", err
	}
	t, err := s.recall(ctx, p, d, channel)
	if err != nil {
		return "", err
	}
	for part, m := range posts {
		m.words = m.words || d.Unlinked
		mark := mark{key: d.Key, part: part, digest: digestOf(m.card + m.text)}
		ts, said := t.Said[mark]
		if !said {
			if ts, err = s.post(ctx, channel, p.thread, mark, m); err != nil {
				if unsure(err) {
					t.Doubt()
				}
				return "", fmt.Errorf("post message %d of %d in %s: %w", part+1, len(posts), channel, err)
			}
			t.Said[mark] = ts
		}
		if receipt == "" || m.card != "" {
			receipt = message{channel, ts}.String()
		}
	}
	return receipt, nil
}

// recall gives what is known of earlier tries of a reply, after a look into the conversation where one is in doubt.
func (s *Slack) recall(ctx context.Context, p place, d bot.Delivery, channel string) (*bot.Try[mark], error) {
	t := s.ledger.Of(d)
	if t.Unsure.IsZero() {
		return t, nil
	}
	f, err := s.lookUp(ctx, channel, p.thread, t.Unsure.Add(-skew))
	if err == nil && !f.whole {
		err = &bot.SendError{Blind: true, Err: fmt.Errorf("too much was said in %s since %v to look through", channel, t.Unsure)}
	} else if code(err) != "" && !unsure(err) && !lasting(err) {
		// Slack does not let the bot look there, and will not later.
		err = &bot.SendError{Blind: true, Err: err}
	}
	if err != nil {
		return t, err
	}
	maps.Copy(t.Said, f.marks)
	t.Unsure = time.Time{}
	return t, nil
}

// post posts one message. Blocks that Slack refuses are left out: the text says all that they say.
func (s *Slack) post(ctx context.Context, channel, thread string, m mark, p post) (ts string, err error) {
	if err := s.pace.await(ctx, channel); err != nil {
		return "", err
	}
	options := append(quiet(p.words), slack.MsgOptionText(p.text, false), slack.MsgOptionMetadata(m.metadata(p.card)))
	if thread != "" {
		options = append(options, slack.MsgOptionTS(thread))
	}
	with := options
	if len(p.blocks) > 0 {
		with = append(options[:len(options):len(options)], slack.MsgOptionBlocks(p.blocks...))
	}
	_, ts, err = s.api.PostMessageContext(ctx, channel, with...)
	if c := code(err); len(p.blocks) > 0 && (c == "invalid_blocks" || c == "msg_blocks_too_long" || c == "invalid_blocks_format") {
		s.log.Error("slack refuses the blocks of a card, which is posted as text", "error", err)
		_, ts, err = s.api.PostMessageContext(ctx, channel, options...)
	}
	return ts, err
}

// card posts a card with its buttons. Its text is the whole card as well. Where a batch does not fit on the card, its cards are
// decided one by one.
func (s *Slack) card(ctx context.Context, p place, d bot.Delivery) (string, error) {
	if len(d.Batch) > 0 && length(bot.CardText(d.Reply, "")) > cardLimit {
		d.Batch, d.Calls = nil, nil
	}
	whole, rest := bot.CardText(d.Reply, ""), ""
	text := escape(whole)
	var posts []post
	if length(whole) > cardLimit {
		file := "card-" + d.ID + ".txt"
		rest = "in the file " + file
		err := s.attach(ctx, p, d, file, whole)
		if uploadRefused(err) {
			rest = "in the messages"
			posts = postsOf(split(text, textLimit))
		} else if err != nil {
			return "", err
		}
		text = escape(cut(whole, excerptLimit) + "\n\nThis is not all: the whole card is " + rest + " above. Its id is " + d.ID + ".")
	}
	return s.postAll(ctx, p, d, append(posts, post{text: text, blocks: s.cardBlocks(d.Reply, rest), card: d.ID}))
}

// attach puts a text into a conversation as a file. The name tells a later try that it is there.
func (s *Slack) attach(ctx context.Context, p place, d bot.Delivery, name, text string) error {
	channel, err := s.directory.channel(ctx, p)
	if err != nil {
		return err
	}
	t, err := s.recall(ctx, p, d, channel)
	if err != nil {
		return err
	}
	file := mark{file: name}
	if _, there := t.Said[file]; there {
		return nil
	}
	if err := s.pace.await(ctx, channel); err != nil {
		return err
	}
	_, err = s.api.UploadFileContext(ctx, slack.UploadFileParameters{
		Filename: name, Title: name, Content: text, FileSize: len(text), Channel: channel, ThreadTimestamp: p.thread,
	})
	if err != nil {
		if unsure(err) {
			t.Doubt()
		}
		return fmt.Errorf("upload the file %s to %s: %w", name, channel, err)
	}
	t.Said[file] = "" // Slack does not tell in which message
	return nil
}

// aside tells one person something in a shared place, and in direct messages if they cannot be told there.
func (s *Slack) aside(ctx context.Context, p place, d bot.Delivery) error {
	t := s.ledger.Of(d)
	if !t.Unsure.IsZero() {
		return &bot.SendError{Blind: true, Err: errors.New("what only one person sees cannot be looked up")}
	}
	user, text := userOf(d.To), cut(escape(d.Text), textLimit)
	options := append(quiet(d.Unlinked), slack.MsgOptionText(text, false), slack.MsgOptionTS(p.thread))
	_, err := s.api.PostEphemeralContext(ctx, p.channel, user, options...)
	switch code(err) {
	case "user_not_in_channel", "not_in_channel", "channel_not_found", "is_archived":
		home, ok := parsePlace(d.To.Home())
		if !ok {
			return err
		}
		_, err = s.postAll(ctx, home, d, []post{{text: text}})
		return err
	}
	if err != nil {
		if unsure(err) {
			t.Doubt()
		}
		return fmt.Errorf("tell %s something in %s: %w", user, p.channel, err)
	}
	return nil
}

// decided settles a card: it says what was decided and has no buttons any more. A notify card says what it told, too.
// Where no card is found, or it can no longer be changed, the outcome is said as a message.
func (s *Slack) decided(ctx context.Context, p place, d bot.Delivery) (string, error) {
	outcome := s.outcome(d.Reply, time.Now())
	text, blocks := outcome, []slack.Block(nil)
	if d.IsFeedback() {
		text, blocks = s.judged(d.Reply, time.Now())
	}
	card, known := parseMessage(d.Earlier)
	if !known {
		var err error
		if card, known, err = s.findCard(ctx, p, d.ID); err != nil {
			return "", err
		}
	}
	if !known {
		return s.postAll(ctx, p, d, []post{{text: outcome, card: d.ID}})
	}
	options := append(quiet(true), slack.MsgOptionText(text, false), slack.MsgOptionBlocks(blocks...),
		slack.MsgOptionMetadata(mark{key: d.Key}.metadata(d.ID)))
	_, _, _, err := s.api.UpdateMessageContext(ctx, card.channel, card.ts, options...)
	switch code(err) {
	case "message_not_found", "cant_update_message", "edit_window_closed":
		return s.postAll(ctx, p, d, []post{{text: outcome, card: d.ID}})
	}
	if err != nil {
		return "", fmt.Errorf("settle the card at %s: %w", card, err)
	}
	return card.String(), nil
}

// findCard looks for a card of which nothing is known but that it should stand in a conversation.
func (s *Slack) findCard(ctx context.Context, p place, id string) (message, bool, error) {
	channel, err := s.directory.channel(ctx, p)
	if err != nil || id == "" {
		return message{}, false, err
	}
	f, err := s.lookUp(ctx, channel, p.thread, time.Now().Add(-lookBack))
	if err != nil {
		if limited(err) || unsure(err) {
			return message{}, false, err
		}
		return message{}, false, nil
	}
	ts, ok := f.cards[id]
	return message{channel, ts}, ok, nil
}

// The reactions that are receipts.
const (
	sawIt    = "eyes"
	readIt   = "white_check_mark"
	nextTime = "fast_forward"
)

// react puts the receipt of a message on that very message. A message that is gone needs none.
func (s *Slack) react(ctx context.Context, r agent.Reply) error {
	at, ok := parseMessage(r.ID)
	if !ok {
		return nil
	}
	item := slack.NewRefToMessage(at.channel, at.ts)
	name := map[string]string{agent.Stored: sawIt, agent.SeenAt: readIt, agent.NextTurn: nextTime}[r.State]
	if name == "" {
		return nil
	}
	if name != sawIt {
		err := s.api.RemoveReactionContext(ctx, sawIt, item)
		if !done(err, "no_reaction", "message_not_found", "channel_not_found", "is_archived", "missing_scope") {
			return fmt.Errorf("take a receipt off %s: %w", at, err)
		}
	}
	err := s.api.AddReactionContext(ctx, name, item)
	if code(err) == "missing_scope" {
		s.log.Warn("the slack app may not put receipts on messages: it lacks the scope reactions:write")
	}
	if !done(err, "already_reacted", "message_not_found", "channel_not_found", "is_archived", "too_many_reactions",
		"too_many_emoji", "thread_locked", "missing_scope") {
		return fmt.Errorf("put a receipt on %s: %w", at, err)
	}
	return nil
}
