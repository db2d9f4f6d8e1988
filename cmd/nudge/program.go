package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"nudge/agent"
	"nudge/agent/secret"
	"nudge/agent/tool/command"
	notes "nudge/agent/tool/diary"
	"nudge/agent/tool/fetch"
	"nudge/agent/tool/heartbeat"
	"nudge/agent/tool/mcp"
	"nudge/agent/tool/notify"
	"nudge/agent/tool/script"
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
	p := &program{release: release, config: c, dataDir: dataDir, parts: made, store: store, log: log, everyone: everyone, troubled: troubled, here: map[agent.PersonID]int{}, forgotten: make(chan struct{}, 1), secrets: secret.New(c.Secrets()...)}
	p.left = sync.NewCond(&p.mu)
	budget, err := c.Attention.Budget()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", c.File, err), store.Close(), release())
	}
	p.voice = notify.Voice{Store: store, Budget: budget}
	owners := people(c.Access.Owners)
	p.diary = diary.New(diary.Config{Store: store, Embedder: made.embedder, MinScore: c.Diary.MinScore, Log: log})
	p.hub = bot.NewHub(bot.Config{Store: store, Diary: p.diary, Allow: c.Access.Allow, Owners: owners, Model: modelName(c.Model), Log: log, Secrets: p.secrets,
		Left: p.unreachable, Rescheduled: func() { p.clock.Look() }, Ending: func() { p.end(closeGrace) }, Forget: p.toForget,
	})
	tools, err := p.tools()
	if err == nil {
		p.gauges, err = condition.NewGauges(c.Measured(), dataDir)
	}
	if err == nil {
		p.agent, err = agent.New(agent.Config{
			Store: store, Model: made.model, Spec: modelSpec(c.Model), Tools: tools, Limits: limits(c.Limits), Owners: owners,
			Only: c.Tools.Only, Deny: c.Tools.Deny, Approve: policies(c.Tools.Approve),
			Unasked: p.voice.Late, Outgoing: p.hub.Outgoing, Live: p.hub.Live, Fetch: p.hub.Fetch, Recall: p.notes().Ride, Rescheduled: func() { p.clock.Look() }, Settled: p.settled, Counter: counter(c.Model), Log: log,
			Fallbacks: made.fallbacks, Hooks: c.HookCommands(dataDir), Secrets: p.secrets,
		})
	}
	if err == nil {
		p.servers, err = p.links()
	}
	if err == nil {
		p.clock = schedule.NewClock(schedule.Config{
			Store: store, Wake: p.wake, Conditions: p.condition, Zone: p.zone,
			Only:   func(person string) bool { return p.serves(agent.PersonID(person)) },
			Jitter: wakeJitter, Budget: budget, Alarm: p.alarm, Fired: p.lookAtFired, Log: log,
			Timers: map[string]func(context.Context, memory.Tx, memory.DueRow) error{
				agent.TimerPrefix: p.expired, schedule.DigestPrefix: p.digest,
			},
		})
	}
	if err != nil {
		return nil, errors.Join(err, store.Close(), release())
	}
	made.alarms.through(p.needsMending)
	return p, nil
}

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

// tools are those that the model may be offered.
func (p *program) tools() ([]agent.Tool, error) {
	dirs := p.dirs()
	files := workspace.Config{Dirs: dirs, Saved: p.saved, Attached: p.attached, Store: p.store}
	tools := workspace.Tools(files)
	if len(p.config.Commands) > 0 {
		run, err := command.New(p.config.Presets(), dirs.Path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.config.File, err)
		}
		// A program may show what is in any file.
		labels := run.LabelsOf
		run.LabelsOf = func(in agent.Invocation) agent.Labels {
			of := labels(in)
			of.Outside = files.Outside(in.Person.ID, "")
			return of
		}
		tools = append(tools, run)
	}
	page, err := fetch.New(fetch.Config{Hosts: p.config.Fetch.Hosts})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.config.File, err)
	}
	tools = append(tools, page, p.voice.Tool())
	tools = append(tools, notes.Tools(p.notes())...)
	if self, ok := scriptProcess(); ok {
		tools = append(tools, script.New(self))
	}
	return append(tools, heartbeat.Tools(heartbeat.Config{
		Store: p.store, Budget: p.voice.Budget, Changed: func() { p.clock.Look() },
	})...), nil
}

// notes is what the tools of the diary need.
func (p *program) notes() notes.Config { return notes.Config{Diary: p.diary} }

// links are the connections to the MCP servers, which are not there yet.
func (p *program) links() (*mcp.Servers, error) {
	servers, err := p.config.Servers(p.dataDir)
	if err != nil {
		return nil, inFile(p.config, err)
	}
	return mcp.New(mcp.Config{
		Servers: servers, Store: p.store, Log: p.log,
		Tell: func(text string) { p.tellOwners(context.Background(), "", text) },
		Offer: func(tools []agent.Tool) {
			if err := p.agent.Offer(tools); err != nil {
				p.log.Error("the tools of MCP servers cannot be offered", "error", err)
			}
		},
	}), nil
}

// saved finds the whole of a long result.
func (p *program) saved(ctx context.Context, session, id string) (text string, found bool, err error) {
	err = p.store.View(ctx, func(tx memory.Tx) (err error) {
		text, found, err = agent.Saved(tx, session, id)
		return err
	})
	return text, found, err
}

// attached opens a file that somebody attached.
func (p *program) attached(ctx context.Context, session, id string) (*agent.Content, error) {
	return p.agent.OpenFile(ctx, session, id)
}

func (p *program) dirs() workspace.Dirs { return workspaces(p.config, p.dataDir) }

func workspaces(c config.Config, dataDir string) workspace.Dirs {
	return workspace.Dirs{Dir: c.WorkspaceDir(dataDir), Shared: c.Workspace.Scope == "shared"}
}

// heartbeats are those of the config. One that names nobody is for the given person.
func (p *program) heartbeats(person agent.PersonID) ([]schedule.Heartbeat, error) {
	var beats []schedule.Heartbeat
	for _, c := range p.config.Heartbeats {
		beat, err := c.Scheduled(string(person))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.config.File, err)
		}
		beats = append(beats, beat)
	}
	return beats, nil
}

// condition builds the check of a heartbeat.
func (p *program) condition(h schedule.Heartbeat) (schedule.Condition, error) {
	return conditionOf(h, condition.Env{Dir: p.dataDir, Gauges: p.gauges, Silent: p.silent(h)}, p.dirs())
}

// conditionOf builds the check of a heartbeat in an environment of the operator's. One that was made in a conversation sees
// only its person's workspace.
func conditionOf(h schedule.Heartbeat, env condition.Env, dirs workspace.Dirs) (schedule.Condition, error) {
	env.Zone = h.Zone
	if h.By != "" {
		folder, err := dirs.Path(agent.PersonID(h.By))
		if err != nil {
			return nil, err
		}
		env.Dir, env.Confined = folder, true
	}
	return condition.New(h.Condition, env)
}

// unreachable notes that a heartbeat's words found nobody, and gives what follows from that.
func (p *program) unreachable(tx memory.Tx, r agent.Reply, reason string) (follows string, err error) {
	if r.Kind != agent.Notify || r.Heartbeat == "" {
		return "", nil
	}
	h, err := schedule.Load(tx, r.Heartbeat)
	if errors.Is(err, schedule.ErrNoHeartbeat) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, person := range h.For {
		home, _, err := agent.Home(tx, agent.PersonID(person))
		if err != nil {
			return "", err
		}
		if home != r.Address {
			continue
		}
		paused, err := schedule.Lose(tx, person, h.Name, reason, time.Now())
		if err != nil {
			return "", err
		}
		follows = fmt.Sprintf("Heartbeats do not wake for %s until they write to me.", person)
		if len(paused) > 0 {
			follows += " Paused: " + strings.Join(paused, ", ") + "."
		}
	}
	return follows, nil
}

// settled lets heartbeats wake people again whose runs the model refused, once somebody has got an answer.
func (p *program) settled(session string, totals agent.Totals) {
	if totals.Reason == agent.Completed && totals.Steps > 0 && agent.WakeOwner(session) == "" {
		p.clock.Mended()
	}
}

// silent tells since when none of a heartbeat's people has said anything: since the heartbeat was made, at the longest.
func (p *program) silent(h schedule.Heartbeat) func(context.Context) (time.Time, error) {
	return func(ctx context.Context) (last time.Time, err error) {
		err = p.store.View(ctx, func(tx memory.Tx) error {
			last = h.Since
			for _, person := range h.For {
				at, err := lastWord(tx, person)
				if err != nil {
					return err
				}
				if at.After(last) {
					last = at
				}
			}
			return nil
		})
		return last, err
	}
}

// lastWord is when somebody last said something, with whichever of their accounts; zero for never.
func lastWord(tx memory.Tx, account string) (last time.Time, err error) {
	accounts := []schedule.Account{{ID: account}}
	if person, err := schedule.PersonOf(tx, account); err != nil {
		return last, err
	} else if person != account {
		if accounts, err = schedule.Accounts(tx, account); err != nil {
			return last, err
		}
	}
	for _, of := range accounts {
		at, err := agent.Spoke(tx, agent.PersonID(of.ID))
		if err != nil {
			return last, err
		}
		if at.After(last) {
			last = at
		}
	}
	return last, nil
}

// wake runs a small turn of its own for one person of a heartbeat.
func (p *program) wake(ctx context.Context, w schedule.Waking) (schedule.Ended, error) {
	if w.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.Timeout)
		defer cancel()
	}
	wake := agent.Wake{
		Heartbeat: w.Heartbeat, Episode: w.Episode, Evidence: w.Evidence, Prompt: w.Prompt, Text: w.Text, Tools: w.Tools, Tick: w.Tick, BreakQuiet: w.BreakQuiet, Asked: w.Asked,
	}
	if w.Text != "" {
		err := p.sayFixed(ctx, agent.PersonID(w.Person), wake)
		return schedule.Ended{OK: err == nil}, err
	}
	totals, err := p.agent.Wake(ctx, agent.PersonID(w.Person), wake)
	if err != nil {
		return schedule.Ended{}, err
	}
	reason := string(totals.Reason)
	if totals.Say != "" {
		reason += ": " + totals.Say
	}
	return schedule.Ended{
		OK: totals.Reason == agent.Completed || totals.Reason == "", Reason: reason, Refused: totals.Refused, Changed: totals.Changed,
		ModelCalls: totals.Steps, TokensIn: totals.TokensIn, TokensOut: totals.TokensOut, CostUSD: totals.CostUSD,
	}, nil
}

// sayFixed says a heartbeat's fixed words to a person.
func (p *program) sayFixed(ctx context.Context, person agent.PersonID, wake agent.Wake) error {
	session, err := p.voice.Say(ctx, person, wake)
	if err == nil && session != "" {
		p.hub.Outgoing()
		if p.wants(session) {
			p.agent.Look(session)
		}
	}
	return err
}

// zone is a person's time zone.
func (p *program) zone(person string) string {
	var zone string
	err := p.store.View(context.Background(), func(tx memory.Tx) error {
		_, known, err := agent.Home(tx, agent.PersonID(person))
		zone = known.Zone
		return err
	})
	if err != nil {
		p.log.Error("cannot look up a person's zone", "person", person, "error", err)
	}
	return zone
}

// alarm tells the owners of a heartbeat in trouble.
func (p *program) alarm(ctx context.Context, heartbeat, text string) {
	p.log.Warn("heartbeat in trouble", "heartbeat", heartbeat, "text", text)
	p.tellOwners(ctx, heartbeat, text)
}

// needsMending tells that a platform is out of order until somebody mends it, also where that platform is not needed to
// hear of it.
func (p *program) needsMending(text string) {
	p.log.Error("somebody has to mend this", "text", text)
	p.tellOwners(context.Background(), "", text, "web:me")
}

// tellOwners says something to the owners unasked, of a heartbeat or of none, and to others.
func (p *program) tellOwners(ctx context.Context, heartbeat, text string, others ...agent.PersonID) {
	err := p.store.Update(ctx, func(tx memory.Tx) error {
		told := p.alarmed()
		for _, other := range others {
			if !slices.Contains(told, other) {
				told = append(told, other)
			}
		}
		for _, owner := range told {
			address, _, err := agent.Home(tx, owner)
			if err != nil {
				return err
			}
			if err := agent.Send(tx, agent.Reply{Kind: agent.Notice, Text: text, Heartbeat: heartbeat, Address: address}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		p.log.Error("cannot tell the owners", "error", err)
	}
	p.hub.Outgoing()
}

// alarmed are those who hear of trouble: the owners of the config, or web:me where there are none, and who is at a
// terminal of this machine now.
func (p *program) alarmed() []agent.PersonID {
	alarmed := people(p.config.Access.Owners)
	if len(alarmed) == 0 {
		alarmed = []agent.PersonID{"web:me"}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for person, terminals := range p.here {
		if terminals > 0 && !slices.Contains(alarmed, person) {
			alarmed = append(alarmed, person)
		}
	}
	return alarmed
}

// expired hands a timer that fell due to its session.
func (p *program) expired(_ context.Context, tx memory.Tx, row memory.DueRow) error {
	session, err := agent.Expired(tx, row)
	if err == nil {
		p.hasMail(session)
	}
	return err
}

// digest tells a person what was held back from them.
func (p *program) digest(_ context.Context, tx memory.Tx, row memory.DueRow) error {
	session, err := p.voice.Digest(tx, row)
	if err == nil && session != "" {
		p.hasMail(session)
	}
	return err
}

// hasMail notes a session to be looked at once what fell due is on disk.
func (p *program) hasMail(session string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.fired, session) {
		p.fired = append(p.fired, session)
	}
}

func (p *program) lookAtFired() {
	p.mu.Lock()
	fired := p.fired
	p.fired = nil
	p.mu.Unlock()
	for _, session := range fired {
		if p.wants(session) {
			p.agent.Look(session)
		}
	}
	p.hub.Outgoing()
}

// serves reports whether this process serves a person.
func (p *program) serves(person agent.PersonID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.everyone || p.here[person] > 0
}

// host counts a chat of another process in until leave is called.
func (p *program) host() (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.guests++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.guests--
		p.left.Broadcast()
	}
}

// waitForGuests returns when no other process talks through this one, or when ctx ends.
func (p *program) waitForGuests(ctx context.Context) {
	defer context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.left.Broadcast()
	})()
	p.mu.Lock()
	defer p.mu.Unlock()
	for ctx.Err() == nil && p.guests > 0 {
		p.left.Wait()
	}
}

// arrive lets this process serve a person, whose unfinished turns go on, until leave is called.
func (p *program) arrive(ctx context.Context, person agent.Person) (leave func(), err error) {
	p.mu.Lock()
	p.here[person.ID]++
	p.mu.Unlock()
	leave = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.here[person.ID]--
	}
	if err := p.store.Update(ctx, func(tx memory.Tx) error { return agent.Greet(tx, person) }); err != nil {
		leave()
		return nil, fmt.Errorf("remember who is talking: %w", err)
	}
	if err := p.resume(ctx, of(person.ID)); err != nil {
		leave()
		return nil, err
	}
	p.clock.Look()
	return leave, nil
}

// resume takes up what is unfinished in the sessions that are wanted, unless that may be what ends the program.
func (p *program) resume(ctx context.Context, want func(session string) bool) error {
	if !p.troubled {
		return p.agent.Resume(ctx, want)
	}
	p.log.Error("nothing that was unfinished is taken up", "why", "the program ended uncleanly too often")
	p.tellOwners(ctx, "", troubledLine)
	return nil
}

// wants reports whether a session is of the people that this process serves.
func (p *program) wants(session string) bool {
	return p.everyone || p.serves(personOf(session))
}

// of is true for the sessions of a person: their direct conversations, and the wakes for them.
func of(person agent.PersonID) func(session string) bool {
	return func(session string) bool { return personOf(session) == person }
}

// personOf is the person whose session it is; "" when it is shared.
func personOf(session string) agent.PersonID {
	if owner := agent.WakeOwner(session); owner != "" {
		return owner
	}
	session, _, _ = strings.Cut(session, "~")
	parts := strings.Split(session, ":")
	if len(parts) < 4 || parts[2] != "dm" {
		return ""
	}
	if parts[1] == "local" {
		return agent.PersonID(parts[0] + ":" + parts[3])
	}
	return agent.PersonID(parts[0] + ":" + parts[1] + ":" + parts[3])
}
