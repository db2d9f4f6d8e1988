package schedule

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nudge/memory"
)

// The table of accounts that somebody has linked, by account, or by a person who became one with another. An account that
// stands for itself has no row.
const tableAccounts memory.Rows[accountRow] = "account"

// accountRow says whose an account is.
type accountRow struct {
	Person string    `json:"person"`
	Since  time.Time `json:"since"`
}

// MostAccounts is how many accounts one person may have.
const MostAccounts = 16

// The errors of [Link] and [Unlink] for what cannot be done. Nothing is changed by a call that returns one.
var (
	ErrLinked   = errors.New("the two accounts are one person's already")
	ErrUnlinked = errors.New("the account is linked with no other")
	ErrCrowded  = fmt.Errorf("one person has %d accounts at most", MostAccounts)
)

// personPrefix begins the ids of people with several accounts. It is no platform's, so that none is an account's.
const personPrefix = "person:"

// PersonOf gives whose an account is: an id under which is kept what a person has but once, however many accounts they have.
// It is the account itself where that was never linked, and of an id that it gave before, that of the person who has become
// one with them since. What has no row is its own person, whatever it is.
func PersonOf(tx memory.Tx, account string) (string, error) {
	if account == "" || len(account) > memory.MaxID {
		return account, nil
	}
	row, found, err := tableAccounts.Get(tx, account)
	if err != nil {
		return "", fmt.Errorf("look whose account %s is: %w", account, err)
	}
	if !found {
		return account, nil
	}
	return row.Person, nil
}

// Account is one account of a person's.
type Account struct {
	ID    string
	Since time.Time // when it was linked; zero for one that is linked with no other
}

// tableParted keeps from whom an account was parted, by a digest of the account, since it outlasts that they are forgotten.
const tableParted memory.Rows[partedRow] = "parted"

type partedRow struct {
	From []parting `json:"from"` // the oldest first
}

// parting is that an account was a person's until an instant.
type parting struct {
	Person string    `json:"person"`
	At     time.Time `json:"at"`
}

// partedFor is how long an account still counts as that of whom it was parted from: longer than anything waits for
// somebody else than they, who could part an account and be somebody else with it.
const partedFor = 30 * 24 * time.Hour

// mostPartings is how many are kept of an account. With so many it may have been anybody's.
const mostPartings = 200

// part notes that an account is no longer a person's.
func part(tx memory.Tx, account, person string, now time.Time) error {
	var old []string
	err := tableParted.Scan(tx, "", func(key string, row partedRow) error {
		if len(row.recent(now)) == 0 {
			old = append(old, key)
		}
		return nil
	})
	for _, key := range old {
		err = errors.Join(err, tableParted.Delete(tx, key))
	}
	if err != nil {
		return err
	}
	row, _, err := tableParted.Get(tx, partedKey(account))
	if err != nil {
		return err
	}
	row.From = append(row.recent(now), parting{person, now.UTC()})
	row.From = row.From[max(0, len(row.From)-mostPartings):]
	return tableParted.Put(tx, partedKey(account), row)
}

func partedKey(account string) string {
	sum := sha256.Sum256([]byte(account))
	return hex.EncodeToString(sum[:16])
}

func (r partedRow) recent(now time.Time) []parting {
	return slices.DeleteFunc(slices.Clone(r.From), func(p parting) bool { return now.Sub(p.At) > partedFor })
}

// SamePerson reports whether two accounts are one person's, or were within the last 30 days.
func SamePerson(tx memory.Tx, one, other string, now time.Time) (bool, error) {
	ones, err := peopleOf(tx, one, now)
	if err != nil {
		return false, err
	}
	others, err := peopleOf(tx, other, now)
	if len(ones) > mostPartings || len(others) > mostPartings {
		return true, err
	}
	return slices.ContainsFunc(ones, func(person string) bool { return slices.Contains(others, person) }), err
}

// peopleOf are those whose an account is, or was lately, and whose these were in turn: a person with several accounts who is
// forgotten parts from all that they had become one with. There are more than mostPartings where that cannot be told.
func peopleOf(tx memory.Tx, account string, now time.Time) (people []string, err error) {
	for of := []string{account}; len(of) > 0 && len(people) <= mostPartings; of = of[1:] {
		person, err := PersonOf(tx, of[0])
		if err != nil {
			return nil, err
		}
		for _, id := range []string{of[0], person} {
			if slices.Contains(people, id) {
				continue
			}
			people = append(people, id)
			row, _, err := tableParted.Get(tx, partedKey(id))
			if err != nil {
				return nil, fmt.Errorf("look whose account %s was: %w", account, err)
			}
			for _, p := range row.recent(now) {
				of = append(of, p.Person)
			}
		}
	}
	return people, nil
}

// Accounts gives all accounts of the person whose one is given, in the order in which they were linked. It reads all rows of
// accounts, so it is for what people do by hand.
func Accounts(tx memory.Tx, account string) ([]Account, error) {
	person, err := PersonOf(tx, account)
	if err != nil {
		return nil, err
	}
	all, err := accountsOf(tx, person)
	if err == nil && all == nil && !strings.HasPrefix(account, personPrefix) {
		all = []Account{{ID: account}}
	}
	return all, err
}

func accountsOf(tx memory.Tx, person string) (all []Account, err error) {
	err = scanAccounts(tx, func(id string, row accountRow) {
		if row.Person == person && !strings.HasPrefix(id, personPrefix) {
			all = append(all, Account{id, row.Since})
		}
	})
	slices.SortFunc(all, func(a, b Account) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.ID, b.ID))
	})
	return all, err
}

func scanAccounts(tx memory.Tx, fn func(id string, row accountRow)) error {
	err := tableAccounts.Scan(tx, "", func(id string, row accountRow) error {
		fn(id, row)
		return nil
	})
	if err != nil {
		return fmt.Errorf("list the accounts of people: %w", err)
	}
	return nil
}

// Joined is what came of a [Link].
type Joined struct {
	Person string   // whose both accounts are now
	Was    []string // whose they were; what is kept under these is to be moved, in the same transaction
}

// Link makes two accounts, with all others of theirs, one person's. Their [Attention] is joined; what other rooms keep under
// [PersonOf] is theirs to move. Whether both belong to one human is for the caller to find out.
func Link(tx memory.Tx, one, other string, now time.Time) (Joined, error) {
	joined, err := link(tx, one, other, now)
	if err != nil {
		return Joined{}, fmt.Errorf("link %s and %s: %w", one, other, err)
	}
	return joined, nil
}

func link(tx memory.Tx, one, other string, now time.Time) (Joined, error) {
	joined := Joined{Person: personPrefix + strings.ToLower(rand.Text())}
	accounts := 0
	for _, side := range []string{one, other} {
		if side == "" || len(side) > memory.MaxID {
			return Joined{}, memory.ErrBadID
		}
		person, err := PersonOf(tx, side)
		if err != nil {
			return Joined{}, err
		}
		all, err := Accounts(tx, side)
		if err != nil {
			return Joined{}, err
		}
		accounts += len(all)
		joined.Was = append(joined.Was, person)
	}
	switch {
	case joined.Was[0] == joined.Was[1]:
		return Joined{}, ErrLinked
	case accounts > MostAccounts:
		return Joined{}, ErrCrowded
	}
	for _, was := range joined.Was {
		if err := joined.take(tx, was, now); err != nil {
			return Joined{}, err
		}
	}
	return joined, joined.attention(tx, now)
}

// take makes all accounts of one of both the person's, and with them the id under which things may still be noted.
func (j Joined) take(tx memory.Tx, was string, now time.Time) error {
	rows := map[string]accountRow{was: {j.Person, now.UTC()}}
	err := scanAccounts(tx, func(id string, row accountRow) {
		if row.Person == was {
			rows[id] = accountRow{j.Person, row.Since}
		}
	})
	for id, row := range rows {
		if err == nil {
			err = tableAccounts.Put(tx, id, row)
		}
	}
	return err
}

// attention makes what both said of being spoken to unasked one.
func (j Joined) attention(tx memory.Tx, now time.Time) error {
	var both Attention
	for _, was := range j.Was {
		a, _, err := tableAttention.Get(tx, was)
		if err != nil {
			return err
		}
		both.join(a)
		if err := errors.Join(tableAttention.Delete(tx, was), moveDigest(tx, was, j.Person)); err != nil {
			return err
		}
	}
	return both.save(tx, j.Person, now)
}

// Unlink makes an account one that stands for itself, and gives whose it was. What was kept of the person stays with their other
// accounts, but for what their [Attention] counts and what they wish to be spared, which is the account's as well from then on.
// What bounds a person in other rooms is theirs to count against both, in the same transaction.
func Unlink(tx memory.Tx, account string, now time.Time) (was string, err error) {
	if was, err = unlink(tx, account, now); err != nil {
		return "", fmt.Errorf("unlink %s: %w", account, err)
	}
	return was, nil
}

func unlink(tx memory.Tx, account string, now time.Time) (was string, err error) {
	all, err := Accounts(tx, account)
	if err != nil {
		return "", err
	}
	if len(all) < 2 {
		return "", ErrUnlinked
	}
	if was, err = PersonOf(tx, account); err != nil {
		return "", err
	}
	attention, err := LoadAttention(tx, account)
	if err != nil {
		return "", err
	}
	if err := errors.Join(tableAccounts.Delete(tx, account), part(tx, account, was, now)); err != nil {
		return "", err
	}
	attention.Withheld, attention.More = nil, 0 // told once, and to those who stay
	return was, attention.save(tx, account, now)
}

// ForgetAccounts removes what is known of which accounts are a person's, so that each stands for itself. That they were one
// person's is known for a while of digests of them; see [SamePerson].
func ForgetAccounts(tx memory.Tx, person string, now time.Time) (removed int, err error) {
	var ids []string
	err = scanAccounts(tx, func(id string, row accountRow) {
		if row.Person == person {
			ids = append(ids, id)
		}
	})
	for _, id := range ids {
		if err == nil {
			err = errors.Join(tableAccounts.Delete(tx, id), part(tx, id, person, now))
		}
	}
	return len(ids), err
}
