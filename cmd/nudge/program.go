package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"nudge/agent"
	"nudge/agent/secret"
	"nudge/agent/tool/mcp"
	"nudge/agent/tool/notify"
	"nudge/agent/tool/workspace"
	"nudge/bot"
	"nudge/cmd/nudge/config"
	"nudge/memory"
	"nudge/memory/bolt"
	"nudge/memory/diary"
	"nudge/schedule"
	"nudge/schedule/condition"
)

// program is Nudge wired together and not yet running.
type program struct {
	config  config.Config
	dataDir string
	parts   parts
	store   memory.Store
	voice   notify.Voice
	hub     *bot.Hub
	agent   *agent.Agent
	diary   *diary.Diary
	clock   *schedule.Clock
	gauges  *condition.Gauges
	checks  checks
	gate    *workspace.Gate // of people's folders
	log     *slog.Logger
	release func() error // gives up what only one process may have
	secrets *secret.Redactor
	servers *mcp.Servers

	troubled bool // the processes before this one ended uncleanly too often: nothing is taken up
	everyone bool // this process serves all people; otherwise those who are here, and others' sessions and heartbeats rest

	forgetting sync.Mutex    // held while somebody is forgotten
	forgotten  chan struct{} // there is somebody to forget

	mu     sync.Mutex
	here   map[agent.PersonID]int // who is here, in how many terminals
	guests int                    // chats of other processes that talk through this one
	left   *sync.Cond             // a guest has left; of mu
	fired  []string               // sessions whose timers fell due since the last look
	ready  func() error           // says why not everything works; nil until it serves
}

// heldWait is how long another process's lock is waited for when its socket is there, so that it can be asked instead.
const heldWait = 50 * time.Millisecond

// wakeJitter is the longest that a person is woken after a heartbeat falls due, so that not all ask the model at once.
const wakeJitter = 30 * time.Second

// openStore opens the data file.
func openStore(dataDir string, log *slog.Logger) (memory.Store, error) {
	options := bolt.Options{Log: log}
	if _, err := os.Lstat(filepath.Join(dataDir, socketName)); err == nil {
		options.LockWait = heldWait
	}
	return bolt.Open(filepath.Join(dataDir, "nudge.db"), options)
}

// newProgram wires the rooms in order of dependence. The caller closes it.
func newProgram(c config.Config, dataDir string, everyone bool, log *slog.Logger) (*program, error) {
	made, err := assemble(c, everyone, log)
	if err != nil {
		return nil, err
	}
	store, err := openStore(dataDir, log)
	if err != nil {
		return nil, failed(err)
	}
	closeOff(dataDir, workspaces(c, dataDir), log)
	release, err := made.claimApps(c, dataDir, log)
	if err != nil {
		return nil, errors.Join(err, store.Close(), release())
	}
	troubled, err := noteStart(context.Background(), store, time.Now())
	if err != nil {
		return nil, failed(errors.Join(err, store.Close(), release()))
	}
	p := &program{
		release: release, config: c, dataDir: dataDir, parts: made, store: store, log: log, everyone: everyone, troubled: troubled,
		here: map[agent.PersonID]int{}, forgotten: make(chan struct{}, 1), secrets: secret.New(c.Secrets()...), gate: workspace.NewGate(),
	}
	p.left = sync.NewCond(&p.mu)
	if err := p.wire(); err != nil {
		return nil, errors.Join(err, store.Close(), release())
	}
	made.alarms.through(p.needsMending)
	return p, nil
}

// wire makes the rooms on top of the store. What one of them asks of another that is made after it, it asks through p.
func (p *program) wire() error {
	budget, err := p.config.Attention.Budget()
	if err != nil {
		return inFile(p.config, err)
	}
	p.voice = notify.Voice{Store: p.store, Budget: budget}
	p.diary = diary.New(diary.Config{Store: p.store, Embedder: p.parts.embedder, MinScore: p.config.Diary.MinScore, Log: p.log})
	p.hub = p.newHub()
	if p.gauges, err = condition.NewGauges(p.config.Measured(), p.dataDir); err != nil {
		return err
	}
	if p.checks, err = newChecks(p.config); err != nil {
		return err
	}
	if p.agent, err = p.newAgent(); err != nil {
		return err
	}
	if p.servers, err = p.links(); err != nil {
		return err
	}
	p.clock = p.newClock()
	return nil
}

func (p *program) newHub() *bot.Hub {
	return bot.NewHub(bot.Config{
		Store: p.store, Diary: p.diary, Allow: p.config.Access.Allow, Owners: people(p.config.Access.Owners), Model: modelName(p.config.Model), Log: p.log, Secrets: p.secrets,
		Left: p.unreachable, Rescheduled: p.rescheduled, Ending: func() { p.end(closeGrace) }, Forget: p.toForget,
	})
}

func (p *program) newAgent() (*agent.Agent, error) {
	tools, err := p.tools()
	if err != nil {
		return nil, err
	}
	c := p.config
	return agent.New(agent.Config{
		Store: p.store, Model: p.parts.model, Spec: modelSpec(c.Model), Counter: counter(c.Model), Fallbacks: p.parts.fallbacks, Limits: limits(c.Limits),
		Tools: tools, Only: c.Tools.Only, Deny: c.Tools.Deny, Approve: policies(c.Tools.Approve), Hooks: c.HookCommands(p.dataDir), Owners: people(c.Access.Owners), Serves: p.hub.LetsIn,
		Unasked: p.voice.Late, Outgoing: p.hub.Outgoing, Live: p.hub.Live, Fetch: p.hub.Fetch, Recall: p.notes().Ride, Rescheduled: p.rescheduled, Settled: p.settled,
		Secrets: p.secrets, Log: p.log,
	})
}

func (p *program) newClock() *schedule.Clock {
	return schedule.NewClock(schedule.Config{
		Store: p.store, Wake: p.wake, Conditions: p.condition, Zone: p.zone,
		Only:   func(person string) bool { return p.serves(agent.PersonID(person)) },
		Admits: func(person string) bool { return p.hub.LetsIn(agent.PersonID(person)) },
		Jitter: wakeJitter, Budget: p.voice.Budget, Alarm: p.alarm, Fired: p.lookAtFired, Log: p.log, Troubled: p.troubled,
		Timers: map[string]func(context.Context, memory.Tx, memory.DueRow) error{
			agent.TimerPrefix: p.expired, schedule.DigestPrefix: p.digest,
		},
	})
}

// rescheduled lets the clock look what falls due next.
func (p *program) rescheduled() { p.clock.Look() }

// end lets the agent end what runs, for a while.
func (p *program) end(grace time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	p.agent.Close(ctx)
}

// close ends the agent, waiting a while for what runs, and gives the data file free.
func (p *program) close(grace time.Duration) error {
	p.end(grace)
	ctx, cancel := context.WithTimeout(context.Background(), wipeGrace)
	p.wipeNow(ctx)
	cancel()
	return errors.Join(noteEnd(context.Background(), p.store), p.store.Close(), p.release())
}

func modelName(c config.Model) string {
	if c.Provider == "demo" {
		return "demo (built in, follows simple patterns)"
	}
	return c.Name
}

func modelSpec(c config.Model) agent.ModelSpec {
	return agent.ModelSpec{
		Name: c.Name, Window: c.ContextWindow, MaxOutput: c.MaxOutput,
		PriceIn: agent.PerMillion(c.PriceIn), PriceOut: agent.PerMillion(c.PriceOut),
	}
}

func limits(c config.Limits) agent.Limits {
	return agent.Limits{
		Steps: c.MaxSteps, ToolCalls: c.MaxToolCalls, Tokens: c.MaxTokens, Cost: agent.USD(c.MaxCostUSD), DailyCost: agent.USD(c.UserDailyCostUSD),
		TurnTimeout: time.Duration(c.TurnTimeout), ToolTimeout: time.Duration(c.ToolTimeout), Errors: c.MaxErrors, Repeats: agent.DefaultRepeats,
		Approval: time.Duration(c.ApprovalTimeout), Question: time.Duration(c.AskTimeout),
	}
}

func people(ids []string) []agent.PersonID {
	var people []agent.PersonID
	for _, id := range ids {
		people = append(people, agent.PersonID(id))
	}
	return people
}

func policies(c map[string]string) map[string]agent.Policy {
	set := map[string]agent.Policy{}
	for name, policy := range c {
		set[name] = agent.Policy(policy)
	}
	return set
}
