package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"nudge/agent/model"
	"nudge/agent/model/modeltest"
	"nudge/bot/bottest/slacktest"
)

// TestARefusedKeyStopsAllHeartbeats: after one request that the provider refuses, heartbeats ask the model nothing more until
// somebody gets an answer in a conversation. Conditions are checked all the same.
func TestARefusedKeyStopsAllHeartbeats(t *testing.T) {
	var refuses atomic.Bool
	refuses.Store(true)
	server := modeltest.NewServer(t, func(_ int, req modeltest.ChatRequest) modeltest.Reply {
		if refuses.Load() {
			return modeltest.Reply{Status: http.StatusUnauthorized, Body: `{"error":{"message":"Incorrect API key"}}`}
		}
		return modeltest.Reply{Text: "fine"}
	})
	beat := func(name string) string {
		return "[[heartbeat]]\nname = \"" + name + "\"\ncron = \"@every 1s\"\nfor = [\"terminal:ann\"]\nprompt = \"Look.\"\n" +
			"[heartbeat.condition]\nkind = \"command\"\non = \"true\"\nrun = [\"sh\", \"-c\", \"echo x >> " + name + "\"]\n"
	}
	p := newPlace(t, server, beat("one")+beat("two"))
	k := p.chat()
	told := k.until("notice")
	if !strings.Contains(told.Text, "no heartbeat wakes anybody until") {
		t.Errorf("they were told %s", told.raw)
	}
	checks := func() int {
		one, _ := os.ReadFile(filepath.Join(p.dir, "data", "one"))
		two, _ := os.ReadFile(filepath.Join(p.dir, "data", "two"))
		return min(strings.Count(string(one), "x"), strings.Count(string(two), "x"))
	}
	// The other heartbeat may have asked at the same moment, and wait for its refusal.
	already := checks()
	eventually(t, "the conditions were checked once more", func() bool { return checks() > already })
	asked := len(server.Requests())
	eventually(t, "the conditions were checked three times more", func() bool { return checks() >= already+4 })
	if n := len(server.Requests()); n != asked || asked > 2 {
		t.Errorf("the model was asked %d times, of them %d after it had refused", n, n-asked)
	}
	if out, _ := p.run("why", "two"); !strings.Contains(out, "the model refuses to answer") {
		t.Errorf("why printed:\n%s", out)
	}
	refuses.Store(false)
	k.say("hello")
	k.until("settled")
	answered := len(server.Requests())
	eventually(t, "the heartbeats wake again", func() bool { return len(server.Requests()) > answered })
	k.end()
}

// TestAWakeDoesNotWakeItself: a heartbeat that watches a file and may write it wakes once for a change of somebody else's, not
// for its own.
func TestAWakeDoesNotWakeItself(t *testing.T) {
	server := modeltest.NewServer(t, func(n int, req modeltest.ChatRequest) modeltest.Reply {
		if len(results(req)) > 0 {
			return modeltest.Reply{Text: "done"}
		}
		return modeltest.Reply{Calls: []model.Call{call("w1", "write_file", `{"path":"notes.md","content":"seen"}`)}}
	})
	p := newPlace(t, server, `
[tools]
approve = { overwrite_file = "no", write_file = "no" }
[[heartbeat]]
name = "notes"
cron = "@every 1s"
for = ["terminal:ann"]
prompt = "Sum it up in the same file."
tools = ["write_file"]
[heartbeat.condition]
kind = "file"
path = "workspace/notes.md"
test = "changed"
`)
	notes := filepath.Join(p.workspace(""), "notes.md")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(notes, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	k := p.chat()
	slept := func(times int) {
		t.Helper()
		eventually(t, "it slept", func() bool {
			out, _ := p.run("why", "notes")
			return strings.Count(out, "nothing had changed") >= times
		})
	}
	slept(1)
	write("two")
	eventually(t, "it woke", func() bool { return len(server.Requests()) == 2 })
	slept(3)
	if n := len(server.Requests()); n != 2 {
		t.Errorf("the model was asked %d times for one change:\n%s", n, server.Requests()[n-1].Last().Content)
	}
	out, _ := p.run("why", "notes")
	if !strings.Contains(out, "what was changed meanwhile counts as seen") {
		t.Errorf("why printed:\n%s", out)
	}
	k.end()
}

// TestAGoneTargetPausesItsHeartbeat: the first message that Slack will never take pauses the heartbeat, asks the model nothing
// more, and is told to the owner once; when the person writes it goes on.
func TestAGoneTargetPausesItsHeartbeat(t *testing.T) {
	t.Parallel()
	o := openOffice(t, func(_ int, req modeltest.ChatRequest) modeltest.Reply {
		if !req.Offers("notify") || len(results(req)) > 0 {
			return modeltest.Reply{Text: "fine", Usage: usage}
		}
		return modeltest.Reply{Calls: []model.Call{call("n1", "notify", `{"text":"ping"}`)}, Usage: usage}
	}, fmt.Sprintf(`
[[heartbeat]]
name = "disk"
cron = "@every 1s"
for = [%q]
prompt = "Tell them that the disk is full."
[heartbeat.condition]
kind = "command"
run = ["sh", "-c", "echo x >> checks; test -e full"]
`, personID(ann)))
	o.slack.Fail("chat.postMessage", slacktest.Fault{Error: "is_archived"})
	if err := os.WriteFile(filepath.Join(o.place.dir, "data", "full"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o.until("the heartbeat is paused", func() bool {
		out, _ := o.place.run("why", "disk")
		return strings.Contains(out, "paused: nobody can be reached: "+personID(ann)) && strings.Contains(out, "failed ")
	})
	asked := len(o.model.Requests())
	o.slack.Say(slacktest.Said{User: ann, Channel: slacktest.DM(ann), Text: "hello"})
	o.until("the heartbeat goes on", func() bool {
		out, _ := o.place.run("why", "disk")
		return !strings.Contains(out, "paused:")
	})
	if asked > 3 {
		t.Errorf("the model was asked %d times", asked)
	}
}
