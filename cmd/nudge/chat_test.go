package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nudge/agent/model"
	"nudge/agent/model/modeltest"
)

// deleteScript asks to delete a.txt, and then tells the result.
func deleteScript(_ int, req modeltest.ChatRequest) modeltest.Reply {
	if result, ok := results(req)["c1"]; ok {
		return modeltest.Reply{Text: "It says: " + result, Usage: usage}
	}
	return modeltest.Reply{Calls: []model.Call{call("c1", "delete_file", `{"path":"a.txt"}`)}, Usage: usage}
}

// clearScript asks for three deletions at once.
func clearScript(_ int, req modeltest.ChatRequest) modeltest.Reply {
	done := results(req)
	if len(done) > 0 {
		return modeltest.Reply{Text: "It says: " + strings.Join([]string{done["c1"], done["c2"], done["c3"]}, " | "), Usage: usage}
	}
	return modeltest.Reply{Calls: []model.Call{
		call("c1", "delete_file", `{"path":"a.txt"}`), call("c2", "delete_file", `{"path":"b.txt"}`), call("c3", "delete_file", `{"path":"c.txt"}`),
	}, Usage: usage}
}

func TestACardOutlivesAKill(t *testing.T) {
	server := modeltest.NewServer(t, deleteScript)
	p := newPlace(t, server, "")
	if err := os.WriteFile(p.workspace("a.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	k := p.chat()
	k.say("hello")
	k.until("approval")
	k.say("/deny")
	if k.until("final"); !strings.Contains(k.seen[len(k.seen)-1].Text, "not run: ann denied this call and gave no reason") {
		t.Errorf("a denial without a reason reached the model otherwise:\n%s", k.so())
	}
	k.until("settled")
	k.say("please delete a.txt")
	card := k.until("approval")
	var arguments map[string]string
	if err := json.Unmarshal(card.Arguments, &arguments); err != nil || arguments["path"] != "a.txt" || card.Tool != "delete_file" {
		t.Errorf("the card is %s", card.raw)
	}
	k.until("waiting")
	k.kill()

	again := p.chat()
	if shown := again.until("approval"); shown.ID != card.ID {
		t.Errorf("after the kill the card %s is shown, want %s", shown.ID, card.ID)
	}
	again.say("/approve " + card.ID)
	if d := again.until("decided"); d.Decision != "approve" || d.By != "terminal:ann" || d.ID != card.ID {
		t.Errorf("decided: %s", d.raw)
	}
	if final := again.until("final"); strings.Contains(final.Text, "not run") {
		t.Errorf("after the approval: %s", final.raw)
	}
	settled := again.until("settled")
	if settled.Reason != "completed" || settled.Steps != 2 || settled.ToolCalls != 1 || settled.TokensIn != 2000 || settled.TokensOut != 200 ||
		settled.CostUSD < 0.00639 || settled.CostUSD > 0.00641 {
		t.Errorf("the totals are %s", settled.raw)
	}
	if _, err := os.Stat(p.workspace("a.txt")); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
	if err := os.WriteFile(p.workspace("a.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	again.say("/approve " + card.ID)
	if n := again.until("notice"); !strings.Contains(n.Text, "already approved by ann") {
		t.Errorf("a second approval: %s", n.raw)
	}
	again.say("/approve nosuchcard")
	again.until("error")
	again.end()
	if _, err := os.Stat(p.workspace("a.txt")); err != nil {
		t.Errorf("a second approval changed something: %v", err)
	}
	if n := len(server.Requests()); n != 4 {
		t.Errorf("%d model calls, want 4", n)
	}
}

const slowCommands = `
[[command]]
name = "slow"
run = ["sh", "-c", "echo begun >> log; sleep 1000"]
effect = "read"
approve = "no"

[[command]]
name = "slow-effect"
run = ["sh", "-c", "echo begun >> log; sleep 1000"]
effect = "effect"
approve = "no"

[[command]]
name = "until-go"
run = ["sh", "-c", "echo begun >> log; while [ ! -e go ]; do sleep 0.05; done; echo went"]
effect = "read"
approve = "no"
`

func runScript(name string) func(int, modeltest.ChatRequest) modeltest.Reply {
	return func(_ int, req modeltest.ChatRequest) modeltest.Reply {
		if result, ok := results(req)["c1"]; ok {
			return modeltest.Reply{Text: "It says: " + result, Usage: usage}
		}
		if len(results(req)) == 0 && strings.Contains(req.Last().Content, "instead") {
			return modeltest.Reply{Text: "Understood.", Usage: usage}
		}
		return modeltest.Reply{Usage: usage, Calls: []model.Call{
			call("c1", "run_command", `{"name":"`+name+`"}`), call("c2", "write_file", `{"path":"b.txt","content":"x"}`),
		}}
	}
}

// eventually looks again and again until something outside the program has happened.
func eventually(t *testing.T, what string, happened func() bool) {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for !happened() {
		select {
		case <-look.C:
		case <-deadline.C:
			t.Fatalf("it did not happen that %s", what)
		}
	}
}

// begun waits until the command has begun n times.
func (p place) begun(n int) {
	p.t.Helper()
	eventually(p.t, "the command began", func() bool {
		data, _ := os.ReadFile(p.workspace("log"))
		return strings.Count(string(data), "begun") >= n
	})
}

func TestAReadThatWasKilledIsRunAgain(t *testing.T) {
	server := modeltest.NewServer(t, runScript("until-go"))
	p := newPlace(t, server, slowCommands)
	k := p.chat()
	k.say("go")
	p.begun(1)
	k.kill()
	if err := os.WriteFile(p.workspace("go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	again := p.chat()
	if final := again.until("final"); !strings.Contains(final.Text, "went") {
		t.Errorf("the answer is %s", final.raw)
	}
	if settled := again.until("settled"); settled.Steps != 2 || settled.ToolCalls != 2 {
		t.Errorf("the totals are %s", settled.raw)
	}
	again.end()
	if n := len(server.Requests()); n != 2 {
		t.Errorf("%d model calls, want 2", n)
	}
	out, status := p.run("trace", again.seen[len(again.seen)-1].Run)
	if status != 0 || !strings.Contains(out, "restart") || !strings.Contains(out, "run_stopped") {
		t.Errorf("the trace of the second run (status %d):\n%s", status, out)
	}
}

func TestAnEffectThatWasKilledIsSaidToBeUnknown(t *testing.T) {
	server := modeltest.NewServer(t, runScript("slow-effect"))
	p := newPlace(t, server, slowCommands)
	k := p.chat()
	k.say("go")
	p.begun(1)
	k.kill()
	again := p.chat()
	n := again.until("notice")
	if !strings.Contains(n.Text, "outcome is unknown") || len(n.Choices) != 2 {
		t.Errorf("the person is told %s", n.raw)
	}
	again.until("waiting") // the model is asked when the person has chosen
	if asked := len(server.Requests()); asked != 1 {
		t.Errorf("the model was asked %d times", asked)
	}
	again.say("/answer " + n.ID + " Leave it")
	if final := again.until("final"); !strings.Contains(final.Text, "interrupted, outcome unknown") {
		t.Errorf("the answer is %s", final.raw)
	}
	again.end()
	log, err := os.ReadFile(p.workspace("log"))
	if err != nil || strings.Count(string(log), "begun") != 1 {
		t.Errorf("the log is %q, %v", log, err)
	}
	if _, err := os.Stat(p.workspace("b.txt")); !os.IsNotExist(err) {
		t.Errorf("a call after the unknown one was run: %v", err)
	}
}

func TestALineDuringAToolSteers(t *testing.T) {
	server := modeltest.NewServer(t, runScript("until-go"))
	p := newPlace(t, server, slowCommands)
	k := p.chat()
	k.say("go")
	p.begun(1)
	k.say("do it differently instead")
	if stored := k.until("steer"); stored.State != "stored" {
		t.Errorf("the receipt is %s", stored.raw)
	}
	if err := os.WriteFile(p.workspace("go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k.until("settled")
	k.end()
	if got := k.kinds("steer"); got != "steer stored, steer seen" {
		t.Errorf("the receipts are %s", got)
	}
	last := server.Requests()[1]
	if got := results(modeltest.ChatRequest{Messages: last.Messages[:len(last.Messages)-1]})["c2"]; got != "not run: the person said: do it differently instead" {
		t.Errorf("the call not begun is answered %q", got)
	}
	if last.Last().Content != "do it differently instead" || last.Last().Role != "user" {
		t.Errorf("the words came as %+v", last.Last())
	}
	if _, err := os.Stat(p.workspace("b.txt")); !os.IsNotExist(err) {
		t.Errorf("the call was run: %v", err)
	}
}

func TestStopLeavesNoProcess(t *testing.T) {
	server := modeltest.NewServer(t, runScript("slow"))
	p := newPlace(t, server, slowCommands)
	k := p.chat()
	k.say("go")
	p.begun(1)
	k.say("/stop")
	k.until("notice")
	if settled := k.until("settled"); settled.Reason != "cancelled" {
		t.Errorf("settled: %s", settled.raw)
	}
	k.end()
	if left := processesIn(t, filepath.Dir(p.workspace("log"))); left != nil {
		t.Errorf("processes left: %v", left)
	}
}

// processesIn are the commands of the processes that have a folder as their own.
func processesIn(t *testing.T, folder string) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	if links == nil {
		t.Skip("this system has no /proc")
	}
	var left []string
	for _, link := range links {
		if at, err := os.Readlink(link); err == nil && at == folder {
			command, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
			left = append(left, strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return left
}

func TestPipedLinesAreTakenOneAtATime(t *testing.T) {
	server := modeltest.NewServer(t, func(_ int, req modeltest.ChatRequest) modeltest.Reply {
		return modeltest.Reply{Text: "re: " + req.Last().Content}
	})
	p := newPlace(t, server, "")
	cmd := p.command("chat", "--user", "ann")
	cmd.Stdin = strings.NewReader("one\ntwo\n/model\nthree")
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "re: one\n\nre: two\n\nThe model is scripted.\n\nre: three\n\n" {
		t.Errorf("printed %q, error %v", out, err)
	}
}

func TestAHeartbeatPingsOnceAndCanBeAnswered(t *testing.T) {
	server := modeltest.NewServer(t, func(_ int, req modeltest.ChatRequest) modeltest.Reply {
		switch {
		case req.Offers("notify") && len(results(req)) == 0:
			return modeltest.Reply{Text: "secret prose", Calls: []model.Call{call("n1", "notify", `{"text":"disk /srv is full"}`)}}
		case req.Offers("notify"):
			return modeltest.Reply{Text: "more prose"}
		}
		return modeltest.Reply{Text: "You mean /srv, which is full."}
	})
	p := newPlace(t, server, `
[[heartbeat]]
name = "disk"
cron = "@every 1s"
for = ["terminal:ann"]
prompt = "Tell them which disk is full."
[heartbeat.condition]
kind = "command"
run = ["sh", "-c", "echo x >> checks; test -e full"]
`)
	k := p.chat()
	k.say("hello")
	k.until("settled")
	quiet := len(server.Requests())
	eventually(t, "the condition was checked three times", func() bool {
		checks, _ := os.ReadFile(filepath.Join(p.dir, "data", "checks"))
		return strings.Count(string(checks), "x") >= 3
	})
	if n := len(server.Requests()); n != quiet {
		t.Errorf("a false condition made %d model calls", n-quiet)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "data", "full"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if ping := k.until("notify"); ping.Heartbeat != "disk" || ping.Text != "disk /srv is full" {
		t.Errorf("the ping is %s", ping.raw)
	}
	k.say("which disk?")
	k.until("settled")
	last := server.Requests()[len(server.Requests())-1]
	var view strings.Builder
	for _, m := range last.Messages {
		view.WriteString(m.Role + ": " + m.Content + "\n")
	}
	if !strings.Contains(view.String(), "disk /srv is full") || strings.Contains(view.String(), "prose") || !strings.Contains(view.String(), "hello") {
		t.Errorf("the reply was answered from:\n%s", view.String())
	}
	k.end()
	if got := k.kinds("notify"); got != "notify" {
		t.Errorf("pings: %s", got)
	}
	if strings.Contains(k.so(), "prose") {
		t.Errorf("the run's prose was shown:\n%s", k.so())
	}
	out, status := p.run("why", "disk")
	if status != 0 || !strings.Contains(out, "woke") || !strings.Contains(out, "slept") {
		t.Errorf("why (status %d):\n%s", status, out)
	}
}
