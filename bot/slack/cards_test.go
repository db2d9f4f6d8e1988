package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/bot"
	"nudge/bot/bottest/slacktest"
	"nudge/memory"
	"nudge/memory/bolt"
)

// shop is a whole program around the adapter: what becomes of cards is decided by the agent, as people press them.
type shop struct {
	*testing.T
	server *slacktest.Server
	store  memory.Store
	config agent.Config
	ran    chan string // the arguments with which something was deleted

	agent *agent.Agent
	hub   *bot.Hub
	end   func()
}

// deleteTool is what a model can do: to delete something, which asks first.
func (s *shop) deleteTool() agent.Tool {
	return agent.Tool{
		Spec: agent.Spec{
			Name: "delete", Description: "Deletes a file.", Effect: agent.Effectful, Policy: agent.PolicyAsk,
			Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","minLength":2},"times":{"type":"integer","minimum":1,"maximum":3}},"required":["path"],"additionalProperties":false}`),
		},
		Run: func(_ context.Context, in agent.Invocation) (agent.Result, error) {
			s.ran <- string(in.Arguments)
			return agent.Result{Text: "deleted " + string(in.Arguments)}, nil
		},
	}
}

// deleting deletes what the person's last words name, or asks what they ask.
func deleting(req model.Request) model.Answer {
	said := agenttest.LastUser(req)
	if len(agenttest.Results(req)) > 0 {
		return agenttest.Say("done")
	}
	if _, choices, found := strings.Cut(said, "ask me of "); found {
		arguments, _ := json.Marshal(map[string]any{"question": "Which?", "choices": strings.Split(choices, ",")})
		return agenttest.Do(agenttest.Call(len(req.Messages), "ask_person", string(arguments)))
	}
	if _, paths, found := strings.Cut(said, "delete each of "); found {
		var calls []model.Call
		for i, path := range strings.Split(paths, ",") {
			calls = append(calls, agenttest.Call(len(req.Messages)+i, "delete", `{"path":"`+path+`"}`))
		}
		return agenttest.Do(calls...)
	}
	if _, path, found := strings.Cut(said, "delete "); found {
		return agenttest.Do(agenttest.Call(len(req.Messages), "delete", `{"path":"`+path+`"}`))
	}
	return agenttest.Say("hello")
}

// openShop opens a shop whose config a test may change.
func openShop(t *testing.T, change func(*agent.Config)) *shop {
	t.Helper()
	store, err := bolt.Open(filepath.Join(t.TempDir(), "nudge.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s := &shop{T: t, server: newServer(t), store: store, ran: make(chan string, 20)}
	s.config = agent.Config{
		Store: store, Model: &agenttest.Model{T: t, Script: deleting}, Spec: agent.ModelSpec{Name: "scripted", Window: 100_000, MaxOutput: 1000},
		Tools: []agent.Tool{s.deleteTool()},
	}
	if change != nil {
		change(&s.config)
	}
	s.start()
	t.Cleanup(func() { s.end() })
	return s
}

func (s *shop) start() {
	s.Helper()
	s.hub = bot.NewHub(bot.Config{
		Store: s.store, Allow: []string{"slack:T0TEST:U0ANN", "slack:T0TEST:U0BOB"}, Owners: s.config.Owners, Model: "scripted", FirstWait: time.Millisecond,
	})
	c := s.config
	c.Outgoing, c.Live = s.hub.Outgoing, s.hub.Live
	ag, err := agent.New(c)
	if err != nil {
		s.Fatal(err)
	}
	s.agent = ag
	if err := ag.Resume(s.Context(), func(string) bool { return true }); err != nil {
		s.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	before := s.server.Links()
	go func() { served <- s.hub.Serve(ctx, ag, newSlack(s.T, s.server, brisk)) }()
	s.end = func() {
		stop()
		if err := <-served; err != nil {
			s.Errorf("serve: %v", err)
		}
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		ag.Close(ended)
		s.end = func() {}
	}
	s.until("there is a link", func() bool { return s.server.Links() > before })
}

// restart ends the program and starts it again, with another config if change is not nil.
func (s *shop) restart(change func(*agent.Config)) {
	s.Helper()
	s.rest()
	s.end()
	if change != nil {
		change(&s.config)
	}
	s.start()
}

func (s *shop) until(what string, so func() bool) {
	s.Helper()
	if !s.server.Await(patience, so) {
		s.Fatalf("waited in vain until %s; slack shows\n%s", what, s.shown())
	}
}

func (s *shop) shown() string {
	var b strings.Builder
	for _, channel := range []string{shared, slacktest.DM("U0ANN"), slacktest.DM("U0BOB")} {
		for _, m := range s.server.ByBot(channel) {
			fmt.Fprintf(&b, "%s for %q: %.200q %d buttons\n", channel, m.For, m.Text, len(m.Buttons()))
		}
	}
	return b.String()
}

// rest waits until nothing runs and everything was said.
func (s *shop) rest() {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := errors.Join(s.agent.WaitIdle(ctx, nil), s.hub.Drain(ctx, nil)); err != nil {
		s.Fatalf("waited in vain for rest: %v; slack shows\n%s", err, s.shown())
	}
}

// says lets a person say something, and gives the card that comes of it.
func (s *shop) says(user, channel, text string) slacktest.Message {
	s.Helper()
	before := len(s.server.ByBot(channel))
	if channel == shared {
		text = "<@" + slacktest.BotUser + "> " + text
	}
	_, deliveries := s.server.Say(slacktest.Said{User: user, Channel: channel, Text: text})
	s.acked(deliveries...)
	s.rest()
	for _, m := range s.server.ByBot(channel)[before:] {
		if cardOf(m) != "" {
			return m
		}
	}
	s.Fatalf("%q gives no card; slack shows\n%s", text, s.shown())
	return slacktest.Message{}
}

func (s *shop) acked(deliveries ...string) {
	s.Helper()
	for _, d := range deliveries {
		s.until("a delivery is acknowledged", func() bool { n, _ := s.server.Acked(d); return n > 0 })
	}
	s.rest()
}

// press presses a button, and gives the form behind it.
func (s *shop) press(user string, card slacktest.Message, action string) (view slacktest.View, opened bool) {
	s.Helper()
	delivery, trigger := s.server.Click(user, card.Channel, card.TS, action)
	s.acked(delivery)
	return s.server.View(trigger)
}

// submit sends a form with values by label, and gives it as it stands then.
func (s *shop) submit(user string, view slacktest.View, entered string) slacktest.View {
	s.Helper()
	s.acked(s.server.Submit(user, view, byLabel(s, view, entered)))
	now, _ := s.server.View(view.Trigger)
	return now
}

func (s *shop) now(card slacktest.Message) slacktest.Message {
	s.Helper()
	m, ok := s.server.Message(card.Channel, card.TS)
	if !ok {
		s.Fatal("the card is gone")
	}
	return m
}

// told reports whether a person was told something that only they see, or in their direct messages.
func (s *shop) told(user, channel, words string) bool {
	for _, m := range s.server.ByBot(channel) {
		if (m.For == user || channel == slacktest.DM(user)) && strings.Contains(m.Text, words) {
			return true
		}
	}
	return false
}

// runs are the arguments of what ran since the last look.
func (s *shop) runs() (runs []string) {
	for {
		select {
		case arguments := <-s.ran:
			runs = append(runs, arguments)
		default:
			return runs
		}
	}
}

// settled checks that a card says what was decided, by whom and when, and has no buttons any more, and that it was changed
// with chat.update and never through the address that a click comes with.
func (s *shop) settled(card slacktest.Message, words ...string) {
	s.Helper()
	now := s.now(card)
	for _, part := range append(words, "<!date^") {
		if !strings.Contains(now.Text, part) {
			s.Errorf("the settled card says %q, without %q", now.Text, part)
		}
	}
	if len(now.Blocks) > 0 || !now.Edited {
		s.Errorf("the settled card has the blocks %+v", now.Blocks)
	}
	if n := len(s.server.Calls("response_url")); n > 0 {
		s.Errorf("the click's own address was used %d times", n)
	}
}

// TestEditInSlack goes through a form from its opening to what runs, with the agent's own check.
func TestEditInSlack(t *testing.T) {
	s := openShop(t, nil)
	card := s.says("U0ANN", shared, "delete notes.md")
	view, _ := s.press("U0ANN", card, actionEdit)
	for _, c := range []struct{ entered, label, want string }{
		{`{"path":"x"}`, "path", "minLength"},
		{`{"times":"4"}`, "times", "maximum"},
		{`{"times":"99999999999999999999"}`, "times", "maximum"},
	} {
		now := s.submit("U0ANN", view, c.entered)
		if fault := now.Errors[view.Input(c.label).BlockID]; now.Shut || len(now.Errors) != 1 || !strings.Contains(fault, c.want) {
			t.Errorf("%s shows %q", c.entered, now.Errors)
		}
	}
	if runs := s.runs(); runs != nil || len(s.now(card).Buttons()) == 0 {
		t.Fatalf("a form that does not fit ran %q", runs)
	}
	s.restart(nil)
	if now := s.submit("U0ANN", view, `{"path":"other <&>.md","times":"2"}`); !now.Shut {
		t.Errorf("a form that fits stays open with %q", now.Errors)
	}
	if runs := s.runs(); fmt.Sprint(runs) != `[{"path":"other <&>.md","times":2}]` {
		t.Errorf("ran %q", runs)
	}
	s.settled(card, "approved with changes by <@U0ANN>")
}

// TestEditsThatCannotBe tells in the form why, whatever has become of the card since it was opened.
func TestEditsThatCannotBe(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(s *shop, card slacktest.Message)
		by        string
		want      string
	}{
		"decided":      {func(s *shop, card slacktest.Message) { s.press("U0ANN", card, actionApprove) }, "U0ANN", "already approved by Ann"},
		"withdrawn":    {func(s *shop, card slacktest.Message) { s.sayInThread(card, "never mind") }, "U0ANN", "It was withdrawn"},
		"another's":    {func(*shop, slacktest.Message) {}, "U0BOB", "not yours to decide: Ann may"},
		"a stranger's": {func(*shop, slacktest.Message) {}, "U0EVE", "not on the list"},
		"gone": {func(s *shop, _ slacktest.Message) {
			s.restart(func(c *agent.Config) { c.Tools = nil })
		}, "U0ANN", "The tool delete is no longer there"},
		"expired": {func(s *shop, card slacktest.Message) { s.expire(card) }, "U0ANN", "expired"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, nil)
			card := s.says("U0ANN", shared, "delete notes.md")
			view, _ := s.press("U0ANN", card, actionEdit)
			c.meanwhile(s, card)
			s.runs()
			now := s.submit(c.by, view, `{"path":"other.md"}`)
			if !now.Updated || now.Submit != "" || !strings.Contains(now.Shown(), c.want) || len(now.Errors) > 0 {
				t.Errorf("the form says %q and shows %q", now.Shown(), now.Errors)
			}
			if runs := s.runs(); runs != nil {
				t.Errorf("ran %q", runs)
			}
		})
	}
}

// sayInThread says something of Ann's in the thread of a card.
func (s *shop) sayInThread(card slacktest.Message, text string) {
	s.Helper()
	_, deliveries := s.server.Say(slacktest.Said{User: "U0ANN", Channel: card.Channel, Thread: card.Thread, Text: text})
	s.acked(deliveries...)
}

// expire lets the time of a card run out, as the program's clock does when its row falls due.
func (s *shop) expire(card slacktest.Message) {
	s.Helper()
	session := ""
	err := s.store.Update(s.Context(), func(tx memory.Tx) error {
		row, found, err := tx.Due().Get(agent.TimerPrefix + "card/" + cardOf(card))
		if err != nil || !found {
			return fmt.Errorf("find the time-out of the card: %v, %w", found, err)
		}
		if err := tx.Due().Remove(row.Key); err != nil {
			return err
		}
		session, err = agent.Expired(tx, row)
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	s.agent.Look(session)
	s.rest()
}

// TestASecondClick presses the buttons of a card again: as the same delivery, by the same person, by another, after a
// restart and long after. It runs once.
func TestASecondClick(t *testing.T) {
	s := openShop(t, nil)
	card := s.says("U0ANN", shared, "delete notes.md")
	click, _ := s.server.Click("U0ANN", card.Channel, card.TS, actionApprove)
	s.acked(click, s.server.Redeliver(click))
	s.settled(card, "approved by <@U0ANN>")
	before := len(s.server.ByBot(shared))
	for _, press := range []struct{ user, action string }{
		{"U0ANN", actionApprove}, {"U0ANN", actionDeny}, {"U0ANN", actionEdit}, {"U0BOB", actionApprove}, {"U0BOB", actionDeny},
	} {
		if _, opened := s.press(press.user, card, press.action); opened {
			t.Errorf("%s opens a form for %s", press.action, press.user)
		}
		if !s.told(press.user, shared, "already approved by Ann") {
			t.Errorf("%s by %s is not told; slack shows\n%s", press.action, press.user, s.shown())
		}
	}
	s.restart(nil)
	s.press("U0BOB", card, actionApprove)
	for _, m := range s.server.ByBot(shared)[before:] {
		if m.For == "" {
			t.Errorf("everybody is told %q", m.Text)
		}
	}
	s.settled(card, "approved by <@U0ANN>")
	if runs := s.runs(); fmt.Sprint(runs) != `[{"path":"notes.md"}]` {
		t.Errorf("ran %q", runs)
	}
}

// TestClicksOfOthers lets people press who may not: nothing runs, each is told so alone, and the buttons stay for those
// who may.
func TestClicksOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		policy agent.Policy
		not    []string // who may not
		may    string
		told   string
	}{
		"the requester's":        {agent.PolicyAsk, []string{"U0BOB"}, "U0ANN", "not yours to decide"},
		"a second person's":      {agent.PolicySecond, []string{"U0ANN"}, "U0BOB", "not yours to decide"},
		"an owner's":             {agent.PolicyOwner, []string{"U0ANN"}, "U0BOB", "not yours to decide"},
		"one of those let in":    {agent.PolicyAsk, []string{"U0EVE"}, "U0ANN", "not on the list"},
		"whoever else is let in": {agent.PolicySecond, []string{"U0ANN", "U0EVE"}, "U0BOB", "not"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, func(config *agent.Config) {
				config.Owners = []agent.PersonID{"slack:T0TEST:U0BOB"}
				config.Approve = map[string]agent.Policy{"delete": c.policy}
			})
			card := s.says("U0ANN", shared, "delete notes.md")
			for _, user := range c.not {
				for _, button := range buttonsOf(card) {
					action := button.ActionID
					before := len(s.server.ByBot(shared))
					if _, opened := s.press(user, card, action); opened {
						t.Errorf("%s opens a form for %s", action, user)
					}
					s.until("somebody is told", func() bool { return len(s.server.ByBot(shared)) > before })
					fresh := s.server.ByBot(shared)[before:]
					if len(fresh) != 1 || fresh[0].For != user || !strings.Contains(fresh[0].Text, c.told) {
						t.Errorf("%s by %s says %+v", action, user, fresh)
					}
				}
			}
			if runs := s.runs(); runs != nil || len(s.now(card).Buttons()) != len(buttonsOf(card)) {
				t.Fatalf("ran %q, and the card has %d buttons", runs, len(s.now(card).Buttons()))
			}
			s.press(c.may, card, actionApprove)
			s.settled(card, "approved by <@"+c.may+">")
			if runs := s.runs(); len(runs) != 1 {
				t.Errorf("ran %q", runs)
			}
		})
	}
}

// buttonsOf are the buttons that a card had first.
func buttonsOf(card slacktest.Message) []slacktest.Element {
	return slacktest.Message{Blocks: card.First}.Buttons()
}

// TestClicksFromElsewhere brings the id of a card to another conversation: it decides nothing there.
func TestClicksFromElsewhere(t *testing.T) {
	s := openShop(t, nil)
	card := s.says("U0ANN", slacktest.DM("U0ANN"), "delete notes.md")
	other := s.says("U0ANN", shared, "delete other.md")
	s.server.AddChannel("C0ELSE", "U0ANN")
	clicks := 0
	click := func(user, team, channel, ts, block, value string) {
		t.Helper()
		clicks++
		s.acked(s.server.Send("interactive", map[string]any{
			"type": "block_actions", "team": map[string]any{"id": team}, "user": map[string]any{"id": user, "team_id": team},
			"container": map[string]any{"type": "message", "message_ts": ts, "channel_id": channel}, "channel": map[string]any{"id": channel},
			"trigger_id": "x",
			"actions":    []any{map[string]any{"type": "button", "action_id": actionApprove, "block_id": block, "value": value, "action_ts": fmt.Sprint("7.", clicks)}},
		}))
	}
	id := cardOf(card)
	click("U0ANN", "T0TEST", shared, other.TS, "slack:T0TEST:"+shared+":"+other.Thread, id) // the block of another card
	click("U0ANN", "T0TEST", shared, other.TS, annsDM, id)                                  // the block of the card, where it does not stand
	click("U0ANN", "T0TEST", "C0ELSE", "9.9", "", id)                                       // another channel
	click("U0ANN", "T0OTHER", slacktest.DM("U0ANN"), card.TS, "", id)                       // another workspace
	click("U0BOB", "T0TEST", slacktest.DM("U0BOB"), "9.9", annsDM, id)                      // another's direct messages
	if runs := s.runs(); runs != nil || len(s.now(card).Buttons()) == 0 {
		t.Fatalf("ran %q", runs)
	}
	if !s.told("U0ANN", shared, "does not belong to this conversation") {
		t.Errorf("nobody is told; slack shows\n%s", s.shown())
	}
	s.press("U0ANN", card, actionApprove)
	s.settled(card, "approved by <@U0ANN>")
}

// TestExpiredCards lets time run out: the card says so by itself, and whoever presses it is told.
func TestExpiredCards(t *testing.T) {
	s := openShop(t, nil)
	card := s.says("U0ANN", shared, "delete notes.md")
	s.expire(card)
	s.settled(card, "expired")
	s.restart(nil)
	for _, action := range []string{actionApprove, actionDeny, actionEdit} {
		s.press("U0ANN", card, action)
	}
	if !s.told("U0ANN", shared, "It had expired") || s.runs() != nil {
		t.Errorf("slack shows\n%s", s.shown())
	}
	// One whose time is over and whose time-out nobody has noticed yet.
	s.restart(func(c *agent.Config) { c.Limits.Approval = time.Nanosecond })
	late := s.says("U0ANN", shared, "delete late.md")
	s.press("U0ANN", late, actionApprove)
	s.settled(late, "expired")
	if s.runs() != nil {
		t.Error("an expired card ran")
	}
}

// batch lets Ann ask for several deletions in the channel, and gives their cards.
func (s *shop) batch(paths string) (cards []slacktest.Message) {
	s.Helper()
	before := len(s.server.ByBot(shared))
	s.says("U0ANN", shared, "delete each of "+paths)
	for _, m := range s.server.ByBot(shared)[before:] {
		if cardOf(m) != "" {
			cards = append(cards, m)
		}
	}
	if n := strings.Count(paths, ",") + 1; len(cards) != n {
		s.Fatalf("%d cards for %d deletions; slack shows\n%s", len(cards), n, s.shown())
	}
	return cards
}

// labels are what the buttons of a message are called.
func labels(m slacktest.Message) string {
	var names []string
	for _, b := range m.Buttons() {
		names = append(names, b.Label())
	}
	return strings.Join(names, ", ")
}

// TestBatchInSlack decides cards with one press: a double click is one press, each card has its own outcome, and a press that
// comes too late is told so once.
func TestBatchInSlack(t *testing.T) {
	s := openShop(t, nil)
	cards := s.batch("a.md,b.md,c.md")
	if labels(cards[1]) != "Approve, Deny, Edit" || labels(cards[2]) != "Approve, Deny, Edit, Approve all 3, Deny all 3" {
		t.Fatalf("the buttons are %q and %q", labels(cards[1]), labels(cards[2]))
	}
	last := cards[2]
	first, _ := s.server.Click("U0ANN", shared, last.TS, actionApproveAll)
	second, _ := s.server.Click("U0ANN", shared, last.TS, actionApproveAll)
	s.acked(first, second)
	pressed := len(s.server.ByBot(shared))
	s.acked(s.server.Redeliver(first))
	for i, path := range []string{"a.md", "b.md", "c.md"} {
		s.settled(cards[i], "approved by <@U0ANN>", `{"path":"`+path+`"}`)
	}
	if runs := s.runs(); fmt.Sprint(runs) != `[{"path":"a.md"} {"path":"b.md"} {"path":"c.md"}]` {
		t.Errorf("ran %q", runs)
	}
	told := 0 // of the second click, if it came after the first had its effect
	for _, m := range s.server.ByBot(shared) {
		if m.For != "" {
			told++
		}
	}
	if told > 1 || len(s.server.ByBot(shared)) > pressed {
		t.Errorf("after a double click slack shows\n%s", s.shown())
	}
	for _, user := range []string{"U0ANN", "U0BOB"} {
		before := len(s.server.ByBot(shared))
		s.press(user, last, actionDenyAll)
		fresh := s.server.ByBot(shared)[before:]
		if len(fresh) != 1 || fresh[0].For != user || !strings.Contains(fresh[0].Text, "already approved by Ann") {
			t.Errorf("a late press of %s says %+v", user, fresh)
		}
	}
}

// TestBatchWhoseCardsExpire decides what is left after one card has expired: that one says so by itself.
func TestBatchWhoseCardsExpire(t *testing.T) {
	s := openShop(t, nil)
	cards := s.batch("a.md,b.md")
	s.expire(cards[0])
	s.settled(cards[0], "expired: decided by nobody in time")
	s.restart(nil)
	s.press("U0ANN", cards[1], actionApproveAll)
	s.settled(cards[1], "approved by <@U0ANN>")
	if !s.told("U0ANN", shared, "1 of the 2: It had expired") {
		t.Errorf("slack shows\n%s", s.shown())
	}
	if runs := s.runs(); fmt.Sprint(runs) != `[{"path":"b.md"}]` {
		t.Errorf("ran %q", runs)
	}
}

// TestBatchThatCannotBeRead decides cards one by one whose calls have too much in them to be read on one.
func TestBatchThatCannotBeRead(t *testing.T) {
	s := openShop(t, nil)
	for paths, want := range map[string]string{
		strings.Repeat("a", 800) + "," + strings.Repeat("b", 800):           "Approve, Deny, Edit",
		strings.Repeat("\u200b", 200) + "," + strings.Repeat("\u200b", 201): "Approve, Deny, Edit",
		strings.Repeat("a", 600) + "," + strings.Repeat("b", 600):           "Approve, Deny, Edit, Approve all 2, Deny all 2",
	} {
		cards := s.batch(paths)
		if got := labels(cards[1]); got != want {
			t.Errorf("the buttons of a batch of %d characters are %q", length(paths), got)
		}
		s.press("U0ANN", cards[0], actionApprove)
		s.press("U0ANN", cards[1], actionApprove)
		s.runs()
	}
}

// TestAlwaysInSlack shows the rule before it is saved, saves it, and lists and revokes it.
func TestAlwaysInSlack(t *testing.T) {
	s := openShop(t, nil)
	dm := slacktest.DM("U0ANN")
	card := s.says("U0ANN", dm, "delete notes.md")
	view, opened := s.press("U0ANN", card, actionAlways)
	if !opened || view.Submit != "Always allow" {
		t.Fatalf("the form is %+v", view)
	}
	for _, part := range []string{"exactly this call and no other", "for you alone", "in direct messages", "until <!date^", "May I run delete?", `"path": "notes.md"`, "nudge approvals"} {
		if !strings.Contains(view.Shown(), part) {
			t.Errorf("the form does not say %q:\n%s", part, view.Shown())
		}
	}
	if runs := s.runs(); runs != nil {
		t.Fatalf("before it is sent ran %q", runs)
	}
	submit := s.server.Submit("U0ANN", view, nil)
	s.acked(submit)
	s.acked(s.server.Redeliver(submit))
	if now, _ := s.server.View(view.Trigger); !now.Shut || now.Updated {
		t.Errorf("the form of a decision that was delivered twice is %+v", now)
	}
	s.settled(card, "approved by <@U0ANN>, and always", " until <!date^", "(rule ")
	s.server.Say(slacktest.Said{User: "U0ANN", Channel: dm, Text: "delete notes.md"})
	s.until("it ran again", func() bool { return len(s.ran) == 2 })
	s.rest()
	s.runs()
	s.acked(s.server.Slash("U0ANN", shared, "/nudge", "approvals"))
	if !s.told("U0ANN", dm, "You always allow, in direct messages:") || !s.told("U0ANN", dm, "delete {\"path\":\"`notes.md`\"} until") { // .md is a country's, and no link is made of it
		t.Errorf("slack shows\n%s", s.shown())
	}
	s.acked(s.server.Slash("U0ANN", shared, "/nudge", "approvals revoke all"))
	s.says("U0ANN", dm, "delete notes.md")
	if other := s.says("U0ANN", shared, "delete notes.md"); len(other.Buttons()) != 3 {
		t.Error("a card that others see offers a rule")
	}
	if runs := s.runs(); runs != nil {
		t.Errorf("after the rule was revoked ran %q", runs)
	}
}

// TestLeftOpenInSlack leaves open a part of a call in the form, which says what that means and leaves nothing open at first. A form
// that names what the card does not offer decides nothing.
func TestLeftOpenInSlack(t *testing.T) {
	s := openShop(t, func(c *agent.Config) {
		c.Tools[0].Open = func(agent.Invocation) ([]agent.Opening, string) {
			return []agent.Opening{{Name: "path", Within: "that matches .*[.]md"}}, ""
		}
	})
	dm := slacktest.DM("U0ANN")
	card := s.says("U0ANN", dm, "delete notes.md")
	view, opened := s.press("U0ANN", card, actionAlways)
	boxes := view.Input("Leave open")
	if !opened || !boxes.Optional || boxes.Element.Type != "checkboxes" || len(boxes.Element.Options) != 1 || len(boxes.Element.Several) != 0 || boxes.Hint.Text != "Nothing chosen: exactly this call." {
		t.Fatalf("the form is %+v", view)
	}
	for _, part := range []string{"exactly this call and no other", "differs from it in nothing but what is left open", "any path that matches .*[.]md"} {
		if !strings.Contains(view.Shown(), part) {
			t.Errorf("the form does not say %q:\n%s", part, view.Shown())
		}
	}
	forged := view
	forged.Blocks = slices.Clone(view.Blocks)
	last := len(forged.Blocks) - 1
	element := *forged.Blocks[last].Element
	element.Options = append(slices.Clone(element.Options), slacktest.Option{Value: "times"})
	forged.Blocks[last].Element = &element
	s.acked(s.server.Submit("U0ANN", forged, map[string]map[string]string{openBlock: {formInput: "path\ntimes"}}))
	if now, _ := s.server.View(view.Trigger); !now.Updated || !strings.Contains(now.Shown(), `"times" cannot be left open; what can be is path.`) {
		t.Errorf("a forged form became %+v", now)
	}
	if runs := s.runs(); runs != nil {
		t.Fatalf("by a forged form ran %q", runs)
	}
	view, _ = s.press("U0ANN", card, actionAlways)
	s.acked(s.server.Submit("U0ANN", view, map[string]map[string]string{openBlock: {formInput: "path"}}))
	s.settled(card, "approved by <@U0ANN>, and always", "\nwith `any path that matches .*[.]md`")
	s.server.Say(slacktest.Said{User: "U0ANN", Channel: dm, Text: "delete other.md"})
	s.until("another ran", func() bool { return len(s.ran) == 2 })
	s.rest()
	s.runs()
	s.acked(s.server.Slash("U0ANN", shared, "/nudge", "approvals"))
	if !s.told("U0ANN", dm, "delete {} with any path that matches .*[.]md until") {
		t.Errorf("slack shows\n%s", s.shown())
	}
}

// TestManyChoices answers a question with a menu, and in words.
func TestManyChoices(t *testing.T) {
	d := newDesk(t, brisk)
	r := agent.Reply{Kind: agent.Ask, ID: "q1", Text: "Which?", Address: annsDM}
	for i := range 120 {
		r.Choices = append(r.Choices, fmt.Sprint("choice number ", i, strings.Repeat(" long", i%3*10)))
	}
	channel, ts := d.ask(r)
	m, _ := d.server.Message(channel, ts)
	if buttons := m.Buttons(); len(buttons) != 1 || buttons[0].ActionID != actionAnswer {
		t.Fatalf("the question has the buttons %+v", buttons)
	}
	for _, i := range []int{0, 2, 77, 99} {
		d.acked(d.server.Choose("U0ANN", channel, ts, actionMenu, bot.ChoiceLabel(i, r.Choices[i], optionLimit, cut)))
		if _, decision := d.lastDecision(); decision.Card != "q1" || decision.Text != r.Choices[i] {
			t.Errorf("choice %d became %+v", i, decision)
		}
	}
	view, _ := d.click("U0ANN", channel, ts, actionAnswer)
	d.send("U0ANN", view, "none of these")
	if _, decision := d.lastDecision(); decision.Text != "none of these" {
		t.Errorf("the answer became %+v", decision)
	}
}

// TestOutcomesFitIntoAnEdit settles cards with as much as can be said of them, in characters that are sent as five.
func TestOutcomesFitIntoAnEdit(t *testing.T) {
	until := time.Date(2026, 12, 30, 9, 0, 0, 0, time.UTC)
	amps := strings.Repeat("&", wholeLimit)
	for name, r := range map[string]agent.Reply{
		"a reason":         {Tool: "delete_file", Decision: agent.Deny, Text: amps, Told: `{"path":"` + amps[:280] + `"}`},
		"an answer":        {Tool: "ask_person", Decision: agent.AnswerIt, Text: amps, Told: amps[:300]},
		"what is not seen": {Tool: "delete_file", Decision: agent.Deny, Text: strings.Repeat("\x01", wholeLimit), Told: "{" + strings.Repeat("\x01", 290) + "}"},
		"always":           {Tool: "delete_file", Decision: agent.Always, Told: `{"path":"` + amps[:280] + `"}`, Always: &until, Rule: "r1"},
		"left open":        {Tool: "delete_file", Decision: agent.Always, Told: `{"path":"` + amps[:280] + `"}`, Always: &until, Rule: "r1", Open: []agent.Opening{{Name: "path", Within: amps[:1150]}}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, brisk)
			address, _ := d.thread()
			channel, ts := d.ask(approval(address))
			r.Kind, r.ID, r.By, r.Address = agent.DecidedMark, "c1", "slack:T0TEST:U0ANN", address
			d.tell("outcome", r)
			m, _ := d.server.Message(channel, ts)
			if len(m.Buttons()) > 0 || !strings.HasPrefix(m.Text, r.Tool+" (c1): ") || length(m.Text) > textLimit || !strings.Contains(m.Text, "by <@U0ANN>") {
				t.Errorf("the card has %d buttons and says %.300q in %d characters", len(m.Buttons()), m.Text, length(m.Text))
			}
		})
	}
}
