package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"nudge/agent/model/modeltest"
	"nudge/bot/bottest/slacktest"
)

// crowdOf is as many people, and a config in which they are served, by their ids, and Ann is the owner.
func crowdOf(people int) (users []string, config string) {
	allow := []string{fmt.Sprintf("%q", personID(ann))}
	for i := range people {
		user := fmt.Sprintf("U%03d", i)
		users = append(users, user)
		allow = append(allow, fmt.Sprintf("%q", personID(user)))
	}
	return users, fmt.Sprintf("\n[access]\nallow = [%s]\nowners = [%q]\n", strings.Join(allow, ", "), personID(ann))
}

// crowd lets people work in an office.
func (o *office) crowd(users []string) {
	for i, user := range users {
		o.slack.AddUser(slacktest.User{ID: user, Name: fmt.Sprint("Person ", i), Zone: "UTC"})
	}
}

// TestSlackLoad lets two hundred people write at once, in direct messages and in channels, while Slack refreshes the link
// three times and refuses calls here and there. Everything is acknowledged before the model has answered anything, and
// answered once.
func TestSlackLoad(t *testing.T) {
	t.Parallel()
	const people, channels = 200, 40
	acked := make(chan struct{})
	users, config := crowdOf(people)
	o := newOffice(t, func(n int, req modeltest.ChatRequest) modeltest.Reply {
		select {
		case <-acked:
		case <-t.Context().Done():
		}
		return sayIt(n, req)
	}, config)
	o.crowd(users)
	chance := rand.New(rand.NewPCG(1, 2)) // called under the fake's lock
	o.slack.Disturb(func(method string, _ int) *slacktest.Fault {
		if method == "apps.connections.open" || method == "auth.test" || chance.Float64() > 0.02 {
			return nil
		}
		return &slacktest.Fault{RetryAfter: time.Second}
	})
	o.slack.Scatter(true)
	o.start()
	o.linked()
	want := map[string]string{} // answer → channel
	var mu sync.Mutex
	var talking sync.WaitGroup
	for i, user := range users {
		talking.Go(func() {
			said := slacktest.Said{User: user, Channel: slacktest.DM(user), Text: fmt.Sprint("say direct", i)}
			o.slack.Say(said)
			mu.Lock()
			want[fmt.Sprintf("It is direct%d.", i)] = said.Channel
			mu.Unlock()
			if i >= channels {
				return
			}
			said.Channel, said.Text, said.MentionFirst = fmt.Sprintf("C%03d", i), fmt.Sprint(addBot, "say shared", i), i%2 == 0
			o.slack.AddChannel(said.Channel, user)
			o.slack.Say(said)
			mu.Lock()
			want[fmt.Sprintf("It is shared%d.", i)] = said.Channel
			mu.Unlock()
		})
	}
	for range 3 {
		links := o.slack.Links()
		o.slack.Disconnect("refresh_requested")
		o.until("the link was refreshed", func() bool { return o.slack.Links() > links })
	}
	talking.Wait()
	o.until("all was acknowledged", func() bool { return len(o.slack.Unacknowledged()) == 0 })
	if n := len(o.slack.Calls("chat.postMessage")); n > 0 {
		t.Errorf("%d messages were posted before the model answered", n)
	}
	// On a machine that does nothing else it takes milliseconds.
	if slowest := o.slack.Slowest(); os.Getenv("NUDGE_LOAD") != "" && slowest > time.Second || slowest > patience {
		t.Errorf("an acknowledgement took %s", slowest)
	} else {
		t.Logf("the slowest acknowledgement took %s", slowest)
	}
	close(acked)
	answers := func() map[string]int {
		got := map[string]int{}
		for answer, channel := range want {
			for _, m := range o.slack.ByBot(channel) {
				if strings.Contains(m.Text, answer) {
					got[answer]++
				}
			}
		}
		return got
	}
	o.until("all were answered", func() bool { return len(answers()) == len(want) })
	o.interrupt(t) // what is still being said ends
	for answer, n := range answers() {
		if n != 1 {
			t.Errorf("%q was said %d times", answer, n)
		}
	}
	if n := len(o.model.Requests()); n != len(want) {
		t.Errorf("%d model calls, want %d", n, len(want))
	}
	if n := o.slack.Opens(); n != 4 {
		t.Errorf("three refreshes took %d openings", n)
	}
}

// TestSlackAnswersManyAtOnce lets the program answer in 64 conversations at once, at a Slack with its real limits.
func TestSlackAnswersManyAtOnce(t *testing.T) {
	t.Parallel()
	const conversations = 64
	begin := make(chan struct{})
	users, config := crowdOf(conversations)
	o := newOffice(t, func(n int, req modeltest.ChatRequest) modeltest.Reply {
		select {
		case <-begin:
		case <-t.Context().Done():
		}
		return sayIt(n, req)
	}, config)
	o.slack.Limit(time.Minute)
	o.crowd(users)
	o.start()
	o.linked()
	for _, user := range users {
		o.slack.Say(slacktest.Said{User: user, Channel: slacktest.DM(user), Text: "say hello"})
	}
	o.until("the model was asked by all", func() bool { return len(o.model.Requests()) == conversations })
	began := time.Now()
	close(begin)
	o.until("all were answered", func() bool {
		for _, user := range users {
			if len(o.slack.ByBot(slacktest.DM(user))) == 0 {
				return false
			}
		}
		return true
	})
	limit := 15 * time.Second // a message a second for all together would take a minute
	if os.Getenv("NUDGE_LOAD") != "" {
		limit = 1500 * time.Millisecond
	}
	if took := time.Since(began); took > limit {
		t.Errorf("%d answers took %s", conversations, took)
	} else {
		t.Logf("%d answers took %s", conversations, took)
	}
	if n := o.slack.Refused(); n > 0 {
		t.Errorf("Slack refused %d calls", n)
	}
}

// consoleAddress is where the program's console is.
func (o *office) consoleAddress() string {
	o.Helper()
	o.until("the console was ready", func() bool { return strings.Contains(o.printed(), "Nudge is ready") })
	return regexp.MustCompile(`http://[0-9.:]+`).FindString(o.printed())
}

// ready asks the console whether the program is ready.
func (o *office) ready(console string) int {
	o.Helper()
	answer, err := http.Get(console + "/readyz")
	if err != nil {
		o.Fatalf("the console does not answer: %v", err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// TestSlackSwitchedOff switches Socket Mode off while the program runs. The owner is told over the Web API, which goes on.
func TestSlackSwitchedOff(t *testing.T) {
	t.Parallel()
	_, config := crowdOf(0)
	o := openOffice(t, sayIt, config+"\n[web]\nlisten = \"127.0.0.1:0\"\n")
	console := o.consoleAddress()
	o.until("it was ready", func() bool { return o.ready(console) == http.StatusOK })
	o.slack.Disconnect("link_disabled")
	o.told(slacktest.DM(ann), "Socket Mode")
	if status := o.ready(console); status != http.StatusServiceUnavailable {
		t.Errorf("/readyz answers %d", status)
	}
	out, status := o.place.run("doctor", "--quick")
	if status != exitFailed || !strings.Contains(out, "switched off") || !strings.Contains(out, "api.slack.com/apps") {
		t.Errorf("doctor ends with %d and says:\n%s", status, out)
	}
	if n := len(o.slack.ByBot(slacktest.DM(ann))); n != 1 || o.slack.Opens() != 1 {
		t.Errorf("the owner was told %d times, after %d openings", n, o.slack.Opens())
	}
	o.interrupt(t)
}

// TestSlackTokenDies revokes the app token while the program runs, which shows when the link is next opened.
func TestSlackTokenDies(t *testing.T) {
	t.Parallel()
	_, config := crowdOf(0)
	o := openOffice(t, sayIt, config+"\n[web]\nlisten = \"127.0.0.1:0\"\n")
	console := o.consoleAddress()
	o.slack.Fail("apps.connections.open", slacktest.Fault{Error: "token_revoked"})
	o.slack.Drop()
	m := o.told(slacktest.DM(ann), "token_revoked")
	if !strings.Contains(m.Text, appVariable) || strings.Contains(o.printed(), slacktest.AppToken) {
		t.Errorf("the owner was told %q", m.Text)
	}
	o.until("it was not ready", func() bool { return o.ready(console) == http.StatusServiceUnavailable })
	out, status := o.place.run("doctor", "--quick")
	if status != exitFailed || !strings.Contains(out, "token_revoked") {
		t.Errorf("doctor ends with %d and says:\n%s", status, out)
	}
	if n := len(o.slack.Calls("apps.connections.open")); n != 2 {
		t.Errorf("%d openings were asked for", n)
	}
	o.interrupt(t)
}

// TestOneProcessForASlackApp starts programs with data directories of their own on the same Slack app.
func TestOneProcessForASlackApp(t *testing.T) {
	t.Parallel()
	first := openOffice(t, sayIt, "")
	second := func(config string) *office {
		o := newOffice(t, sayIt, config)
		o.slack = first.slack
		file, err := os.ReadFile(o.place.config)
		if err != nil {
			t.Fatal(err)
		}
		file = regexp.MustCompile(`api_url = .*`).ReplaceAll(file, fmt.Appendf(nil, "api_url = %q", first.slack.APIURL()))
		if err := os.WriteFile(o.place.config, file, 0o600); err != nil {
			t.Fatal(err)
		}
		o.env = append(o.env, "HOME="+first.place.dir, "XDG_CACHE_HOME=")
		return o
	}
	pid := fmt.Sprintf("pid %d", first.cmd.Process.Pid)
	alone := second("")
	alone.start()
	<-alone.exited
	if out := alone.printed(); alone.cmd.ProcessState.ExitCode() != exitWrong || !strings.Contains(out, pid) || !strings.Contains(out, appVariable) || !strings.Contains(out, "a Slack app of its own") {
		t.Errorf("the second ended with %d and printed:\n%s", alone.cmd.ProcessState.ExitCode(), out)
	}
	alone.cmd = nil
	console := second("\n[web]\nlisten = \"127.0.0.1:0\"\n")
	console.start()
	address := console.consoleAddress()
	console.until("it says so", func() bool { return strings.Contains(console.printed(), pid) })
	console.until("it was not ready", func() bool { return console.ready(address) == http.StatusServiceUnavailable })
	console.interrupt(t)
	if n := first.slack.Opens(); n != 1 {
		t.Errorf("%d links were opened", n)
	}
	// What a killed process held is free.
	first.kill()
	alone.start()
	alone.linked()
	alone.interrupt(t)
}

// TestSlackStopTwice presses Stop twice while a tool runs, and delivers each press again.
func TestSlackStopTwice(t *testing.T) {
	t.Parallel()
	o := openOffice(t, runScript("slow"), slowCommands)
	o.say(slacktest.Said{User: ann, Text: "go"})
	o.place.begun(1)
	var shown slacktest.Message
	o.until("there was a Stop button", func() bool {
		for _, m := range o.slack.ByBot(slacktest.DM(ann)) {
			if actionOf(m, "Stop") != "" {
				shown = m
				return true
			}
		}
		return false
	})
	first, _ := o.slack.Click(ann, shown.Channel, shown.TS, actionOf(shown, "Stop"))
	second, _ := o.slack.Click(ann, shown.Channel, shown.TS, actionOf(shown, "Stop"))
	o.acked(first, second, o.slack.Redeliver(first), o.slack.Redeliver(second))
	o.told(slacktest.DM(ann), "Stopped")
	o.say(slacktest.Said{User: ann, Text: "do it instead"})
	o.told(slacktest.DM(ann), "Understood.")
	stopped := 0
	for _, m := range o.slack.ByBot(slacktest.DM(ann)) {
		if strings.Contains(m.Text, "Stopped") {
			stopped++
		}
		if len(m.Buttons()) > 0 {
			t.Errorf("there are still buttons: %+v", m)
		}
	}
	if stopped != 1 {
		t.Errorf("it was said %d times that the turn was stopped: %+v", stopped, o.slack.ByBot(slacktest.DM(ann)))
	}
}

// TestSlackThreads talks in a thread in which the bot is, without a mention, and in one in which it is not.
func TestSlackThreads(t *testing.T) {
	t.Parallel()
	o := openOffice(t, sayIt, "")
	foreign, _ := o.say(slacktest.Said{User: bob, Channel: team, Text: "say nothing to this"})
	o.say(slacktest.Said{User: ann, Channel: team, Thread: foreign, Text: "say plum"})
	own, _ := o.say(slacktest.Said{User: ann, Channel: team, Text: addBot + "say apple"})
	o.told(team, "It is apple.")
	o.say(slacktest.Said{User: ann, Channel: team, Thread: own, Text: "say pear"})
	if m := o.told(team, "It is pear."); m.Thread != own {
		t.Errorf("it is answered in %q", m.Thread)
	}
	if n := len(o.model.Requests()); n != 2 {
		t.Errorf("%d model calls, want 2", n)
	}
	// Asked into the other one, it has a part in it from then on.
	o.say(slacktest.Said{User: ann, Channel: team, Thread: foreign, Text: addBot + "say fig"})
	o.told(team, "It is fig.")
	o.say(slacktest.Said{User: ann, Channel: team, Thread: foreign, Text: "say kiwi"})
	if m := o.told(team, "It is kiwi."); m.Thread != foreign {
		t.Errorf("it is answered in %q", m.Thread)
	}
}
