package schedule

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nudge/memory"
)

// dueRow is a row that is due, with what had to be found out about it outside the claiming transaction.
type dueRow struct {
	memory.DueRow
	timer func(ctx context.Context, tx memory.Tx, row memory.DueRow) error // nil for a heartbeat's row

	name, zone string // zone is "" in the row that asks for the heartbeat's zones to be found
	retry      bool
	stored     []byte // the heartbeat as it stood when people was computed; nil when there is none
	heartbeat  Heartbeat
	people     map[string][]string // by zone
}

// claimed is what one claiming transaction brought.
type claimed struct {
	ticks []*tick
	fired bool
}

// due finds the rows that are due and this clock's to carry out, and the instant of the first that is not due yet.
func (c *Clock) due(ctx context.Context, now time.Time) (rows []*dueRow, next time.Time, err error) {
	err = c.config.Store.View(ctx, func(tx memory.Tx) error {
		rows, next = nil, time.Time{}
		err := tx.Due().Scan(func(row memory.DueRow) error {
			if row.At.After(now) {
				next = row.At
				return memory.ErrStop
			}
			if due := c.sort(row); due != nil {
				rows = append(rows, due)
			}
			if len(rows) >= batch && c.config.Only == nil {
				return memory.ErrStop
			}
			return nil
		})
		if err != nil {
			return err
		}
		return readHeartbeats(tx, rows)
	})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("look for what is due: %w", err)
	}
	return c.findPeople(rows), next, nil
}

// sort tells a row's kind; nil when it is none of this clock's.
func (c *Clock) sort(row memory.DueRow) *dueRow {
	kind, rest, _ := strings.Cut(row.Key, "/")
	if kind == "heartbeat" || kind == "heartbeat-retry" {
		name, zone, _ := strings.Cut(rest, "/")
		return &dueRow{DueRow: row, name: name, zone: zone, retry: kind == "heartbeat-retry"}
	}
	for prefix, timer := range c.config.Timers {
		if strings.HasPrefix(row.Key, prefix) {
			return &dueRow{DueRow: row, timer: timer}
		}
	}
	return nil
}

func readHeartbeats(tx memory.Tx, rows []*dueRow) error {
	known := map[string][]byte{}
	for _, row := range rows {
		if row.timer != nil {
			continue
		}
		if _, read := known[row.name]; !read {
			stored, _, err := tableHeartbeats.Table(tx).Get(row.name)
			if err != nil {
				return err
			}
			known[row.name] = stored
		}
		row.stored = known[row.name]
	}
	return nil
}

// findPeople finds for whom the rows are due and leaves out those with nobody whom this clock serves.
func (c *Clock) findPeople(rows []*dueRow) []*dueRow {
	var mine []*dueRow
	for _, row := range rows {
		if row.timer == nil && row.stored != nil {
			if err := json.Unmarshal(row.stored, &row.heartbeat); err != nil {
				c.config.Log.Error("read a heartbeat", "heartbeat", row.name, "error", err)
				row.stored = nil
			}
			row.people = row.heartbeat.byZone(c.config.Zone)
		}
		if c.serves(row) {
			mine = append(mine, row)
		}
	}
	return mine
}

func (c *Clock) serves(row *dueRow) bool {
	if c.config.Only == nil || row.timer != nil {
		return true
	}
	people := row.people[row.zone]
	if row.zone == "" {
		people = row.heartbeat.For
	}
	return len(c.served(people)) > 0
}

func (c *Clock) served(people []string) []string {
	if c.config.Only == nil {
		return people
	}
	var served []string
	for _, person := range people {
		if c.config.Only(person) {
			served = append(served, person)
		}
	}
	return served
}

// claim takes the rows out of the index or moves them to their next instants, in one transaction. If that fails, each
// row gets a transaction of its own, and a row that still fails is put off, so that it holds nothing else up.
func (c *Clock) claim(ctx context.Context, rows []*dueRow, now time.Time) (claimed, error) {
	all, err := c.claimTogether(ctx, rows, nil, now)
	if err == nil || ctx.Err() != nil {
		return all, err
	}
	all = claimed{}
	for _, row := range rows {
		one, err := c.claimTogether(ctx, []*dueRow{row}, all.ticks, now)
		if err != nil {
			c.config.Log.Error("claim what is due", "key", row.Key, "error", err)
			if err := c.putOff(ctx, row, now); err != nil {
				return all, err
			}
			continue
		}
		all.ticks = append(all.ticks, one.ticks...)
		all.fired = all.fired || one.fired
	}
	return all, nil
}

// claimTogether claims rows in one transaction. before are the ticks that were claimed and have not been begun.
func (c *Clock) claimTogether(ctx context.Context, rows []*dueRow, before []*tick, now time.Time) (claimed, error) {
	var all claimed
	err := c.config.Store.Update(ctx, func(tx memory.Tx) error {
		all = claimed{}
		open := slices.Clone(before)
		for _, row := range rows {
			current, found, err := tx.Due().Get(row.Key)
			if err != nil {
				return fmt.Errorf("claim due row %q: %w", row.Key, err)
			}
			if !found || !current.At.Equal(row.At) {
				continue
			}
			if row.timer != nil {
				if err := fire(ctx, tx, row); err != nil {
					return err
				}
				all.fired = true
				continue
			}
			t, err := c.claimHeartbeat(tx, row, open, now)
			if err != nil {
				return fmt.Errorf("claim due row %q: %w", row.Key, err)
			}
			if t != nil {
				all.ticks, open = append(all.ticks, t), append(open, t)
			}
		}
		return nil
	})
	if err != nil {
		return claimed{}, err
	}
	return all, nil
}

func (c *Clock) putOff(ctx context.Context, row *dueRow, now time.Time) error {
	return c.config.Store.Update(ctx, func(tx memory.Tx) error {
		current, found, err := tx.Due().Get(row.Key)
		if err != nil || !found || !current.At.Equal(row.At) {
			return err
		}
		current.At = now.Add(time.Minute)
		return tx.Due().Put(current)
	})
}

// fire does what a timer is for and removes its row, unless that moved it.
func fire(ctx context.Context, tx memory.Tx, row *dueRow) error {
	if err := row.timer(ctx, tx, row.DueRow); err != nil {
		return fmt.Errorf("fire timer %q: %w", row.Key, err)
	}
	current, found, err := tx.Due().Get(row.Key)
	if err == nil && found && current.At.Equal(row.At) {
		err = tx.Due().Remove(row.Key)
	}
	if err != nil {
		return fmt.Errorf("remove timer %q: %w", row.Key, err)
	}
	return nil
}

// claimHeartbeat claims a heartbeat's row. before are the ticks that were claimed and have not been begun. It gives nil when there
// is nothing to carry out.
func (c *Clock) claimHeartbeat(tx memory.Tx, row *dueRow, before []*tick, now time.Time) (*tick, error) {
	stored, _, err := tableHeartbeats.Table(tx).Get(row.name)
	if err != nil {
		return nil, err
	}
	if row.stored == nil || row.heartbeat.resting() != "" {
		return nil, tx.Due().Remove(row.Key)
	}
	if !bytes.Equal(stored, row.stored) {
		return nil, nil // changed in between: the next look finds it as it now is
	}
	state, err := loadState(tx, row.heartbeat)
	if err != nil {
		return nil, err
	}
	claim := &claiming{clock: c, tx: tx, row: row, before: before, state: state, now: now}
	t, err := claim.do()
	if err != nil {
		return nil, err
	}
	if t == nil && state.finished() {
		if err := claim.end(state.overReason(row.heartbeat)); err != nil {
			return nil, err
		}
	}
	return t, state.save(tx, row.name)
}

// claiming is the claim of one heartbeat's row in one transaction.
type claiming struct {
	clock  *Clock
	tx     memory.Tx
	row    *dueRow
	before []*tick // that were claimed and have not been begun
	state  *State
	now    time.Time
}

// isGoing reports whether a tick of the heartbeat in a zone is carried out, or about to be.
func (c *claiming) isGoing(zone string) bool {
	key := heartbeatKey(c.row.name, zone)
	return c.clock.isGoing(key) || slices.ContainsFunc(c.before, func(t *tick) bool { return t.key == key })
}

func (c *claiming) do() (*tick, error) {
	if c.row.zone == "" {
		if err := c.tx.Due().Remove(c.row.Key); err != nil {
			return nil, err
		}
		return nil, c.sync(c.row.At, true)
	}
	if err := c.sync(c.now, false); err != nil {
		return nil, err
	}
	zone := c.state.Zones[c.row.zone]
	if zone == nil || zone.Over && !c.row.retry {
		return nil, c.tx.Due().Remove(c.row.Key)
	}
	if c.row.retry {
		return c.retry(zone)
	}
	return c.tick(zone)
}

// sync gives each zone in which people live a due row and takes away those of zones that nobody lives in any more. When
// the heartbeat was saved, every zone gets its row anew.
func (c *claiming) sync(from time.Time, saved bool) error {
	h := c.row.heartbeat
	for name := range c.row.people {
		zone, known := c.state.Zones[name]
		if known && (!saved || zone.Over) {
			continue
		}
		if !known {
			zone = &Zone{}
			c.state.Zones[name] = zone
		}
		timed, err := h.timed(name)
		if err != nil {
			return c.end(err.Error())
		}
		if err := c.advance(name, zone, timed.Next(from)); err != nil {
			return err
		}
		if err := c.keepAgain(name, zone); err != nil {
			return err
		}
	}
	for name, zone := range c.state.Zones {
		if len(c.row.people[name]) > 0 || c.isGoing(name) {
			continue
		}
		if err := c.leave(name, zone, "; nobody lives in its zone any more"); err != nil {
			return err
		}
		delete(c.state.Zones, name)
		for _, key := range []string{heartbeatKey(h.Name, name), retryKey(h.Name, name)} {
			if err := c.tx.Due().Remove(key); err != nil {
				return err
			}
		}
	}
	return nil
}

// advance writes the zone's next instant, or notes that there is none.
func (c *claiming) advance(name string, zone *Zone, next time.Time) error {
	h := c.row.heartbeat
	key := heartbeatKey(h.Name, name)
	if next.IsZero() || h.isOver(next) {
		zone.Over = true
		return c.tx.Due().Remove(key)
	}
	return c.tx.Due().Put(memory.DueRow{Key: key, At: next})
}

func (c *claiming) end(reason string) error {
	h := c.row.heartbeat
	h.end(reason, c.now)
	return errors.Join(c.state.unplace(c.tx, h.Name), h.put(c.tx))
}

func (c *claiming) record(at time.Time, word, reason string) error {
	return c.state.record(c.tx, c.row.name, Outcome{Tick: at, Zone: c.row.zone, Word: word, Reason: reason}, c.now)
}
