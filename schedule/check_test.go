package schedule

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nudge/memory"
)

func TestCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		paused, over := beat("paused", "yes"), beat("over", "yes")
		over.MaxTicks = 1
		r.save(beat("disk", "no"), paused, over)
		r.update(func(tx memory.Tx) error { return Pause(tx, "paused", "for a test") })
		check := func() (found []string) {
			err := r.store.View(context.Background(), func(tx memory.Tx) error {
				return Check(tx, func(problem string) { found = append(found, problem) })
			})
			if err != nil {
				t.Error(err)
			}
			return found
		}
		chatted := beat("chatted", "no")
		chatted.By = "terminal:ann"
		r.save(chatted)
		r.update(func(tx memory.Tx) (err error) {
			err = End(tx, "chatted", "for a test", r.now())
			chatted.end("for a test", r.now())
			return err
		})
		r.expect("problems before the first tick", check(), []string(nil))
		r.start()
		r.pass(time.Duration(kept+10) * time.Minute)
		r.expect("problems of a clock that runs", check(), []string(nil))
		r.stop()
		r.expect("problems of one that was stopped", check(), []string(nil))

		put := func(table, key, value string) func(memory.Tx) error {
			return func(tx memory.Tx) error { return tx.Table(table).Put(key, []byte(value)) }
		}
		due := func(key string) func(memory.Tx) error {
			return func(tx memory.Tx) error { return tx.Due().Put(memory.DueRow{Key: key, At: time.Now()}) }
		}
		for name, c := range map[string]struct {
			change func(memory.Tx) error
			want   string
		}{
			"no due row":          {func(tx memory.Tx) error { return tx.Due().Remove(heartbeatKey("disk", "UTC")) }, `"disk" has no due row for zone "UTC"`},
			"no state":            {func(tx memory.Tx) error { return tableStates.Table(tx).Delete("disk") }, "is of no tick that is remembered"},
			"nothing but itself":  {put(string(tableHeartbeats), "b", `{"name":"b","cron":"0 9 * * *","for":["a"],"prompt":"p","condition":{"kind":"always"}}`), `"b" has no due row and never wakes`},
			"no end":              {func(tx memory.Tx) error { return tx.Table(tableEnded).Delete(chatted.endedKey()) }, `"chatted" has ended and has no row`},
			"end of none":         {put(string(tableEnded), "2000-01-01T00:00:00Z/none", ""), "is of no heartbeat that ended then"},
			"end of another time": {put(string(tableEnded), "2000-01-01T00:00:00Z/over", ""), "is of no heartbeat that ended then"},
			"no row yet":          {put(string(tableHeartbeats), "b", `{"name":"b","cron":"@hourly","zone":"Asia/Tokyo","for":["a"],"prompt":"p","condition":{"kind":"always"}}`), `"b" has no due row for zone "Asia/Tokyo"`},
			"row of none":         {due(heartbeatKey("none", "UTC")), "is of no heartbeat"},
			"retry of none":       {due(retryKey("none", "UTC")), "is of no heartbeat"},
			"row of a paused":     {due(heartbeatKey("paused", "UTC")), "has paused: for a test"},
			"row of an ended":     {due(heartbeatKey("over", "UTC")), "has ended: "},
			"row of a zone":       {due(heartbeatKey("disk", "Europe/Paris")), "in which nobody lives"},
			"heartbeat no JSON":   {put(string(tableHeartbeats), "disk", "{"), `"disk" cannot be read`},
			"another name":        {put(string(tableHeartbeats), "b", `{"name":"c","ended":"yes"}`), `"b" says that it is "c"`},
			"a bad schedule":      {put(string(tableHeartbeats), "b", `{"name":"b","cron":"words"}`), `"b" cannot fall due`},
			"attention no JSON":   {put(string(tableAttention), "terminal:ann", "{"), "no heartbeat wakes them"},
			"digest without row":  {put(string(tableAttention), "terminal:ann", `{"withheld":[{"text":"x"}]}`), "has no time at which it is told"},
			"no taste":            {put(string(tableAttention), "terminal:ann", `{"tastes":{"disk":null}}`), "makes no sense"},
			"more than asked":     {put(string(tableAttention), "terminal:ann", `{"tastes":{"disk":{"less":2,"asked":1,"first":3600000000000}}}`), "makes no sense"},
			"card no JSON":        {put(string(tableCards), "n1", "["), "its buttons do nothing"},
			"another card":        {put(string(tableCards), "n1", `{"id":"n2","person":"a"}`), `card "n1" is of "n2"`},
			"card says what":      {put(string(tableCards), "n1", `{"id":"n1","person":"a","said":"snooze","span":"2h"}`), `says "snooze"`},
			"state no JSON":       {put(string(tableStates), "disk", "{"), "its ticks fail"},
			"state of none":       {put(string(tableStates), "none", "{}"), "what was remembered of it is not"},
			"no zone's state":     {put(string(tableStates), "disk", `{"zones":{"UTC":null}}`), `of zone "UTC"`},
			"zone is over":        {put(string(tableStates), "disk", `{"zones":{"UTC":{"over":true}}}`), "where its last tick is over"},
			"outcome gone":        {func(tx memory.Tx) error { return tableTicks.Table(tx).Delete(tickKey("disk", 100)) }, "has 199 outcomes of 200"},
			"outcome of none":     {put(string(tableTicks), "none/1", "{}"), "is of no tick"},
			"outcome too old":     {put(string(tableTicks), tickKey("disk", 1), "{}"), "is of no tick"},
			"outcome to come":     {put(string(tableTicks), tickKey("disk", 5000), "{}"), "is of no tick"},
			"use no JSON":         {put(string(tableUse), "disk/terminal:ann", "{"), "have no outcome"},
			"use of none":         {put(string(tableUse), "none/terminal:ann", "{}"), "nothing follows from it"},
			"gone no JSON":        {put(string(tableGone), "terminal:ann", "{"), "until they write"},
			"outcome no JSON":     {put(string(tableTicks), tickKey("disk", 100), "{"), "cannot be read"},
		} {
			var found []string
			undo := errors.New("take it back")
			err := r.store.Update(context.Background(), func(tx memory.Tx) error {
				found = nil
				return errors.Join(c.change(tx), undo, Check(tx, func(problem string) { found = append(found, problem) }))
			})
			if !errors.Is(err, undo) || !slices.ContainsFunc(found, func(p string) bool { return strings.Contains(p, c.want) }) {
				t.Errorf("%s: %q, %v; want %q", name, found, err, c.want)
			}
		}
		r.expect("problems in the end", check(), []string(nil))
	})
}
