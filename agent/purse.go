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
// same rest. day is a [moneyDay.key].
func (ag *Agent) hold(day string, decide func(spent Money) Money) (release func(), err error) {
	if ag.Limits.DailyCost <= 0 {
		decide(0)
		return func() {}, nil
	}
	ag.purse.Lock()
	defer ag.purse.Unlock()
	var own string
	var spent spending
	err = ag.Store.View(context.Background(), func(tx memory.Tx) (err error) {
		if own, err = ownDay(tx, day); err == nil {
			spent, _, err = loadSpending(tx, own)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look up what was spent under %s: %w", day, err)
	}
	amount := decide(spent.total() + ag.held[own])
	ag.held[own] += amount
	return func() {
		ag.purse.Lock()
		defer ag.purse.Unlock()
		if ag.held[own] -= amount; ag.held[own] == 0 {
			delete(ag.held, own)
		}
	}, nil
}

// moneyDay is the day on which a person spends money now. Without a limit it is the date on their clocks.
func (ag *Agent) moneyDay(p Person) (d moneyDay, err error) {
	at := now()
	if ag.Limits.DailyCost <= 0 {
		return moneyDay{date: at.In(p.zone()).Format(time.DateOnly)}, nil
	}
	err = ag.Store.View(context.Background(), func(tx memory.Tx) (err error) {
		d, err = moneyDayOf(tx, p, at)
		return err
	})
	if err != nil {
		return d, fmt.Errorf("look up on which day %s spends: %w", p.ID, err)
	}
	return d, nil
}

// key names the day for an account, by which what is spent finds its person whatever is linked and parted meanwhile.
func (d moneyDay) key(account PersonID) string { return string(account) + "/" + d.date }

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

// spend adds to what was spent on a day, with the next commit.
func (a *actor) spend(day string, amount Money) { a.spendSince(time.Time{}, day, amount) }

// spendSince is spend on a day of which it is said when it began.
func (a *actor) spendSince(began time.Time, day string, amount Money) {
	if amount == 0 {
		return
	}
	a.also(func(tx memory.Tx) error {
		own, err := ownDay(tx, day) // the account may have been linked or parted since
		if err != nil {
			return err
		}
		s, _, err := loadSpending(tx, own)
		if err != nil {
			return err
		}
		if s.own += amount; s.began.IsZero() {
			s.began = began
		}
		if amount > 0 && !s.began.IsZero() {
			s.used = now().UTC()
		}
		return s.put(tx, own)
	})
}

// ownDay is a [moneyDay.key] with the person in it whose account that is of: what a person may spend on a day is one amount,
// whichever of their accounts they use.
func ownDay(tx memory.Tx, day string) (string, error) {
	at := strings.LastIndexByte(day, '/')
	if at < 0 {
		return day, nil
	}
	person, err := schedule.PersonOf(tx, day[:at])
	return person + day[at:], err
}
