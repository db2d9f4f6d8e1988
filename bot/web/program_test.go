package web

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"nudge/agent"
	"nudge/agent/model"
	"nudge/agent/model/demo"
	"nudge/agent/tool/command"
	notes "nudge/agent/tool/diary"
	"nudge/agent/tool/heartbeat"
	"nudge/agent/tool/notify"
	"nudge/agent/tool/workspace"
	"nudge/bot"
	"nudge/memory"
	"nudge/memory/bolt"
	"nudge/memory/diary"
	"nudge/schedule"
)

// program is what stands around the adapters in the real one: a hub, an agent with the built-in model and the usual
// tools, and a data file.
type program struct {
	t      *testing.T
	store  memory.Store
	hub    *bot.Hub
	agent  *agent.Agent
	server *Server
	folder string // the workspace
	config Config
	model  model.Model
	policy map[string]agent.Policy
	limits agent.Limits

	stop  context.CancelFunc
	ended []chan error
}

const apiToken = "api-token-of-tests"

// startProgram starts a program on a free port. change may change the server's config.
func startProgram(t *testing.T, change func(*Config)) *program {
	t.Helper()
	folder := t.TempDir()
	store, err := bolt.Open(filepath.Join(t.TempDir(), "nudge.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	p := &program{
		t: t, store: store, folder: folder, model: demo.New(),
		config: Config{Listen: "127.0.0.1:0", Store: store, Diary: diary.New(diary.Config{Store: store}), Person: me, Token: "login-token-of-tests", APIToken: apiToken},
	}
	if change != nil {
		change(&p.config)
	}
	p.start()
	t.Cleanup(p.end)
	return p
}

func (p *program) tools() []agent.Tool {
	dirs := workspace.Dirs{Dir: p.folder, Shared: true}
	// Waiting lasts until a file is there, whatever the machine's speed.
	wait := command.Preset{
		Name: "wait", Run: []string{"sh", "-c", "while [ ! -e go ]; do sleep 0.02; done; echo waited {seconds} seconds"}, Effect: agent.Read, Policy: agent.PolicyNo,
		Parameters: map[string]command.Parameter{"seconds": {Pattern: "[0-9]+"}},
	}
	disk := command.Preset{Name: "disk", Run: []string{"echo", "/dev/sda1  40G  17G  43% /"}, Effect: agent.Read, Policy: agent.PolicyNo}
	deploy := command.Preset{Name: "deploy", Run: []string{"echo", "deployed", "{version}", "to", "{env}"}, Parameters: map[string]command.Parameter{
		"env": {Choices: []string{"staging", "production"}}, "version": {Pattern: "v[0-9.<]+"},
	}}
	run, err := command.New([]command.Preset{wait, disk, deploy}, command.Place{Dir: dirs.Path})
	if err != nil {
		p.t.Fatal(err)
	}
	tools := append(workspace.Tools(workspace.Config{Dirs: dirs}), run, notify.Voice{Store: p.store}.Tool())
	tools = append(tools, notes.Tools(notes.Config{Diary: p.config.Diary})...)
	return append(tools, heartbeat.Tools(heartbeat.Config{Store: p.store, Changed: func() {}})...)
}

func (p *program) start() {
	p.t.Helper()
	p.hub = bot.NewHub(bot.Config{Store: p.store, Diary: p.config.Diary, Model: "demo"})
	ag, err := agent.New(agent.Config{
		Store: p.store, Model: p.model, Spec: agent.ModelSpec{Name: "demo", Window: 32_000, MaxOutput: 1000}, Tools: p.tools(),
		Owners: []agent.PersonID{me.ID}, Approve: p.policy, Limits: p.limits,
		Outgoing: p.hub.Outgoing, Live: p.hub.Live, Recall: notes.Config{Diary: p.config.Diary}.Ride,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.agent = ag
	if p.server, err = New(p.config); err != nil {
		p.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	if err := ag.Resume(ctx, func(string) bool { return true }); err != nil {
		p.t.Fatal(err)
	}
	p.ended = []chan error{make(chan error, 1), make(chan error, 1)}
	go func() { p.ended[0] <- p.server.Serve(ctx) }()
	go func() { p.ended[1] <- p.hub.Serve(ctx, ag, p.server.Adapters()...) }()
	await(p.t, "the adapters listen", func() bool { return p.server.browser.listens() && p.server.programs.listens() })
}

// listens reports whether requests are let through.
func (a *adapter) listens() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.receive != nil
}

// end ends the program, cutting off what runs.
func (p *program) end() {
	if p.stop == nil {
		return
	}
	p.stop()
	p.stop = nil
	for _, ended := range p.ended {
		if err := <-ended; err != nil {
			p.t.Errorf("the program ended with: %v", err)
		}
	}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	p.agent.Close(now)
}

// restart ends the program and starts it on the same port.
func (p *program) restart() {
	p.t.Helper()
	p.config.Listen = p.server.Address()
	p.end()
	p.start()
}

// tell puts a reply into the outbox of a conversation.
func (p *program) tell(r agent.Reply) {
	p.t.Helper()
	if err := p.store.Update(context.Background(), func(tx memory.Tx) error { return agent.Send(tx, r) }); err != nil {
		p.t.Fatal(err)
	}
	p.hub.Outgoing()
}

// ping lets a heartbeat tell the person something.
func (p *program) ping(heartbeat, text string) (card string) {
	p.t.Helper()
	return p.tellCard(schedule.Card{Heartbeat: heartbeat, Text: text})
}

// reminder tells the person something that does not come again.
func (p *program) reminder(text string) {
	p.t.Helper()
	h := schedule.Heartbeat{Name: "call", Cron: "@at 2099-01-01T08:00", For: []string{string(me.ID)}, By: string(me.ID), Text: text, Condition: schedule.Spec{Kind: schedule.KindAlways}}
	if err := p.store.Update(context.Background(), func(tx memory.Tx) error { return schedule.Save(tx, h, time.Now()) }); err != nil {
		p.t.Fatal(err)
	}
	p.ping(h.Name, text)
}

// tellCard says what a card tells.
func (p *program) tellCard(c schedule.Card) (id string) {
	p.t.Helper()
	c.Person, c.Address, c.Session, c.Tick, c.Told = string(me.ID), home, home, time.Now(), time.Now()
	err := p.store.Update(context.Background(), func(tx memory.Tx) error {
		made, err := schedule.AddCard(tx, c)
		if err != nil {
			return err
		}
		id = made.ID
		note := agent.Note{Heartbeat: made.Heartbeat, Digest: made.Heartbeat == "", Text: made.Text, Card: made.ID, Once: made.Once}
		_, err = agent.Tell(tx, home, note, "normal", made.Heartbeat)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.hub.Outgoing()
	return id
}

// write writes a file of the workspace.
func (p *program) write(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.folder, name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// exists reports whether a file of the workspace is there.
func (p *program) exists(name string) bool {
	_, err := os.Stat(filepath.Join(p.folder, name))
	return err == nil
}

const home = "web:local:dm:me"

// emptyStore is an empty data file.
func emptyStore(t *testing.T) memory.Store {
	t.Helper()
	store, err := bolt.Open(filepath.Join(t.TempDir(), "nudge.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}
