package agent

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"nudge/memory"
)

// A result that is too long for the model is bounded, and saved whole for the session that reads it, where the model
// can page through it. Its id is a digest of what it says: the same result, got again, reads the same to whoever looks
// for repeats, and is kept once.

// SavedPrefix begins the path under which read_file finds a saved result; the result's id follows.
const SavedPrefix = "result:"

// savedOutside begins the ids of results that have outside text in them; no other id has that digit.
const savedOutside = "0"

// SavedOutside reports whether the saved result with an id has text in it that strangers may have written.
func SavedOutside(id string) bool { return strings.HasPrefix(id, savedOutside) }

// MaxSaved is how many bytes of a result are kept.
const MaxSaved = 1 << 20

// mostSaved is how many bytes of results are kept for one person, in all sessions. Beyond that the oldest go.
var mostSaved = 64 << 20 // a variable for tests alone

const (
	savedID = 16 // characters of an id, which are 80 bits
	// savedTime is how an instant is written, so that texts sort as instants do.
	savedTime = "2006-01-02T15:04:05.000000000Z"

	tableSaved     = "saved"           // session, id → when it was saved, and the text; those of files are in content.go
	tableSavedTime = "saved by time"   // instant, session, id → whose turn it was saved in; nothing for what does not count
	tableSavedOf   = "saved by person" // whose, instant, session, id → how many bytes
)

// pager is the tool with which the model can page through saved results in a turn; nil when it is not offered one.
func (b *toolbox) pager(t *turn) *Tool {
	for _, tool := range b.order {
		if tool.Pages && b.offers(tool, t) {
			return tool
		}
	}
	return nil
}

// bounded is what a tool gave, as the model reads it in a turn: without secrets, and not too long. If it was cut and
// the model can page through it there, save keeps the whole for the session in which it is read; otherwise save is nil.
func (b *toolbox) bounded(t *turn, tool, text string, outside bool) (kept string, save func(tx memory.Tx, session string) error) {
	text = b.secrets.Text(text)
	pager := b.pager(t)
	if pager == nil || tool == pager.Name { // what pages is never saved again
		kept, _ = Bound(text, maxResult)
		return kept, nil
	}
	return saveResult(pager.Name, t.person.ID, text, outside)
}

// saveResult is Bound for a result of a person's of which save keeps the whole; save is nil when there is nothing to
// keep: nothing was left out, or it is binary. save may be called more than once.
func saveResult(pager string, of PersonID, text string, outside bool) (bounded string, save func(tx memory.Tx, session string) error) {
	if bounded, cut := Bound(text, maxResult); !cut || Binary(text) {
		return bounded, nil
	}
	clean := cleaned(text)
	sum := sha256.Sum256([]byte(clean))
	id := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:savedID])
	if outside {
		id = savedOutside + id[1:]
	}
	part := "all of it"
	kept := savedPart(clean)
	if kept != clean {
		part = "its first MiB"
	}
	way := fmt.Sprintf("; %s with path %q and an offset pages through %s", pager, SavedPrefix+id, part)
	at := now()
	return headAndTail(clean, maxResult, way), func(tx memory.Tx, session string) error {
		err := roomFor(tx, of, len(kept))
		if err == nil {
			err = putSaved(tx, of, session, id, kept, at)
		}
		if err != nil {
			return fmt.Errorf("save the result %s of %s: %w", id, session, err)
		}
		return nil
	}
}

// savedPart is as much of a clean text as is kept. Where something is missing, its end says so.
func savedPart(clean string) string {
	if len(clean) <= MaxSaved {
		return clean
	}
	missing := func(bytes int) string { return fmt.Sprintf("\n[… %d bytes more were not saved …]\n", bytes) }
	head := Head(clean, MaxSaved-len(missing(len(clean))))
	return head + missing(len(clean)-len(head))
}

// savedKey names a row of a session, "" for id the beginning of them all. A digest stands for the session, so that no
// session's rows begin with another's, and no name is too long.
func savedKey(session, id string) string {
	sum := sha256.Sum256([]byte(session))
	return hex.EncodeToString(sum[:]) + "/" + id
}

// savedBy names whose a saved result is; a digest, so that nobody's rows begin with another's.
func savedBy(of PersonID) string {
	sum := sha256.Sum256([]byte(of))
	return hex.EncodeToString(sum[:8])
}

// roomFor removes the oldest results of a person as far as another would not fit.
func roomFor(tx memory.Tx, of PersonID, size int) error {
	type row struct {
		name string
		size int
	}
	var rows []row
	total := size
	prefix := savedBy(of) + "/"
	err := tx.Table(tableSavedOf).Scan(prefix, func(key string, value []byte) error {
		bytes, err := strconv.Atoi(string(value))
		rows, total = append(rows, row{key[len(prefix):], bytes}), total+bytes
		return err
	})
	for len(rows) > 0 && total > mostSaved && err == nil {
		err = removeSaved(tx, rows[0].name)
		rows, total = rows[1:], total-rows[0].size
	}
	if err != nil {
		return fmt.Errorf("make room among the results of %s: %w", of, err)
	}
	return nil
}

// putSaved keeps a text for a session. It counts as one of a person's, unless that is "".
func putSaved(tx memory.Tx, of PersonID, session, id, text string, at time.Time) error {
	key := savedKey(session, id)
	had, found, err := tx.Table(tableSaved).Get(key)
	if err != nil {
		return err
	}
	if found {
		if err := removeSaved(tx, timeRow(key, had)); err != nil {
			return err
		}
	}
	value := []byte(at.UTC().Format(savedTime) + text)
	if err := tx.Table(tableSaved).Put(key, value); err != nil {
		return err
	}
	row := timeRow(key, value)
	if of == "" {
		return tx.Table(tableSavedTime).Put(row, nil)
	}
	if err := tx.Table(tableSavedTime).Put(row, []byte(savedBy(of))); err != nil {
		return err
	}
	return tx.Table(tableSavedOf).Put(savedBy(of)+"/"+row, []byte(strconv.Itoa(len(value))))
}

// timeRow names the row of a saved result in the order of time.
func timeRow(key string, value []byte) string {
	return string(value[:min(len(savedTime), len(value))]) + "/" + key
}

// removeSaved takes out saved results, named by their rows in the order of time.
func removeSaved(tx memory.Tx, rows ...string) error {
	for _, row := range rows {
		_, key, _ := strings.Cut(row, "/")
		of, counted, err := tx.Table(tableSavedTime).Get(row)
		if err != nil {
			return err
		}
		if counted && len(of) > 0 {
			if err := tx.Table(tableSavedOf).Delete(string(of) + "/" + row); err != nil {
				return err
			}
		}
		if err := errors.Join(tx.Table(tableSaved).Delete(key), tx.Table(tableSavedTime).Delete(row)); err != nil {
			return err
		}
	}
	return nil
}

// Saved is the saved result of a session with an id as it stands after [SavedPrefix], and whether there is one: it may
// have aged out, or belong to another session. At most 1 MiB was kept; if that is not all, the end of the text says so.
func Saved(tx memory.Tx, session, id string) (text string, found bool, err error) {
	if len(id) != savedID || strings.Contains(id, ":") { // a row of a file's is none
		return "", false, nil
	}
	value, found, err := getSaved(tx, session, id)
	return string(value), found, err
}

// getSaved gives what was saved for a session under an id.
func getSaved(tx memory.Tx, session, id string) (value []byte, found bool, err error) {
	value, found, err = tx.Table(tableSaved).Get(savedKey(session, id))
	if err == nil && found && len(value) < len(savedTime) {
		err = fmt.Errorf("it has %d bytes, which is too short: %w", len(value), memory.ErrDamaged)
	}
	if err != nil {
		return nil, false, fmt.Errorf("read the saved result %s of %s: %w", id, session, err)
	}
	if !found {
		return nil, false, nil
	}
	return value[len(savedTime):], true, nil
}

// SweepSaved removes at most limit results that were saved before an instant, the oldest first, and returns how many
// it removed: fewer than limit when no more are that old. A result that was got again counts as saved then.
func SweepSaved(tx memory.Tx, before time.Time, limit int) (removed int, err error) {
	var old []string
	until := before.UTC().Format(savedTime)
	err = tx.Table(tableSavedTime).Scan("", func(row string, _ []byte) error {
		if len(old) >= limit || row >= until {
			return memory.ErrStop
		}
		old = append(old, row)
		return nil
	})
	if err == nil {
		err = removeSaved(tx, old...)
	}
	if err != nil {
		return 0, fmt.Errorf("sweep the saved results: %w", err)
	}
	return len(old), nil
}

// EraseSaved removes all saved results and file contents of a session and returns how many there were.
func EraseSaved(tx memory.Tx, session string) (removed int, err error) {
	var rows []string
	err = tx.Table(tableSaved).Scan(savedKey(session, ""), func(key string, value []byte) error {
		rows = append(rows, timeRow(key, value))
		if !strings.Contains(key, pieceMark) {
			removed++
		}
		return nil
	})
	if err == nil {
		err = removeSaved(tx, rows...)
	}
	if err != nil {
		return 0, fmt.Errorf("erase the saved results of %s: %w", session, err)
	}
	return removed, nil
}
