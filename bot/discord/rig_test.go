package discord

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/bottest"
	"nudge/bot/bottest/discordtest"
	"nudge/schedule"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long something may take that takes milliseconds on an idle machine.
const patience = 10 * time.Second

const (
	ann, bob, eve = "101", "102", "103"
	shared        = "900"
)

// brisk lets tests wait for nothing but the machine.
var brisk = Timing{
	Timeout: 20 * time.Second, Identify: time.Nanosecond, Invalid: time.Millisecond, Again: time.Millisecond, Edit: time.Millisecond, Keep: time.Millisecond, Ask: time.Hour, Meet: time.Millisecond,
	Typing: time.Minute, Openings: []time.Duration{time.Millisecond},
}

func newServer(t *testing.T, o discordtest.Options) *discordtest.Server {
	t.Helper()
	server := discordtest.New(o)
	t.Cleanup(server.Close)
	for _, u := range []discordtest.User{{ID: ann, Name: "Ann"}, {ID: bob, Name: "Bob"}, {ID: eve, Name: "Eve"}} {
		server.AddUser(u)
	}
	server.AddChannel(shared)
	return server
}

func newDiscord(t *testing.T, server *discordtest.Server, timing Timing) *Discord {
	t.Helper()
	d, err := New(Config{Token: discordtest.Token, APIURL: server.APIURL(), Timing: timing})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// rig plays people on a fake Discord.
type rig struct {
	*testing.T
	server *discordtest.Server

	mu      sync.Mutex
	last    int      // the event that came last
	discord *Discord // the adapter that was begun last
}

func TestSuite(t *testing.T) {
	bottest.Run(t, func(t *testing.T) bottest.Rig { return &rig{T: t, server: newServer(t, discordtest.Options{})} })
}

func (r *rig) Adapter(bottest.Program) bot.Adapter {
	r.mu.Lock()
	defer r.mu.Unlock()
	timing := brisk
	timing.Keep = time.Hour // the suite counts what is written
	r.discord = newDiscord(r.T, r.server, timing)
	return r.discord
}

func (r *rig) People() bottest.People {
	return bottest.People{
		Ann: agent.Person{ID: "discord:" + ann, Name: "Ann"}, Bob: agent.Person{ID: "discord:" + bob, Name: "Bob"}, Eve: agent.Person{ID: "discord:" + eve, Name: "Eve"},
	}
}

func id(p agent.Person) string { return strings.TrimPrefix(string(p.ID), "discord:") }

// linked waits until the newest adapter has a session. What is said before is lost; what is said while the session has no link
// comes when it is taken up.
func (r *rig) linked() {
	r.Helper()
	r.mu.Lock()
	d := r.discord
	r.mu.Unlock()
	if !r.server.Await(patience, func() bool { return d.me().user != "" }) {
		r.Fatal("there is no session")
	}
}

func (r *rig) note(event int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = event
}

// Say writes in direct messages, or mentions the bot in the channel.
func (r *rig) Say(from agent.Person, at bottest.Place, text string) string {
	r.linked()
	in := discordtest.DM(id(from))
	if at == bottest.Shared {
		in, text = shared, "<@"+discordtest.Bot+"> "+text
	}
	message, event := r.server.Say(id(from), in, text)
	r.note(event)
	return in + ":" + message
}

// Attach writes with a file, and mentions the bot in the channel.
func (r *rig) Attach(from agent.Person, at bottest.Place, text, name, content string) string {
	r.linked()
	in := discordtest.DM(id(from))
	if at == bottest.Shared {
		in, text = shared, "<@"+discordtest.Bot+"> "+text
	}
	message, event := r.server.Attach(id(from), in, text, discordtest.File{Name: name, Type: "text/plain", Content: content})
	r.note(event)
	return in + ":" + message
}

// places are the channels and threads that a person sees of a place.
func (r *rig) places(of agent.Person, at bottest.Place) []string {
	if at == bottest.Shared {
		return append([]string{shared}, r.server.Threads(shared)...)
	}
	return []string{discordtest.DM(id(of))}
}

// cardOf is the card that a message is or was.
func cardOf(m discordtest.Message) string {
	for _, b := range m.FirstButtons() {
		if action, card := readCustomID(b.ID); action != actionStop && card != "" {
			return card
		}
	}
	return ""
}

// find gives where a card stands.
func (r *rig) find(card string) (found discordtest.Message) {
	r.Helper()
	there := r.server.Await(patience, func() bool {
		for _, in := range append([]string{shared, discordtest.DM(ann), discordtest.DM(bob)}, r.server.Threads(shared)...) {
			for _, m := range r.server.ByBot(in) {
				if cardOf(m) == card {
					found = m
					return true
				}
			}
		}
		return false
	})
	if !there {
		r.Fatalf("there is no card %s", card)
	}
	return found
}

// Press presses a button, and sends the form behind it if one is opened.
func (r *rig) Press(from agent.Person, _ bottest.Place, d agent.Decision) {
	r.Helper()
	m := r.find(d.Card)
	r.linked()
	action := map[agent.Verdict]string{agent.Approve: actionApprove, agent.Deny: actionDeny, agent.Edit: actionEdit, agent.Always: actionAlways}[d.Verdict]
	if d.Verdict == agent.AnswerIt {
		action = actionAnswer
		for _, b := range m.FirstButtons() {
			if b.Label == d.Text {
				action, _ = readCustomID(b.ID)
			}
		}
	}
	interaction, event := r.server.Click(id(from), m.Channel, m.ID, customID(action, d.Card))
	if _, isForm := forms[action]; !isForm {
		r.note(event)
		return
	}
	r.server.Await(patience, func() bool { typ, _ := r.server.Answered(interaction); return typ != 0 })
	form, opened := r.server.Form(interaction)
	if !opened {
		return
	}
	values := map[string]string{formInput: d.Text}
	if d.Verdict == agent.Edit {
		values = filledIn(form, d.Arguments)
	}
	if len(d.Open) > 0 {
		values = map[string]string{openInput: strings.Join(d.Open, "\n")}
	}
	_, event = r.server.Submit(id(from), form, m.Channel, m.ID, values)
	r.note(event)
}

func (r *rig) PressAll(from agent.Person, _ bottest.Place, cards []string, verdict agent.Verdict) {
	r.Helper()
	last := cards[len(cards)-1]
	m := r.find(last)
	r.linked()
	action := map[agent.Verdict]string{agent.Approve: actionApproveAll, agent.Deny: actionDenyAll}[verdict]
	_, event := r.server.Click(id(from), m.Channel, m.ID, customID(action, last))
	r.note(event)
}

// filledIn is what has to be entered in a form for an edit so that the arguments are what they shall be.
func filledIn(f discordtest.Form, arguments json.RawMessage) map[string]string {
	values := map[string]string{formInput: string(arguments)}
	var members map[string]json.RawMessage
	if json.Unmarshal(arguments, &members) != nil {
		return values
	}
	for _, c := range f.Components {
		if c.Component == nil {
			continue
		}
		raw := members[strings.TrimSuffix(c.Label, " (JSON)")]
		entered := string(raw)
		if text := ""; json.Unmarshal(raw, &text) == nil {
			entered = text
		}
		values[c.Component.ID] = entered
	}
	return values
}

// Judge presses a button of a notify card, or chooses from its menu.
func (r *rig) Judge(from agent.Person, _ bottest.Place, _ string, f bot.Feedback) {
	r.Helper()
	m := r.find(f.Card)
	r.linked()
	var event int
	if f.Said == schedule.Snooze {
		_, event = r.server.Choose(id(from), m.Channel, m.ID, customID(actionSnooze, f.Card), string(f.Span))
	} else {
		action := map[schedule.Feedback]string{schedule.Useful: actionUseful, schedule.Less: actionLess}[f.Said]
		_, event = r.server.Click(id(from), m.Channel, m.ID, customID(action, f.Card))
	}
	r.note(event)
}

// Stop presses the Stop button of the message that shows progress.
func (r *rig) Stop(from agent.Person, at bottest.Place) {
	r.Helper()
	var found discordtest.Message
	there := r.server.Await(patience, func() bool {
		for _, in := range r.places(from, at) {
			for _, m := range r.server.ByBot(in) {
				if b := m.Buttons(); len(b) == 1 && b[0].ID == customID(actionStop, "") {
					found = m
					return true
				}
			}
		}
		return false
	})
	if !there {
		r.Fatal("there is no Stop button")
	}
	r.linked()
	_, event := r.server.Click(id(from), found.Channel, found.ID, customID(actionStop, ""))
	r.note(event)
}

// Shown reads messages as a person sees them. A card that stands in several messages is told as one.
func (r *rig) Shown(to agent.Person, at bottest.Place) (lines []bottest.Line) {
	for _, in := range r.places(to, at) {
		seen := map[string]int{}
		for _, m := range r.server.ByBot(in) {
			if m.For != "" && m.For != id(to) {
				continue
			}
			line := bottest.Line{Text: discordtest.Read(m.Text)}
			if card := cardOf(m); card != "" {
				line.Card = &bottest.Card{ID: card, Open: len(m.Buttons()) > 0}
				if !line.Card.Open {
					line.Card.Outcome = m.Text
				}
				for _, b := range m.Buttons() {
					line.Text += "\n" + b.Label
				}
			}
			if first, refers := seen[m.RefersTo]; refers && line.Card != nil {
				for _, before := range lines[first:] {
					line.Text = before.Text + "\n" + line.Text
				}
			}
			seen[m.ID] = len(lines)
			lines = append(lines, line)
		}
	}
	return lines
}

// Redeliver repeats the last event, as Discord does when a session is taken up again.
func (r *rig) Redeliver() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.server.Repeat(r.last)
}

func (r *rig) Receipt(message string) string {
	at, _ := parseMessage(message)
	for _, m := range r.server.Messages(at.channel) {
		if m.ID == at.id && len(m.Reactions) == 1 {
			return map[string]string{sawIt: agent.Stored, readIt: agent.SeenAt, nextTime: agent.NextTurn}[m.Reactions[0]]
		} else if m.ID == at.id {
			return strings.Join(m.Reactions, "+")
		}
	}
	return ""
}

func (r *rig) FailSends(n int) {
	for range n {
		r.server.Fail("message.create", discordtest.Fault{Status: 503})
	}
}

func (r *rig) LoseAnswers(n int) {
	for range n {
		r.server.Fail("message.create", discordtest.Fault{Status: 502, Done: true})
	}
}

func (r *rig) LimitSends(n int) {
	for range n {
		r.server.Fail("message.create", discordtest.Fault{RetryAfter: time.Millisecond})
	}
}

func (r *rig) RefuseSends(n int) {
	for range n {
		r.server.Fail("message.create", discordtest.Fault{Status: 404, Code: codeUnknownChannel})
	}
}

func (r *rig) DropLink() { r.server.Drop() }
