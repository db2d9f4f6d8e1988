package schedule

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"nudge/memory"
)

// The words of [Outcome.Word].
const (
	Slept   = "slept"   // nobody was woken, for a reason
	Woke    = "woke"    // somebody was woken and all woken runs ended well
	Dropped = "dropped" // the tick before was still going on
	Quieted = "quiet"   // nobody was woken, since it was their quiet hours
	Capped  = "capped"  // nobody was woken, since their daily cap was reached
	Failed  = "failed"  // the check or a woken run failed
	Unknown = "unknown" // the program stopped before the tick was over
)

// kept is how many outcomes of a heartbeat are remembered.
const kept = 200

// The tables. Rows of tableTicks have the key NAME/SEQ.
const (
	tableMade       = "heartbeat_made" // person, heartbeat that they made in a conversation and that has not ended → nothing
	tableHeartbeats = "heartbeat"
	tableStates     = "heartbeat_state"
	tableTicks      = "tick"
)

// Outcome is how one tick ended.
type Outcome struct {
	Tick   time.Time `json:"tick"` // the instant for which it was due
	Zone   string    `json:"zone,omitempty"`
	Word   string    `json:"word"` // one of the words above, such as [Slept]
	Reason string    `json:"reason"`
}

// Counters sum up all ticks of a heartbeat.
type Counters struct {
	Ticks      int     `json:"ticks"`
	Wakes      int     `json:"wakes"` // ticks that woke somebody
	ModelCalls int     `json:"model_calls"`
	TokensIn   int     `json:"tokens_in"`
	TokensOut  int     `json:"tokens_out"`
	CostUSD    float64 `json:"cost_usd"`
}

// State is what is remembered of a heartbeat besides what it is.
type State struct {
	Seq      uint64           `json:"seq"` // of the newest outcome
	Counters Counters         `json:"counters"`
	Zones    map[string]*Zone `json:"zones,omitempty"` // by the name of each zone that has a due row
}

// Zone is what is remembered of a heartbeat for the people of one time zone.
type Zone struct {
	True     bool      `json:"true,omitempty"`    // the condition was true when it last woke, and has not been false since
	Digest   string    `json:"digest,omitempty"`  // the [Finding.State] that was kept
	Episode  string    `json:"episode,omitempty"` // the newest stretch in which the condition was true
	Pending  bool      `json:"pending,omitempty"` // the runs of the episode have not all ended well
	Found    string    `json:"found,omitempty"`   // the [Finding.State] that a pending episode is about
	Done     []string  `json:"done,omitempty"`    // the people whose runs of a pending episode ended well
	LastWake time.Time `json:"last_wake,omitzero"`
	Woke     int       `json:"woke,omitempty"`     // ticks that woke and ended well
	Errors   int       `json:"errors,omitempty"`   // checks that failed in a row
	Failures int       `json:"failures,omitempty"` // woken runs that failed in a row
	Retry    time.Time `json:"retry,omitzero"`     // not to be woken before, after a failed run
	Held     time.Time `json:"held,omitzero"`      // when somebody's snooze ends for which a tick was passed over
	Owed     []string  `json:"owed,omitempty"`     // people held back while others were woken, who have that still to come
	Asked    []string  `json:"asked,omitempty"`    // people who asked for a tick at once
	Alarmed  bool      `json:"alarmed,omitempty"`  // the owners were told of failing checks
	Warned   bool      `json:"warned,omitempty"`   // the owners were told of failing runs
	Claim    time.Time `json:"claim,omitzero"`     // the tick that was begun and has no outcome yet
	Over     bool      `json:"over,omitempty"`     // has no further tick of its own
}

// afresh is a zone whose condition was replaced. What is true of the ticks, not of the condition, stays.
func (z *Zone) afresh() *Zone {
	return &Zone{Woke: z.Woke, Claim: z.Claim}
}

func heartbeatKey(name, zone string) string { return "heartbeat/" + name + "/" + zone }

// again is when a tick comes out of its turn: to bring a failed run back, or what a snooze held back. Zero for never.
func (z *Zone) again() time.Time {
	if z.Held.IsZero() || !z.Retry.IsZero() && z.Retry.Before(z.Held) {
		return z.Retry
	}
	return z.Held
}

// retryKey is of the row for a tick that comes out of its turn.
func retryKey(name, zone string) string { return "heartbeat-retry/" + name + "/" + zone }

func getJSON(table memory.Table, key string, into any) (bool, error) {
	data, found, err := table.Get(key)
	if err != nil || !found {
		return false, err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return false, fmt.Errorf("read row %q: %w", key, err)
	}
	return true, nil
}

func putJSON(table memory.Table, key string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write row %q: %w", key, err)
	}
	return table.Put(key, data)
}

func loadState(tx memory.Tx, name string) (*State, error) {
	state := &State{}
	if _, err := getJSON(tx.Table(tableStates), name, state); err != nil {
		return nil, fmt.Errorf("load the state of heartbeat %s: %w", name, err)
	}
	if state.Zones == nil {
		state.Zones = map[string]*Zone{}
	}
	return state, nil
}

func (s *State) save(tx memory.Tx, name string) error {
	if err := putJSON(tx.Table(tableStates), name, s); err != nil {
		return fmt.Errorf("save the state of heartbeat %s: %w", name, err)
	}
	return nil
}

// record adds an outcome and forgets the one that is too old. The state must be saved afterwards.
func (s *State) record(tx memory.Tx, name string, outcome Outcome) error {
	s.Seq++
	s.Counters.Ticks++
	outcome.Tick = outcome.Tick.UTC().Round(0)
	table := tx.Table(tableTicks)
	if err := putJSON(table, tickKey(name, s.Seq), outcome); err != nil {
		return fmt.Errorf("record a tick of heartbeat %s: %w", name, err)
	}
	if s.Seq > kept {
		if err := table.Delete(tickKey(name, s.Seq-kept)); err != nil {
			return fmt.Errorf("forget an old tick of heartbeat %s: %w", name, err)
		}
	}
	return nil
}

func tickKey(name string, seq uint64) string { return fmt.Sprintf("%s/%016x", name, seq) }

// unplace takes the heartbeat's due rows out of the index.
func (s *State) unplace(tx memory.Tx, name string) error {
	keys := []string{heartbeatKey(name, "")}
	for zone := range s.Zones {
		keys = append(keys, heartbeatKey(name, zone), retryKey(name, zone))
	}
	for _, key := range keys {
		if err := tx.Due().Remove(key); err != nil {
			return fmt.Errorf("take heartbeat %s out of the due index: %w", name, err)
		}
	}
	return nil
}

// finished reports whether no zone has another tick, an open one, a failed run to try again or one that was held back.
func (s *State) finished() bool {
	for _, zone := range s.Zones {
		if !zone.Over || !zone.Claim.IsZero() || !zone.again().IsZero() {
			return false
		}
	}
	return len(s.Zones) > 0
}

// overReason says why a heartbeat has finished.
func (s *State) overReason(h Heartbeat) string {
	woken := h.MaxTicks > 0
	for _, zone := range s.Zones {
		woken = woken && zone.Woke >= h.MaxTicks
	}
	switch {
	case woken:
		return fmt.Sprintf("it has woken as often as max_ticks allows: %d", h.MaxTicks)
	case !h.Until.IsZero():
		return "no tick is left until " + h.Until.Format(time.RFC3339)
	}
	return "no date is left"
}

func (z *Zone) isDone(person string) bool { return slices.Contains(z.Done, person) }
