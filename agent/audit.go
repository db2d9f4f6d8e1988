package agent

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"nudge/memory"
)

// Deed is what somebody did that an operator may have to account for, and that stands in no session's journal: a line of the
// audit. Nothing that anybody said is in it.
type Deed struct {
	At    time.Time `json:"at"`
	Did   string    `json:"did"`             // such as [DeedLinked]
	By    PersonID  `json:"by,omitempty"`    // who decided it; "" for nobody, such as a time-out
	About string    `json:"about,omitempty"` // the account, person or session that it was done to
	With  string    `json:"with,omitempty"`  // the other account of a link
	Card  string    `json:"card,omitempty"`  // by which it was decided
}

// What is done.
const (
	DeedLinked   = "linked"   // two accounts became one person's
	DeedUnlinked = "unlinked" // an account was parted from the others of its person
	DeedForgot   = "forgot"   // all that was kept of a person was removed
	DeedErased   = "erased"   // a session was removed
	DeedAllowed  = "allowed"  // a stranger was let in
	DeedIgnored  = "ignored"  // a stranger was not
	DeedRevoked  = "revoked"  // somebody who had been let in no longer is
)

// The table of the audit: number → a line of it. Numbers have as many digits each. Nothing is ever changed in it but that
// the ids of people who asked to be forgotten become opaque.
const tableAudit = "audit"

// Record adds to the audit what was done, in the transaction that does it.
func Record(tx memory.Tx, d Deed) error {
	d.At = d.At.UTC()
	if err := appendAudit(tx, d); err != nil {
		return fmt.Errorf("record that %s was %s: %w", d.About, d.Did, err)
	}
	return nil
}

func appendAudit(tx memory.Tx, lines ...any) error {
	table := tx.Table(tableAudit)
	last := uint64(0)
	err := table.ScanBack("", func(key string, _ []byte) (err error) {
		if last, err = strconv.ParseUint(key, 10, 64); err != nil {
			return fmt.Errorf("read the number of the audit's line %q: %w", key, err)
		}
		return memory.ErrStop
	})
	for _, line := range lines {
		if err != nil {
			break
		}
		var data []byte
		if data, err = json.Marshal(line); err == nil {
			last++
			err = table.Put(fmt.Sprintf("%020d", last), data)
		}
	}
	return err
}
