package agent

import (
	"context"
	"fmt"

	"nudge/memory"
)

// hold has decide say, from what a person has spent on a day, how much more is taken, and holds that back from the
// person's other sessions until release is called, by when it must be on disk: or two of them would count on the
// same rest.
func (ag *Agent) hold(day string, decide func(spent Money) Money) (release func(), err error) {
	if ag.Limits.DailyCost <= 0 {
		decide(0)
		return func() {}, nil
	}
	ag.purse.Lock()
	defer ag.purse.Unlock()
	var spent Money
	err = ag.Store.View(context.Background(), func(tx memory.Tx) (err error) {
		spent, err = spentOn(tx, day)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look up what was spent under %s: %w", day, err)
	}
	amount := decide(spent + ag.held[day])
	ag.held[day] += amount
	return func() {
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
	release, err := a.hold(asked.Day, func(spent Money) Money {
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
		spent, err := spentOn(tx, day)
		if err != nil {
			return err
		}
		return tx.Table(tableSpend).Put(day, []byte(fmt.Sprint(int64(spent+amount))))
	})
}

// spentOn reads what was spent under a key of [today].
func spentOn(tx memory.Tx, key string) (Money, error) {
	data, found, err := tx.Table(tableSpend).Get(key)
	if err != nil || !found {
		return 0, err
	}
	var spent int64
	if _, err := fmt.Sscan(string(data), &spent); err != nil {
		return 0, fmt.Errorf("read what was spent under %s: %w", key, err)
	}
	return Money(spent), nil
}
