package slack

import (
	"context"
	"fmt"
	"nudge/bot"
	"slices"
	"time"

	"github.com/slack-go/slack"
)

// The words that Slack shows behind the bot's name under a thread.
const (
	thinking = "is thinking…"
	working  = "is working…"
)

// The methods that not every app may use.
const (
	methodStatus  = "assistant.threads.setStatus"
	methodSession = "agents.sessions.setStatus"
	methodStream  = "chat.startStream"
)

// unheard is the warning with which Slack takes a session's status from an app that would not hear of its Stop button, which
// is not shown then (docs.slack.dev/reference/events/agent_session_stopped).
const unheard = "missing_agent_session_stopped_event_subscription"

// presence is what Slack itself shows under a thread while a turn is under way: a status, and for apps that are declared as
// agents a Stop button of its own. Its bulletin's mu guards it.
type presence struct {
	status     string // that stands; "" for none
	renewal    timer  // set while a status stands
	processing bool   // the agent session of the thread is
	native     bool   // and has a Stop button
}

// asker is whoever began a turn with some words.
type asker struct {
	user, team string
	title      string // made of the words
}

const (
	titleLimit = 60
	renewFor   = time.Hour // a status is not renewed for longer, should nobody tell of the end
)

func titleOf(words string) string { return bot.Title(words, titleLimit, cut) }

// attend makes the agent session of the thread one that is being worked in, where Slack has such sessions. The caller holds
// b.mu.
func (p *progress) attend(ctx context.Context, b *bulletin, channel string) {
	if b.thread == "" || b.processing || p.s.refused.has(methodSession, channel) {
		return
	}
	said, err := p.s.api.SetAgentSessionStatusContext(ctx, slack.AgentSessionSetStatusParameters{
		ChannelID: channel, ThreadTS: b.thread, Status: slack.AgentSessionStatusProcessing, Title: b.asker.title, InitiatorUserID: b.asker.user,
	})
	if err != nil {
		p.s.refused.note(methodSession, channel, err)
		return
	}
	b.channel, b.processing = channel, true
	b.native = !slices.Contains(warnings(said.SlackResponse), unheard)
	if !b.native {
		p.s.log.Warn("slack shows no Stop button of its own, since the app does not subscribe to agent_session_stopped; take the manifest over anew")
	}
}

func warnings(r slack.SlackResponse) []string {
	if w := r.Warn(); w != nil {
		return append(w.Codes, w.Warnings...)
	}
	return nil
}

// setStatus lets Slack show a status under the thread, and renews it before its two minutes are over. The caller holds b.mu.
func (p *progress) setStatus(ctx context.Context, b *bulletin, channel, text string) {
	if b.thread == "" || b.status == text || p.s.refused.has(methodStatus, channel) {
		return
	}
	b.channel = channel
	if p.sendStatus(ctx, b, text) == nil {
		b.status = text
		p.renewLater(b)
	}
}

func (p *progress) sendStatus(ctx context.Context, b *bulletin, text string) error {
	err := p.s.api.SetAssistantThreadsStatusContext(ctx, slack.AssistantThreadsSetStatusParameters{
		ChannelID: b.channel, ThreadTS: b.thread, Status: text,
	})
	if err != nil {
		p.s.refused.note(methodStatus, b.channel, err)
		return fmt.Errorf("set the status of a thread in %s: %w", b.channel, err)
	}
	return nil
}

// renewLater lets a status that stands be set again. The caller holds b.mu.
func (p *progress) renewLater(b *bulletin) {
	if b.renewal != nil || p.s.time.Now().Sub(b.began) > renewFor {
		return
	}
	p.flushes.Add(1)
	b.renewal = p.s.time.AfterFunc(p.s.timing.Status, func() {
		defer p.flushes.Done()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.renewal = nil
		if b.ended || b.status == "" {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), p.s.timing.Timeout)
		defer cancel()
		if err := p.sendStatus(ctx, b, b.status); err != nil {
			p.s.log.Warn("cannot renew a status", "error", err)
		}
		p.renewLater(b)
	})
}

// leave takes the status and the Stop button away. After an error it can be tried again. The caller holds b.mu.
func (p *progress) leave(ctx context.Context, b *bulletin) error {
	if b.renewal != nil && b.renewal.Stop() {
		p.flushes.Done()
	}
	b.renewal = nil
	if b.status != "" {
		if err := p.sendStatus(ctx, b, ""); err != nil && limited(err) {
			return err
		}
		b.status = ""
	}
	if b.processing {
		if err := p.rest(ctx, b.channel, b.thread); err != nil && (limited(err) || unsure(err)) {
			return err
		}
		b.processing, b.native = false, false
	}
	return nil
}

// rest lets the agent session of a thread be one in which nothing is done. Slack leaves that to the app, also after a Stop.
func (p *progress) rest(ctx context.Context, channel, thread string) error {
	_, err := p.s.api.SetAgentSessionStatusContext(ctx, slack.AgentSessionSetStatusParameters{
		ChannelID: channel, ThreadTS: thread, Status: slack.AgentSessionStatusActive,
	})
	if err != nil {
		p.s.refused.note(methodSession, channel, err)
		return fmt.Errorf("end the session of a thread in %s: %w", channel, err)
	}
	return nil
}
