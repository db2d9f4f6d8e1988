package main

import (
	"regexp"
	"strings"
	"testing"

	"nudge/agent/model"
	"nudge/agent/model/modeltest"
)

// TestTheDiaryOfOnePerson tells something in one conversation, has it in the next in other words, looks for it as others, and
// deletes it.
func TestTheDiaryOfOnePerson(t *testing.T) {
	const canary = "heliotrope-5521"
	server := modeltest.NewServer(t, func(_ int, req modeltest.ChatRequest) modeltest.Reply {
		last := req.Last()
		switch {
		case last.Role == "tool":
			return modeltest.Reply{Text: "re: " + last.Content}
		case strings.Contains(last.Content, "please note"):
			return modeltest.Reply{Calls: []model.Call{{ID: "c1", Name: "remember", Arguments: `{"text":"The safe word is ` + canary + `","aliases":["password","secret phrase"]}`}}}
		}
		return modeltest.Reply{Text: "heard: " + last.Content}
	})
	p := newPlace(t, server, "")
	ann := p.chat()
	ann.say("please note it")
	if final := ann.until("final"); !strings.Contains(final.Text, "noted as n") {
		t.Fatal(final.raw)
	}
	ann.until("settled")
	ann.say("/new")
	ann.until("notice")
	ann.say("what is my secret phrase, the password?")
	if final := ann.until("final"); !strings.Contains(final.Text, "[from your notes about the person") || !strings.Contains(final.Text, canary) {
		t.Errorf("the model reads %s", final.raw)
	}
	ann.until("settled")

	bob := p.chat("--user", "bob")
	bob.say("what is the secret phrase, the password?")
	if final := bob.until("final"); strings.Contains(final.Text, canary) {
		t.Errorf("Bob's model reads %s", final.raw)
	}
	bob.until("settled")
	bob.say("/diary search safe word")
	if notice := bob.until("notice"); strings.Contains(notice.Text, canary) {
		t.Errorf("Bob finds %s", notice.raw)
	}
	bob.end()
	for _, args := range [][]string{{"diary", "bob"}, {"export", "bob"}, {"export", "bob", "--format", "text"}, {"diary", "an"}} {
		if out, _ := p.run(args...); strings.Contains(out, canary) {
			t.Errorf("nudge %v prints:\n%s", args, out)
		}
	}
	for _, args := range [][]string{{"diary", "ann"}, {"diary", "ann", "--json"}, {"export", "ann"}} {
		if out, status := p.run(args...); status != 0 || !strings.Contains(out, canary) {
			t.Errorf("nudge %v (status %d) prints:\n%s", args, status, out)
		}
	}
	if out, status := p.run("doctor", "--quick"); status != 0 || !strings.Contains(out, "diary   by words") {
		t.Errorf("doctor (status %d):\n%s", status, out)
	}

	ann.say("/diary")
	id := regexp.MustCompile(`\bn[a-z2-9]{7}\b`).FindString(ann.until("notice").Text)
	ann.say("/forget " + id)
	if notice := ann.until("notice"); !strings.Contains(notice.Text, "Forgotten: "+id) {
		t.Error(notice.raw)
	}
	ann.say("/new")
	ann.until("notice")
	ann.say("what is my secret phrase, the password?")
	if final := ann.until("final"); strings.Contains(final.Text, canary) {
		t.Errorf("forgotten, and the model reads %s", final.raw)
	}
	ann.until("settled")
	ann.end()
	for _, session := range []string{"terminal:local:dm:ann", "terminal:local:dm:ann~2", "terminal:local:dm:ann~3"} {
		if out, status := p.run("sessions", "erase", "--yes", session); status != 0 {
			t.Errorf("erase (status %d):\n%s", status, out)
		}
	}
	if out, status := p.run("check"); status != 0 {
		t.Errorf("check (status %d):\n%s", status, out)
	}
	for _, words := range []string{canary, "safe word", id} {
		if p.dataFileHas(words) {
			t.Errorf("%q is in the data file", words)
		}
	}
}

// A note that was deleted leaves the data file as well: when the process ends, or, after a kill, when the next one does.
func TestADeletedNoteLeavesTheFile(t *testing.T) {
	p := newPlace(t, modeltest.NewServer(t, func(int, modeltest.ChatRequest) modeltest.Reply { return modeltest.Reply{Text: "heard"} }), "")
	forgets := func(canary string) *talk {
		k := p.chat()
		k.say("/remember the code is " + strings.Repeat(canary+", ", 400)) // more pages than what follows writes anew
		id := regexp.MustCompile(`\bn[a-z2-9]{7}\b`).FindString(k.until("notice").Text)
		if !p.dataFileHas(canary) {
			t.Fatalf("%s is not in the data file: the test shows nothing", canary)
		}
		k.say("/forget " + id)
		if notice := k.until("notice"); !strings.Contains(notice.Text, "Forgotten: "+id) {
			t.Fatal(notice.raw)
		}
		return k
	}
	forgets("cinnabar-3317").end()
	if p.dataFileHas("cinnabar-3317") {
		t.Error("after the end the note is still in the data file")
	}
	forgets("vermilion-9902").kill()
	p.chat().end()
	if p.dataFileHas("vermilion-9902") {
		t.Error("after a kill and the end of the next process the note is still in the data file")
	}
}
