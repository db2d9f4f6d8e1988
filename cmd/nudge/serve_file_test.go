package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"nudge/agent/model"
	"nudge/agent/model/modeltest"
	"nudge/bot/bottest/slacktest"
)

var handles = regexp.MustCompile(`file:[A-Za-z0-9]+`)

// readIt reads the files of which it was told last, and says what it has read.
func readIt(_ int, req modeltest.ChatRequest) modeltest.Reply {
	said, got := "", results(req)
	for _, m := range req.Messages {
		if m.Role == "user" {
			said = m.Content
		}
	}
	var calls []model.Call
	var answer []string
	for i, handle := range handles.FindAllString(said, -1) {
		id := fmt.Sprint("r", i)
		if text, done := got[id]; done {
			answer = append(answer, "It says: "+text)
			continue
		}
		calls = append(calls, call(id, "read_file", fmt.Sprintf(`{"path":%q}`, handle)))
	}
	if len(calls) > 0 {
		return modeltest.Reply{Calls: calls, Usage: usage}
	}
	return modeltest.Reply{Text: strings.Join(append(answer, "That is all."), "\n"), Usage: usage}
}

// TestSlackReadsWhatWasAttached kills the program between a message and the reading of its file, and again after it.
func TestSlackReadsWhatWasAttached(t *testing.T) {
	t.Parallel()
	o := newOffice(t, readIt, "")
	const words = "the numbers of Ann"
	var asked atomic.Int32
	file := o.slack.AddFile(slacktest.Attachment{Name: "report.csv", Type: "text/csv", Size: len(words), Serve: func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			<-r.Context().Done() // the program is killed meanwhile
			return
		}
		_, _ = io.WriteString(w, words)
	}})
	o.start()
	o.linked()
	o.say(slacktest.Said{User: ann, Text: "what does it say?", Files: []string{file}})
	o.until("the file is asked for", func() bool { return asked.Load() == 1 })
	o.restart()
	o.told(slacktest.DM(ann), "It says: "+words)
	said := o.model.Requests()[0].Last().Content
	if want := fmt.Sprintf("what does it say?\n[attached: file:%s \"report.csv\", text/csv, %d bytes]", file, len(words)); !strings.HasSuffix(said, want) {
		t.Errorf("the model was told %q", said)
	}
	o.restart()
	o.say(slacktest.Said{User: ann, Text: "once more, file:" + file + " please."})
	o.until("it was read again", func() bool {
		return len(o.slack.ByBot(slacktest.DM(ann))) > 1 && strings.Count(view(o.last()), words) >= 2
	})
	if n := asked.Load(); n != 2 {
		t.Errorf("the file was got %d times", n)
	}
	// Neither Bob nor Ann herself has it elsewhere.
	o.say(slacktest.Said{User: bob, Text: "what is in file:" + file + " then?"})
	o.told(slacktest.DM(bob), "nobody attached such a file")
	o.say(slacktest.Said{User: ann, Channel: team, Text: addBot + "what is in file:" + file + " here?"})
	o.told(team, "nobody attached such a file")
	for _, m := range append(o.slack.ByBot(slacktest.DM(bob)), o.slack.ByBot(team)...) {
		if strings.Contains(m.Text, words) {
			t.Errorf("Ann's file was told elsewhere: %q", m.Text)
		}
	}
	exported, status := o.place.run("export", personID(ann), "--format", "json")
	if status != 0 || !strings.Contains(exported, `"id": "file:`+file+`"`) || !strings.Contains(exported, words) {
		t.Errorf("the export has no file: %s", exported)
	}
}

// last is the newest request to the model.
func (o *office) last() modeltest.ChatRequest {
	requests := o.model.Requests()
	return requests[len(requests)-1]
}

// TestSlackSaysWhyAFileCannotBeRead has a file without words, of an app that may not read files.
func TestSlackSaysWhyAFileCannotBeRead(t *testing.T) {
	t.Parallel()
	o := openOffice(t, readIt, "")
	page := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!DOCTYPE html><html><title>Sign in</title>")
	}
	shot := o.slack.AddFile(slacktest.Attachment{Name: "shot.png", Type: "image/png", Size: 70, Serve: page})
	image := o.slack.AddFile(slacktest.Attachment{Name: "real.png", Type: "image/png", Content: "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00\x01\xff", 20)})
	thread, _ := o.say(slacktest.Said{User: ann, Channel: team, Text: addBot, Files: []string{shot}})
	if m := o.told(team, "It says:"); m.Thread != thread || !strings.Contains(m.Text, "sign-in page") || !strings.Contains(m.Text, "files:read") {
		t.Errorf("of a sign-in page is told %q in the thread %q", m.Text, m.Thread)
	}
	o.say(slacktest.Said{User: bob, Channel: team, Thread: thread, Files: []string{image}})
	o.told(team, "binary, image/png, 68 bytes")
	if data, err := os.ReadFile(o.place.dataFile()); err != nil || strings.Contains(string(data), "Sign in") {
		t.Errorf("the sign-in page is kept, or %v", err)
	}
	if strings.Contains(o.printed(), slacktest.BotToken) || !strings.Contains(o.printed(), "files:read") {
		t.Error("the log has the token, or says nothing of the scope")
	}
}
