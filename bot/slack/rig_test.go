package slack

import (
	"encoding/json"
	"errors"
	"html"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/bottest"
	"nudge/bot/bottest/slacktest"
	"nudge/bot/form"
	"nudge/schedule"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long something may take that takes milliseconds on an idle machine.
const patience = 30 * time.Second

const shared = "C0TEAM"

// brisk lets tests wait for nothing but the machine.
var brisk = Timing{
	Ping: 20 * time.Second, Stale: time.Minute, Timeout: 20 * time.Second, Pace: time.Nanosecond, Edit: time.Nanosecond,
	Openings: []time.Duration{time.Millisecond}, Crowded: time.Millisecond, Disabled: time.Millisecond,
}

func newServer(t *testing.T) *slacktest.Server {
	t.Helper()
	return newServerWith(t, slacktest.Options{})
}

func newServerWith(t *testing.T, o slacktest.Options) *slacktest.Server {
	t.Helper()
	o.Trigger = time.Minute
	server := slacktest.New(o)
	t.Cleanup(server.Close)
	for _, u := range []slacktest.User{
		{ID: "U0ANN", Name: "Ann", Zone: "Europe/Berlin"}, {ID: "U0BOB", Name: "Bob", Zone: "UTC"}, {ID: "U0EVE", Name: "Eve"},
	} {
		server.AddUser(u)
	}
	server.AddChannel(shared, "U0ANN", "U0BOB", "U0EVE")
	return server
}

func newSlack(t *testing.T, server *slacktest.Server, timing Timing) *Slack {
	t.Helper()
	s, err := New(Config{BotToken: slacktest.BotToken, AppToken: slacktest.AppToken, APIURL: server.APIURL(), Timing: timing})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// rig plays people on a fake Slack.
type rig struct {
	*testing.T
	server *slacktest.Server

	mu    sync.Mutex
	own   []string // deliveries of the suite's people
	cards map[string]at
	slack *Slack // the adapter that was begun last
}

type at struct{ channel, ts string }

func TestSuite(t *testing.T) {
	bottest.Run(t, func(t *testing.T) bottest.Rig { return &rig{T: t, server: newServer(t), cards: map[string]at{}} })
}

func (r *rig) Adapter(bottest.Program) bot.Adapter {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slack = newSlack(r.T, r.server, brisk)
	return r.slack
}

// newest is the adapter that was begun last.
func (r *rig) newest() *Slack {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.slack
}

// attached waits until the newest adapter has had a link. What is said over the link of one that has ended comes later, and
// perhaps together with what is said next.
func (r *rig) attached() {
	r.Helper()
	s := r.newest()
	if !r.server.Await(patience, func() bool { return !errors.Is(s.opening.stale(time.Hour), errNotLinked) }) {
		r.Fatal("there was no link")
	}
}

// linked waits for the link of the newest adapter. What is clicked before is lost, as it is in Slack.
func (r *rig) linked() {
	r.Helper()
	l := r.newest().link
	linked := func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.conns) > 0
	}
	if !r.server.Await(patience, linked) {
		r.Fatal("there is no link")
	}
}

func (r *rig) People() bottest.People {
	return bottest.People{
		Ann: agent.Person{ID: "slack:T0TEST:U0ANN", Name: "Ann", Zone: "Europe/Berlin"},
		Bob: agent.Person{ID: "slack:T0TEST:U0BOB", Name: "Bob", Zone: "UTC"},
		Eve: agent.Person{ID: "slack:T0TEST:U0EVE", Name: "Eve"},
	}
}

func user(p agent.Person) string { return string(p.ID[strings.LastIndexByte(string(p.ID), ':')+1:]) }

func channelOf(p agent.Person, place bottest.Place) string {
	if place == bottest.Shared {
		return shared
	}
	return slacktest.DM(user(p))
}

// Say writes in direct messages, or mentions the bot in the channel.
func (r *rig) Say(from agent.Person, place bottest.Place, text string) string {
	text = escape(text)
	if place == bottest.Shared {
		text = "<@" + slacktest.BotUser + "> " + text
	}
	r.attached()
	ts, deliveries := r.server.Say(slacktest.Said{User: user(from), Channel: channelOf(from, place), Text: text})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own = append(r.own, deliveries...)
	return channelOf(from, place) + ":" + ts
}

// Attach writes with a file, and mentions the bot in the channel.
func (r *rig) Attach(from agent.Person, place bottest.Place, text, name, content string) string {
	file := r.server.AddFile(slacktest.Attachment{Name: name, Type: "text/plain", Content: content})
	text = escape(text)
	if place == bottest.Shared {
		text = "<@" + slacktest.BotUser + "> " + text
	}
	r.attached()
	ts, deliveries := r.server.Say(slacktest.Said{User: user(from), Channel: channelOf(from, place), Text: text, Files: []string{file}})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own = append(r.own, deliveries...)
	return channelOf(from, place) + ":" + ts
}

// find gives where a card stands.
func (r *rig) find(id string) at {
	r.Helper()
	var found at
	if !r.server.Await(patience, func() bool { found = r.look(id); return found.ts != "" }) {
		r.Fatalf("there is no card %s", id)
	}
	return found
}

func (r *rig) look(id string) at {
	for _, channel := range []string{shared, slacktest.DM("U0ANN"), slacktest.DM("U0BOB")} {
		for _, m := range r.server.ByBot(channel) {
			if cardOf(m) == id {
				return at{channel, m.TS}
			}
		}
	}
	return at{}
}

// cardOf is the id of the card that a message is or was.
func cardOf(m slacktest.Message) string {
	for _, b := range m.First {
		for _, e := range b.Elements {
			if e.Type == "button" && e.ActionID != actionStop {
				return e.Value
			}
		}
	}
	return ""
}

// Press presses a button, and sends the form behind it if one is opened.
func (r *rig) Press(from agent.Person, _ bottest.Place, d agent.Decision) {
	r.Helper()
	where := r.find(d.Card)
	r.linked()
	action := map[agent.Verdict]string{agent.Approve: actionApprove, agent.Deny: actionDeny, agent.Edit: actionEdit, agent.Always: actionAlways}[d.Verdict]
	if d.Verdict == agent.AnswerIt {
		action = r.choice(where, d.Text)
	}
	delivery, trigger := r.server.Click(user(from), where.channel, where.ts, action)
	if _, isForm := forms[action]; !isForm {
		r.note(delivery)
		return
	}
	r.server.Await(patience, func() bool { n, _ := r.server.Acked(delivery); return n > 0 })
	view, opened := r.server.View(trigger)
	if !opened {
		return
	}
	values := map[string]map[string]string{formBlock: {formInput: d.Text}}
	if d.Verdict == agent.Edit {
		values = filledIn(r.T, view, string(d.Arguments))
	}
	if len(d.Open) > 0 {
		values = map[string]map[string]string{openBlock: {formInput: strings.Join(d.Open, "\n")}}
	}
	r.note(r.server.Submit(user(from), view, values))
}

func (r *rig) PressAll(from agent.Person, _ bottest.Place, cards []string, verdict agent.Verdict) {
	r.Helper()
	where := r.find(cards[len(cards)-1])
	r.linked()
	action := map[agent.Verdict]string{agent.Approve: actionApproveAll, agent.Deny: actionDenyAll}[verdict]
	delivery, _ := r.server.Click(user(from), where.channel, where.ts, action)
	r.note(delivery)
}

// filledIn is what a person enters into a form for an edit, so that the arguments become the given ones.
func filledIn(t *testing.T, view slacktest.View, arguments string) map[string]map[string]string {
	t.Helper()
	if view.Blocks[0].BlockID == formBlock {
		return map[string]map[string]string{formBlock: {formInput: arguments}}
	}
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &members) != nil || members == nil {
		t.Fatalf("%s is no object", arguments)
	}
	values := map[string]map[string]string{}
	for _, b := range view.Blocks {
		if b.Type != "input" {
			continue
		}
		raw, there := members[strings.TrimSuffix(b.Label.Text, " (JSON)")]
		entered := string(raw)
		if text := ""; b.Element.ActionID == string(form.Text) && there {
			_ = json.Unmarshal(raw, &text)
			entered = text
		}
		if b.Element.Options != nil && !there {
			entered = form.Absent
		}
		values[b.BlockID] = map[string]string{b.Element.ActionID: entered}
	}
	return values
}

// Judge presses a button of a notify card, or chooses from its menu.
func (r *rig) Judge(from agent.Person, _ bottest.Place, _ string, f bot.Feedback) {
	r.Helper()
	where := r.find(f.Card)
	r.linked()
	if f.Said == schedule.Snooze {
		r.note(r.server.Choose(user(from), where.channel, where.ts, actionSnooze, bot.SpanWords(f.Span)))
		return
	}
	action := map[schedule.Feedback]string{schedule.Useful: actionUseful, schedule.Less: actionLess}[f.Said]
	delivery, _ := r.server.Click(user(from), where.channel, where.ts, action)
	r.note(delivery)
}

// choice is the button of a choice, or the one behind which any answer can be given.
func (r *rig) choice(where at, text string) string {
	m, _ := r.server.Message(where.channel, where.ts)
	for _, b := range m.Buttons() {
		if b.Label() == text {
			return b.ActionID
		}
	}
	return actionAnswer
}

func (r *rig) note(delivery string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own = append(r.own, delivery)
}

// Stop presses the Stop button of the message that shows progress.
func (r *rig) Stop(from agent.Person, place bottest.Place) {
	r.Helper()
	channel := channelOf(from, place)
	ts := ""
	found := r.server.Await(patience, func() bool {
		for _, m := range r.server.ByBot(channel) {
			for _, b := range m.Buttons() {
				if b.ActionID == actionStop {
					ts = m.TS
				}
			}
		}
		return ts != ""
	})
	if !found {
		r.Fatal("there is no Stop button")
	}
	r.linked()
	delivery, _ := r.server.Click(user(from), channel, ts, actionStop)
	r.note(delivery)
}

// Shown reads messages as a person sees them.
func (r *rig) Shown(to agent.Person, place bottest.Place) []bottest.Line {
	var lines []bottest.Line
	for _, m := range r.server.ByBot(channelOf(to, place)) {
		if m.For != "" && m.For != user(to) {
			continue
		}
		line := bottest.Line{Text: html.UnescapeString(m.Text)}
		if id := cardOf(m); id != "" {
			line.Card = &bottest.Card{ID: id, Open: len(m.Buttons()) > 0}
			if !line.Card.Open {
				line.Card.Outcome = m.Text
			} else {
				line.Text = m.Shown()
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func (r *rig) last() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.own[len(r.own)-1]
}

// Redeliver delivers the last thing again, and waits until that is acknowledged.
func (r *rig) Redeliver() {
	again := r.server.Redeliver(r.last())
	r.note(again)
	r.server.Await(patience, func() bool { n, _ := r.server.Acked(again); return n > 0 })
}

func (r *rig) Acknowledged() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, id := range r.own {
		if times, _ := r.server.Acked(id); times > 0 {
			n++
		}
	}
	return n
}

func (r *rig) Receipt(message string) string {
	channel, ts, _ := strings.Cut(message, ":")
	m, _ := r.server.Message(channel, ts)
	if len(m.Reactions) != 1 {
		return strings.Join(m.Reactions, "+")
	}
	return map[string]string{sawIt: agent.Stored, readIt: agent.SeenAt, nextTime: agent.NextTurn}[m.Reactions[0]]
}

func (r *rig) FailSends(n int) {
	for range n {
		r.server.Fail("chat.postMessage", slacktest.Fault{Status: 503})
	}
}

func (r *rig) LoseAnswers(n int) {
	for range n {
		r.server.Fail("chat.postMessage", slacktest.Fault{Status: 502, Done: true})
	}
}

func (r *rig) LimitSends(n int) {
	for range n {
		r.server.Fail("chat.postMessage", slacktest.Fault{RetryAfter: time.Nanosecond}) // said as 0 seconds
	}
}

func (r *rig) RefuseSends(n int) {
	for range n {
		r.server.Fail("chat.postMessage", slacktest.Fault{Error: "is_archived"})
	}
}

func (r *rig) DropLink() { r.server.Drop() }
