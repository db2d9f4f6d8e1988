package agent

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"nudge/memory"
)

// Check looks whether everything that the agent keeps agrees, and calls report with each problem: one line that says what
// is wrong, what follows from it and what to do. Every journal is read from its start: each call of the model's has exactly
// one result before anything else is said, no turn begins in another, and what a start would load agrees with that. Then
// each table that sums the journals up is compared with them, both ways. The error is of reading: the store's.
func Check(tx memory.Tx, report func(problem string)) error {
	c := checking{
		tx: tx, report: report, open: map[string]string{}, turns: map[string]string{},
		cards: map[string]askedCard{}, checkpoints: map[string]uint64{},
	}
	steps := []func() error{c.journals, c.mail, c.outbox, c.openTurns, c.owedCalls, c.cardRows, c.waitingCards, c.timers, c.checkpointRows, c.people, c.saved, c.rules}
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("check the agent's records: %w", err)
		}
	}
	return nil
}

// checking is what the journals said, for the tables to be compared with.
type checking struct {
	tx     memory.Tx
	report func(problem string)

	open        map[string]string    // session → turn
	turns       map[string]string    // turn → session
	cards       map[string]askedCard // by id
	checkpoints map[string]uint64    // session → number of the newest
}

// askedCard is a card as the journal of its session has it.
type askedCard struct {
	cardEntry
	session string
	verdict Verdict
	left    []Opening // by the rule that was saved
	done    bool      // of a parked call: it has its result
}

func (k askedCard) owed() bool { return k.Parked && k.verdict == Approve && !k.done }

// saved reports whether the decision about a card has saved a rule just so, in the row of a key.
func (k askedCard) saved(rule Rule, key string) bool {
	digest, bound, err := k.saves(k.left)
	return err == nil && k.verdict == Always && k.session == rule.Session && k.Asked == rule.Person && ruleKey(k.Asked, digest) == key &&
		k.Until.Equal(rule.Until) && k.Tool == rule.Tool && string(bound) == string(rule.Arguments) && slices.Equal(k.left, rule.Open) && covers(k.Open, k.left)
}

const restoreAdvice = "restore a backup, or go on without"

func (c *checking) problem(format string, args ...any) {
	c.report(strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " "))
}

// journals reads the journal of every session.
func (c *checking) journals() error {
	return c.tx.Journal().Sessions("", func(session string, _ memory.Entry) error {
		j := journalCheck{checking: c, session: session, calls: map[string]int{}}
		err := c.tx.Journal().Read(session, 0, func(line memory.Entry) error {
			j.at = line.Seq
			e, err := decode(line)
			if err != nil {
				j.bad = true
				j.problem("%v; the session cannot be loaded: %s", err, restoreAdvice)
				return nil
			}
			j.take(e)
			return nil
		})
		if err != nil {
			return err
		}
		return j.end()
	})
}

// journalCheck is what one journal has said so far. It keeps apart from [state], so that it does not err with it.
type journalCheck struct {
	*checking
	session string
	at      uint64         // number of the entry
	turn    string         // that is not settled
	bad     bool           // an entry cannot be decoded
	calls   map[string]int // those of the last answer that have no result, by id
}

func (j *journalCheck) problem(format string, args ...any) {
	j.checking.problem("session %q, entry %d: %s", j.session, j.at, fmt.Sprintf(format, args...))
}

func (j *journalCheck) take(e entry) {
	switch e := e.(type) {
	case *turnEntry:
		j.allAnswered("a turn begins")
		if j.turn != "" {
			j.problem("turn %s begins before turn %s is settled; that one is lost: %s", e.Turn, j.turn, restoreAdvice)
		}
		if _, twice := j.turns[e.Turn]; twice {
			j.problem("turn %s begins a second time; its trace is the first one's: %s", e.Turn, restoreAdvice)
		}
		j.turn, j.turns[e.Turn] = e.Turn, j.session
	case *messageEntry, *notedEntry, *compactedEntry:
		j.allAnswered("something else is said")
	case *modelCallEntry:
		j.allAnswered("the model answers again")
		if len(e.Calls) > 0 && j.turn == "" {
			j.problem("the model has asked for calls outside a turn; they never ran: %s", restoreAdvice)
			return
		}
		for _, call := range e.Calls {
			j.calls[call.ID]++
		}
	case *toolCallEntry:
		if _, parked := j.cards[e.Card]; !parked && j.calls[e.Call] == 0 {
			j.problem("call %s begins, which no answer has asked for, or which has its result; look in its trace at what it did", e.Call)
		}
	case *toolResultEntry:
		j.result(e)
	case *cardEntry:
		j.cards[e.Card] = askedCard{cardEntry: *e, session: j.session}
	case *decidedEntry:
		j.decided(e)
	case *stoppedEntry:
		if e.Reason != Waiting {
			j.allAnswered("the turn is settled")
			j.turn = ""
		}
	case *checkpointEntry:
		j.allAnswered("a checkpoint is made")
		if j.turn != "" {
			j.problem("a checkpoint is made in turn %s; a start does not take that turn up: %s", j.turn, restoreAdvice)
		}
		j.checkpoints[j.session] = j.at
	}
}

// allAnswered reports the calls that have no result where something comes that must not come before one.
func (j *journalCheck) allAnswered(where string) {
	for _, id := range slices.Sorted(maps.Keys(j.calls)) {
		j.problem("%s before call %s has a result; the model is told that its outcome is unknown: %s", where, id, restoreAdvice)
	}
	clear(j.calls)
}

func (j *journalCheck) result(e *toolResultEntry) {
	if k, parked := j.cards[e.Card]; parked {
		if k.done {
			j.problem("the call of card %s has a second result; look in its trace at what it did", e.Card)
		}
		k.done = true
		j.cards[e.Card] = k
		return
	}
	switch n := j.calls[e.Call]; n {
	case 0:
		j.problem("call %s has a result that no answer has asked for, or a second one; look in its trace at what it did", e.Call)
	case 1:
		delete(j.calls, e.Call)
	default:
		j.calls[e.Call] = n - 1
	}
}

func (j *journalCheck) decided(e *decidedEntry) {
	k, found := j.cards[e.Card]
	switch {
	case !found:
		j.problem("card %s is decided, which was never asked; %s", e.Card, restoreAdvice)
		return
	case k.verdict != "":
		j.problem("card %s is decided a second time; the first decision counts", e.Card)
		return
	}
	k.verdict, k.left = e.Verdict, e.Open
	j.cards[e.Card] = k
	if k.Resumes && e.Verdict == Approve {
		j.turn = k.Turn
	}
}

// end compares the journal's end with what a start would load.
func (j *journalCheck) end() error {
	if j.turn != "" {
		j.open[j.session] = j.turn
	} else {
		j.allAnswered("the journal ends")
	}
	if j.bad {
		return nil // what cannot be decoded was reported
	}
	s, err := load(j.tx, j.session)
	switch {
	case errors.Is(err, memory.ErrDamaged):
		return err
	case err != nil:
		j.problem("%v; the session cannot be loaded: %s", err, restoreAdvice)
		return nil
	}
	loaded := ""
	if s.turn != nil {
		loaded = s.turn.id
	}
	if loaded != j.turn {
		j.problem("a start would go on with turn %q and the journal has %q; %s", loaded, j.turn, restoreAdvice)
	}
	return nil
}

// sameRows compares a table that has a row for each of some keys with what the rows should say.
func (c *checking) sameRows(table string, want map[string]string, what, follows string) error {
	missing := maps.Clone(want)
	err := c.tx.Table(table).Scan("", func(key string, value []byte) error {
		should, found := want[key]
		delete(missing, key)
		switch {
		case !found:
			c.problem("table %s has a row for %q, which %s; %s", table, key, what, follows)
		case string(value) != should:
			c.problem("table %s says %q of %q, and the journals say %q; %s", table, value, key, should, follows)
		}
		return nil
	})
	for _, key := range slices.Sorted(maps.Keys(missing)) {
		c.problem("table %s has no row for %q, which should say %q; %s", table, key, missing[key], follows)
	}
	return err
}

func (c *checking) openTurns() error {
	return c.sameRows(tableOpen, c.open, "has no turn under way", "the turn is taken up at the next start only if the row is right: restore a backup, or ask again in that session")
}

func (c *checking) owedCalls() error {
	owed := map[string]string{}
	for _, k := range c.cards {
		if k.owed() {
			owed[k.session] = ""
		}
	}
	return c.sameRows(tableOwed, owed, "owes no call", "an approved call is run at the next start only if the row is there: restore a backup, or ask again in that session")
}

func (c *checking) cardRows() error {
	sessions := map[string]string{}
	for id, k := range c.cards {
		sessions[id] = k.session
	}
	return c.sameRows(tableCards, sessions, "was never asked", "a decision finds its card only by that row: restore a backup, or ask again in that session")
}

func (c *checking) waitingCards() error {
	missing := map[string]bool{}
	for id, k := range c.cards {
		if k.verdict == "" {
			missing[id] = true
		}
	}
	err := c.tx.Table(tableWaiting).Scan("", func(id string, value []byte) error {
		var w WaitingCard
		switch err := json.Unmarshal(value, &w); {
		case err != nil:
			c.problem("the waiting card %s cannot be read: %v; nothing that waits can be listed: %s", id, err, restoreAdvice)
		case !missing[id]:
			c.problem("card %s is listed as waiting, and it is decided or was never asked; a decision about it is told so", id)
		}
		delete(missing, id)
		return nil
	})
	for _, id := range slices.Sorted(maps.Keys(missing)) {
		c.problem("card %s of session %q waits and is not listed; it can be decided by its id", id, c.cards[id].session)
	}
	return err
}

// timers compares the due rows of the agent's with the cards that they are to expire. A row that has fallen due is mail
// until the session takes it.
func (c *checking) timers() error {
	missing := map[string]bool{}
	for id, k := range c.cards {
		if k.verdict == "" {
			missing[id] = true
		}
	}
	err := c.tx.Due().Scan(func(row memory.DueRow) error {
		if !strings.HasPrefix(row.Key, TimerPrefix) {
			return nil
		}
		id := strings.TrimPrefix(row.Key, timerKey(""))
		k, found := c.cards[id]
		switch {
		case !found || k.verdict != "":
			c.problem("a time-out is set for card %s, which is decided or was never asked; it will do nothing", id)
		case string(row.Data) != k.session || !row.At.Equal(k.Expires):
			c.problem("the time-out of card %s is set for %s in session %q, and it expires at %s in %q; decide it by its id",
				id, row.At, row.Data, k.Expires, k.session)
		}
		delete(missing, id)
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(missing)) {
		fired, err := c.expiryMailed(c.cards[id].session, id)
		if err != nil {
			return err
		}
		if !fired {
			c.problem("card %s of session %q waits and has no time-out; decide it by its id", id, c.cards[id].session)
		}
	}
	return nil
}

func (c *checking) expiryMailed(session, card string) (bool, error) {
	mail, err := c.tx.Inbox().List(session)
	for _, m := range mail {
		l, err := openLetter(m)
		if err == nil && l.Decision != nil && l.Decision.Card == card && l.Decision.Verdict == Expire {
			return true, nil
		}
	}
	return false, err
}

func (c *checking) checkpointRows() error {
	newest := map[string]string{}
	for session, at := range c.checkpoints {
		newest[session] = string(binary.BigEndian.AppendUint64(nil, at))
	}
	return c.sameRows(tableCheckpoints, newest, "has no checkpoint", "loading that session takes longer, and nothing is lost")
}

// mail reads what the sessions have not taken up.
func (c *checking) mail() error {
	sessions, err := c.tx.Inbox().Sessions()
	if err != nil {
		return err
	}
	for _, session := range sessions {
		mail, err := c.tx.Inbox().List(session)
		if err != nil {
			return err
		}
		for _, m := range mail {
			if _, err := openLetter(m); err != nil {
				c.problem("%v; the session stops at it: %s", err, restoreAdvice)
			}
		}
	}
	return nil
}

func (c *checking) outbox() error {
	return c.tx.Outbox().List(0, func(p memory.Parcel) error {
		var r Reply
		if err := json.Unmarshal(p.Data, &r); err != nil {
			c.problem("parcel %d for %q cannot be read: %v; it is never said: %s", p.ID, p.Conversation, err, restoreAdvice)
		}
		return nil
	})
}

func (c *checking) people() error {
	return tablePeople.Table(c.tx).Scan("", func(id string, value []byte) error {
		var row personRow
		if err := json.Unmarshal(value, &row); err != nil {
			c.problem("what is known of %s cannot be read: %v; their messages are not taken: %s", id, err, restoreAdvice)
		}
		return nil
	})
}

// rules compares the rules with the decisions that saved them, and with their order in time, by which they age.
func (c *checking) rules() error {
	rules, times := c.tx.Table(tableRules), c.tx.Table(tableRulesTime)
	err := rules.Scan("", func(key string, value []byte) error {
		rule, err := readRule(value)
		if err != nil {
			c.problem("the rule at %s: %v; its person's rules cannot be listed: %s", key, err, restoreAdvice)
			return nil
		}
		k, found := c.cards[rule.Card]
		if !found || !k.saved(rule, key) {
			c.problem("rule %s of %s allows %s, which no decision has saved so; revoke it in chat with approvals revoke %s", rule.ID, rule.Person, rule.Text(), rule.ID)
		}
		_, found, err = times.Get(ruleTimeRow(key, rule.Until))
		if err == nil && !found {
			c.problem("rule %s is missing in the order of time; it ends in time, and its row stays", rule.ID)
		}
		return err
	})
	if err != nil {
		return err
	}
	return times.Scan("", func(row string, _ []byte) error {
		_, key, _ := strings.Cut(row, "/")
		value, found, err := rules.Get(key)
		if err != nil {
			return err
		}
		if rule, err := readRule(value); !found || err == nil && ruleTimeRow(key, rule.Until) != row {
			c.problem("the order of rules has a row %s for none; removing old rules may remove one too early", row)
		}
		return nil
	})
}

// saved compares the saved results with their order in time, by which they age.
func (c *checking) saved() error {
	results, times := c.tx.Table(tableSaved), c.tx.Table(tableSavedTime)
	err := results.Scan("", func(key string, value []byte) error {
		if len(value) < len(savedTime) {
			c.problem("the saved result %s is cut off; it cannot be read: %s", key, restoreAdvice)
			return nil
		}
		_, found, err := times.Get(timeRow(key, value))
		if err == nil && !found {
			c.problem("the saved result %s is missing in the order of time; it is never removed, and nothing else", key)
		}
		return err
	})
	if err != nil {
		return err
	}
	err = times.Scan("", func(row string, _ []byte) error {
		_, key, _ := strings.Cut(row, "/")
		if key == "" {
			c.problem("the order of saved results has a row %q that names none; restore a backup", row)
			return nil
		}
		value, found, err := results.Get(key)
		if err == nil && (!found || timeRow(key, value) != row) {
			c.problem("the order of saved results has a row for %s where it should not; removing old results may remove that one too early", key)
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.savedOf(results, times)
}

// savedOf compares what counts as each person's with what is kept.
func (c *checking) savedOf(results, times memory.Table) error {
	counts := c.tx.Table(tableSavedOf)
	err := times.Scan("", func(row string, of []byte) error {
		if len(of) == 0 {
			return nil
		}
		_, found, err := counts.Get(string(of) + "/" + row)
		if err == nil && !found {
			c.problem("the saved result %s is not counted for its person; more may be kept for them than should be", row)
		}
		return err
	})
	if err != nil {
		return err
	}
	return counts.Scan("", func(row string, size []byte) error {
		of, at, _ := strings.Cut(row, "/")
		_, key, _ := strings.Cut(at, "/")
		owner, found, err := times.Get(at)
		if err != nil {
			return err
		}
		value, _, err := results.Get(key)
		if err == nil && (!found || string(owner) != of || strconv.Itoa(len(value)) != string(size)) {
			c.problem("a saved result is counted for a person under %s, which is none, or of another size; too few may be kept for them", row)
		}
		return err
	})
}
