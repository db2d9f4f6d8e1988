package agent

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"nudge/memory"
	"nudge/schedule"
)

// spending is what a person has spent on a date, a row each.
type spending struct {
	own   Money     // with the accounts that they have, since one was parted
	began time.Time // since when the date counts for them; zero where no limit has asked for it
	used  time.Time // when money was last reserved under it; zero likewise
	// before is what was spent before accounts were parted, by a mark of its own. It counts on both sides: parting makes no
	// new money. Where the two become one again it is known by its mark and counts once.
	before map[string]Money
}

func (s spending) total() Money {
	sum := s.own
	for _, amount := range s.before {
		sum += amount
	}
	return sum
}

// join takes in what another has spent who is the same person now.
func (s *spending) join(other spending) {
	s.own += other.own
	s.began, s.used = latest(s.began, other.began), latest(s.used, other.used)
	s.carry(other.before)
}

// carry takes in what was spent before a parting.
func (s *spending) carry(before map[string]Money) {
	if s.before == nil && len(before) > 0 {
		s.before = map[string]Money{}
	}
	maps.Copy(s.before, before)
}

// marked is what both sides of a parting have spent until then.
func (s spending) marked() spending {
	before := maps.Clone(s.before)
	if before == nil {
		before = map[string]Money{}
	}
	if s.own != 0 {
		before[strings.ToLower(rand.Text()[:8])] = s.own
	}
	return spending{began: s.began, used: s.used, before: before}
}

// String is the row: the person's own amount, "@" and when the date began, "~" and when it was last used, and then what was
// before, each with its mark.
func (s spending) String() string {
	text := strconv.FormatInt(int64(s.own), 10)
	if !s.began.IsZero() {
		text += " @" + strconv.FormatInt(s.began.Unix(), 10)
	}
	if !s.used.IsZero() {
		text += " ~" + strconv.FormatInt(s.used.Unix(), 10)
	}
	for _, mark := range slices.Sorted(maps.Keys(s.before)) {
		text += " " + mark + "=" + strconv.FormatInt(int64(s.before[mark]), 10)
	}
	return text
}

func readSpending(key string, data []byte) (s spending, err error) {
	for i, field := range strings.Fields(string(data)) {
		mark, number, marked := strings.Cut(field, "=")
		var n int64
		switch {
		case i == 0:
			n, err = strconv.ParseInt(field, 10, 64)
			s.own = Money(n)
		case marked:
			n, err = strconv.ParseInt(number, 10, 64)
			s.carry(map[string]Money{mark: Money(n)})
		case field[0] == '~':
			n, err = strconv.ParseInt(field[1:], 10, 64)
			s.used = time.Unix(n, 0).UTC()
		default:
			n, err = strconv.ParseInt(strings.TrimPrefix(field, "@"), 10, 64)
			s.began = time.Unix(n, 0).UTC()
		}
		if err != nil {
			return s, fmt.Errorf("read what was spent under %s: %w", key, err)
		}
	}
	return s, nil
}

func loadSpending(tx memory.Tx, key string) (s spending, found bool, err error) {
	data, found, err := tx.Table(tableSpend).Get(key)
	if err == nil && found {
		s, err = readSpending(key, data)
	}
	return s, found, err
}

func (s spending) put(tx memory.Tx, key string) error {
	return tx.Table(tableSpend).Put(key, []byte(s.String()))
}

// scanSpending calls fn with each date on which a person has spent something.
func scanSpending(tx memory.Tx, person string, fn func(date string, s spending)) error {
	prefix := person + "/"
	return tx.Table(tableSpend).Scan(prefix, func(key string, data []byte) error {
		date := strings.TrimPrefix(key, prefix)
		if _, err := time.Parse(time.DateOnly, date); err != nil {
			return nil // of somebody whose id goes on there
		}
		s, err := readSpending(key, data)
		fn(date, s)
		return err
	})
}

// JoinSpent adds what was spent by somebody to what was spent by the person whose account they have become.
func JoinSpent(tx memory.Tx, was, person string) error {
	err := joinSpent(tx, was, person)
	if err != nil {
		return fmt.Errorf("add what %s has spent to what %s has: %w", was, person, err)
	}
	return nil
}

func joinSpent(tx memory.Tx, was, person string) error {
	one, onesLast, err := lastSpent(tx, was, now())
	if err != nil {
		return err
	}
	other, othersLast, err := lastSpent(tx, person, now())
	if err != nil {
		return err
	}
	spent := map[string]spending{}
	err = scanSpending(tx, was, func(date string, s spending) { spent[date] = s })
	for date, s := range spent {
		if err == nil {
			err = addSpending(tx, person+"/"+date, s)
		}
		if err == nil {
			err = tx.Table(tableSpend).Delete(was + "/" + date)
		}
	}
	if err != nil || one == "" || other == "" || one == other {
		return err
	}
	// Their dates differ, by their zones: what counts under the earlier one counts under the later one, which goes on.
	last, earlier := max(one, other), onesLast
	if one == last {
		earlier = othersLast
	}
	if !now().Before(earlier.began.Add(leastDay)) {
		return nil
	}
	return addSpending(tx, person+"/"+last, earlier.marked())
}

func addSpending(tx memory.Tx, key string, more spending) error {
	s, _, err := loadSpending(tx, key)
	if err != nil {
		return err
	}
	s.join(more)
	return s.put(tx, key)
}

// recent is for how long what was spent on a day still counts somewhere on earth.
const recent = 48 * time.Hour

// isRecent reports whether what was spent on a date may still count.
func isRecent(date string) bool {
	at, err := time.Parse(time.DateOnly, date)
	return err == nil && now().Sub(at) <= recent
}

// PartSpent lets what a person has spent of late, or reserved, count against an account that was parted from theirs as well, and
// still against them: or a day's money could be had once more with each account.
func PartSpent(tx memory.Tx, person, account string) error {
	spent := map[string]spending{}
	err := scanSpending(tx, person, func(date string, s spending) {
		if isRecent(date) {
			spent[date] = s.marked()
		}
	})
	for date, s := range spent {
		if err == nil {
			err = s.put(tx, person+"/"+date)
		}
		if err == nil {
			err = addSpending(tx, account+"/"+date, s)
		}
	}
	if err != nil {
		return fmt.Errorf("count what %s has spent against %s: %w", person, account, err)
	}
	return nil
}

// leastDay is how long a date counts at least, before money may be spent under the next one. Without it, somebody who moves
// their clocks from one end of the earth to the other would have the money of three dates at once. Real days have 23 hours
// at least, so that nobody notices who stays where they are.
const leastDay = 20 * time.Hour

// moneyDay is the date under which a person spends money now: that of their own clocks, but that it never goes back and that
// each has its [leastDay].
type moneyDay struct {
	person string // as schedule.PersonOf has them
	date   string
	began  time.Time
	spent  Money // with what is reserved for calls under way
}

func moneyDayOf(tx memory.Tx, p Person, at time.Time) (d moneyDay, err error) {
	if d.person, err = schedule.PersonOf(tx, string(p.ID)); err != nil {
		return d, err
	}
	d.date, d.began = at.In(p.zone()).Format(time.DateOnly), midnight(at, p.zone())
	last, s, err := lastSpent(tx, d.person, at)
	next := s.began.Add(leastDay)
	switch {
	case err != nil || last == "":
		return d, err
	case d.date <= last || at.Before(next):
		d.date, d.began, d.spent = last, s.began, s.total()
	default:
		// What was spent after midnight by these clocks, while others still showed the date before, is not had once more a few
		// hours later.
		d.began = latest(d.began, latest(next, s.used))
	}
	return d, nil
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// lastSpent is the last date under which a person has spent something, and what; "" when none can still count. No date began
// later than tomorrow in UTC, and none that is older than those looked at has less than its least day.
func lastSpent(tx memory.Tx, person string, at time.Time) (date string, s spending, err error) {
	for days := 1; days >= -2; days-- {
		date = at.UTC().AddDate(0, 0, days).Format(time.DateOnly)
		s, found, err := loadSpending(tx, person+"/"+date)
		if err != nil || found {
			return date, s, err
		}
	}
	return "", s, nil
}

func midnight(at time.Time, zone *time.Location) time.Time {
	year, month, day := at.In(zone).Date()
	return time.Date(year, month, day, 0, 0, 0, 0, zone).UTC()
}

// zone is the person's own; UTC as long as it is not known.
func (p Person) zone() *time.Location {
	zone, err := time.LoadLocation(cmp.Or(p.Zone, "UTC"))
	if err != nil {
		return time.UTC
	}
	return zone
}

// goesOn says when the next date begins.
func (d moneyDay) goesOn(at time.Time, zone *time.Location) string {
	tomorrow := midnight(at, zone).In(zone).AddDate(0, 0, 1)
	next := tomorrow
	if date, err := time.ParseInLocation(time.DateOnly, d.date, zone); err == nil {
		next = date.AddDate(0, 0, 1)
	}
	if least := d.began.Add(leastDay); least.After(next) {
		next = least.Add(time.Minute - 1).Truncate(time.Minute)
	}
	if next.Equal(tomorrow) {
		return "It goes on tomorrow."
	}
	return fmt.Sprintf("It goes on %s: each date has its money once, and counts for %d hours at least, also where the time zone changes.",
		next.In(zone).Format("Mon 2 Jan 15:04"), int(leastDay.Hours()))
}

// SpentToday is what a person has spent on their present date, with what is reserved for calls under way.
func SpentToday(tx memory.Tx, p Person) (Money, error) {
	d, err := moneyDayOf(tx, p, now())
	return d.spent, err
}
