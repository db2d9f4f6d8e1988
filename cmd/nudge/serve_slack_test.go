package main

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode/utf16"

	"nudge/agent/model"
	"nudge/agent/model/modeltest"
	"nudge/bot/bottest/slacktest"
)

// Who there is in an office: Ann and Bob are served, Eve is not. All three are in the channel.
const (
	ann    = "U0ANN"
	bob    = "U0BOB"
	eve    = "U0EVE"
	team   = "C0TEAM"
	addBot = "<@" + slacktest.BotUser + "> "
)

// The variables that hold the tokens.
const (
	botVariable = "NUDGE_TEST_SLACK_BOT"
	appVariable = "NUDGE_TEST_SLACK_APP"
)

// office is `nudge serve` as a process of its own, with a Slack and a model on ports of this machine.
type office struct {
	*testing.T
	serving
	place place
	slack *slacktest.Server
	model *modeltest.Server
	env   []string
}

// newOffice makes an office in which nothing runs yet.
func newOffice(t *testing.T, script func(int, modeltest.ChatRequest) modeltest.Reply, config string) *office {
	t.Helper()
	return newOfficeWith(t, slacktest.Options{}, script, config)
}

// newOfficeWith makes one whose Slack behaves in some way.
func newOfficeWith(t *testing.T, options slacktest.Options, script func(int, modeltest.ChatRequest) modeltest.Reply, config string) *office {
	t.Helper()
	o := &office{T: t, model: modeltest.NewServer(t, script)}
	options.Ping, options.Trigger = 50*time.Millisecond, time.Minute
	o.slack = slacktest.New(options)
	t.Cleanup(o.slack.Close)
	for _, u := range []slacktest.User{{ID: ann, Name: "Ann", Zone: "Europe/Berlin"}, {ID: bob, Name: "Bob", Zone: "UTC"}, {ID: eve, Name: "Eve"}} {
		o.slack.AddUser(u)
	}
	o.slack.AddChannel(team, ann, bob, eve)
	if !strings.Contains(config, "[web]") {
		config += "\n[web]\nlisten = \"\"\n"
	}
	if !strings.Contains(config, "[access]") {
		config += fmt.Sprintf("\n[access]\nallow = [%q, %q]\n", personID(ann), personID(bob))
	}
	o.place = newPlace(t, o.model, fmt.Sprintf("%s\n[slack]\nbot_token_env = %q\napp_token_env = %q\napi_url = %q\n",
		config, botVariable, appVariable, o.slack.APIURL()))
	o.env = []string{botVariable + "=" + slacktest.BotToken, appVariable + "=" + slacktest.AppToken}
	t.Cleanup(func() {
		o.kill()
		if t.Failed() {
			t.Logf("the program printed:\n%s", o.printed())
		}
	})
	return o
}

// openOffice makes an office in which the program runs and is linked to Slack.
func openOffice(t *testing.T, script func(int, modeltest.ChatRequest) modeltest.Reply, config string) *office {
	t.Helper()
	o := newOffice(t, script, config)
	o.start()
	o.linked()
	return o
}

func personID(user string) string { return "slack:" + slacktest.Team + ":" + user }

// start starts the program.
func (o *office) start() {
	o.Helper()
	o.serve(o.T, o.place, o.env...)
}

// kill is kill -9. It returns when the program has ended and Slack knows it.
func (o *office) kill() {
	if o.cmd != nil {
		_ = o.signal(syscall.SIGKILL) // one that has ended already needs none
		o.slack.Drop()
	}
}

// restart kills the program and starts it again.
func (o *office) restart() {
	o.Helper()
	o.kill()
	o.start()
	o.linked()
}

// until waits until something is so.
func (o *office) until(what string, so func() bool) {
	o.Helper()
	eventually(o.T, what, func() bool {
		select {
		case <-o.exited:
			o.Fatalf("the program ended before %s", what)
		default:
		}
		return so()
	})
}

func (o *office) linked() {
	o.Helper()
	o.until("there was a link", func() bool { return o.slack.Linked() > 0 })
}

// acked waits until Slack's deliveries were acknowledged.
func (o *office) acked(deliveries ...string) {
	o.Helper()
	for _, id := range deliveries {
		o.until("a delivery was acknowledged", func() bool { n, _ := o.slack.Acked(id); return n > 0 })
	}
}

// say lets somebody write, and waits until that was acknowledged.
func (o *office) say(said slacktest.Said) (ts string, deliveries []string) {
	o.Helper()
	if said.Channel == "" {
		said.Channel = slacktest.DM(said.User)
	}
	ts, deliveries = o.slack.Say(said)
	o.acked(deliveries...)
	return ts, deliveries
}

// told waits for a message of the bot's with some words in it, and gives it.
func (o *office) told(channel, words string) slacktest.Message {
	o.Helper()
	var found slacktest.Message
	o.until(fmt.Sprintf("%q was said in %s", words, channel), func() bool {
		for _, m := range o.slack.ByBot(channel) {
			if strings.Contains(m.Text, words) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

// card waits for a card in a thread, "" for those outside threads, that can still be decided.
func (o *office) card(channel, thread string) slacktest.Message {
	o.Helper()
	var found slacktest.Message
	o.until("there was a card in "+channel, func() bool {
		for _, m := range o.slack.ByBot(channel) {
			if m.Thread == thread && actionOf(m, "Approve") != "" && len(m.Buttons()) > 0 {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

// actionOf is the action of a button that a message has, or had at first.
func actionOf(m slacktest.Message, label string) string {
	first := slacktest.Message{Blocks: m.First}
	for _, b := range first.Buttons() {
		if b.Label() == label {
			return b.ActionID
		}
	}
	return ""
}

// press presses a button of a card and waits until that was acknowledged.
func (o *office) press(user string, card slacktest.Message, label string) (trigger string) {
	o.Helper()
	delivery, trigger := o.slack.Click(user, card.Channel, card.TS, actionOf(card, label))
	o.acked(delivery)
	return trigger
}

// settled waits until a card has no buttons any more, and gives it.
func (o *office) settled(card slacktest.Message) slacktest.Message {
	o.Helper()
	var now slacktest.Message
	o.until("the card was settled", func() bool {
		now, _ = o.slack.Message(card.Channel, card.TS)
		return len(now.Buttons()) == 0
	})
	return now
}

// file writes a file of the workspace.
func (o *office) file(name string) {
	o.Helper()
	if err := os.WriteFile(o.place.workspace(name), []byte("x"), 0o600); err != nil {
		o.Fatal(err)
	}
}

func (o *office) exists(name string) bool {
	_, err := os.Stat(o.place.workspace(name))
	return err == nil
}

// view is all that a request shows the model.
func view(req modeltest.ChatRequest) string {
	var b strings.Builder
	for _, m := range req.Messages {
		b.WriteString(m.Role + ": " + m.Content + "\n")
	}
	return b.String()
}

// requestWith is the last request whose last message has some words in it.
func (o *office) requestWith(words string) modeltest.ChatRequest {
	o.Helper()
	requests := o.model.Requests()
	for _, req := range slices.Backward(requests) {
		if strings.Contains(req.Last().Content, words) {
			return req
		}
	}
	o.Fatalf("of %d requests none ends with %q", len(requests), words)
	return modeltest.ChatRequest{}
}

var fruit = regexp.MustCompile(`say (\w+)`)

// sayIt says what it was last told to say.
func sayIt(_ int, req modeltest.ChatRequest) modeltest.Reply {
	words := fruit.FindAllStringSubmatch(req.Last().Content, -1)
	if len(words) == 0 {
		return modeltest.Reply{Text: "Say what?", Usage: usage}
	}
	return modeltest.Reply{Text: "It is " + words[len(words)-1][1] + ".", Usage: usage}
}

func TestSlackStorm(t *testing.T) {
	t.Parallel()
	const links = 5
	o := newOffice(t, sayIt, "")
	o.slack.Storm(links)
	began := time.Now()
	o.start()
	o.linked()
	if n := o.slack.Opens(); n != links+1 || n > 10 {
		t.Errorf("%d links too many took %d openings", links, n)
	}
	if took := time.Since(began); took < 30*time.Second {
		t.Errorf("the openings took only %s", took)
	}
	o.say(slacktest.Said{User: ann, Text: "say apple"})
	o.told(slacktest.DM(ann), "It is apple.")
}

func TestSlackAnswersOnce(t *testing.T) {
	t.Parallel()
	o := openOffice(t, sayIt, "")
	_, first := o.say(slacktest.Said{User: ann, Text: "say apple"})
	pear, second := o.say(slacktest.Said{User: ann, Channel: team, Text: addBot + "say pear"})
	plum, third := o.say(slacktest.Said{User: bob, Channel: team, Text: addBot + "say plum", MentionFirst: true})
	if m := o.told(slacktest.DM(ann), "It is apple."); m.Thread != "" {
		t.Errorf("a direct message is answered in the thread %s", m.Thread)
	}
	for thread, words := range map[string]string{pear: "It is pear.", plum: "It is plum."} {
		if m := o.told(team, words); m.Thread != thread {
			t.Errorf("%q stands in the thread %q, want %s", words, m.Thread, thread)
		}
	}
	deliveries := slices.Concat(first, second, third)
	again := func() {
		for _, id := range deliveries {
			o.acked(o.slack.Redeliver(id))
		}
	}
	again()
	o.restart()
	again()
	o.say(slacktest.Said{User: ann, Text: "say fig"})
	o.say(slacktest.Said{User: ann, Channel: team, Thread: pear, Text: "say lime"})
	o.say(slacktest.Said{User: bob, Channel: team, Thread: plum, Text: "say kiwi"})
	o.told(slacktest.DM(ann), "It is fig.")
	o.told(team, "It is lime.")
	o.told(team, "It is kiwi.")
	for word, last := range map[string]string{"say apple": "say fig", "say pear": "say lime", "say plum": "say kiwi"} {
		if seen := view(o.requestWith(last)); strings.Count(seen, word) != 1 {
			t.Errorf("%q was not taken up once:\n%s", word, seen)
		}
	}
	if n := len(o.model.Requests()); n != 6 {
		t.Errorf("%d model calls, want 6", n)
	}
	if dm, channel := o.slack.ByBot(slacktest.DM(ann)), o.slack.ByBot(team); len(dm) != 2 || len(channel) != 4 {
		t.Errorf("%d answers in direct messages and %d in the channel, want 2 and 4: %+v %+v", len(dm), len(channel), dm, channel)
	}
}

func TestSlackIgnoresBotsAndStrangers(t *testing.T) {
	t.Parallel()
	o := openOffice(t, sayIt, "")
	thread, _ := o.say(slacktest.Said{User: ann, Channel: team, Text: addBot + "say apple"})
	o.told(team, "It is apple.")
	for i, more := range []map[string]any{
		{"user": slacktest.BotUser, "bot_id": slacktest.BotID},
		{"user": slacktest.BotUser},
		{"bot_id": "B0OTHER", "subtype": "bot_message"},
		{"user": "U0OTHER", "bot_id": "B0OTHER", "type": "app_mention"},
		{"user": ann, "bot_id": "B0OTHER"}, // an app that writes in Ann's name
		{"user": ann, "subtype": "message_changed"},
	} {
		event := map[string]any{
			"type": "message", "channel": team, "channel_type": "channel", "text": addBot + "say pear", "thread_ts": thread,
			"ts": fmt.Sprintf("1700000000.%06d", i), "team": slacktest.Team,
		}
		maps.Copy(event, more)
		o.acked(o.slack.Deliver(event))
	}
	o.say(slacktest.Said{User: eve, Text: "say plum"})
	o.say(slacktest.Said{User: eve, Channel: team, Text: addBot + "say plum"})
	o.say(slacktest.Said{User: eve, Channel: team, Thread: thread, Text: "say plum"})
	o.say(slacktest.Said{User: ann, Channel: team, Thread: thread, Text: "say lime"})
	o.told(team, "It is lime.")
	if seen := view(o.requestWith("say lime")); strings.Contains(seen, "pear") || strings.Contains(seen, "plum") {
		t.Errorf("the model was told what it must not hear:\n%s", seen)
	}
	if n := len(o.model.Requests()); n != 2 {
		t.Errorf("%d model calls, want 2", n)
	}
	polite := 0 // one line, and only where she spoke
	for _, m := range slices.Concat(o.slack.ByBot(team), o.slack.ByBot(slacktest.DM(eve))) {
		switch {
		case m.Channel == slacktest.DM(eve) && strings.HasPrefix(m.Text, "I only work for people whom I was told to serve"):
			polite++
		case m.For == "" && (m.Channel != team || m.Thread != thread):
			t.Errorf("somebody who is not served was told %q", m.Text)
		}
	}
	if polite != 1 {
		t.Errorf("somebody who is not served was told so %d times", polite)
	}
}

// TestSlackAnswersWhatAKillInterrupted kills the program while the model is thinking about an acknowledged message.
func TestSlackAnswersWhatAKillInterrupted(t *testing.T) {
	t.Parallel()
	var killed atomic.Bool
	o := openOffice(t, func(n int, req modeltest.ChatRequest) modeltest.Reply {
		reply := sayIt(n, req)
		reply.Hang = !killed.Load()
		return reply
	}, "")
	_, deliveries := o.say(slacktest.Said{User: ann, Text: "say apple"})
	o.until("the model was asked", func() bool { return len(o.model.Requests()) == 1 })
	o.kill()
	killed.Store(true)
	o.start()
	o.linked()
	o.acked(o.slack.Redeliver(deliveries[0]))
	o.told(slacktest.DM(ann), "It is apple.")
	o.say(slacktest.Said{User: ann, Text: "say pear"})
	o.told(slacktest.DM(ann), "It is pear.")
	if n := len(o.model.Requests()); n != 3 {
		t.Errorf("%d model calls, want 3", n)
	}
	texts := 0
	for _, m := range o.slack.ByBot(slacktest.DM(ann)) {
		if strings.Contains(m.Text, "It is apple.") && len(m.Buttons()) == 0 {
			texts++
		}
	}
	if texts != 1 {
		t.Errorf("the message was answered %d times", texts)
	}
}

func TestSlackCards(t *testing.T) {
	t.Parallel()
	o := openOffice(t, deleteScript, "")
	o.file("a.txt")
	thread, _ := o.say(slacktest.Said{User: ann, Channel: team, Text: addBot + "please delete a.txt"})
	card := o.card(team, thread)
	o.press(bob, card, "Approve")
	o.until("Bob was refused", func() bool {
		return slices.ContainsFunc(o.slack.ByBot(team), func(m slacktest.Message) bool { return m.For == bob && m.Thread == thread })
	})
	if now, _ := o.slack.Message(team, card.TS); !o.exists("a.txt") || len(now.Buttons()) == 0 {
		t.Errorf("somebody who may not decide has decided: %+v", now)
	}
	o.press(ann, card, "Approve")
	o.told(team, "It says: Deleted")
	if now := o.settled(card); o.exists("a.txt") || !strings.Contains(now.Text, "approved by <@"+ann+">") {
		t.Errorf("the approved call left the file, or the card without its outcome: %q", now.Text)
	}
	o.file("a.txt")
	before, _ := o.slack.Message(team, card.TS)
	o.press(ann, card, "Approve")
	o.told(team, "already approved")
	if after, _ := o.slack.Message(team, card.TS); !o.exists("a.txt") || after.Text != before.Text {
		t.Errorf("a second click changed something: %q", after.Text)
	}
	if n := len(o.model.Requests()); n != 2 {
		t.Errorf("%d model calls, want 2", n)
	}
}

// TestSlackBatch decides one of three cards by itself, and after a kill all of them with one press, which others may not.
func TestSlackBatch(t *testing.T) {
	t.Parallel()
	o := openOffice(t, clearScript, "")
	for _, name := range []string{"a.txt", "b.txt", "c.txt"} {
		o.file(name)
	}
	thread, _ := o.say(slacktest.Said{User: ann, Channel: team, Text: addBot + "please clear it"})
	var cards []slacktest.Message
	o.until("there are three cards", func() bool {
		cards = slices.DeleteFunc(o.slack.ByBot(team), func(m slacktest.Message) bool { return m.Thread != thread || actionOf(m, "Approve") == "" })
		return len(cards) == 3
	})
	last := cards[2]
	for _, part := range []string{"All 3 of these at once:", `1) {"path":"a.txt"}`, `2) {"path":"b.txt"}`, `3) {"path":"c.txt"}`, "Approve all 3", "Deny all 3"} {
		if !strings.Contains(last.Shown(), part) || strings.Contains(cards[0].Shown(), part) {
			t.Errorf("the last card, and no other, says %q:\n%s", part, last.Shown())
		}
	}
	trigger := o.press(ann, cards[1], "Deny")
	form, opened := o.slack.View(trigger)
	if !opened {
		t.Fatal("no form asks why")
	}
	o.acked(o.slack.Submit(ann, form, nil))
	o.settled(cards[1])
	o.restart()
	o.press(bob, last, "Approve all 3")
	o.until("Bob was refused", func() bool {
		return slices.ContainsFunc(o.slack.ByBot(team), func(m slacktest.Message) bool { return m.For == bob && strings.Contains(m.Text, "not yours to decide") })
	})
	o.press(ann, last, "Approve all 3")
	o.told(team, "It says: Deleted")
	o.told(team, "1 of the 3: It was already denied by Ann")
	if o.exists("a.txt") || !o.exists("b.txt") || o.exists("c.txt") {
		t.Error("something else than what was approved is gone")
	}
	for i, want := range []string{"approved by <@" + ann + ">", "denied by <@" + ann + ">", "approved by <@" + ann + ">"} {
		if now := o.settled(cards[i]); !strings.Contains(now.Text, want) || !strings.Contains(now.Text, "<!date^") {
			t.Errorf("card %d ends as %q", i+1, now.Text)
		}
	}
	o.file("a.txt")
	o.press(ann, last, "Approve all 3")
	o.told(team, "It was already approved by Ann")
	if n := len(o.model.Requests()); !o.exists("a.txt") || n != 2 {
		t.Errorf("a second press ran something, or the model was called %d times", n)
	}
}

func TestSlackCardOutlivesAKill(t *testing.T) {
	t.Parallel()
	o := openOffice(t, deleteScript, "")
	o.file("a.txt")
	thread, _ := o.say(slacktest.Said{User: ann, Channel: team, Text: addBot + "please delete a.txt"})
	card := o.card(team, thread)
	o.restart()
	o.press(ann, card, "Approve")
	o.told(team, "It says: Deleted")
	if now := o.settled(card); o.exists("a.txt") || !strings.Contains(now.Text, "approved by <@"+ann+">") {
		t.Errorf("after a kill the approved call left the file, or the card without its outcome: %q", now.Text)
	}
	o.file("a.txt")
	o.restart()
	o.press(ann, card, "Approve")
	o.told(team, "already approved")
	if !o.exists("a.txt") {
		t.Error("a second click, after a kill, ran the call again")
	}
	cards := 0
	for _, m := range o.slack.ByBot(team) {
		if actionOf(m, "Approve") != "" {
			cards++
		}
	}
	if n := len(o.model.Requests()); n != 2 || cards != 1 {
		t.Errorf("%d model calls and %d cards, want 2 and 1", n, cards)
	}
}

// TestSlackFormsHideSecrets opens the forms of a card on which a key was hidden: no call to Slack has it, and an edit
// of something else runs with the key untouched.
func TestSlackFormsHideSecrets(t *testing.T) {
	t.Parallel()
	const key = "ghp_a1b2c3d4e5a1b2c3d4e5a1b2c3d4e5"
	o := openOffice(t, func(_ int, req modeltest.ChatRequest) modeltest.Reply {
		if _, ok := results(req)["c1"]; ok {
			return modeltest.Reply{Text: "It is written.", Usage: usage}
		}
		return modeltest.Reply{Calls: []model.Call{call("c1", "write_file", `{"path":"a.txt","content":"key `+key+`"}`)}, Usage: usage}
	}, "\n[tools]\napprove = { write_file = \"ask\" }\n")
	o.say(slacktest.Said{User: ann, Text: "please"})
	card := o.card(slacktest.DM(ann), "")
	if _, opened := o.slack.View(o.press(ann, card, "Always allow this…")); !opened {
		t.Error("the form of a rule was not opened")
	}
	form, opened := o.slack.View(o.press(ann, card, "Edit"))
	if !opened {
		t.Fatal("no form was opened")
	}
	path, content := form.Input("path"), form.Input("content")
	if content.Element.Initial != "" || !content.Optional {
		t.Errorf("the form holds %+v", content)
	}
	o.acked(o.slack.Submit(ann, form, map[string]map[string]string{path.BlockID: {path.Element.ActionID: "b.txt"}}))
	o.told(slacktest.DM(ann), "It is written.")
	written, err := os.ReadFile(filepath.Join(o.place.workspace(""), "b.txt"))
	if err != nil || string(written) != "key "+key || o.exists("a.txt") {
		t.Errorf("it wrote %q, error %v", written, err)
	}
	for _, c := range o.slack.Calls("") {
		if strings.Contains(fmt.Sprintf("%+v", c), key) {
			t.Errorf("the key is in a call of %s", c.Method)
		}
	}
}

// TestSlackEditForm fills in a form that was opened before a kill, first with what does not fit.
func TestSlackEditForm(t *testing.T) {
	t.Parallel()
	o := openOffice(t, deleteScript, "")
	o.file("a.txt")
	o.file("b.txt")
	thread, _ := o.say(slacktest.Said{User: ann, Channel: team, Text: addBot + "please delete a.txt"})
	card := o.card(team, thread)
	form, opened := o.slack.View(o.press(ann, card, "Edit"))
	if !opened {
		t.Fatal("no form was opened")
	}
	path := form.Input("path")
	if path.Element.Initial != "a.txt" {
		t.Errorf("the form holds %+v", path.Element)
	}
	o.restart()
	submit := func(user, value string) slacktest.View {
		t.Helper()
		o.acked(o.slack.Submit(user, form, map[string]map[string]string{path.BlockID: {path.Element.ActionID: value}}))
		now, _ := o.slack.View(form.Trigger)
		return now
	}
	if now := submit(ann, "../a.txt"); now.Shut || now.Errors[path.BlockID] == "" {
		t.Errorf("a path outside the workspace shows %+v", now.Errors)
	}
	if now := submit(bob, "b.txt"); !now.Updated || !strings.Contains(now.Shown(), "not yours to decide") {
		t.Errorf("Bob's form says %q", now.Shown())
	}
	if !o.exists("a.txt") || !o.exists("b.txt") {
		t.Fatal("a form that was refused ran something")
	}
	if now := submit(ann, "b.txt"); !now.Shut {
		t.Errorf("the form shows %+v", now.Errors)
	}
	o.told(team, "It says: ")
	if now := o.settled(card); !o.exists("a.txt") || o.exists("b.txt") || !strings.Contains(now.Text, "approved with changes by <@"+ann+">") {
		t.Errorf("a.txt is there %v, b.txt %v, and the card says %q", o.exists("a.txt"), o.exists("b.txt"), now.Text)
	}
}

// TestSlackAlways allows a call always, and kills the program before it is made again.
func TestSlackAlways(t *testing.T) {
	t.Parallel()
	o := openOffice(t, deleteScript, "")
	dm := slacktest.DM(ann)
	o.file("a.txt")
	o.say(slacktest.Said{User: ann, Text: "please delete a.txt"})
	card := o.card(dm, "")
	form, opened := o.slack.View(o.press(ann, card, "Always allow this…"))
	if !opened || !strings.Contains(form.Shown(), `"path": "a.txt"`) || !strings.Contains(form.Shown(), "until <!date^") {
		t.Fatalf("the form says %q", form.Shown())
	}
	o.acked(o.slack.Submit(ann, form, nil))
	if now := o.settled(card); !strings.Contains(now.Text, "approved by <@"+ann+">, and always") {
		t.Errorf("the card says %q", now.Text)
	}
	o.until("the file was gone", func() bool { return !o.exists("a.txt") })
	o.file("a.txt")
	o.restart()
	o.say(slacktest.Said{User: ann, Text: "please delete a.txt"})
	o.until("the file was gone again", func() bool { return !o.exists("a.txt") })
	o.say(slacktest.Said{User: ann, Text: "nudge approvals"})
	o.told(dm, `delete_file {"path":"a.txt"} until`)
	o.say(slacktest.Said{User: ann, Text: "nudge approvals revoke all"})
	o.told(dm, "Revoked: 1 rule")
	o.file("a.txt")
	o.say(slacktest.Said{User: ann, Text: "please delete a.txt"})
	o.card(dm, "")
	o.interrupt(t)
	if out, err := o.place.command("check").CombinedOutput(); err != nil || !o.exists("a.txt") {
		t.Errorf("the file is there %v, and check says %v:\n%s", o.exists("a.txt"), err, out)
	}
}

func TestSlackDenyWithAReason(t *testing.T) {
	t.Parallel()
	o := openOffice(t, deleteScript, "")
	o.file("a.txt")
	o.say(slacktest.Said{User: ann, Text: "please delete a.txt"})
	card := o.card(slacktest.DM(ann), "")
	trigger := o.press(ann, card, "Deny")
	form, opened := o.slack.View(trigger)
	if !opened {
		t.Fatal("no form was opened")
	}
	const reason = "it is <still> needed"
	o.acked(o.slack.Submit(ann, form, map[string]map[string]string{form.Blocks[0].BlockID: {form.Blocks[0].Element.ActionID: reason}}))
	o.told(slacktest.DM(ann), "It says: not run")
	if got := results(o.model.Requests()[1])["c1"]; !strings.Contains(got, reason) {
		t.Errorf("the reason reached the model as %q", got)
	}
	if now := o.settled(card); !o.exists("a.txt") || !strings.Contains(now.Text, "denied by <@"+ann+">: it is &lt;still&gt; needed") {
		t.Errorf("the denied card says %q", now.Text)
	}
}

func TestSlackCorrection(t *testing.T) {
	t.Parallel()
	o := openOffice(t, runScript("until-go"), slowCommands)
	thread, _ := o.say(slacktest.Said{User: ann, Channel: team, Text: addBot + "go"})
	o.place.begun(1)
	const words = "do it differently instead"
	ts, _ := o.say(slacktest.Said{User: ann, Channel: team, Thread: thread, Text: words})
	reactions := func() string { m, _ := o.slack.Message(team, ts); return strings.Join(m.Reactions, " ") }
	o.until("the correction had its first receipt", func() bool { return reactions() == "eyes" })
	o.file("go")
	if m := o.told(team, "Understood."); m.Thread != thread {
		t.Errorf("the answer stands in %q", m.Thread)
	}
	o.until("the correction had its last receipt", func() bool { return reactions() == "white_check_mark" })
	last := o.model.Requests()[1]
	if m := last.Last(); m.Role != "user" || !strings.Contains(m.Content, words) {
		t.Errorf("the correction came as %+v", m)
	}
	if got := results(modeltest.ChatRequest{Messages: last.Messages[:len(last.Messages)-1]})["c2"]; !strings.HasPrefix(got, "not run") || !strings.Contains(got, words) || o.exists("b.txt") {
		t.Errorf("the call not begun is answered %q", got)
	}
	if n := len(o.model.Requests()); n != 2 {
		t.Errorf("%d model calls, want 2", n)
	}
}

// longAnswer has as many characters, with a fence that no message can hold whole.
func longAnswer(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size/4; i++ {
		fmt.Fprintf(&b, "Line %d of what comes before.\n", i)
	}
	b.WriteString("\n```go\n")
	for i := 0; b.Len() < size-100; i++ {
		fmt.Fprintf(&b, "\tfmt.Println(%d)\n", i)
	}
	b.WriteString("```\n")
	return b.String() + "\nThe end" + strings.Repeat(".", size-b.Len()-len("\nThe end"))
}

// lines are those of a text that are neither empty nor the beginning or the end of a fence.
func linesOf(texts ...string) []string {
	lines := strings.Split(strings.Join(texts, "\n"), "\n")
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" || strings.HasPrefix(line, "```") })
}

func TestSlackLongAnswer(t *testing.T) {
	t.Parallel()
	text := longAnswer(9000)
	o := openOffice(t, func(int, modeltest.ChatRequest) modeltest.Reply { return modeltest.Reply{Text: text, Usage: usage} }, "")
	o.say(slacktest.Said{User: ann, Text: "all of it"})
	o.told(slacktest.DM(ann), "The end")
	var parts []string
	for _, m := range o.slack.ByBot(slacktest.DM(ann)) {
		if n := len(utf16.Encode([]rune(m.Text))); len(m.Buttons()) > 0 || n > 4000 || strings.Count(m.Text, "```")%2 != 0 {
			t.Errorf("a message has %d characters, and %d fences", n, strings.Count(m.Text, "```"))
		}
		parts = append(parts, m.Text)
	}
	if len(parts) < 3 || len(parts) > 4 || !slices.Equal(linesOf(parts...), linesOf(text)) {
		t.Errorf("the answer did not arrive whole: %d messages\n%s", len(parts), strings.Join(parts, "\n----\n"))
	}
}

func TestSlackAnswersAreHarmless(t *testing.T) {
	t.Parallel()
	o := openOffice(t, func(int, modeltest.ChatRequest) modeltest.Reply {
		return modeltest.Reply{Text: "<!channel> <@U0BOB> look at [bank.example](https://evil.example) or <https://evil.example|https://bank.example/login>, the end", Usage: usage}
	}, "")
	o.say(slacktest.Said{User: ann, Channel: team, Text: addBot + "hello"})
	m := o.told(team, "the end")
	for _, harm := range []string{"<!", "<@", "|bank.example>", "<https://evil.example|"} {
		if strings.Contains(m.Text, harm) || strings.Contains(m.Shown(), harm) {
			t.Errorf("%q is in %q", harm, m.Text)
		}
	}
	if !strings.Contains(m.Text, "https://evil.example") {
		t.Errorf("where the link goes is not shown: %q", m.Text)
	}
	for _, c := range o.slack.Calls("chat.postMessage") {
		if c.Form.Get("unfurl_links") != "false" || c.Form.Get("unfurl_media") != "false" {
			t.Errorf("a message lets pages be fetched: %v", c.Form)
		}
	}
}

// TestSlackText says to the model what Slack's clients send, and to Slack what models answer.
func TestSlackText(t *testing.T) {
	t.Parallel()
	answer := "## Result\n\n**Status:**OK for `a<b` & *more*, see [docs](https://example.org/?a=1&b=2).\n\n1. one\n   - [x] done\n\n" +
		"| Name | N |\n|---|--:|\n| **Ann** | 12 |\n\n> quoted <!here>\n\n```go\nif a < b {}\n```\nThe end."
	heard := make(chan string, 1)
	o := openOffice(t, func(_ int, r modeltest.ChatRequest) modeltest.Reply {
		heard <- r.Messages[len(r.Messages)-1].Content
		return modeltest.Reply{Text: answer, Usage: usage}
	}, "")
	o.say(slacktest.Said{User: ann, Channel: team,
		Text: addBot + "tell <@" + bob + "> &lt;b&gt; &amp;amp; *this*: <https://example.org|example.org> :tada:\n```if a &lt; b { <http://c.example|c.example> }```"})
	m := o.told(team, "The end.")
	want := "*Result*\n\n*Status:*\u200bOK for `a&lt;b` &amp; _more_, see <https://example.org/?a=1&amp;b=2|docs>.\n\n1. one\n   ☑ done\n\n" +
		"```\nName | N\n-----|---\nAnn  | 12\n```\n\n&gt; quoted &lt;!here&gt;\n\n```\nif a &lt; b {}\n```\nThe end."
	if m.Text != want {
		t.Errorf("said\n%s\nwant\n%s", m.Text, want)
	}
	said := "tell @Bob <b> &amp; *this*: https://example.org :tada:\n```if a < b { c.example }```"
	if got := <-heard; !strings.Contains(got, said) {
		t.Errorf("the model heard\n%s\nwant in it\n%s", got, said)
	}
}

func TestSlackHeartbeat(t *testing.T) {
	t.Parallel()
	o := openOffice(t, func(_ int, req modeltest.ChatRequest) modeltest.Reply {
		switch {
		case req.Offers("notify") && len(results(req)) == 0:
			return modeltest.Reply{Text: "secret prose", Calls: []model.Call{call("n1", "notify", `{"text":"disk /srv is full"}`)}}
		case req.Offers("notify"):
			return modeltest.Reply{Text: "secret prose"}
		}
		return modeltest.Reply{Text: "You mean /srv."}
	}, fmt.Sprintf(`
[[heartbeat]]
name = "disk"
cron = "@every 1s"
for = [%q]
prompt = "Tell them which disk is full."
[heartbeat.condition]
kind = "file"
path = "full"
`, personID(ann)))
	if err := os.WriteFile(filepath.Join(o.place.dir, "data", "full"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ping := o.told(slacktest.DM(ann), "disk /srv is full")
	if ping.Thread != "" {
		t.Errorf("the ping stands in %q", ping.Thread)
	}
	o.say(slacktest.Said{User: ann, Text: "which disk?"})
	o.told(slacktest.DM(ann), "You mean /srv.")
	if seen := view(o.requestWith("which disk?")); !strings.Contains(seen, "disk /srv is full") || strings.Contains(seen, "prose") {
		t.Errorf("the reply was answered from:\n%s", seen)
	}
	for _, channel := range []string{team, slacktest.DM(bob), slacktest.DM(ann)} {
		for _, m := range o.slack.ByBot(channel) {
			if strings.Contains(m.Text, "prose") || channel != slacktest.DM(ann) {
				t.Errorf("%s was told %q", channel, m.Text)
			}
		}
	}
}

// TestSlackLinksAnew lets Slack refresh the link, then cut it. What is said meanwhile is answered.
func TestSlackLinksAnew(t *testing.T) {
	t.Parallel()
	o := openOffice(t, sayIt, "")
	o.slack.Disconnect("warning")
	o.slack.Disconnect("refresh_requested")
	o.say(slacktest.Said{User: ann, Text: "say apple"})
	o.told(slacktest.DM(ann), "It is apple.")
	o.until("the link was refreshed", func() bool { return o.slack.Links() == 2 && o.slack.Linked() == 1 })
	o.slack.Drop()
	o.say(slacktest.Said{User: ann, Text: "say pear"})
	o.told(slacktest.DM(ann), "It is pear.")
	if n := o.slack.Opens(); n != 3 {
		t.Errorf("a refresh and a cut took %d openings, want 3", n)
	}
	if n := len(o.model.Requests()); n != 2 {
		t.Errorf("%d model calls, want 2", n)
	}
}

func TestServeEndsOnInterrupt(t *testing.T) {
	t.Parallel()
	var again atomic.Bool
	o := openOffice(t, func(n int, req modeltest.ChatRequest) modeltest.Reply {
		reply := sayIt(n, req)
		reply.Hang = strings.Contains(req.Last().Content, "pear") && !again.Load()
		return reply
	}, "")
	o.say(slacktest.Said{User: ann, Text: "say apple"})
	o.told(slacktest.DM(ann), "It is apple.")
	o.interrupt(t)

	o.start()
	o.until("there was a second link", func() bool { return o.slack.Links() == 2 && o.slack.Linked() == 1 })
	o.say(slacktest.Said{User: ann, Text: "say pear"})
	o.until("the model was asked", func() bool { return len(o.model.Requests()) == 2 })
	o.interrupt(t)

	again.Store(true)
	o.start()
	o.told(slacktest.DM(ann), "It is pear.")
	o.interrupt(t)
}

// TestServeGoesOnWithoutSlack starts with tokens that are missing, and with ones that Slack refuses.
func TestServeGoesOnWithoutSlack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, bot, app, variable string
	}{
		{"no bot token", "", slacktest.AppToken, botVariable},
		{"no app token", slacktest.BotToken, "", appVariable},
		{"a bot token of before", "xoxb-old", slacktest.AppToken, botVariable},
		{"an app token of before", slacktest.BotToken, "xapp-old", appVariable},
		{"tokens mixed up", slacktest.AppToken, slacktest.BotToken, botVariable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, sayIt, "\n[web]\nlisten = \"127.0.0.1:0\"\n")
			o.env = []string{botVariable + "=" + c.bot, appVariable + "=" + c.app}
			o.start()
			o.until("the console was ready", func() bool { return strings.Contains(o.printed(), "Nudge is ready") })
			o.until("the variable was named", func() bool { return strings.Contains(o.printed(), c.variable) })
			for line := range strings.Lines(o.printed()) {
				if strings.Contains(line, "-old") || strings.Contains(line, slacktest.BotToken) || strings.Contains(line, slacktest.AppToken) {
					t.Errorf("a token was printed: %s", line)
				}
			}
			address := regexp.MustCompile(`http://[0-9.:]+`).FindString(o.printed())
			answer, err := http.Get(address + "/healthz")
			if err != nil {
				t.Fatalf("the console does not answer: %v", err)
			}
			_ = answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				t.Errorf("/healthz answers %s", answer.Status)
			}
			o.interrupt(t)
		})
	}
}
