package memory

import (
	"crypto/rand"
	"fmt"
)

// What a store deletes is out of use at once; its bytes stay in a file until they are written over. What somebody wanted
// deleted shall leave the file as well, so the transaction that deletes it says so with Gone, and whoever runs the store has
// the bytes written over soon after, also if the process is killed in between.

// tableGone has one row while bytes wait to be written over.
const (
	tableGone = "wipe"
	goneKey   = "since"
)

// Gone notes that what this transaction deletes shall leave the file as well.
func Gone(tx Tx) error {
	if err := tx.Table(tableGone).Put(goneKey, []byte(rand.Text())); err != nil {
		return fmt.Errorf("note that something shall leave the data file: %w", err)
	}
	return nil
}

// GoneSince gives a mark that changes with each [Gone]; "" while nothing waits.
func GoneSince(tx Tx) (mark string, err error) {
	value, _, err := tx.Table(tableGone).Get(goneKey)
	return string(value), err
}

// Wiped notes that the bytes of all that was gone at a mark have been written over. What has gone since still waits.
func Wiped(tx Tx, mark string) error {
	now, err := GoneSince(tx)
	if err != nil || now != mark || mark == "" {
		return err
	}
	return tx.Table(tableGone).Delete(goneKey)
}
