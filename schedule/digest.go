package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nudge/memory"
)

// What a person's quiet hours or their daily cap hold back is kept in their [Attention] and told once, in one message: the
// digest. Its due row is written with the first thing that is held back and goes with the telling.

// DigestPrefix begins the key of the due row of each person's digest. Whoever carries it out calls [Budget.TakeDigest].
const DigestPrefix = "digest/"

// Bounds of a digest.
const (
	mostWithheld = 50  // things; more are only counted
	withheldText = 400 // bytes of what is told of each
)

// Withheld is something that was held back from a person, to be told in their next digest. What comes again of the same
// heartbeat and key is counted, and its newest words stand for all.
type Withheld struct {
	Heartbeat string    `json:"heartbeat,omitempty"` // "" for what else speaks unasked
	Key       string    `json:"key,omitempty"`       // "" for a tick that woke nobody since nothing could be said
	Episode   string    `json:"episode,omitempty"`   // the newest
	Text      string    `json:"text,omitempty"`      // what was to be said, or of a tick what there is to say of it
	Seen      bool      `json:"seen,omitempty"`      // Text is what a check saw, written by others
	Outside   string    `json:"outside,omitempty"`   // as in [Unasked]
	Private   bool      `json:"private,omitempty"`   // as in [Unasked]
	By        Reason    `json:"by"`
	First     time.Time `json:"first"`
	Last      time.Time `json:"last"`
	Count     int       `json:"count"`
}

// withhold puts something into the next digest.
func (a *Attention) withhold(w Withheld) {
	w.Text = clip(strings.Join(strings.Fields(w.Text), " "), withheldText)
	at := slices.IndexFunc(a.Withheld, func(old Withheld) bool {
		return old.Heartbeat == w.Heartbeat && old.Key == w.Key && w.Heartbeat != ""
	})
	if at >= 0 {
		old := a.Withheld[at]
		w.First, w.Count = old.First, old.Count+w.Count
		a.Withheld[at] = w
		return
	}
	if len(a.Withheld) >= mostWithheld {
		a.More++
		return
	}
	a.Withheld = append(a.Withheld, w)
}

// drop takes out of the next digest what has just been said: of that heartbeat, what was held back under the key, and the
// ticks that woke nobody.
func (a *Attention) drop(heartbeat, key string) {
	a.Withheld = slices.DeleteFunc(a.Withheld, func(w Withheld) bool {
		return w.Heartbeat == heartbeat && (w.Key == "" || w.Key == key)
	})
}

// placeDigest writes the due row of a person's digest, which is told to the given account of theirs, unless there is an earlier
// one.
func placeDigest(tx memory.Tx, account string, at time.Time) error {
	person, err := PersonOf(tx, account)
	if err != nil {
		return err
	}
	row, found, err := tx.Due().Get(DigestPrefix + person)
	if err == nil && (!found || at.Before(row.At)) {
		err = tx.Due().Put(memory.DueRow{Key: DigestPrefix + person, At: at, Data: []byte(account)})
	}
	if err != nil {
		return fmt.Errorf("set the time of the digest for %s: %w", account, err)
	}
	return nil
}

// moveDigest makes the digest of one person that of another, who may have one already: the first time of both counts.
func moveDigest(tx memory.Tx, from, to string) error {
	row, found, err := tx.Due().Get(DigestPrefix + from)
	if err != nil || !found {
		return err
	}
	other, has, err := tx.Due().Get(DigestPrefix + to)
	if err != nil {
		return err
	}
	if row.Key = DigestPrefix + to; has && other.At.Before(row.At) {
		row = other
	}
	return errors.Join(tx.Due().Remove(DigestPrefix+from), tx.Due().Put(row))
}

// DigestFor is the account to which the digest of a due row is told; "" when its person has none any more.
func DigestFor(tx memory.Tx, row memory.DueRow) (account string, err error) {
	person, account := strings.TrimPrefix(row.Key, DigestPrefix), string(row.Data)
	if whose, err := PersonOf(tx, account); err != nil || whose == person {
		return account, err
	}
	all, err := Accounts(tx, person) // the account was unlinked
	if err != nil || len(all) == 0 {
		return "", err
	}
	return all[0].ID, nil
}

// Told is what a digest tells.
type Told struct {
	Text string // in plain words, with a list
	Seen string // what of that checks saw: written by others; "" for nothing
	// Outside and Private are as in [Unasked], of all that is told.
	Outside string
	Private bool
	Items   []Withheld
}

// Heartbeats are those of which it tells, each once.
func (t Told) Heartbeats() (names []string) {
	for _, w := range t.Items {
		if w.Heartbeat != "" && !slices.Contains(names, w.Heartbeat) {
			names = append(names, w.Heartbeat)
		}
	}
	return names
}

// TakeDigest takes what was held back from a person in a zone out of the store, to be said in the same transaction, in which
// its due row falls due. While they must not be spoken to, the row is moved and nothing is taken. There may be nothing to
// tell any more: then Told has no text. A digest is not counted against the cap.
func (b Budget) TakeDigest(tx memory.Tx, row memory.DueRow, zone *time.Location, now time.Time) (Told, error) {
	person := strings.TrimPrefix(row.Key, DigestPrefix)
	a, err := LoadAttention(tx, person)
	if err != nil {
		return Told{}, err
	}
	until := a.SnoozedBy("", now)
	if until.IsZero() {
		until = b.Quiet.Until(now, zone)
	}
	if !until.IsZero() {
		row.At = until
		if err := tx.Due().Put(row); err != nil {
			return Told{}, fmt.Errorf("put off the digest for %s: %w", person, err)
		}
		return Told{}, nil
	}
	told := Told{Text: a.digest(now, zone), Items: a.Withheld}
	for _, w := range a.Withheld {
		if told.Outside == "" {
			told.Outside = w.Outside
		}
		told.Private = told.Private || w.Private
		if w.Seen {
			told.Seen += w.Text + "\n"
		}
	}
	a.Withheld, a.More = nil, 0
	return told, errors.Join(a.save(tx, person, now), tx.Due().Remove(row.Key))
}

// digest tells what was held back, a line each, on the clocks of a zone; "" when nothing was.
func (a Attention) digest(now time.Time, zone *time.Location) string {
	if len(a.Withheld) == 0 {
		return ""
	}
	lines := []string{"Held back until now:"}
	for _, w := range a.Withheld {
		lines = append(lines, "- "+w.line(now, zone))
	}
	if a.More > 0 {
		lines = append(lines, fmt.Sprintf("- and %d more", a.More))
	}
	return strings.Join(lines, "\n")
}

// line is one thing in a line, such as "disk-full, 02:10 (3 times until 04:10; in your quiet hours), the check saw: 95 %".
func (w Withheld) line(now time.Time, zone *time.Location) string {
	at := func(instant time.Time) string {
		local, today := instant.In(zone), now.In(zone)
		if local.Format(time.DateOnly) == today.Format(time.DateOnly) {
			return local.Format("15:04")
		}
		return local.Format("Mon 15:04")
	}
	why := map[Reason]string{InQuiet: "in your quiet hours", AtCap: "over your daily cap", BySnooze: "while you had snoozed"}[w.By]
	if w.Count > 1 {
		why = fmt.Sprintf("%d times until %s; %s", w.Count, at(w.Last), why)
	}
	said := fmt.Sprintf("%s (%s)", at(w.First), why)
	if w.Heartbeat != "" {
		said = w.Heartbeat + ", " + said
	}
	switch {
	case w.Text == "":
		return said
	case w.Seen:
		return said + ", the check saw: " + w.Text
	}
	return said + ": " + w.Text
}
