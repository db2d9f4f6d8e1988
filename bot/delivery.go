package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"nudge/agent"
	"nudge/memory"
)

// The words of a parcel's fate. What was delivered or given up is in the outbox no more.
const (
	queued    = ""          // nothing of it was said
	sending   = "sending"   // a try has begun; when that is found at a start, nobody knows what became of it
	unknown   = "unknown"   // a try may have said it
	repeating = "repeating" // and so may the one repeat that there is, with its label
	dead      = "dead"      // was given up by a version that left such parcels where they were
)

// fate is what is known of how a parcel was sent. As text it is the parcel's [memory.Parcel.State].
type fate struct {
	word  string
	since time.Time // when the first try began that is in doubt
}

func (f fate) String() string {
	if f.since.IsZero() {
		return f.word
	}
	return f.word + " " + f.since.UTC().Format(time.RFC3339Nano)
}

// readFate reads a parcel's state. A fate that cannot be read is doubtful since ever.
func readFate(state string) fate {
	word, at, _ := strings.Cut(state, " ")
	since, err := time.Parse(time.RFC3339Nano, at)
	switch {
	case word == queued, word == dead:
		return fate{word: word}
	case err != nil, word != sending && word != unknown && word != repeating:
		return fate{unknown, time.Unix(0, 0).UTC()}
	}
	return fate{word, since}
}

// item is a parcel of the outbox, or progress, which is in none. Only the goroutine of its queue touches it.
type item struct {
	adapter Adapter
	parcel  uint64 // 0 for progress
	queue   string // the name of the one that it is in, or came out of
	reply   agent.Reply
	fate    fate // as it is on disk
	begun   bool // the fate is that of a try which has begun in this process
	blind   bool // the adapter cannot find out what became of it
	spoilt  error
	failing time.Time // since when, for one of the receipts
}

// isReceipt reports whether an item is in a queue of receipts, which does not stand for its conversation.
func (it *item) isReceipt() bool { return it.queue != it.reply.Address }

// doubtful reports whether a try to say an item can be in doubt. Signs are the same when they are made twice.
func (it *item) doubtful() bool {
	return it.parcel != 0 && !isSign(it.reply.Kind) && it.adapter.Abilities().Doubt != NoDoubt
}

// isSign reports whether a kind has no words, but only changes how it looks where something stands.
func isSign(k agent.Kind) bool {
	return k == agent.SteerMark || k == agent.WaitingMark || k == agent.SettledMark
}

// findsOut reports whether the adapter can be given the same thing again.
func (it *item) findsOut() bool { return !it.blind && it.adapter.Abilities().Doubt == FindsOut }

// trying is what has to be on disk while the item is being said.
func (it *item) trying(now time.Time) fate {
	switch {
	case it.begun || !it.doubtful():
		return it.fate
	case it.fate.word == queued:
		return fate{sending, now}
	case it.findsOut():
		return fate{unknown, it.fate.since}
	}
	return fate{repeating, it.fate.since}
}

// tried is what is known after a try that failed.
func (it *item) tried(send *SendError) fate {
	switch {
	case !it.begun:
		return it.fate
	case it.fate.word == sending && !send.Unsure:
		return fate{}
	}
	return fate{unknown, it.fate.since}
}

// lost says why an item that comes out of the queue must not be said (again); nil when it may.
func (it *item) lost() error {
	switch {
	case it.spoilt != nil:
		return it.spoilt
	case it.fate.word == dead:
		return errors.New("it was given up by an earlier version of the program")
	case it.fate.word == repeating:
		return errTwice
	}
	return nil
}

var errTwice = errors.New("it may have been said, and so may its repeat: the answers to both were lost")

// maybeRepeat stands before what may have been said already.
const maybeRepeat = "(possibly a repeat) "

// delivery is the item as its adapter gets it.
func (h *Hub) delivery(it *item) Delivery {
	d := Delivery{Reply: Hide(it.reply, h.Secrets), Earlier: h.earlier(it.reply)}
	if it.parcel != 0 {
		d.Key = fmt.Sprint("parcel-", it.parcel)
	}
	switch it.fate.word {
	case unknown:
		d.Doubtful = it.fate.since
	case repeating:
		d.Key += "-repeat"
		if d.Kind != agent.DecidedMark {
			d.Text = strings.TrimSpace(maybeRepeat + d.Text)
		}
	}
	return d
}

// mostSaid is how much of what was said may still be in the outbox where sends are not in doubt.
const mostSaid = 16

// deliver says what a conversation's queue holds until it is empty. What was said leaves the outbox in the commit that
// notes that the next is being sent, or as soon as there is no next.
func (h *Hub) deliver(name string, q *queue) {
	var said []spoken
	for {
		it := h.next(q)
		if it == nil {
			h.settle(said, nil)
			said = nil
			if h.over(name, q) {
				return
			}
			continue
		}
		if err := it.lost(); err != nil {
			h.bury(it, err)
			continue
		}
		// A mark about a card needs the card's receipt, which is kept when the card leaves the outbox.
		if len(said) >= mostSaid || it.doubtful() || it.reply.Kind == agent.DecidedMark {
			h.settle(said, it)
			said = nil
		}
		if receipt, ok := h.say(it); ok && it.parcel != 0 {
			said = append(said, spoken{it, receipt})
		}
	}
}

// next takes the first item of a queue; nil when there is none.
func (h *Hub) next(q *queue) *item {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		q.items = nil
	}
	if len(q.items) == 0 {
		return nil
	}
	it := q.items[0]
	q.items = q.items[1:]
	return it
}

// over ends a queue, unless something came meanwhile.
func (h *Hub) over(name string, q *queue) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(q.items) > 0 && !h.ended {
		return false
	}
	delete(h.queues, name)
	h.quiet.Broadcast()
	return true
}

// say says one thing, with as many tries as it takes, and reports whether it was said.
func (h *Hub) say(it *item) (receipt string, said bool) {
	for wait := h.FirstWait; h.settle(nil, it); {
		d := h.delivery(it)
		receipt, err := it.adapter.Say(context.Background(), d)
		if err == nil {
			if d.Kind == agent.Final {
				h.pace.answers(d.Address, time.Now())
			}
			h.tellOthers(it.adapter, d)
			return receipt, true
		}
		if it.parcel == 0 {
			return "", false // progress may be dropped
		}
		again, asked := h.judge(it, err)
		if asked > 0 {
			wait = asked
		}
		switch {
		case again == never, again == later && !h.pause(wait):
			return "", false
		case again == later:
			wait = min(2*wait, longest)
		}
	}
	return "", false
}

// tellOthers tells the other places of a conversation, such as a second terminal.
func (h *Hub) tellOthers(speaker Adapter, d Delivery) {
	for _, other := range h.others(d.Address, speaker) {
		if _, err := other.Say(context.Background(), d); err != nil {
			h.Log.Warn("another place of a conversation could not be told", "conversation", d.Address, "error", err)
		}
	}
}

// spoken is what was said and is still in the outbox.
type spoken struct {
	*item
	receipt string
}

// tableReceipts keeps where cards stand: conversation and card → the platform's name for the message.
const tableReceipts = "receipt"

func receiptKey(r agent.Reply) string { return r.ID + " " + r.Address }

// settle takes what was said out of the outbox, keeps the receipts of cards for the marks about them, and notes that the
// next item is being sent, which must not begin before. It reports false when the hub ends before that is kept, or when
// the next item is not in the outbox any more.
func (h *Hub) settle(said []spoken, next *item) (kept bool) {
	var then fate
	if next != nil {
		then = next.trying(time.Now())
	}
	notes := next != nil && then != next.fate
	if len(said) > 0 || notes {
		there := true
		kept = h.keep("note what was said; it may be said again", func(tx memory.Tx) (err error) {
			for _, s := range said {
				if err := h.delivered(tx, s); err != nil {
					return err
				}
			}
			if notes {
				there, err = setFate(tx, next, then)
			}
			return err
		})
		h.mu.Lock()
		for _, s := range said {
			h.free = append(h.free, s.parcel)
		}
		if !there {
			h.free = append(h.free, next.parcel)
		}
		h.mu.Unlock()
		if !kept || !there {
			return false
		}
	}
	if next != nil {
		next.fate, next.begun = then, next.doubtful()
	}
	return true
}

// delivered takes one thing that was said out of the outbox, and keeps where a card stands until its outcome is said too.
func (h *Hub) delivered(tx memory.Tx, s spoken) error {
	if err := tx.Outbox().Remove(s.parcel); err != nil {
		return err
	}
	if s.isReceipt() {
		return nil
	}
	if err := tableFailing.Delete(tx, s.reply.Address); err != nil {
		return err
	}
	key := receiptKey(s.reply)
	if s.reply.ID == "" || len(key) > memory.MaxID {
		return nil
	}
	switch {
	case s.reply.IsFeedback(): // may change
	case s.reply.Kind == agent.DecidedMark: // the last that is said of a card
		return tx.Table(tableReceipts).Delete(key)
	case s.receipt != "" && (s.reply.IsCard() || s.reply.TakesFeedback()):
		return tx.Table(tableReceipts).Put(key, []byte(s.receipt))
	}
	return nil
}

// setFate notes an item's fate, if it is still in the outbox.
func setFate(tx memory.Tx, it *item, f fate) (there bool, err error) {
	err = tx.Outbox().List(it.parcel-1, func(p memory.Parcel) error {
		if there = p.ID == it.parcel; !there {
			return memory.ErrStop
		}
		p.State = f.String()
		return errors.Join(tx.Outbox().Set(p), memory.ErrStop)
	})
	return there, err
}

// earlier is the receipt of the card that a mark is about.
func (h *Hub) earlier(r agent.Reply) (receipt string) {
	if r.Kind != agent.DecidedMark || r.ID == "" {
		return ""
	}
	err := h.Store.View(context.Background(), func(tx memory.Tx) error {
		data, _, err := tx.Table(tableReceipts).Get(receiptKey(r))
		receipt = string(data)
		return err
	})
	if err != nil {
		h.Log.Error("cannot look up where a card stands", "card", r.ID, "error", err)
	}
	return receipt
}

// again is when a failed try is followed by another.
type again int

const (
	never again = iota
	atOnce
	later
)

// judge notes what is known after a try that failed, and says what follows, and what wait the platform asked for.
func (h *Hub) judge(it *item, err error) (again, time.Duration) {
	var send *SendError
	if !errors.As(err, &send) {
		send = &SendError{Unsure: it.doubtful(), Err: err}
	}
	closed := send.Closed || !h.attached(it.adapter)
	switch {
	case it.fate.word == repeating && send.Unsure:
		h.bury(it, fmt.Errorf("%w: %w", errTwice, err))
		return never, 0
	case send.Gone && !closed:
		h.bury(it, err)
		return never, 0
	}
	blind := !closed && send.Blind && it.fate.word == unknown && it.findsOut()
	since, kept := h.note(it, it.tried(send), !closed && !blind)
	switch {
	case !kept:
		return never, 0
	case closed && h.close(it), blind:
		it.blind = blind
		return atOnce, 0
	case closed:
		return never, 0
	case time.Since(since) >= sayFor:
		h.bury(it, fmt.Errorf("it failed for %v, the last time with: %w", sayFor, err))
		return never, 0
	}
	return later, send.RetryAfter
}

// note keeps what is known of an item that could not be said. If its conversation fails, it says since when: for what was
// queued at the first failure, that; for what came later it is counted anew. It reports false when the hub ends before.
func (h *Hub) note(it *item, f fate, fails bool) (since time.Time, kept bool) {
	row := failing{Since: time.Now(), UpTo: h.newestQueued(it)}
	since = row.Since
	kept = h.keep("note what could not be said", func(tx memory.Tx) error {
		since = row.Since
		if f != it.fate {
			if _, err := setFate(tx, it, f); err != nil {
				return err
			}
		}
		if !fails || it.isReceipt() {
			return nil
		}
		known, found, err := readFailing(tx, it.reply.Address)
		if err != nil {
			return err
		}
		if found && it.parcel <= known.UpTo {
			since = known.Since
			return nil
		}
		return tableFailing.Put(tx, it.reply.Address, row)
	})
	it.fate, it.begun = f, false
	if it.isReceipt() {
		if it.failing.IsZero() {
			it.failing = row.Since
		}
		since = it.failing
	}
	return since, kept
}

// newestQueued is the last parcel that is queued behind an item, or the item's own.
func (h *Hub) newestQueued(it *item) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	newest := it.parcel
	for _, behind := range h.queues[it.queue].items {
		newest = max(newest, behind.parcel)
	}
	return newest
}

// keep writes to the store, with as many tries as it takes. It reports false when the hub ends before.
func (h *Hub) keep(what string, fn func(memory.Tx) error) bool {
	for wait := h.FirstWait; ; wait = min(2*wait, longest) {
		err := h.Store.Update(context.Background(), fn)
		if err == nil {
			return true
		}
		h.Log.Error("cannot "+what, "error", err)
		if !h.pause(wait) {
			return false
		}
	}
}

// pause waits, and reports false when the hub ends before: what is not said stays in the outbox for the next start.
func (h *Hub) pause(wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-h.ending:
		return false
	}
}
