package schedule

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"nudge/memory"
)

// Check looks whether everything that is kept of heartbeats agrees, and calls report with each problem: one line that
// says what is wrong, what follows from it and what to do. A heartbeat that is neither paused nor ended must have a due
// row for each zone in which it has a tick to come, and no row may be of another; outcomes must be as many as were counted and
// have not aged, and one that ended must have a row that lets it be forgotten in time.
// What people said of being spoken to must be readable, and of cards that bear their own names; a digest that has something
// to tell must have a due row. What runs used must be of heartbeats that there are, and why somebody cannot be reached readable.
// The error is of reading: the store's.
func Check(tx memory.Tx, report func(problem string)) error {
	c := checking{tx: tx, report: report, beats: map[string]Heartbeat{}, states: map[string]*State{}, due: map[string]bool{}}
	for _, step := range []func() error{c.heartbeats, c.ended, c.readStates, c.rows, c.zones, c.outcomes, c.attention, c.cards, c.uses, c.gone} {
		if err := step(); err != nil {
			return fmt.Errorf("check the heartbeats: %w", err)
		}
	}
	return nil
}

type checking struct {
	tx     memory.Tx
	report func(problem string)

	beats  map[string]Heartbeat
	states map[string]*State
	due    map[string]bool // the keys of the rows that are heartbeats'
}

const saveAgain = "stop the heartbeat and make it again, or change it in the config"

func (c *checking) problem(format string, args ...any) {
	c.report(strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " "))
}

func (c *checking) heartbeats() error {
	return tableHeartbeats.Table(c.tx).Scan("", func(name string, value []byte) error {
		var h Heartbeat
		if err := json.Unmarshal(value, &h); err != nil {
			c.problem("heartbeat %q cannot be read: %v; it never wakes and cannot be listed: restore a backup", name, err)
			return nil
		}
		if h.Name != name {
			c.problem("heartbeat %q says that it is %q; %s", name, h.Name, saveAgain)
		}
		if err := h.Validate(); err != nil && h.Ended == "" {
			c.problem("heartbeat %q cannot fall due: %v; %s", name, err, saveAgain)
		}
		c.beats[name] = h
		return nil
	})
}

// ended looks for the rows that let heartbeats be forgotten in time.
func (c *checking) ended() error {
	rows := map[string]bool{}
	err := c.tx.Table(tableEnded).Scan("", func(key string, _ []byte) error {
		_, name, _ := strings.Cut(key, "/")
		h, found := c.beats[name]
		if !found || h.Ended == "" || h.endedKey() != key {
			c.problem("row %q is of no heartbeat that ended then; it goes away in time", key)
		}
		rows[key] = true
		return nil
	})
	for _, name := range slices.Sorted(maps.Keys(c.beats)) {
		if h := c.beats[name]; h.Ended != "" && !h.EndedAt.IsZero() && !h.staysWhenOld() && !rows[h.endedKey()] {
			c.problem("heartbeat %q has ended and has no row that lets it be forgotten; it is kept for good", name)
		}
	}
	return err
}

func (c *checking) readStates() error {
	return tableStates.Table(c.tx).Scan("", func(name string, value []byte) error {
		s := &State{}
		if err := json.Unmarshal(value, s); err != nil {
			c.problem("what is remembered of heartbeat %q cannot be read: %v; its ticks fail: restore a backup", name, err)
			return nil
		}
		if _, found := c.beats[name]; !found {
			c.problem("heartbeat %q is gone, and what was remembered of it is not; nothing follows from it", name)
		}
		for zone, z := range s.Zones {
			if z == nil {
				c.problem("nothing is remembered of zone %q of heartbeat %q; its ticks fail: %s", zone, name, saveAgain)
				delete(s.Zones, zone)
			}
		}
		c.states[name] = s
		return nil
	})
}

// stateOf is what is remembered of a heartbeat.
func (c *checking) stateOf(h Heartbeat) *State {
	if s := c.states[h.Name]; s != nil {
		return s
	}
	return newState(h)
}

// rows looks at the due rows that are heartbeats'.
func (c *checking) rows() error {
	return c.tx.Due().Scan(func(row memory.DueRow) error {
		kind, rest, _ := strings.Cut(row.Key, "/")
		if kind != "heartbeat" && kind != "heartbeat-retry" {
			return nil
		}
		c.due[row.Key] = true
		name, zone, _ := strings.Cut(rest, "/")
		h, found := c.beats[name]
		switch {
		case !found:
			c.problem("due row %q is of no heartbeat; it goes away when it falls due", row.Key)
		case h.resting() != "":
			c.problem("due row %q is of a heartbeat that has %s; it goes away when it falls due", row.Key, h.resting())
		case zone != "" && c.stateOf(h).Zones[zone] == nil:
			c.problem("due row %q is of a zone in which nobody lives; it goes away when it falls due", row.Key)
		}
		return nil
	})
}

// zones looks for the rows that heartbeats must have.
func (c *checking) zones() error {
	for _, name := range slices.Sorted(maps.Keys(c.beats)) {
		if c.beats[name].resting() != "" || c.due[heartbeatKey(name, "")] {
			continue // with that row the zones are yet to be found
		}
		s := c.stateOf(c.beats[name])
		if len(s.Zones) == 0 {
			c.problem("heartbeat %q has no due row and never wakes; %s", name, saveAgain)
			continue
		}
		for _, zone := range slices.Sorted(maps.Keys(s.Zones)) {
			switch has := c.due[heartbeatKey(name, zone)]; {
			case !has && !s.Zones[zone].Over:
				c.problem("heartbeat %q has no due row for zone %q and never wakes anybody there; %s", name, zone, saveAgain)
			case has && s.Zones[zone].Over:
				c.problem("heartbeat %q has a due row for zone %q, where its last tick is over; the row goes away when it falls due", name, zone)
			}
		}
	}
	return nil
}

// outcomes counts the outcomes that are kept of each heartbeat.
func (c *checking) outcomes() error {
	counts := map[string]uint64{}
	err := tableTicks.Table(c.tx).Scan("", func(key string, value []byte) error {
		name, number, _ := strings.Cut(key, "/")
		seq, err := strconv.ParseUint(number, 16, 64)
		s := c.states[name]
		if err != nil || tickKey(name, seq) != key || s == nil || seq < s.oldest() || seq > s.Seq {
			c.problem("outcome %q is of no tick that is remembered; nothing follows from it", key)
			return nil
		}
		var o Outcome
		if err := json.Unmarshal(value, &o); err != nil {
			c.problem("outcome %q cannot be read: %v; why a heartbeat did or did not wake cannot be told: restore a backup", key, err)
		}
		counts[name]++
		return nil
	})
	for _, name := range slices.Sorted(maps.Keys(c.states)) {
		if want := c.states[name].Seq - c.states[name].oldest() + 1; counts[name] != want {
			c.problem("heartbeat %q has %d outcomes of %d; the others cannot be told, and nothing else follows", name, counts[name], want)
		}
	}
	return err
}

func (c *checking) attention() error {
	return tableAttention.Table(c.tx).Scan("", func(person string, value []byte) error {
		var a Attention
		if err := json.Unmarshal(value, &a); err != nil {
			c.problem("what %q said of being spoken to cannot be read: %v; no heartbeat wakes them: restore a backup", person, err)
			return nil
		}
		for heartbeat, taste := range a.Tastes {
			if taste == nil || taste.Less < 0 || taste.Less > taste.Asked || taste.Less > 0 && taste.First < leastLess {
				c.problem("what %q said of heartbeat %q makes no sense; say so once more on a message of it", person, heartbeat)
			}
		}
		_, due, err := c.tx.Due().Get(DigestPrefix + person)
		if err == nil && len(a.Withheld) > 0 && !due {
			c.problem("what was held back from %q has no time at which it is told; it comes with what is held back next", person)
		}
		return err
	})
}

func (c *checking) cards() error {
	return tableCards.Table(c.tx).Scan("", func(id string, value []byte) error {
		var card Card
		if err := json.Unmarshal(value, &card); err != nil {
			c.problem("notify card %q cannot be read: %v; its buttons do nothing: restore a backup", id, err)
			return nil
		}
		if card.ID != id || card.Person == "" || card.Said != "" && card.Said.Check(card.Span) != nil {
			c.problem("notify card %q is of %q for %q and says %q; its buttons do nothing that is sure", id, card.ID, card.Person, card.Said)
		}
		return nil
	})
}

func (c *checking) uses() error {
	return tableUse.Table(c.tx).Scan("", func(key string, value []byte) error {
		name, person, _ := strings.Cut(key, "/")
		if _, found := c.beats[name]; !found {
			c.problem("what heartbeat %q used for %q is kept, and the heartbeat is gone; nothing follows from it", name, person)
		}
		var u Use
		if err := json.Unmarshal(value, &u); err != nil {
			c.problem("what heartbeat %q used for %q cannot be read: %v; its ticks that wake them have no outcome: %s", name, person, err, saveAgain)
		}
		return nil
	})
}

func (c *checking) gone() error {
	return tableGone.Table(c.tx).Scan("", func(person string, value []byte) error {
		var row goneRow
		if err := json.Unmarshal(value, &row); err != nil {
			c.problem("why %q cannot be reached cannot be read: %v; no heartbeat wakes them until they write", person, err)
		}
		return nil
	})
}
