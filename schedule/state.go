package schedule

import (
	"fmt"
	"maps"
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

// How many outcomes of a heartbeat are remembered: at most kept. With each new one those that are older than [KeptFor] go, a few at
// a time, but keptAnyway always stay.
const (
	kept       = 200
	keptAnyway = 10
)

// The tables. Rows of tableTicks have the key NAME/SEQ.
const (
	tableEnded = "heartbeat_ended" // when it ended, heartbeat → nothing
	tableMade  = "heartbeat_made"  // person, heartbeat that they made in a conversation and that has not ended → nothing

	tableHeartbeats memory.Rows[Heartbeat] = "heartbeat"
	tableStates     memory.Rows[State]     = "heartbeat_state"
	tableTicks      memory.Rows[Outcome]   = "tick"
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

// State is what is remembered of a heartbeat besides what it is. Before there is anything to remember it has no row.
type State struct {
	Seq      uint64           `json:"seq"`             // of the newest outcome
	First    uint64           `json:"first,omitempty"` // of the oldest that is kept, where older ones had aged
	Counters Counters         `json:"counters"`
	Zones    map[string]*Zone `json:"zones,omitempty"` // by the name of each zone that has a due row
}

func heartbeatKey(name, zone string) string { return "heartbeat/" + name + "/" + zone }

// retryKey is of the row for a tick that comes out of its turn.
func retryKey(name, zone string) string { return "heartbeat-retry/" + name + "/" + zone }

// loadState gives what is remembered of a heartbeat as it is stored.
func loadState(tx memory.Tx, h Heartbeat) (*State, error) {
	state, found, err := tableStates.Get(tx, h.Name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("load the state of heartbeat %s: %w", h.Name, err)
	case !found:
		return newState(h), nil
	case state.Zones == nil:
		state.Zones = map[string]*Zone{}
	}
	for _, zone := range state.Zones {
		if zone != nil {
			maps.DeleteFunc(zone.People, func(_ string, own *Zone) bool { return own == nil })
		}
	}
	return &state, nil
}

// newState is that of a heartbeat of which nothing is remembered yet. It has a zone if that is the same for all its people.
func newState(h Heartbeat) *State {
	state := &State{Zones: map[string]*Zone{}}
	if zone := h.oneZone(); zone != "" {
		state.Zones[zone] = &Zone{}
	}
	return state
}

func (s *State) save(tx memory.Tx, name string) error {
	if err := tableStates.Put(tx, name, *s); err != nil {
		return fmt.Errorf("save the state of heartbeat %s: %w", name, err)
	}
	return nil
}

// oldest is the number of the oldest outcome that is kept; that of the next one when none is.
func (s *State) oldest() uint64 { return max(s.First, s.Seq-min(s.Seq, kept)+1) }

// record adds an outcome and forgets what is too old. The state must be saved afterwards.
func (s *State) record(tx memory.Tx, name string, outcome Outcome, now time.Time) error {
	s.Seq++
	s.Counters.Ticks++
	outcome.Tick = outcome.Tick.UTC().Round(0)
	if err := tableTicks.Put(tx, tickKey(name, s.Seq), outcome); err != nil {
		return fmt.Errorf("record a tick of heartbeat %s: %w", name, err)
	}
	if s.Seq > kept {
		if err := tableTicks.Delete(tx, tickKey(name, s.Seq-kept)); err != nil {
			return fmt.Errorf("forget an old tick of heartbeat %s: %w", name, err)
		}
	}
	return s.forgetOld(tx, name, now.Add(-KeptFor))
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

// finished reports whether no zone has another tick, an open one, a failed run to try again, or one that was held back
// or asked for.
func (s *State) finished() bool {
	for _, zone := range s.Zones {
		if !zone.Over || !zone.Claim.IsZero() || !zone.again().IsZero() || len(zone.Asked) > 0 {
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
