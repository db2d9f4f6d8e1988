package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"nudge/memory"
)

// Save adds a heartbeat or changes the one of that name. It falls due from now on. What was remembered of the
// condition is kept only if the condition is the same; counters, outcomes and a pause are kept. It refuses what
// [Heartbeat.Validate] refuses, and a name that a heartbeat of somebody else's bears and that has not ended. Of one that has,
// nothing is kept.
//
// A clock that runs must be told by [Clock.Look] after the transaction.
func Save(tx memory.Tx, h Heartbeat, now time.Time) error {
	timed, err := h.read()
	if err != nil {
		return err
	}
	old, found, err := find(tx, h.Name)
	if err != nil {
		return err
	}
	h.Ended, h.EndedAt, h.Since = "", time.Time{}, now.UTC().Round(0)
	if !found {
		return h.add(tx, timed, now)
	}
	if old.Ended == "" && old.By != h.By {
		return fmt.Errorf("save heartbeat %s: %s made one of that name; take another name", h.Name, maker(old.By))
	}
	return h.replace(tx, old, now)
}

// add saves a heartbeat whose name none bears: nothing is remembered of it, and nothing of it is due.
func (h Heartbeat) add(tx memory.Tx, timed Schedule, now time.Time) error {
	if err := h.put(tx); err != nil || h.Paused != "" {
		return err
	}
	if zone := h.oneZone(); zone != "" {
		if next := timed.Next(now); !next.IsZero() && !h.isOver(next) {
			return place(tx, h.Name, zone, next)
		}
	}
	return place(tx, h.Name, "", now)
}

// replace saves a heartbeat in the place of the one of its name.
func (h Heartbeat) replace(tx memory.Tx, old Heartbeat, now time.Time) error {
	state, err := loadState(tx, old)
	if err != nil {
		return err
	}
	if err := state.unplace(tx, h.Name); err != nil {
		return err
	}
	if old.Ended == "" {
		h.Since = old.Since
		if h.Paused == "" {
			h.Paused = old.Paused
		}
	}
	state.renew(old, h)
	if old.By != h.By {
		if err := state.forget(tx, h.Name); err != nil {
			return err
		}
	}
	if err := old.begin(tx); err != nil {
		return err
	}
	if err := state.save(tx, h.Name); err != nil {
		return err
	}
	if err := h.put(tx); err != nil || h.Paused != "" {
		return err
	}
	return place(tx, h.Name, "", now)
}

// forget takes away what has become of a heartbeat whose name somebody else takes: they are not to read it. Claims stay, so that
// a tick that is still carried out is not taken for one of the new heartbeat's.
func (s *State) forget(tx memory.Tx, name string) error {
	s.Seq, s.First, s.Counters = 0, 0, Counters{}
	return removeOutcomes(tx, name)
}

// removeOutcomes removes how a heartbeat's ticks ended and what its runs used.
func removeOutcomes(tx memory.Tx, name string) error {
	_, ticks := memory.RemoveRows(tableTicks.Table(tx), name+"/", nil)
	_, used := memory.RemoveRows(tableUse.Table(tx), name+"/", nil)
	return errors.Join(ticks, used)
}

// renew forgets what the change from old to h makes untrue.
func (s *State) renew(old, h Heartbeat) {
	for name, zone := range s.Zones {
		switch {
		case old.Ended != "":
			s.Zones[name] = &Zone{Claim: zone.Claim}
		case !old.Condition.same(h.Condition):
			s.Zones[name] = zone.afresh()
		}
		s.Zones[name].Row = "" // what is cut off was of what there was before
		s.Zones[name].Over = h.MaxTicks > 0 && s.Zones[name].Woke >= h.MaxTicks
	}
}

// place puts the due row of a heartbeat for a zone. The one for zone "" tells the clock to find the zones of its people: asking
// for these may need a transaction of its own, so that it cannot be done in this one.
func place(tx memory.Tx, name, zone string, at time.Time) error {
	if err := tx.Due().Put(memory.DueRow{Key: heartbeatKey(name, zone), At: at}); err != nil {
		return fmt.Errorf("put heartbeat %s into the due index: %w", name, err)
	}
	return nil
}

func maker(by string) string {
	if by == "" {
		return "the config"
	}
	return by
}

func (h Heartbeat) put(tx memory.Tx) error {
	if err := tableHeartbeats.Put(tx, h.Name, h); err != nil {
		return fmt.Errorf("save heartbeat %s: %w", h.Name, err)
	}
	if h.Ended != "" {
		if err := tx.Table(tableEnded).Put(h.endedKey(), nil); err != nil {
			return fmt.Errorf("note when heartbeat %s ended: %w", h.Name, err)
		}
	}
	if h.By == "" {
		return nil
	}
	made := tx.Table(tableMade)
	err := made.Put(madeKey(h.By, h.Name), nil)
	if h.Ended != "" {
		err = made.Delete(madeKey(h.By, h.Name))
	}
	if err != nil {
		return fmt.Errorf("note who made heartbeat %s: %w", h.Name, err)
	}
	return nil
}

// madeKey names a row of [tableMade]. No person's begin like another's.
func madeKey(person, heartbeat string) string { return person + "\x00" + heartbeat }

// HasMade reports whether a person has made a heartbeat in a conversation that has not ended. It costs the same however many
// there are.
func HasMade(tx memory.Tx, person string) (has bool, err error) {
	err = tx.Table(tableMade).Scan(madeKey(person, ""), func(string, []byte) error {
		has = true
		return memory.ErrStop
	})
	return has, err
}

// Made gives how many heartbeats a person has made in conversations that have not ended.
func Made(tx memory.Tx, person string) (n int, err error) {
	err = tx.Table(tableMade).Scan(madeKey(person, ""), func(string, []byte) error {
		n++
		return nil
	})
	return n, err
}

func find(tx memory.Tx, name string) (Heartbeat, bool, error) {
	h, found, err := tableHeartbeats.Get(tx, name)
	if err != nil {
		return Heartbeat{}, false, fmt.Errorf("load heartbeat %s: %w", name, err)
	}
	return h, found, nil
}

// ErrNoHeartbeat is wrapped by the error for a name that no heartbeat bears.
var ErrNoHeartbeat = errors.New("no such heartbeat")

// Load gives the heartbeat of that name. For a name that none bears the error wraps [ErrNoHeartbeat] and lists
// those that there are.
func Load(tx memory.Tx, name string) (Heartbeat, error) {
	if name != "" && len(name) <= memory.MaxID {
		h, found, err := find(tx, name)
		if err != nil || found {
			return h, err
		}
	}
	all, err := List(tx)
	if err != nil {
		return Heartbeat{}, err
	}
	names := make([]string, len(all))
	for i, h := range all {
		names[i] = h.Name
	}
	known := "there is none yet"
	if len(names) > 0 {
		known = "there are: " + strings.Join(names, ", ")
	}
	return Heartbeat{}, fmt.Errorf("load heartbeat %q: %w; %s", name, ErrNoHeartbeat, known)
}

// List gives all heartbeats in order of name, those that are paused or have ended too.
func List(tx memory.Tx) ([]Heartbeat, error) {
	list, err := tableHeartbeats.All(tx, "")
	if err != nil {
		return nil, fmt.Errorf("list heartbeats: %w", err)
	}
	return list, nil
}

// Remove takes a heartbeat away with all that is remembered of it. A run that it woke goes on.
func Remove(tx memory.Tx, name string) error {
	h, err := Load(tx, name)
	if err != nil {
		return err
	}
	state, err := loadState(tx, h)
	if err != nil {
		return err
	}
	if err := state.unplace(tx, name); err != nil {
		return err
	}
	err = errors.Join(removeOutcomes(tx, name), h.begin(tx), tableStates.Delete(tx, name), tableHeartbeats.Delete(tx, name), tx.Table(tableMade).Delete(madeKey(h.By, name)))
	if err != nil {
		return fmt.Errorf("remove heartbeat %s: %w", name, err)
	}
	return nil
}

// End stops a heartbeat for good and keeps what is remembered of it, so that [Why] can tell. The reason is a short
// text. One that has ended keeps its first reason.
func End(tx memory.Tx, name, reason string, now time.Time) error {
	return rest(tx, name, func(h *Heartbeat) { h.end(reason, now) })
}

// Pause stops a heartbeat until [Resume]. The reason is a short text. A run that it woke goes on.
func Pause(tx memory.Tx, name, reason string) error {
	if reason == "" {
		reason = "no reason was given"
	}
	return rest(tx, name, func(h *Heartbeat) { h.Paused = reason })
}

func rest(tx memory.Tx, name string, change func(*Heartbeat)) error {
	h, err := Load(tx, name)
	if err != nil {
		return err
	}
	state, err := loadState(tx, h)
	if err != nil {
		return err
	}
	change(&h)
	if err := state.unplace(tx, name); err != nil {
		return err
	}
	if state.keepOut() {
		if err := state.save(tx, name); err != nil {
			return err
		}
	}
	return h.put(tx)
}

// Resume lets a paused heartbeat fall due again, from now on: ticks of the pause were not missed. One that is not
// paused is left as it is, and one that has ended is refused. A clock that runs must be told by [Clock.Look].
func Resume(tx memory.Tx, name string, now time.Time) error {
	h, err := Load(tx, name)
	switch {
	case err != nil:
		return err
	case h.Ended != "":
		return fmt.Errorf("resume heartbeat %s: it has ended: %s", name, h.Ended)
	case h.Paused == "":
		return nil
	}
	h.Paused = ""
	if err := h.put(tx); err != nil {
		return err
	}
	return place(tx, name, "", now)
}

// endRemoved is the reason why a heartbeat ended that is no longer in the config.
const endRemoved = "it was taken out of the config"

// Reconcile makes the heartbeats of the config those given: new ones are added, changed ones changed, missing ones
// ended. Those made in chat are left alone, and so are unchanged ones, with their due instants. One that cannot be
// saved is named in the error and does not keep the others back.
func Reconcile(ctx context.Context, store memory.Store, config []Heartbeat, now time.Time) error {
	var refused error
	err := store.Update(ctx, func(tx memory.Tx) error {
		refused = nil
		wanted := map[string]bool{}
		for _, h := range config {
			h.By, h.Paused, h.Ended, h.EndedAt, h.Since = "", "", "", time.Time{}, time.Time{}
			if err := h.Validate(); err != nil {
				refused = errors.Join(refused, fmt.Errorf("heartbeat %q: %w", h.Name, err))
				wanted[h.Name] = true
				continue
			}
			if wanted[h.Name] {
				refused = errors.Join(refused, fmt.Errorf("heartbeat.name: %q stands twice in the config", h.Name))
				continue
			}
			wanted[h.Name] = true
			if err := reconcileOne(tx, h, now, &refused); err != nil {
				return err
			}
		}
		return endMissing(tx, wanted, now)
	})
	if err != nil {
		return fmt.Errorf("take over the heartbeats of the config: %w", err)
	}
	return refused
}

func reconcileOne(tx memory.Tx, h Heartbeat, now time.Time, refused *error) error {
	old, found, err := find(tx, h.Name)
	if err != nil {
		return err
	}
	if found && old.By != "" && old.Ended == "" {
		*refused = errors.Join(*refused, fmt.Errorf("heartbeat.name: %s made a heartbeat %q in chat; take another name", old.By, h.Name))
		return nil
	}
	same := old
	same.Paused, same.Ended, same.EndedAt, same.Since = "", "", time.Time{}, time.Time{}
	if found && old.Ended != endRemoved && equal(same, h) {
		return nil
	}
	return Save(tx, h, now)
}

// equal compares the heartbeats as they are stored: an empty list and none are the same.
func equal(a, b Heartbeat) bool {
	one, errOne := json.Marshal(a)
	two, errTwo := json.Marshal(b)
	return errOne == nil && errTwo == nil && string(one) == string(two)
}

// endMissing ends the heartbeats of the config that are not wanted any more.
func endMissing(tx memory.Tx, wanted map[string]bool, now time.Time) error {
	all, err := List(tx)
	if err != nil {
		return err
	}
	for _, h := range all {
		switch {
		case h.Ended != "" && h.EndedAt.IsZero():
			err = h.dateEnd(tx)
		case h.By == "" && h.Ended == "" && !wanted[h.Name]:
			err = End(tx, h.Name, endRemoved, now)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
