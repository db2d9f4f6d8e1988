package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"nudge/agent/compact"
	"nudge/agent/model"
	"nudge/agent/secret"
	"nudge/memory"
	"nudge/schedule"
)

// ModelSpec is what is known of a model besides how to ask it.
type ModelSpec struct {
	Name      string
	Window    int   // tokens that a request and its answer may have together
	MaxOutput int   // tokens that an answer may have
	PriceIn   Money // of one token
	PriceOut  Money
}

// Fallback is a model that stands in for others. Its fields are like those of [Config].
type Fallback struct {
	Model   model.Model
	Spec    ModelSpec
	Counter compact.Counter
}

// Config is what an Agent is made of. Store, Model and Spec must be set.
type Config struct {
	Store memory.Store
	Model model.Model
	Spec  ModelSpec
	Tools []Tool // offered in this order
	// Counter counts tokens as the model does; nil means by the number of bytes. What the provider reports corrects it.
	Counter compact.Counter
	// Fallbacks are asked in this order when the models before them do not answer.
	Fallbacks []Fallback
	Limits    Limits
	Hooks     []Hook // those of one point are asked in this order

	Owners []PersonID
	// Serves, if set, reports whether a person is let in, who may not be heard from again. Where it cannot be told, they are not.
	// It is called outside of transactions.
	Serves  func(PersonID) bool
	Only    []string          // if not empty, the tools that are offered
	Deny    []string          // tools that are never offered
	Approve map[string]Policy // policies that replace the tools' own, by tool or by the name that Tool.Judge gives

	// Fetch, if set, gets the bytes of a file that was attached in a conversation; without it none can be read. Not more than
	// limit bytes are read of it. The model reads its error, which is one sentence that says what to do and holds no address
	// and no secret. It must heed ctx, and may be called concurrently.
	Fetch func(ctx context.Context, address string, f File, limit int64) (io.ReadCloser, error)

	// Secrets are kept from the model: what tools give is without them. Nil keeps none.
	Secrets *secret.Redactor

	// Recall, if set, finds what is remembered of a turn's person that fits what began the turn: a line each, in which no
	// square brackets stand. It must heed ctx, and may be called concurrently.
	Recall func(ctx context.Context, r Recalling) []string

	// Unasked, if set, decides in a transaction whether somebody must not be told of something late now. If so, it has seen to
	// it that they are told another time. It may be called more than once for the same.
	Unasked func(tx memory.Tx, l Late) (held bool, err error)

	// Outgoing is called after something was put into the outbox. It must not block.
	Outgoing func()
	// Rescheduled is called after a due row was written: a card's time-out. It must not block.
	Rescheduled func()
	// Settled, if set, is called when a turn was settled. It must not block.
	Settled func(session string, totals Totals)
	// Live gets what is said but not kept: progress. It must not block.
	Live func(Reply)
	Log  *slog.Logger
}

// Agent runs the sessions of one store. Its methods may be called concurrently.
type Agent struct {
	Config
	tools  atomic.Pointer[toolbox]
	models []candidate // in the order in which they are asked

	ctx    context.Context // ends when Close no longer waits
	cancel context.CancelCauseFunc

	mu      sync.Mutex               // guards what follows, up to purse
	idle    *sync.Cond               // of mu: an actor has ended, or a wait for that
	actors  map[string]*actor        // of the sessions that have something to do
	ended   map[string]chan Totals   // of wakes that somebody waits for, by session
	failing map[string]time.Duration // how long each session that failed last time is left alone
	closed  bool
	shelf   shelf
	// fetching are the files that are being got, by the names of their rows; each is closed at the end.
	fetching map[string]chan struct{}

	purse sync.Mutex       // guards held
	held  map[string]Money // of a person's day, for calls whose reserve is not on disk yet
}

// The causes with which a run's context ends: a person's Stop, Close, and the turn's time.
var (
	errStop    = errors.New("the person stopped the turn")
	errClosing = errors.New("the program is closing")
	errTurn    = errors.New("the turn has worked as long as it may")
)

// New checks the tools and returns an agent with nothing running. Call [Agent.Resume] next.
func New(c Config) (*Agent, error) {
	if c.Outgoing == nil {
		c.Outgoing = func() {}
	}
	if c.Settled == nil {
		c.Settled = func(string, Totals) {}
	}
	if c.Rescheduled == nil {
		c.Rescheduled = func() {}
	}
	if c.Live == nil {
		c.Live = func(Reply) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Limits = c.Limits.withDefaults()
	box, err := newToolbox(c)
	if err != nil {
		return nil, err
	}
	ag := &Agent{
		Config: c, models: candidates(c), actors: map[string]*actor{}, ended: map[string]chan Totals{}, held: map[string]Money{},
		failing: map[string]time.Duration{}, fetching: map[string]chan struct{}{},
	}
	ag.tools.Store(box)
	ag.idle = sync.NewCond(&ag.mu)
	ag.ctx, ag.cancel = context.WithCancelCause(context.Background())
	return ag, nil
}

// Offer offers more tools from now on, in place of those that an earlier call gave. A request that is being made may still
// have the others; a call of one that is gone is answered in words. The error is about the first tool that cannot be
// offered, and then nothing changes.
func (ag *Agent) Offer(more []Tool) error {
	c := ag.Config
	c.Tools = slices.Concat(c.Tools, more)
	box, err := newToolbox(c)
	if err != nil {
		return err
	}
	ag.tools.Store(box)
	return nil
}

// box has the tools that are offered now.
func (ag *Agent) box() *toolbox { return ag.tools.Load() }

// Resume starts the sessions that have an unsettled turn or mail and for which want is true.
func (ag *Agent) Resume(ctx context.Context, want func(session string) bool) error {
	sessions := map[string]bool{}
	err := ag.Store.View(ctx, func(tx memory.Tx) error {
		mailed, err := tx.Inbox().Sessions()
		if err != nil {
			return err
		}
		for _, s := range mailed {
			sessions[s] = true
		}
		for _, table := range []string{tableOpen, tableOwed} {
			err := tx.Table(table).Scan("", func(session string, _ []byte) error {
				sessions[session] = true
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for unfinished turns: %w", err)
	}
	for s := range sessions {
		if want(s) {
			ag.look(s)
		}
	}
	return nil
}

// look says to a session: there may be something for you. What it is, the store knows.
func (ag *Agent) look(session string) {
	ag.mu.Lock()
	defer ag.mu.Unlock()
	if ag.closed {
		return
	}
	if a := ag.actors[session]; a != nil {
		a.woken = true
		return
	}
	a := &actor{Agent: ag, session: session}
	ag.actors[session] = a
	go a.live()
}

// Look is for messages put into inboxes by others than [Agent.Receive], in transactions of their own.
func (ag *Agent) Look(sessions ...string) {
	for _, s := range sessions {
		ag.look(s)
	}
}

// The times after which a session that failed is tried again: the disk may have been full, the store busy.
const (
	firstRetry   = 5 * time.Second
	longestRetry = 10 * time.Minute
)

// rest ends an actor unless it was woken since it last looked. One that failed is tried again after a while.
func (ag *Agent) rest(a *actor, failed bool) bool {
	ag.mu.Lock()
	defer ag.mu.Unlock()
	if failed {
		wait := min(max(2*ag.failing[a.session], firstRetry), longestRetry)
		ag.failing[a.session] = wait
		time.AfterFunc(wait, func() { ag.look(a.session) })
	} else {
		delete(ag.failing, a.session)
	}
	if a.woken && !failed && !ag.closed {
		return false
	}
	if !failed && !ag.closed && a.state != nil && a.out.empty() && a.late == nil {
		ag.shelf.put(a.session, a.state)
	}
	delete(ag.actors, a.session)
	ag.idle.Broadcast()
	return true
}

// interrupt cancels what a session does for the given turn. "" is that of a Stop which found no turn on disk: one that
// runs has begun a moment ago. If the Stop was for what went before after all, that turn goes on with another call.
func (ag *Agent) interrupt(session, turn string) {
	ag.mu.Lock()
	defer ag.mu.Unlock()
	if a := ag.actors[session]; a != nil && (a.running == turn || turn == "") && a.stop != nil {
		a.stop(errStop)
	}
}

// WaitIdle returns when no session does anything for which want is true, or when ctx ends. A nil want means all.
func (ag *Agent) WaitIdle(ctx context.Context, want func(session string) bool) error {
	stop := context.AfterFunc(ctx, func() {
		ag.mu.Lock()
		defer ag.mu.Unlock()
		ag.idle.Broadcast()
	})
	defer stop()
	ag.mu.Lock()
	defer ag.mu.Unlock()
	for ctx.Err() == nil && ag.works(want) {
		ag.idle.Wait()
	}
	return ctx.Err()
}

// works reports whether a session that is wanted does something. The caller holds mu.
func (ag *Agent) works(want func(session string) bool) bool {
	for session := range ag.actors {
		if want == nil || want(session) {
			return true
		}
	}
	return false
}

// Close takes no more messages up and waits for the runs that go on, until ctx ends: then it cancels them. What was
// cut off goes on after the next Resume.
func (ag *Agent) Close(ctx context.Context) {
	ag.mu.Lock()
	ag.closed = true
	ag.mu.Unlock()
	if ag.WaitIdle(ctx, nil) != nil {
		ag.cancel(errClosing)
		_ = ag.WaitIdle(context.Background(), nil)
	}
	ag.cancel(errClosing)
}

// The tables that the agent keeps beside the journals: what can be found without reading them.
const (
	tableOpen                           = "open"    // session → id of its unsettled turn
	tableOwed                           = "owed"    // session → nothing; the sessions with a parked call that was approved and has not ended
	tableCards                          = "card"    // card → session
	tableWaiting                        = "waiting" // card → WaitingCard; those that await a decision
	tablePeople  memory.Rows[personRow] = "person"  // by person: what is known of them
	tableSpend                          = "spend"   // person, as schedule.PersonOf has them, and date → [spending]
	tableCurrent                        = "current" // conversation → its present session
	// session → number of the newest checkpoint in its journal
	tableCheckpoints = "checkpoint"
)

// ErrUnknownCard is wrapped by the error for a decision about a card that was never asked.
var ErrUnknownCard = errors.New("there is no such card")

// Receive admits a message: when it returns true the message is on disk and will be answered. It returns false for
// a message that was received before. A decision about a card that is not known gives ErrUnknownCard.
func (ag *Agent) Receive(ctx context.Context, m Message) (fresh bool, err error) {
	var session, during string
	err = ag.Store.Update(ctx, func(tx memory.Tx) error {
		var err error
		fresh, session, during = true, m.Session, ""
		for _, key := range m.Keys {
			isNew, err := tx.Seen().Mark(key, m.At)
			if err != nil {
				return err
			}
			fresh = fresh && isNew
		}
		if !fresh {
			return nil
		}
		if m.Decision != nil {
			if session, err = FindCard(tx, m.Decision.Card); err != nil {
				return err
			}
		}
		during, err = admit(tx, session, m)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("receive a message for %s: %w", m.Session, err)
	}
	if !fresh {
		return false, nil
	}
	ag.look(session)
	if m.Stop {
		ag.interrupt(session, during)
	}
	ag.Outgoing()
	return true, nil
}

// admit puts a message into a session's inbox, with a receipt if a turn is under way. It returns that turn.
func admit(tx memory.Tx, session string, m Message) (during string, err error) {
	open, found, err := tx.Table(tableOpen).Get(session)
	if err != nil {
		return "", err
	}
	during = string(open)
	if m.says() {
		m.Steer, m.During = found, during
		if !found {
			if m.Steer, err = wordsWait(tx, session); err != nil {
				return "", err
			}
		}
		if err := rememberPerson(tx, m); err != nil {
			return "", err
		}
		m.Files = soundFiles(m.Files)
		if err := putFiles(tx, session, m); err != nil {
			return "", err
		}
	}
	data, err := plainJSON(m)
	if err != nil {
		return "", err
	}
	if _, err := tx.Inbox().Put(session, data); err != nil {
		return "", err
	}
	if !m.Steer {
		return during, nil
	}
	return during, Send(tx, Reply{Kind: SteerMark, Session: session, Turn: during, ID: m.ID, Text: m.Text, State: Stored, Address: m.Address})
}

// wordsWait reports whether words that will begin a turn lie in the inbox.
func wordsWait(tx memory.Tx, session string) (bool, error) {
	mail, err := tx.Inbox().List(session)
	if err != nil {
		return false, err
	}
	for _, letter := range mail {
		m, err := openLetter(letter)
		if err != nil {
			return false, err
		}
		if m.says() {
			return true, nil
		}
	}
	return false, nil
}

// personRow is what is kept of a person.
type personRow struct {
	Name string `json:"name,omitempty"`
	Zone string `json:"zone,omitempty"`
	// Locale is the language that the person has set; "" when unknown.
	Locale string `json:"locale,omitempty"`
	// Home is the direct conversation in which the person spoke last: where they are spoken to unasked.
	Home string `json:"home,omitempty"`
	// Spoke is when the person last said something, anywhere; zero for never.
	Spoke time.Time `json:"spoke,omitzero"`
}

func rememberPerson(tx memory.Tx, m Message) error {
	row := personRow{Name: m.From.Name, Zone: m.From.Zone, Locale: m.From.Locale}
	had, err := personOf(tx, m.From.ID)
	if err != nil {
		return err
	}
	row.Home, row.Spoke = had.Home, had.Spoke
	if Direct(m.Address) {
		row.Home = m.Address
	}
	if at := m.At.UTC().Round(0); at.After(row.Spoke) {
		row.Spoke = at
	}
	if _, err := schedule.Found(tx, string(m.From.ID), time.Now()); err != nil {
		return err
	}
	return putPerson(tx, m.From.ID, had, row)
}

func putPerson(tx memory.Tx, id PersonID, had, row personRow) error {
	if row == had {
		return nil
	}
	return tablePeople.Put(tx, string(id), row)
}

func personOf(tx memory.Tx, id PersonID) (personRow, error) {
	row, _, err := tablePeople.Get(tx, string(id))
	return row, err
}

// Home is the conversation in which a person is spoken to unasked, and what is known of them.
func Home(tx memory.Tx, id PersonID) (address string, who Person, err error) {
	row, err := personOf(tx, id)
	if err != nil {
		return "", Person{}, err
	}
	if row.Home == "" {
		row.Home = id.Home()
	}
	return row.Home, Person{ID: id, Name: row.Name, Zone: row.Zone, Locale: row.Locale}, nil
}

// NameOf is what a person goes by, which proves nothing; their id as long as no name is known.
func NameOf(tx memory.Tx, id PersonID) (string, error) {
	row, err := personOf(tx, id)
	if name := strings.Join(strings.Fields(row.Name), " "); name != "" {
		return name, err
	}
	return string(id), err
}

// Spoke is when a person last said something, in any conversation; zero for never.
func Spoke(tx memory.Tx, id PersonID) (time.Time, error) {
	row, err := personOf(tx, id)
	return row.Spoke, err
}

// SessionOf is the present session of a conversation: the conversation's own name until a person asks for a new one.
func SessionOf(tx memory.Tx, conversation string) (string, error) {
	session, found, err := tx.Table(tableCurrent).Get(conversation)
	if err != nil || !found {
		return conversation, err
	}
	return string(session), nil
}

// SetSession makes session the present one of a conversation.
func SetSession(tx memory.Tx, conversation, session string) error {
	return tx.Table(tableCurrent).Put(conversation, []byte(session))
}

// Greet remembers who a person is before they have said anything, so that heartbeats know their zone.
func Greet(tx memory.Tx, p Person) error {
	had, err := personOf(tx, p.ID)
	if err != nil {
		return err
	}
	row := personRow{Name: p.Name, Zone: p.Zone, Locale: p.Locale, Home: had.Home, Spoke: had.Spoke}
	return putPerson(tx, p.ID, had, row)
}

// Renew remembers what has changed of a person, as [Greet] does, if something is remembered of them.
func Renew(tx memory.Tx, p Person) error {
	had, err := personOf(tx, p.ID)
	if err != nil || had == (personRow{}) {
		return err
	}
	return Greet(tx, p)
}

// StopAll sends a Stop of a person's to every session that has a turn under way, within a transaction. It returns
// them with their turns, for [Agent.Interrupt] once that is on disk.
func StopAll(tx memory.Tx, by Person, at time.Time) (turns map[string]string, err error) {
	turns = map[string]string{}
	err = tx.Table(tableOpen).Scan("", func(session string, turn []byte) error {
		turns[session] = string(turn)
		return nil
	})
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(Message{Provenance: Human, From: by, At: at, Stop: true})
	if err != nil {
		return nil, err
	}
	for session := range turns {
		if _, err := tx.Inbox().Put(session, data); err != nil {
			return nil, err
		}
	}
	return turns, nil
}

// Interrupt cuts short what sessions do for the given turns, for which a Stop lies in their inboxes.
func (ag *Agent) Interrupt(turns map[string]string) {
	for session, turn := range turns {
		ag.look(session)
		ag.interrupt(session, turn)
	}
}

// Owns reports whether a person is an owner: named as one by the config, or at this machine.
func (ag *Agent) Owns(id PersonID) bool { return ag.owns(id) }
