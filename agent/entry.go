package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"nudge/agent/compact"
	"nudge/agent/model"
	"nudge/memory"
)

// The kinds of journal entries. Those that the trace knows have its words.
const (
	kindMessage    = "message"
	kindNoted      = "noted"
	kindTurn       = "turn_started"
	kindRun        = "run_started"
	kindModelAsked = "model_asked"
	kindModelRetry = "model_retry"
	kindModelCall  = "model_call"
	kindModelLost  = "model_lost"
	kindFallback   = "model_fallback"
	kindToolCall   = "tool_call"
	kindProgress   = "tool_progress"
	kindToolResult = "tool_result"
	kindToolRan    = "tool_ran"
	kindApproval   = "approval_asked"
	kindDecided    = "approval_decided"
	kindQuestion   = "question_asked"
	kindAnswered   = "question_answered"
	kindOffer      = "continue_offered"
	kindOffered    = "continue_decided"
	kindSteer      = "steer_taken"
	kindWoke       = "woke"
	kindCompacted  = "compacted"
	kindHook       = "hook_ruled"
	kindCheckpoint = "checkpoint"
	kindStopped    = "run_stopped"
	kindRemoved    = "removed" // stood for a checkpoint that had somebody's words in it; passed over like a kind of a newer version
)

// entry is what one line of the journal says. Each kind has its struct, which is the line's JSON.
type entry interface{ kind() string }

// messageEntry is what a model reads as said by the person: one message, or a flood of them joined.
type messageEntry struct {
	Turn       string         `json:"turn"`
	Provenance Provenance     `json:"provenance"`
	From       PersonID       `json:"from,omitempty"`
	IDs        []string       `json:"ids,omitempty"`
	Text       string         `json:"text"`
	Files      []File         `json:"files,omitempty"` // of which the text tells
	Mark       time.Time      `json:"mark,omitzero"`   // when it was said, if the text tells the model so
	Owed       []receipt      `json:"owed,omitempty"`
	Origin     compact.Origin `json:"origin,omitzero"` // of what it has in it besides words of its person
}

// receipt is owed for words said during a turn: which request carries them is known only when there is one.
type receipt struct {
	ID      string `json:"id"`
	Text    string `json:"text"`
	Address string `json:"address"`
	// Journaled is how the words stand in the journal's message, where that is not Text alone: files came with them.
	Journaled string `json:"journaled,omitempty"`
}

// journaled is how the words stand in the journal's message.
func (r receipt) journaled() string { return cmp.Or(r.Journaled, r.Text) }

// notedEntry is what a heartbeat told the session's person.
type notedEntry struct {
	Note
}

type turnEntry struct {
	Turn       string     `json:"turn"`
	Provenance Provenance `json:"provenance"`
	Person     Person     `json:"person"`
	Address    string     `json:"address"`
	Wake       *Wake      `json:"wake,omitempty"`
}

type runEntry struct {
	Turn string `json:"turn"`
	Run  string `json:"run"`
	Why  string `json:"why"` // message, decision, restart
}

// modelAskedEntry stands before a model call, so that a call lost in a crash is known and paid for.
type modelAskedEntry struct {
	Turn    string `json:"turn"`
	Run     string `json:"run"`
	Step    int    `json:"step"`
	Input   int    `json:"input"`  // estimated tokens
	Output  int    `json:"output"` // the limit that is sent
	Reserve Money  `json:"reserve,omitempty"`
	Day     string `json:"day,omitempty"`     // the key of [today] under which the reserve was spent
	Tail    string `json:"tail,omitempty"`    // what was put at the end of the last message
	Plan    bool   `json:"plan,omitempty"`    // the state of the plan is in the tail
	Notes   bool   `json:"notes,omitempty"`   // what is remembered of the person is in the tail
	Summary bool   `json:"summary,omitempty"` // of what a compaction leaves out: no step
}

type modelRetryEntry struct {
	Turn   string        `json:"turn"`
	Run    string        `json:"run"`
	Step   int           `json:"step"`
	Wait   time.Duration `json:"wait"`
	Charge Money         `json:"charge,omitempty"` // for the try that failed, if its answer had begun
	// Unknown says that the provider may have counted tokens that nobody knows of.
	Unknown bool   `json:"unknown,omitempty"`
	Reason  string `json:"reason"`
}

type modelCallEntry struct {
	Turn      string        `json:"turn"`
	Run       string        `json:"run"`
	Step      int           `json:"step"`
	Model     string        `json:"model,omitempty"`
	Text      string        `json:"text,omitempty"`
	Reasoning string        `json:"reasoning,omitempty"`
	Calls     []model.Call  `json:"calls,omitempty"`
	Finish    model.Finish  `json:"finish,omitempty"`
	Usage     model.Usage   `json:"usage"`
	Cost      Money         `json:"cost,omitempty"`
	Ratio     float64       `json:"ratio,omitempty"`   // of the first model's tokens to those counted here
	Summary   bool          `json:"summary,omitempty"` // the text stands in the compaction that follows
	Took      time.Duration `json:"took"`
	Tainted   bool          `json:"tainted,omitempty"` // text of strangers was in what the model was sent
	Foreign   []string      `json:"foreign,omitempty"` // in words, the descriptions of tools among it that nobody has agreed to
}

// modelLostEntry closes a model call that has no answer: cut off by a crash, a Stop or an error.
type modelLostEntry struct {
	Turn   string `json:"turn"`
	Run    string `json:"run"`
	Step   int    `json:"step"`
	Charge Money  `json:"charge,omitempty"`
	// Unknown says that the provider may have counted tokens that nobody knows of.
	Unknown bool   `json:"unknown,omitempty"`
	Unsent  bool   `json:"unsent,omitempty"` // nothing was asked after all: no step
	Reason  string `json:"reason"`
}

// toolCallEntry stands before a call begins. After it and without a result, the call's fate is unknown.
type toolCallEntry struct {
	Turn   string `json:"turn"`
	Run    string `json:"run"`
	Call   string `json:"call"`
	Tool   string `json:"tool"`
	Effect Effect `json:"effect"`
	Key    string `json:"key"`
	Card   string `json:"card,omitempty"` // of a parked call, which runs after its turn
	// Arguments is what was made of arguments that were not written as one JSON object, so that the model reads back what ran.
	Arguments string   `json:"arguments,omitempty"`
	Rule      string   `json:"rule,omitempty"` // the rule by which nobody was asked
	RuleOf    PersonID `json:"rule_of,omitempty"`
	Left      string   `json:"left,omitempty"` // the arguments that the rule leaves open, as they ran; an object
}

type progressEntry struct {
	Turn string `json:"turn"`
	Run  string `json:"run"`
	Call string `json:"call"`
	Tool string `json:"tool"`
	Line string `json:"line"`
}

type toolResultEntry struct {
	Turn   string         `json:"turn"`
	Run    string         `json:"run,omitempty"`
	Call   string         `json:"call"`
	Tool   string         `json:"tool"`
	Card   string         `json:"card,omitempty"`
	Text   string         `json:"text"`
	Failed bool           `json:"failed,omitempty"`
	Ran    bool           `json:"ran,omitempty"`    // the tool's function was called
	Ends   bool           `json:"ends,omitempty"`   // it is the turn's answer, of a tool that ends turns
	Broken bool           `json:"broken,omitempty"` // no call of the tool can succeed
	Took   time.Duration  `json:"took,omitempty"`
	Size   int            `json:"size"`            // bytes of the result before it was bounded
	Origin compact.Origin `json:"origin,omitzero"` // of what it has in it
}

// toolRanEntry says that a call has returned while hooks are asked about its result: after a crash its outcome is not
// unknown, only lost.
type toolRanEntry struct {
	Turn string `json:"turn"`
	Run  string `json:"run,omitempty"`
	Call string `json:"call"`
	Tool string `json:"tool"`
}

// cardEntry is a question to a person: an approval, a question of ask_person, or the offer to go on with a turn.
type cardEntry struct {
	Turn      string          `json:"turn"`
	Run       string          `json:"run,omitempty"`
	Card      string          `json:"card"`
	Call      string          `json:"call"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Digest    string          `json:"digest,omitempty"`
	Policy    Policy          `json:"policy"`
	Asked     PersonID        `json:"asked,omitempty"` // the turn's person
	Parked    bool            `json:"parked,omitempty"`
	Expires   time.Time       `json:"expires"`
	Question  bool            `json:"question,omitempty"`
	Resumes   bool            `json:"resumes,omitempty"` // approved, the turn goes on that a limit has ended
	Unknown   bool            `json:"unknown,omitempty"` // of a call that a crash cut off: approved, it is run again
	Wake      *Wake           `json:"wake,omitempty"`
	Address   string          `json:"address"`
	Origin    compact.Origin  `json:"origin,omitzero"` // of what the model had before it when it asked for the call
	Why       string          `json:"why,omitempty"`   // it is asked about, where its policy alone would not ask
	Rule      string          `json:"rule,omitempty"`  // stands for the call whenever it is made; "" where no rule can be saved
	Until     time.Time       `json:"until,omitzero"`  // when that rule would end
	Open      []Opening       `json:"open,omitempty"`  // what that rule may leave open
	Frame     string          `json:"frame,omitempty"` // stands for the call without its arguments, where it may leave some open
}

type decidedEntry struct {
	Turn      string          `json:"turn"`
	Run       string          `json:"run,omitempty"`
	Card      string          `json:"card"`
	Call      string          `json:"call"`
	Tool      string          `json:"tool"`
	Verdict   Verdict         `json:"verdict"`
	By        PersonID        `json:"by,omitempty"`
	Name      string          `json:"name,omitempty"`
	Text      string          `json:"text,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"` // as edited
	Digest    string          `json:"digest,omitempty"`    // of the edited call
	Diff      string          `json:"diff,omitempty"`      // how the arguments were changed
	Question  bool            `json:"question,omitempty"`
	Resumes   bool            `json:"resumes,omitempty"`
	Owed      []receipt       `json:"owed,omitempty"` // for an answer in plain words
	Rule      string          `json:"rule,omitempty"` // the id of the rule that was saved
	Open      []Opening       `json:"open,omitempty"` // what it leaves open
	Until     time.Time       `json:"until,omitzero"` // when it ends
}

type steerEntry struct {
	Turn string   `json:"turn"`
	Run  string   `json:"run"`
	Step int      `json:"step"`
	IDs  []string `json:"ids"`
}

type wokeEntry struct {
	Turn      string `json:"turn"`
	Run       string `json:"run"`
	Heartbeat string `json:"heartbeat"`
	Episode   string `json:"episode"`
}

type stoppedEntry struct {
	Turn   string     `json:"turn"`
	Run    string     `json:"run"`
	Reason StopReason `json:"reason"`
	Say    string     `json:"say,omitempty"`   // what the person was told, unless it is the model's answer
	Offer  string     `json:"offer,omitempty"` // the card that offers to go on
	// Tainted says that it may tell of an error in the words of strangers.
	Tainted bool `json:"tainted,omitempty"`
}

func (messageEntry) kind() string    { return kindMessage }
func (notedEntry) kind() string      { return kindNoted }
func (turnEntry) kind() string       { return kindTurn }
func (runEntry) kind() string        { return kindRun }
func (modelAskedEntry) kind() string { return kindModelAsked }
func (modelRetryEntry) kind() string { return kindModelRetry }
func (modelCallEntry) kind() string  { return kindModelCall }
func (modelLostEntry) kind() string  { return kindModelLost }
func (toolCallEntry) kind() string   { return kindToolCall }
func (progressEntry) kind() string   { return kindProgress }
func (toolResultEntry) kind() string { return kindToolResult }
func (toolRanEntry) kind() string    { return kindToolRan }
func (k cardEntry) kind() string {
	switch {
	case k.Question:
		return kindQuestion
	case k.Resumes:
		return kindOffer
	}
	return kindApproval
}
func (d decidedEntry) kind() string {
	switch {
	case d.Question:
		return kindAnswered
	case d.Resumes:
		return kindOffered
	}
	return kindDecided
}
func (steerEntry) kind() string   { return kindSteer }
func (wokeEntry) kind() string    { return kindWoke }
func (stoppedEntry) kind() string { return kindStopped }

// encode makes a journal line of an entry.
func encode(e entry, at time.Time) (memory.Entry, error) {
	data, err := plainJSON(e)
	if err != nil {
		return memory.Entry{}, fmt.Errorf("encode a %s entry: %w", e.kind(), err)
	}
	return memory.Entry{Kind: e.kind(), At: at, Data: data}, nil
}

// decode reads a journal line. An unknown kind gives nil: an older program passes over what a newer one wrote.
func decode(line memory.Entry) (entry, error) {
	read := func(into entry) (entry, error) {
		if err := json.Unmarshal(line.Data, into); err != nil {
			return nil, fmt.Errorf("read journal entry %d (%s): %w", line.Seq, line.Kind, err)
		}
		return into, nil
	}
	switch line.Kind {
	case kindMessage:
		return read(&messageEntry{})
	case kindNoted:
		return read(&notedEntry{})
	case kindTurn:
		return read(&turnEntry{})
	case kindRun:
		return read(&runEntry{})
	case kindModelAsked:
		return read(&modelAskedEntry{})
	case kindModelRetry:
		return read(&modelRetryEntry{})
	case kindModelCall:
		return read(&modelCallEntry{})
	case kindFallback:
		return read(&modelFallbackEntry{})
	case kindModelLost:
		return read(&modelLostEntry{})
	case kindToolCall:
		return read(&toolCallEntry{})
	case kindProgress:
		return read(&progressEntry{})
	case kindToolRan:
		return read(&toolRanEntry{})
	case kindToolResult:
		return read(&toolResultEntry{})
	case kindApproval, kindQuestion, kindOffer:
		return read(&cardEntry{})
	case kindDecided, kindAnswered, kindOffered:
		return read(&decidedEntry{})
	case kindSteer:
		return read(&steerEntry{})
	case kindWoke:
		return read(&wokeEntry{})
	case kindCheckpoint:
		return read(&checkpointEntry{})
	case kindHook:
		return read(&hookEntry{})
	case kindCompacted:
		return read(&compactedEntry{})
	case kindStopped:
		return read(&stoppedEntry{})
	}
	return nil, nil
}
