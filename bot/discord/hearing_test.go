package discord

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/bottest/discordtest"
)

// ear is a receiver that remembers what it was given. Repeats are known by their keys.
type ear struct {
	mu        sync.Mutex
	events    []bot.Event
	seen      map[string]bool
	failing   int           // of the next events
	held      chan struct{} // closed when it may go on; nil when it is not held up
	decided   bool          // no card waits any more
	always    *time.Time    // until when a card's call may be allowed always
	open      []agent.Opening
	objects   string // what speaks against each click
	standing  map[string]bool
	kept      map[string]string
	zones     map[agent.PersonID]string
	schema    string // of the card's tool
	arguments string // of the card's call
}

func (e *ear) Receive(ctx context.Context, event bot.Event) (bot.Admission, error) {
	e.wait(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failing > 0 {
		e.failing--
		return 0, errors.New("the disk is full")
	}
	for _, key := range event.Keys {
		if e.seen[key] {
			return bot.Repeat, nil
		}
	}
	if e.seen == nil {
		e.seen = map[string]bool{}
	}
	for _, key := range event.Keys {
		e.seen[key] = true
	}
	if event.Overheard && !e.standing[event.Address] {
		return bot.Ignored, nil
	}
	e.events = append(e.events, event)
	return bot.Taken, nil
}

// wait waits while the ear is held up, without regard to contexts, as a core that is stuck.
func (e *ear) wait(context.Context) {
	e.mu.Lock()
	held := e.held
	e.mu.Unlock()
	if held != nil {
		<-held
	}
}

func (e *ear) Card(ctx context.Context, id string) (agent.Reply, bool, error) {
	e.wait(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	arguments := json.RawMessage(cmp.Or(e.arguments, `{"path":"a"}`))
	return agent.Reply{ID: id, Kind: agent.Approval, Tool: "delete", Arguments: arguments, Always: e.always, Open: e.open}, !e.decided, nil
}

func (e *ear) Schema(string) json.RawMessage {
	e.mu.Lock()
	defer e.mu.Unlock()
	return json.RawMessage(e.schema)
}

func (e *ear) Weigh(context.Context, bot.Event) (*agent.Objection, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.objects != "" {
		return &agent.Objection{Text: e.objects}, nil
	}
	return nil, nil
}

func (e *ear) Overview(_ context.Context, of agent.Person, _ bot.Standing) (bot.Overview, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return bot.Overview{Served: true, Zone: e.zones[of.ID]}, nil
}

func (e *ear) Renew(context.Context, agent.Person) error { return nil }

func (e *ear) Complete(ctx context.Context, of agent.Person, typed string) ([]bot.Completion, error) {
	e.wait(ctx)
	if of.ID != "discord:"+ann {
		return nil, nil
	}
	offers := []bot.Completion{{Words: strings.Repeat("x", 101), About: "too long"}}
	for i := range 40 {
		offers = append(offers, bot.Completion{Words: fmt.Sprint(typed, i), About: strings.Repeat("about it ", 30)})
	}
	return offers, nil
}

func (e *ear) Kept(context.Context, string) (map[string]string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.kept), nil
}

func (e *ear) Keep(_ context.Context, _ string, changes map[string]string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.kept == nil {
		e.kept = map[string]string{}
	}
	maps.Copy(e.kept, changes)
	return nil
}

func (e *ear) texts() (texts []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range e.events {
		texts = append(texts, event.Text)
	}
	return texts
}

func (e *ear) last() bot.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.events) == 0 {
		return bot.Event{}
	}
	return e.events[len(e.events)-1]
}

// hearing is an adapter that listens to a fake Discord.
type hearing struct {
	*testing.T
	server  *discordtest.Server
	discord *Discord
	ear     *ear
	ended   chan error
	alarms  chan string
	quit    func() // ends what run began
}

func listen(t *testing.T, o discordtest.Options, timing Timing) *hearing {
	t.Helper()
	h := &hearing{T: t, server: newServer(t, o), ear: &ear{standing: map[string]bool{}}, ended: make(chan error, 1), alarms: make(chan string, 100)}
	d, err := New(Config{Token: discordtest.Token, TokenFrom: "TOKEN", APIURL: h.server.APIURL(), Timing: timing, Alarm: func(text string) { h.alarms <- text }})
	if err != nil {
		t.Fatal(err)
	}
	h.discord = d
	return h
}

// begin lets the adapter listen until the test ends, and waits until it has a session.
func (h *hearing) begin() *hearing {
	h.Helper()
	h.run()
	h.await("there is a session", func() bool { return h.discord.me().user != "" })
	return h
}

func (h *hearing) run() {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	h.quit = stop
	go func() {
		defer close(done)
		h.ended <- h.discord.Listen(ctx, h.ear)
	}()
	h.Cleanup(func() {
		stop()
		<-done
	})
}

func (h *hearing) await(what string, so func() bool) {
	h.Helper()
	deadline := time.Now().Add(patience)
	for !so() {
		if time.Now().After(deadline) {
			h.Fatalf("waited in vain until %s; heard %q", what, h.ear.texts())
		}
		time.Sleep(time.Millisecond)
	}
}

func (h *hearing) hears(texts ...string) {
	h.Helper()
	h.await("all is heard", func() bool { return len(h.ear.texts()) >= len(texts) })
	if got := h.ear.texts(); !slices.Equal(got, texts) {
		h.Errorf("heard %q, want %q", got, texts)
	}
}

// raw sends a message of which fields are set, and returns nothing of it.
func (h *hearing) raw(fields map[string]any) {
	m := map[string]any{
		"id": "1445000000000000001", "channel_id": shared, "guild_id": discordtest.Guild, "type": 0, "content": "<@" + discordtest.Bot + "> hi",
		"author":   map[string]any{"id": ann, "username": "ann", "global_name": "Ann", "bot": false},
		"mentions": []any{map[string]any{"id": discordtest.Bot}}, "attachments": []any{}, "embeds": []any{},
	}
	for name, value := range fields {
		m[name] = value
	}
	h.server.Dispatch("MESSAGE_CREATE", m)
}

// TestWhoIsTalking has events that are said to the bot by people, and all kinds that are not.
func TestWhoIsTalking(t *testing.T) {
	self := map[string]any{"id": discordtest.Bot}
	for _, c := range []struct {
		name   string
		fields map[string]any
		heard  string // "" for nothing
	}{
		{"mention", nil, "hi"},
		{"old form", map[string]any{"content": "<@!999> old form"}, "old form"},
		{"another bot", map[string]any{"author": map[string]any{"id": "222", "bot": true}}, ""},
		{"itself", map[string]any{"author": map[string]any{"id": discordtest.Bot, "bot": true}}, ""},
		{"webhook", map[string]any{"webhook_id": "333"}, ""},
		{"no mention", map[string]any{"content": "no mention", "mentions": []any{}}, ""},
		{"everyone", map[string]any{"content": "@everyone", "mentions": []any{}, "mention_everyone": true}, ""},
		{"role", map[string]any{"content": "<@&700> team", "mentions": []any{}, "mention_roles": []any{"700"}}, ""},
		{"reply", map[string]any{"type": 19, "content": "reply", "mentions": []any{}, "referenced_message": map[string]any{"author": self}}, "reply"},
		{"reply to another", map[string]any{"type": 19, "content": "reply", "mentions": []any{}, "referenced_message": nil}, ""},
		{"somebody joined", map[string]any{"type": 7, "content": ""}, ""},
		{"in code", map[string]any{"content": "`<@999>` in code", "mentions": []any{}}, ""},
		{"no words", map[string]any{"content": "", "mentions": []any{}}, ""},
		{"no author", map[string]any{"author": nil}, ""},
		{"author of a wrong type", map[string]any{"author": "ann"}, ""},
		{"id of a wrong type", map[string]any{"id": 5}, ""},
		{"id that is a path", map[string]any{"id": "../1"}, ""},
		{"others are named", map[string]any{"content": "<@999> ask <@102> about <:party:5>", "mentions": []any{self, map[string]any{"id": "102", "global_name": "Bob"}}}, "ask @Bob about :party:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := listen(t, discordtest.Options{}, brisk).begin()
			h.raw(c.fields)
			h.server.Dispatch("MESSAGE_UPDATE", map[string]any{"id": "1445000000000000001", "channel_id": shared, "embeds": []any{map[string]any{"type": "link"}}})
			h.server.Say(ann, shared, "<@"+discordtest.Bot+"> last")
			if c.heard == "" {
				h.hears("last")
			} else {
				h.hears(c.heard, "last")
			}
		})
	}
}

// TestConversations has the conversations that messages belong to.
func TestConversations(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	first, _ := h.server.Say(ann, shared, "<@"+discordtest.Bot+"> look at this")
	h.hears("look at this")
	thread := place{guild: discordtest.Guild, channel: shared, thread: first}.String()
	if got := h.ear.last(); got.Address != thread || got.Overheard || got.ID != shared+":"+first || got.From.ID != "discord:"+ann || got.From.Name != "Ann" {
		t.Errorf("the mention is %+v", got)
	}
	h.await("the thread is there, and somebody types in it", func() bool { return h.server.Typed(first) > 0 })
	h.ear.mu.Lock()
	h.ear.standing[thread] = true
	h.ear.mu.Unlock()
	h.server.Say(bob, first, "and at that")
	h.hears("look at this", "and at that")
	if got := h.ear.last(); got.Address != thread || !got.Overheard || got.From.ID != "discord:"+bob {
		t.Errorf("the reply is %+v", got)
	}
	h.server.Say(ann, discordtest.DM(ann), "hello")
	h.hears("look at this", "and at that", "hello")
	if got := h.ear.last(); got.Address != agent.PersonID("discord:"+ann).Home() {
		t.Errorf("direct messages are %q", got.Address)
	}
}

// TestRoomIsAskedForUntilThereIsAnAnswer hears words in a thread of which nothing is known while Discord is out of
// order: they are no words in a channel.
func TestRoomIsAskedForUntilThereIsAnAnswer(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	thread, _ := h.server.Say(ann, shared, "<@"+discordtest.Bot+"> hi")
	h.hears("hi")
	address := place{guild: discordtest.Guild, channel: shared, thread: thread}.String()
	h.await("the thread is there", func() bool { return h.server.Typed(thread) > 0 })
	h.await("discord has told of it", func() bool { _, told := h.discord.rooms.known.Take(thread); return told })
	h.ear.mu.Lock()
	h.ear.standing[address] = true
	h.ear.mu.Unlock()
	h.server.Fail("channel.get", discordtest.Fault{Cut: true}, discordtest.Fault{Status: 502}, discordtest.Fault{RetryAfter: time.Millisecond})
	h.server.Say(bob, thread, "and that")
	h.hears("hi", "and that")
	if got := h.ear.last().Address; got != address {
		t.Errorf("it is for %s", got)
	}
}

// TestRepliesToOthers has somebody mention the bot in an answer to what another has said: that comes with it, as nobody's order.
func TestRepliesToOthers(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	bobs := map[string]any{"author": map[string]any{"id": bob, "global_name": "Bob"}, "content": "<@101> the build *fails*", "mentions": []any{map[string]any{"id": ann, "global_name": "Ann"}}}
	own := map[string]any{"author": map[string]any{"id": discordtest.Bot}, "content": "done"}
	mention := []any{map[string]any{"id": discordtest.Bot}}
	for n, c := range []struct {
		content  string
		to       any
		mentions []any
		want     *bot.Quote
	}{
		{"<@999> why?", bobs, mention, &bot.Quote{Author: "Bob", Text: "@Ann the build *fails*"}},
		{"<@999> why?", own, mention, nil},
		{"why?", own, nil, nil},
		{"<@999> nudge status", bobs, mention, nil},
		{"<@999> why?", nil, mention, nil},
		{"<@999> why?", map[string]any{"author": map[string]any{"id": bob}, "content": ""}, mention, nil},
	} {
		h.raw(map[string]any{"id": fmt.Sprint(1445000000000000001 + n), "type": 19, "content": c.content, "referenced_message": c.to, "mentions": c.mentions})
		h.await("it is heard", func() bool { return len(h.ear.texts()) == n+1 })
		if got := h.ear.last().Quote; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q is about %+v, want %+v", c.content, got, c.want)
		}
	}
}

// TestNothingIsLostWhenItCannotBeKept lets the disk be full for a while: Discord would not deliver again.
func TestNothingIsLostWhenItCannotBeKept(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	h.ear.mu.Lock()
	h.ear.failing = 3
	h.ear.mu.Unlock()
	h.server.Say(ann, discordtest.DM(ann), "one")
	h.server.Say(ann, discordtest.DM(ann), "two")
	h.hears("one", "two")
}

// TestOneFaultEndsNothing lets a lane meet a fault of the program's own.
func TestOneFaultEndsNothing(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	h.discord.lanes.Do("x", func() { panic("a fault") })
	h.server.Say(ann, discordtest.DM(ann), "one")
	h.hears("one")
}

// TestBlankMessagesAreWarnedOfOnce has the switch off that lets words be read, in a way that does not end the link.
func TestBlankMessagesAreWarnedOfOnce(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk)
	var log bytes.Buffer
	h.discord.log = slog.New(slog.NewTextHandler(&log, nil))
	h.begin()
	for i := range 3 {
		h.raw(map[string]any{"id": fmt.Sprint(10 + i), "content": "", "mentions": []any{}})
	}
	h.server.Say(ann, shared, "<@"+discordtest.Bot+"> last")
	h.hears("last")
	if n := strings.Count(log.String(), "Message Content Intent"); n != 1 {
		t.Errorf("it was warned of %d times:\n%s", n, log.String())
	}
}

// TestSessionsOfThreadsAreCaughtUp loses a session while somebody writes in a thread.
func TestSessionsOfThreadsAreCaughtUp(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	thread, _ := h.server.Say(ann, shared, "<@"+discordtest.Bot+"> hi")
	h.hears("hi")
	address := place{guild: discordtest.Guild, channel: shared, thread: thread}.String()
	h.await("the thread is there", func() bool { return h.server.Typed(thread) > 0 })
	h.ear.mu.Lock()
	h.ear.standing[address] = true
	h.ear.mu.Unlock()
	h.server.Say(ann, thread, "one")
	h.hears("hi", "one")
	h.server.Op(9, false)
	h.server.Say(ann, thread, "two")
	h.hears("hi", "one", "two")
	if got := h.ear.last(); got.Address != address || !got.Overheard {
		t.Errorf("it is %+v", got)
	}
}
