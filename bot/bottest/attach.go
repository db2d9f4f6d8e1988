package bottest

import (
	"context"
	"io"
	"regexp"
	"strings"

	"nudge/agent"
	"nudge/agent/agenttest"
)

// Attacher is a Rig whose platform lets people attach files. Its adapter is a [bot.Filer].
type Attacher interface {
	// Attach writes a message as Say does, to which a text file is attached. There may be no words.
	Attach(from agent.Person, at Place, text, name, content string) (message string)
}

// handle is how the model is told of a file that it can read.
var handle = regexp.MustCompile(`file:[A-Za-z0-9_.-]+`)

// readFile is the tool with which the model reads what is attached.
func (w *world) readFile() agent.Tool {
	read := agenttest.Tool("read_file", agent.Read, agent.PolicyNo, func(ctx context.Context, in agent.Invocation) (agent.Result, error) {
		var arguments struct{ Path string }
		if err := in.Decode(&arguments); err != nil {
			return agent.Result{}, err
		}
		content, err := w.agent.OpenFile(ctx, in.Session, strings.TrimPrefix(arguments.Path, agent.FilePrefix))
		if err != nil {
			return agent.Result{}, err
		}
		text, err := io.ReadAll(content.Text)
		return agent.Result{Text: string(text)}, err
	})
	read.Pages = true
	read.Schema = []byte(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}`)
	return read
}

// attachedFile has files read where they were attached, also after a restart, and nowhere else.
func attachedFile(w *world) {
	rig, ok := w.rig.(Attacher)
	if !ok {
		w.Skip("nobody can attach files here")
	}
	rig.Attach(w.who.Ann, Direct, "please read", "notes.txt", "the words <&> of the file\n")
	w.seen("read_file ended: the words <&> of the file")
	said := agenttest.LastUser(w.model.Requests()[0])
	if !strings.Contains(said, "please read\n") || !strings.Contains(said, "notes.txt") {
		w.Errorf("the model is told %q", said)
	}
	file := handle.FindString(said)
	rig.Attach(w.who.Ann, Direct, "", "alone.txt", "x")
	w.seen("alone.txt")
	rig.Attach(w.who.Ann, Direct, "keep this", "later.txt", "the words of the other\n")
	w.seen("later.txt")
	requests := w.model.Requests()
	later := handle.FindString(agenttest.LastUser(requests[len(requests)-1]))
	w.restart()
	for _, c := range []struct {
		path, want string
		times      int
	}{{file, "ended: the words <&> of the file", 2}, {later, "ended: the words of the other", 1}} {
		w.say("please read " + c.path + ", once more")
		w.await("the model has read "+c.path, func() bool { return w.count(w.who.Ann, Direct, c.want) == c.times })
		w.settle()
	}
	if w.who.Bob.ID == "" {
		return
	}
	for _, from := range []agent.Person{w.who.Bob, w.who.Ann} {
		before := len(w.model.Requests())
		w.rig.Say(from, Shared, "please read "+later+" of "+from.Name)
		w.await("somebody is told of another's file", func() bool { return len(w.model.Requests()) >= before+2 })
		w.settle()
		if got := w.result("read_file-1"); !strings.Contains(got, "nobody attached such a file") {
			w.Errorf("in another conversation %s reads %q", from.Name, got)
		}
	}
}
