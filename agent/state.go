package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"nudge/agent/compact"
	"nudge/agent/model"
)

// state is a session's journal folded. apply is the only function that changes what it says, so what a restart reads
// back is what the actor had; a call's tool and checked arguments are worked out anew when they are needed.
type state struct {
	session    string
	last       uint64          // number of the newest entry on disk
	began      time.Time       // of the first entry
	view       []model.Message // the conversation as a model reads it
	marks      []compact.Mark  // one for each message of the view
	bytes      int             // of the view's texts
	journal    int             // bytes of the journal since the newest checkpoint
	marked     time.Time       // the last time that the view tells
	plan       string          // the latest checklist, in words
	planned    bool            // the view's end tells it
	origin     compact.Origin  // of all messages of the view together
	planOrigin compact.Origin  // of the plan
	told       string          // what this session's heartbeat said last
	toldOrigin compact.Origin  // of that
	given      []given         // addresses that people wrote
	turn       *turn           // the one under way
	halted     *turn           // the last one, if it was ended and may be granted more
	turns      int
	cards      map[string]*card // of this session; those decided before the newest checkpoint are not here
	ratio      float64          // of tokens as the first model counts them to those counted here; 0 when unknown
	memo       model.Memo       // what the model's client has made of the view
	dull       int              // summaries in a row that were no good; not journaled, a restart may try again
}

// turn is what is known of a turn that is not settled.
type turn struct {
	id, run    string
	runs       int
	provenance Provenance
	person     Person
	address    string
	wake       *Wake
	waiting    bool
	said       *string // the last answer, which asked for no tools and is not settled yet
	ended      *answer // what a tool that ends turns gave
	offer      string  // the card that offers to go on, once it was ended

	model               int // that is asked, of the agent's candidates
	steps, toolCalls    int
	tokensIn, tokensOut int
	unknown             bool // some call's tokens are not known
	uncounted           int  // the most that those can be
	before              use  // what was used before the present allowance was granted
	empties             int  // answers in a row that said nothing
	restarts            int  // runs after the program ended in the middle, since a person last said or decided something
	spent               Money
	failures            int      // steps in a row in which every call failed
	acted               []string // the tools of calls that did more than read
	repeats             repeats
	broken              string // that a tool cannot work, in words

	ran      time.Duration // by runs that ended
	runBegan time.Time
	altered  bool             // a hook has changed the last request, which then tells nothing of the next one's length
	recalled bool             // the model has read what is remembered for this turn
	useless  map[string]bool  // tools that are not offered in it; not journaled, a restart asks again
	hidden   []string         // tools that the last request did not offer, by a hook's ruling
	foreign  []string         // in words, what strangers wrote of the tools that the last request did offer
	asked    *modelAskedEntry // the model call that has no answer
	batch    []*call          // the calls of the last answer, until each has its result
	owed     []receipt        // for words that no request carries yet

	sentBytes, sentTokens int // of the last request whose tokens the provider counted
}

// card is a question to a person and what became of it.
type card struct {
	cardEntry
	verdict Verdict // "" while undecided
	by      Person
	at      time.Time
	text    string
	left    []Opening // by the rule that was saved
	// Of a parked call, which runs after a decision and apart from its turn:
	begun, done bool
	effect      Effect
}

// call is one tool call of a batch.
type call struct {
	model.Call
	card      *card // what a person is asked about it
	begun     bool
	ran       bool   // it has returned, and the hooks are asked about its result
	effect    Effect // as it was when it began
	key       string
	result    string
	done      bool
	failed    bool
	origin    compact.Origin  // of what the result has in it
	arguments json.RawMessage // checked; not journaled but for those on cards
	rule      *Rule           // by which nobody is asked about it; not journaled before it begins
	tool      *Tool
}

// bare stands in for a call's result when the journal has none: only a journal from a damaged file gets there.
const bare = "interrupted, outcome unknown: the record of this call is missing"

func newState(session string) *state {
	return &state{session: session, cards: map[string]*card{}}
}

// apply takes one entry into the state.
func (s *state) apply(e entry, at time.Time) {
	if s.began.IsZero() {
		s.began, s.marked = at, at
	}
	t := s.turn
	if t == nil {
		t = &turn{} // what only says something of a turn that is not there changes nothing
	}
	switch e := e.(type) {
	case *messageEntry:
		s.message(e)
	case *notedEntry:
		s.cutOff()
		s.sayMarked(model.Message{Role: model.User, Text: e.words()}, compact.Mark{Origin: e.originOf()})
	case *turnEntry:
		s.beginTurn(e)
	case *runEntry:
		t.beginRun(e, at)
	case *modelAskedEntry:
		s.asked(e)
	case *modelRetryEntry:
		t.retried(e)
	case *modelFallbackEntry:
		t.fellBack(e)
	case *modelLostEntry:
		t.lost(e)
	case *modelCallEntry:
		s.answered(e)
	case *steerEntry:
		t.owed = nil
	case *hookEntry:
		t.hidden = append(t.hidden, e.Ruling.Hide...)
		t.altered = t.altered || e.At == BeforeModel
	case *toolCallEntry:
		s.calling(e)
	case *toolRanEntry:
		if c := s.open(e.Call); c != nil {
			c.ran = true
		}
	case *toolResultEntry:
		s.result(e)
	case *cardEntry:
		s.cardAsked(e)
	case *decidedEntry:
		s.decided(e, at)
	case *compactedEntry:
		s.cutOff()
		s.compacted(e)
	case *stoppedEntry:
		s.stopped(e, at)
	case *checkpointEntry:
		s.restore(e)
	}
}

// message takes words into the view.
func (s *state) message(e *messageEntry) {
	s.cutOff()
	t := s.turn
	// The first request stays in view whatever is left out.
	mark := compact.Mark{Pinned: len(s.view) == 0, Begins: t == nil || t.steps == 0}
	mark.Origin = e.Origin
	s.sayMarked(model.Message{Role: model.User, Text: e.Text}, mark)
	s.planned = false
	// Otherwise the words are not all the person's: what several say in one step is one message.
	if e.Provenance == Human && e.Origin.Outside == "" && len(e.Origin.Speakers) < 2 {
		s.hears(e.From, e.Text)
	}
	if t != nil {
		t.owed = append(t.owed, e.Owed...)
		t.repeats, t.said, t.restarts = repeats{}, nil, 0
	}
	if !e.Mark.IsZero() {
		s.marked = e.Mark
	}
}

func (s *state) beginTurn(e *turnEntry) {
	s.cutOff()
	if e.Provenance == Heartbeat {
		// A wake knows nothing of the wakes before it but what the last one said.
		s.view, s.marks, s.bytes, s.plan = nil, nil, 0, ""
		s.origin, s.planOrigin = compact.Origin{}, compact.Origin{}
	}
	s.turns++
	s.halted = nil
	s.turn = &turn{id: e.Turn, provenance: e.Provenance, person: e.Person, address: e.Address, wake: e.Wake}
}

func (t *turn) beginRun(e *runEntry, at time.Time) {
	t.run, t.runBegan, t.waiting = e.Run, at, false
	t.runs++
	if e.Why == whyRestart {
		t.restarts++
	}
}

// asked takes that the model is asked, and what its request has at the view's end.
func (s *state) asked(e *modelAskedEntry) {
	t := s.turn
	if t == nil {
		return
	}
	t.asked = e
	if e.Summary {
		return
	}
	t.hidden, t.altered, t.said = nil, false, nil
	s.append(e.Tail, e.Plan)
	if e.Notes {
		t.recalled = true
		s.marksLast(compact.Origin{Private: true}) // notes of strangers' text are not among those that ride
	}
}

func (t *turn) retried(e *modelRetryEntry) {
	if e.Unknown {
		t.uncount()
		t.spent += e.Charge
	}
}

// lost takes that a model call has no answer.
func (t *turn) lost(e *modelLostEntry) {
	if e.Unknown {
		t.uncount()
	}
	if !e.Unsent && (t.asked == nil || !t.asked.Summary) {
		t.steps++
	}
	t.asked = nil
	t.spent += e.Charge
}

// answered takes a model's answer: its words into the view, its calls into the batch.
func (s *state) answered(e *modelCallEntry) {
	s.cutOff()
	t, sent := s.turn, s.bytes
	if t == nil {
		return // without a turn its calls would never have results
	}
	if e.Summary {
		s.paid(e)
		return
	}
	t.foreign = e.Foreign
	if len(e.Calls) > 0 || strings.TrimSpace(e.Text) != "" {
		t.empties = 0
		// Whatever the model had before it may be in what it says.
		s.sayMarked(model.Message{Role: model.Assistant, Text: e.Text, Calls: e.Calls, Reasoning: e.Reasoning}, compact.Mark{Origin: s.sent()})
	} else {
		t.empties++ // not sent again: some providers refuse a message that says nothing
	}
	if e.Usage.Known && !t.altered {
		t.sentTokens, t.sentBytes = e.Usage.In, sent
	} else {
		t.sentTokens, t.sentBytes = 0, 0
	}
	if len(e.Calls) == 0 {
		t.said = &e.Text
	}
	s.paid(e)
	t.steps++
	for _, c := range e.Calls {
		t.batch = append(t.batch, &call{Call: c})
	}
}

// sent is the origin of what the model was sent last, the descriptions of tools among it.
func (s *state) sent() compact.Origin {
	if s.turn == nil || len(s.turn.foreign) == 0 {
		return s.origin
	}
	return s.origin.With(compact.Origin{Outside: s.turn.foreign[0]})
}

// paid takes what a model call came to.
func (s *state) paid(e *modelCallEntry) {
	if e.Ratio > 0 {
		s.ratio = e.Ratio
	}
	t := s.turn
	if !e.Usage.Known {
		t.uncount()
	}
	t.asked = nil
	t.spent += e.Cost
	t.tokensIn += e.Usage.In
	t.tokensOut += e.Usage.Out
}

// uncount notes that the tokens of the model call under way are not known: unknown is not none.
func (t *turn) uncount() {
	t.unknown = true
	if t.asked != nil {
		t.uncounted += t.asked.Input + t.asked.Output
	}
}

// calling takes that a call begins.
func (s *state) calling(e *toolCallEntry) {
	if t := s.turn; t != nil && e.Effect != Read && !slices.Contains(t.acted, e.Tool) {
		t.acted = append(t.acted, e.Tool)
	}
	if k := s.cards[e.Card]; k != nil {
		k.begun, k.effect = true, e.Effect
		return
	}
	c := s.open(e.Call)
	if c == nil {
		return
	}
	if !c.begun {
		s.turn.toolCalls++
	}
	c.begun, c.effect, c.key = true, e.Effect, e.Key
	if e.Arguments != "" {
		s.rewrite(c, e.Arguments)
	}
}

// result takes a call's result. When the batch has all of them they go into the view.
func (s *state) result(e *toolResultEntry) {
	if k := s.cards[e.Card]; k != nil {
		k.done = true
		return
	}
	c := s.open(e.Call)
	if c == nil {
		return
	}
	t := s.turn
	if !c.begun {
		t.toolCalls++ // answered in words instead of being run
	}
	c.done, c.result, c.failed, c.origin = true, e.Text, e.Failed, e.Origin
	if e.Ends {
		t.ended = &answer{text: e.Text, data: c.shown()}
	}
	if e.Broken {
		t.broken = fmt.Sprintf("%s failed for good: %s", e.Tool, oneLine(e.Text))
	}
	if e.Tool == planTool && !e.Failed {
		s.plan, s.planOrigin = e.Text, s.origin
	}
	if e.Tool == notifyTool && !e.Failed {
		s.told, s.toldOrigin = noticeOf(c.Arguments), s.origin
	}
	if t.next() == nil {
		s.endBatch()
	}
}

// shown is the arguments as the model wrote them or, on a card, as a person may have edited them.
func (c *call) shown() json.RawMessage {
	if c.card != nil {
		return c.card.Arguments
	}
	return json.RawMessage(c.Arguments)
}

// endBatch puts the results of the batch into the view, in the order of the calls.
func (s *state) endBatch() {
	t, failures := s.turn, 0
	s.planned = false
	for _, c := range t.batch {
		s.sayMarked(model.Message{Role: model.ToolRole, CallID: c.ID, Text: c.result}, compact.Mark{
			Repeatable: c.begun && !c.failed && c.effect == Read, Origin: c.origin,
		})
		s.planned = s.planned || c.Name == planTool
		if c.failed {
			failures++
		}
	}
	t.repeats.see(t.batch)
	if failures == len(t.batch) {
		t.failures++
	} else {
		t.failures = 0
	}
	t.batch = nil
}

// cardAsked takes a question to a person.
func (s *state) cardAsked(e *cardEntry) {
	if e.Card == "" {
		return // results without a card would be taken for its
	}
	k := &card{cardEntry: *e}
	s.cards[e.Card] = k
	if c := s.open(e.Call); c != nil {
		c.card = k
	}
}

func (s *state) decided(e *decidedEntry, at time.Time) {
	k := s.cards[e.Card]
	if k == nil {
		return
	}
	if s.turn != nil {
		s.turn.restarts = 0
	}
	k.verdict, k.by, k.at, k.text, k.left = e.Verdict, Person{ID: e.By, Name: e.Name}, at, e.Text, e.Open
	if s.turn != nil {
		s.turn.owed = append(s.turn.owed, e.Owed...)
	}
	if e.Arguments != nil {
		k.Arguments, k.Digest = e.Arguments, e.Digest
	}
	if k.Resumes && e.Verdict == Approve && s.turn == nil && s.halted != nil && s.halted.offer == e.Card {
		s.reopen(k.by)
	}
}

func (s *state) stopped(e *stoppedEntry, at time.Time) {
	t := s.turn
	if t == nil {
		return
	}
	if !t.runBegan.IsZero() {
		t.ran += max(at.Sub(t.runBegan), 0)
	}
	if e.Reason == Waiting {
		t.waiting = true
		return
	}
	s.cutOff()
	if !strings.Contains(s.plan, undone) {
		s.plan = "" // a plan that is done is of no more use
	}
	if e.Say != "" && t.provenance != Heartbeat {
		s.say(model.Message{Role: model.Assistant, Text: e.Say})
	}
	s.turn, t.owed = nil, nil // their receipts say that they are for the next turn
	if e.Offer != "" {
		s.halted, t.offer, t.asked = t, e.Offer, nil
	}
}

// cutOff gives the calls of a batch that has not all of its results what there is of them, where the journal goes on
// with something else: only a damaged one does.
func (s *state) cutOff() {
	if s.turn == nil {
		return
	}
	for _, c := range s.turn.batch {
		text := c.result
		if !c.done {
			text = bare
		}
		s.sayMarked(model.Message{Role: model.ToolRole, CallID: c.ID, Text: text}, compact.Mark{Origin: c.origin})
	}
	s.turn.batch = nil
}

// open finds a call of the batch that has no result.
func (s *state) open(id string) *call {
	if s.turn == nil {
		return nil
	}
	for _, c := range s.turn.batch {
		if c.ID == id && !c.done {
			return c
		}
	}
	return nil
}

// undecided are the turn's own cards that await a person, in the order of the calls.
func (t *turn) undecided() []*card {
	var cards []*card
	for _, c := range t.batch {
		if c.card != nil && c.card.verdict == "" && !c.card.Parked && !c.done {
			cards = append(cards, c.card)
		}
	}
	return cards
}

// totals is what the turn came to so far.
func (t *turn) totals(reason StopReason) *Totals {
	return &Totals{
		Reason: reason, Steps: t.steps, ToolCalls: t.toolCalls,
		TokensIn: t.tokensIn, TokensOut: t.tokensOut, CostUSD: t.spent.USD(), Unknown: t.unknown,
	}
}

// Direct reports whether only one person speaks in a conversation: platform:team:dm:person, or a thread in there.
func Direct(address string) bool {
	parts := strings.SplitN(address, ":", 4)
	return len(parts) == 4 && parts[2] == "dm"
}
