package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"nudge/agent"
	"nudge/memory"
)

// DeadLetter is a reply that was given up: its conversation is gone, or it could not be said for a day, or nobody knows
// whether it was said.
type DeadLetter struct {
	Conversation string     `json:"conversation"`
	Kind         agent.Kind `json:"kind"`
	Text         string     `json:"text,omitempty"`
	Reason       string     `json:"reason"` // one line
	At           time.Time  `json:"at"`     // when it was given up
}

// How many dead letters are kept and for how long, and how long the reason of one may be in bytes.
const (
	mostLetters = 5000
	lettersFor  = 30 * 24 * time.Hour
	mostReason  = 500
)

// The tables of what could not be said.
const (
	tableLetters memory.Rows[DeadLetter] = "dead_letter"   // by number; numbers have as many digits each and no gaps
	tableTold                            = "told_of_dead"  // conversation → when the owners were told of it
	tableFailing memory.Rows[failing]    = "not_delivered" // by conversation
)

// failing is a conversation in which nothing can be said at present.
type failing struct {
	Since time.Time `json:"since"`
	UpTo  uint64    `json:"up_to"` // the last parcel that was queued then
}

func readFailing(tx memory.Tx, address string) (row failing, found bool, err error) {
	data, found, err := tableFailing.Table(tx).Get(address)
	if err != nil || !found {
		return row, false, err
	}
	if err := json.Unmarshal(data, &row); err != nil {
		return failing{}, false, nil // it is counted anew
	}
	return row, true, nil
}

// DeadLetters gives how many replies were given up in the last thirty days, as far as they are kept, and at most limit of
// them, newest first. It costs the same for many as for few.
func DeadLetters(tx memory.Tx, limit int) (total int, newest []DeadLetter, err error) {
	before := time.Now().Add(-lettersFor)
	first, last := 0, 0
	err = tableLetters.Table(tx).Scan("", func(key string, data []byte) error {
		if l, err := readLetter(key, data); err != nil || l.At.Before(before) {
			return nil
		}
		first, _ = strconv.Atoi(key)
		return memory.ErrStop
	})
	if err != nil || first == 0 {
		return 0, nil, err
	}
	err = tableLetters.Table(tx).ScanBack("", func(key string, data []byte) error {
		number, err := strconv.Atoi(key)
		if err != nil {
			return fmt.Errorf("read the number of the dead letter %q: %w", key, err)
		}
		last = max(last, number)
		if number < first || len(newest) >= limit {
			return memory.ErrStop
		}
		l, err := readLetter(key, data)
		newest = append(newest, l)
		return err
	})
	return last - first + 1, newest, err
}

func readLetter(key string, data []byte) (l DeadLetter, err error) {
	if err := json.Unmarshal(data, &l); err != nil {
		return l, fmt.Errorf("read the dead letter %s: %w", key, err)
	}
	return l, nil
}

// blankLetters takes the words out of the letters for which is holds, and returns how many had some. One that cannot be read goes
// with its time. The letters themselves stay, since their numbers have no gaps.
func blankLetters(tx memory.Tx, is func(DeadLetter) bool) (blanked int, err error) {
	letters := map[string]DeadLetter{}
	err = tableLetters.Table(tx).Scan("", func(key string, data []byte) error {
		if l, err := readLetter(key, data); err == nil && l.Text != "" && is(l) {
			l.Text = ""
			letters[key] = l
		}
		return nil
	})
	for key, l := range letters {
		if err == nil {
			err = tableLetters.Put(tx, key, l)
		}
	}
	return len(letters), err
}

// forgetLetters is blankLetters for somebody who is forgotten, whose conversations are those for which own holds:
// nothing tells whom the letters were to, or that there was trouble.
func forgetLetters(tx memory.Tx, own func(conversation string) bool) (blanked int, err error) {
	letters := map[string]DeadLetter{}
	err = tableLetters.Table(tx).Scan("", func(key string, data []byte) error {
		if l, err := readLetter(key, data); err == nil && own(l.Conversation) {
			if l.Text != "" {
				blanked++
			}
			letters[key] = DeadLetter{Conversation: "somebody", Kind: l.Kind, Reason: "they were forgotten", At: l.At}
		}
		return nil
	})
	for key, l := range letters {
		if err == nil {
			err = tableLetters.Put(tx, key, l)
		}
	}
	for _, table := range []memory.Table{tx.Table(tableTold), tableFailing.Table(tx)} {
		if err == nil {
			_, err = memory.RemoveRows(table, "", func(conversation string, _ []byte) (bool, error) { return own(conversation), nil })
		}
	}
	return blanked, err
}

// bury moves what is given up from the outbox to the dead letters, and tells the owners when it is the first of its
// conversation for long. A sign is no letter.
func (h *Hub) bury(it *item, reason error) {
	h.Log.Error("gave up saying something", "kind", it.reply.Kind, "conversation", it.reply.Address, "error", reason)
	letter := DeadLetter{
		Conversation: it.reply.Address, Kind: it.reply.Kind, Text: it.reply.Text, Reason: reasonOf(reason), At: time.Now().UTC(),
	}
	if it.reply.IsCard() {
		letter.Text = CardText(it.reply, h.slash(it.reply.Address))
	}
	told := false
	kept := h.keep("keep what was given up", func(tx memory.Tx) (err error) {
		if err := tx.Outbox().Remove(it.parcel); err != nil || isSign(letter.Kind) {
			return err
		}
		if err := putLetter(tx, letter); err != nil {
			return err
		}
		if row, found, err := readFailing(tx, letter.Conversation); err != nil {
			return err
		} else if found && it.parcel >= row.UpTo {
			if err := tableFailing.Delete(tx, letter.Conversation); err != nil {
				return err
			}
		}
		follows, err := h.left(tx, it.reply, reason)
		if err == nil {
			told, err = h.tellOwners(tx, letter, follows)
		}
		return err
	})
	if !kept {
		return
	}
	if told {
		h.Outgoing()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.free = append(h.free, it.parcel)
	if told {
		h.alarmed = h.asked
	}
}

// left says what follows from a reply's person or place not being there any more; "" when it is something else.
func (h *Hub) left(tx memory.Tx, r agent.Reply, reason error) (follows string, err error) {
	var send *SendError
	if h.Left == nil || !errors.As(reason, &send) || !send.Left {
		return "", nil
	}
	return h.Left(tx, r, reasonOf(send.Err))
}

func reasonOf(err error) string {
	reason := strings.Join(strings.Fields(err.Error()), " ")
	if len(reason) > mostReason {
		reason = strings.ToValidUTF8(reason[:mostReason], "") + "…"
	}
	return reason
}

// putLetter adds a letter, and takes out those for which there is no more room or time.
func putLetter(tx memory.Tx, l DeadLetter) error {
	last := 0
	err := tableLetters.Table(tx).ScanBack("", func(key string, _ []byte) (err error) {
		if last, err = strconv.Atoi(key); err != nil {
			return fmt.Errorf("read the number of the dead letter %q: %w", key, err)
		}
		return memory.ErrStop
	})
	if err != nil {
		return err
	}
	if err := tableLetters.Put(tx, fmt.Sprintf("%018d", last+1), l); err != nil {
		return err
	}
	return sweepLetters(tx, l.At.Add(-lettersFor), last+1-mostLetters)
}

// sweepLetters takes out the letters that were given up before an instant or have at most the given number. They lie in
// order of both.
func sweepLetters(tx memory.Tx, before time.Time, upTo int) error {
	var old []string
	err := tableLetters.Table(tx).Scan("", func(key string, data []byte) error {
		number, err := strconv.Atoi(key)
		if err != nil {
			return fmt.Errorf("read the number of the dead letter %q: %w", key, err)
		}
		// One that cannot be read would lie there for ever.
		if l, err := readLetter(key, data); err == nil && number > upTo && !l.At.Before(before) {
			return memory.ErrStop
		}
		old = append(old, key)
		return nil
	})
	if err != nil {
		return err
	}
	for _, key := range old {
		if err := tableLetters.Delete(tx, key); err != nil {
			return err
		}
	}
	return nil
}

// tellOwners queues an alarm to those who hear of trouble, unless they were told of the conversation already. None goes
// to the conversation itself. What could not be said is not told: it may be private.
func (h *Hub) tellOwners(tx memory.Tx, l DeadLetter, follows string) (told bool, err error) {
	_, before, err := tx.Table(tableTold).Get(l.Conversation)
	if err != nil || before {
		return false, err
	}
	if err := tx.Table(tableTold).Put(l.Conversation, []byte(l.At.Format(time.RFC3339))); err != nil {
		return false, err
	}
	text := fmt.Sprintf("I gave up saying something in %s: %s. `nudge doctor` lists what could not be delivered; I say this once for a conversation.",
		l.Conversation, l.Reason)
	if follows != "" {
		text += " " + follows
	}
	for _, owner := range append(h.Owners[:len(h.Owners):len(h.Owners)], "web:me") {
		address, _, err := agent.Home(tx, owner)
		if err != nil {
			return false, err
		}
		if address == l.Conversation || owner == "web:me" && told {
			continue
		}
		if err := agent.Send(tx, agent.Reply{Kind: agent.Notice, Text: text, Address: address}); err != nil {
			return false, err
		}
		told = true
	}
	return told, nil
}

// age forgets the letters, that owners were told, where notify cards stand, and what was asked and tried, after their time.
func (h *Hub) age(ctx context.Context) {
	before := time.Now().Add(-lettersFor)
	err := h.Store.Update(ctx, func(tx memory.Tx) error {
		if err := errors.Join(sweepLetters(tx, before, 0), sweepReceipts(tx), sweepRequests(tx, before), sweepStrangers(tx, time.Now().Add(-strangerFor)), sweepTries(tx, time.Now())); err != nil {
			return err
		}
		_, err := memory.RemoveRows(tx.Table(tableTold), "", func(_ string, at []byte) (bool, error) {
			told, err := time.Parse(time.RFC3339, string(at))
			return err != nil || told.Before(before), nil
		})
		return err
	})
	if err != nil && ctx.Err() == nil {
		h.Log.Warn("cannot remove old dead letters and receipts", "error", err)
	}
}
