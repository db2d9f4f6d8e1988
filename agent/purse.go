package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"nudge/memory"
	"nudge/schedule"
)

// hold has decide say, from what a person has spent on a day, how much more is taken, and holds that back from the
// person's other sessions until release is called, by when it must be on disk: or two of them would count on the
// same rest. With a limit, own is the day as that of the person whose account it is.
func (ag *Agent) hold(day string, decide func(spent Money) Money) (own string, release func(), err error) {
	if ag.Limits.DailyCost <= 0 {
		decide(0)
		return day, func() {}, nil
	}
	ag.purse.Lock()
	defer ag.purse.Unlock()
	var spent Money
	err = ag.Store.View(context.Background(), func(tx memory.Tx) (err error) {
		if own, err = ownDay(tx, day); err == nil {
			spent, err = spentOn(tx, own)
		}
		return err
	})
	if err != nil {
		return "", nil, fmt.Errorf("look up what was spent under %s: %w", day, err)
	}
	day = own
	amount := decide(spent + ag.held[day])
	ag.held[day] += amount
	return own, func() {
		ag.purse.Lock()
		defer ag.purse.Unlock()
		if ag.held[day] -= amount; ag.held[day] == 0 {
			delete(ag.held, day)
		}
	}, nil
}

// chargeTry pays for a try of the model that broke off after the answer began, which the provider may charge for,
// and holds money for the next. It reports false when there is none.
func (a *actor) chargeTry(asked *modelAskedEntry, entry modelRetryEntry) (ok bool, err error) {
	t := a.state.turn
	_, release, err := a.hold(asked.Day, func(spent Money) Money {
		ok = a.Limits.buysTry(t, asked.Reserve, spent)
		if !ok {
			return 0
		}
		return asked.Reserve
	})
	if err != nil || !ok {
		return false, err
	}
	defer release()
	entry.Charge, entry.Unknown = asked.Reserve, true
	a.spend(asked.Day, entry.Charge)
	if err := a.add(entry); err != nil {
		return false, err
	}
	return true, a.commit()
}

// spend adds to what was spent under a key of [today], with the next commit.
func (a *actor) spend(day string, amount Money) {
	if amount == 0 {
		return
	}
	a.also(func(tx memory.Tx) error {
		own, err := ownDay(tx, day) // the account may have been linked since
		if err != nil {
			return err
		}
		return addSpent(tx, own, amount)
	})
}

func addSpent(tx memory.Tx, key string, amount Money) error {
	spent, err := spentOn(tx, key)
	if err != nil {
		return err
	}
	return tx.Table(tableSpend).Put(key, []byte(fmt.Sprint(int64(spent+amount))))
}

// ownDay is a key of [today] with the person in it whose account that is of: what a person may spend on a day is one amount,
// whichever of their accounts they use.
func ownDay(tx memory.Tx, day string) (string, error) {
	at := strings.LastIndexByte(day, '/')
	if at < 0 {
		return day, nil
	}
	person, err := schedule.PersonOf(tx, day[:at])
	return person + day[at:], err
}

// JoinSpent adds what was spent by somebody to what was spent by the person whose account they have become.
func JoinSpent(tx memory.Tx, was, person string) error {
	spent := map[string]Money{}
	err := scanSpent(tx, was, func(date string, amount Money) { spent[date] = amount })
	for date, amount := range spent {
		if err == nil {
			err = addSpent(tx, person+"/"+date, amount)
		}
		if err == nil {
			err = tx.Table(tableSpend).Delete(was + "/" + date)
		}
	}
	if err != nil {
		return fmt.Errorf("add what %s has spent to what %s has: %w", was, person, err)
	}
	return nil
}

// scanSpent calls fn with each date on which a person has spent something.
func scanSpent(tx memory.Tx, person string, fn func(date string, amount Money)) error {
	prefix := person + "/"
	return tx.Table(tableSpend).Scan(prefix, func(key string, data []byte) error {
		date := strings.TrimPrefix(key, prefix)
		if _, err := time.Parse(time.DateOnly, date); err != nil {
			return nil // of somebody whose id goes on there
		}
		spent, err := readSpent(key, data)
		fn(date, spent)
		return err
	})
}

// spentOn reads what was spent under a key of [today].
func spentOn(tx memory.Tx, key string) (Money, error) {
	data, found, err := tx.Table(tableSpend).Get(key)
	if err != nil || !found {
		return 0, err
	}
	return readSpent(key, data)
}

func readSpent(key string, data []byte) (Money, error) {
	var spent int64
	if _, err := fmt.Sscan(string(data), &spent); err != nil {
		return 0, fmt.Errorf("read what was spent under %s: %w", key, err)
	}
	return Money(spent), nil
}
