package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nudge/agent/model/modeltest"
)

func TestOtherCommandsReachTheProcessThatHoldsTheDataFile(t *testing.T) {
	server := modeltest.NewServer(t, func(_ int, req modeltest.ChatRequest) modeltest.Reply {
		return modeltest.Reply{Text: "re: " + req.Last().Content}
	})
	p := newPlace(t, server, "")
	holder := p.chat()
	holder.say("one")
	settled := holder.until("settled")
	info, err := os.Stat(filepath.Join(p.dir, "data", "nudge.sock"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the socket is %v, error %v", info, err)
	}
	for _, command := range [][]string{{"sessions"}, {"trace", settled.Run}, {"trace", "--json", settled.Run}} {
		out, status := p.run(command...)
		if status != 0 || !strings.Contains(out, settled.Turn) {
			t.Errorf("%v (status %d) printed:\n%s", command, status, out)
		}
	}
	if out, status := p.run("why", "nosuch"); status != 1 || !strings.Contains(out, "nosuch") {
		t.Errorf("why nosuch (status %d) printed:\n%s", status, out)
	}
	// A config can be tried before the process that runs is given it.
	tried := filepath.Join(p.dir, "tried.toml")
	if err := os.WriteFile(tried, []byte(tick), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, status := p.run("simulate", "--config", tried, "--to", "1m"); status != 0 || !strings.Contains(out, "a  woke ") {
		t.Errorf("simulate (status %d) printed:\n%s", status, out)
	}

	bob := p.command("chat", "--user", "bob")
	bob.Stdin = strings.NewReader("two\nthree\n")
	if out, err := bob.CombinedOutput(); err != nil || string(out) != "re: two\n\nre: three\n\n" {
		t.Errorf("a second chat printed %q, error %v", out, err)
	}
	work := p.chat("--session", "work")
	work.say("four")
	if final := work.until("final"); final.Session != "terminal:local:dm:ann:work" || final.Text != "re: four" {
		t.Errorf("another conversation of the same person's answered %s", final.raw)
	}
	holder.say("five")
	if final := holder.until("final"); final.Text != "re: five" {
		t.Errorf("the first conversation answered %s", final.raw)
	}
	work.end()
	holder.end()
}

func TestASocketLeftBehindRefusesNothing(t *testing.T) {
	server := modeltest.NewServer(t, func(int, modeltest.ChatRequest) modeltest.Reply { return modeltest.Reply{Text: "yes"} })
	p := newPlace(t, server, "")
	for range 2 {
		k := p.chat()
		k.say("hello")
		k.until("settled")
		k.kill()
	}
	if out, status := p.run("sessions"); status != 0 || !strings.Contains(out, "terminal:local:dm:ann") {
		t.Errorf("sessions (status %d) printed:\n%s", status, out)
	}
}

func TestAHolderStaysForThoseWhoTalkThroughIt(t *testing.T) {
	server := modeltest.NewServer(t, func(_ int, req modeltest.ChatRequest) modeltest.Reply {
		return modeltest.Reply{Text: "re: " + req.Last().Content}
	})
	p := newPlace(t, server, "")
	holder := p.chat()
	holder.say("one")
	holder.until("settled")
	guest := p.chat("--session", "work")
	guest.say("two")
	guest.until("settled")
	holder.in.Close()
	guest.say("three")
	if final := guest.until("final"); final.Text != "re: three" {
		t.Errorf("after the holder's input has ended the guest is answered %s", final.raw)
	}
	guest.end()
	holder.end()
}

func TestTwoTerminalsOfOneConversationBothHear(t *testing.T) {
	server := modeltest.NewServer(t, func(_ int, req modeltest.ChatRequest) modeltest.Reply {
		return modeltest.Reply{Text: "re: " + req.Last().Content}
	})
	p := newPlace(t, server, "")
	first := p.chat()
	first.say("one")
	first.until("settled")
	second := p.chat()
	second.say("two")
	for _, k := range []*talk{first, second} {
		if final := k.until("final", func(l line) bool { return l.Text == "re: two" }); final.Turn == "" {
			t.Errorf("the answer is %s", final.raw)
		}
		k.until("settled")
	}
	second.end()
	first.end()
}
