package web

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"nudge/agent"
	"nudge/bot"
	"nudge/memory"
	"nudge/schedule"
)

// shownLines is how many lines of a session a tab gets when it comes in.
const shownLines = 500

// snapshot is what a tab shows when it comes in.
type snapshot struct {
	Conversation string `json:"conversation"`
	Session      string `json:"session"`
	Number       int    `json:"number"` // of the session in its conversation, from 1
	Turn         string `json:"turn,omitempty"`
	// Working is true while a turn runs or is about to, and false while it waits for a person.
	Working bool   `json:"working"`
	Lines   []line `json:"lines"`
}

// snapshot reads what a conversation looks like now. The caller holds its gate.
func (s *Server) snapshot(ctx context.Context, c *conversation) (snapshot, error) {
	var shot snapshot
	err := s.Store.View(ctx, func(tx memory.Tx) error {
		shot = snapshot{Conversation: c.address}
		var err error
		if shot.Session, err = agent.SessionOf(tx, c.address); err != nil {
			return err
		}
		shot.Number = sessionNumber(shot.Session)
		if shot.Turn, err = agent.OpenTurn(tx, shot.Session); err != nil {
			return err
		}
		shot.Working = shot.Turn != ""
		for _, add := range []func(*snapshot, memory.Tx, string) error{
			addTranscript, s.addCards, addMail, addOutbox, addKept,
		} {
			if err := add(&shot, tx, c.address); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return shot, fmt.Errorf("read the conversation %s: %w", c.address, err)
	}
	for i, l := range shot.Lines {
		shot.Lines[i] = l.without(s.Secrets)
	}
	return shot, nil
}

// addTranscript adds what the journal tells.
func addTranscript(shot *snapshot, tx memory.Tx, _ string) error {
	replies, err := agent.Transcript(tx, shot.Session, shownLines)
	if err != nil {
		return err
	}
	shot.Lines = make([]line, 0, len(replies))
	for _, r := range replies {
		shot.Lines = append(shot.Lines, lineOf(r, ""))
		if r.Kind != agent.Notify {
			continue
		}
		if err := shot.addFeedback(tx); err != nil {
			return err
		}
	}
	return nil
}

// addFeedback adds what the person said of the notify card that is the last line. One that cannot be judged any more gets no
// buttons.
func (shot *snapshot) addFeedback(tx memory.Tx) error {
	told := &shot.Lines[len(shot.Lines)-1]
	card, found, err := schedule.LoadCard(tx, told.ID)
	switch {
	case err != nil:
		return err
	case !found:
		told.ID = ""
	case card.Said != "":
		shot.Lines = append(shot.Lines, lineOf(bot.FeedbackMark(card), ""))
	}
	return nil
}

// addCards completes the cards that wait, and adds those of other sessions that the person may decide.
func (s *Server) addCards(shot *snapshot, tx memory.Tx, address string) error {
	person := s.Person.ID
	err := agent.WaitingCards(tx, func(w agent.WaitingCard) error {
		here := w.Conversation == address
		if !here && (address != person.Home() || !slices.Contains(w.Reply.MayDecide, string(person))) {
			return nil
		}
		l := lineOf(w.Reply, "")
		if at := shot.find(l); at >= 0 {
			shot.Lines[at] = l
		} else {
			shot.Lines = append(shot.Lines, l)
		}
		if w.Reply.Turn == shot.Turn {
			shot.Working = false
		}
		return nil
	})
	if err != nil || address != person.Home() {
		return err
	}
	own, err := bot.Requests(tx, person, true, address)
	for _, q := range own {
		shot.Lines = append(shot.Lines, lineOf(q, ""))
	}
	return err
}

// addMail adds what was said and is not yet in the journal.
func addMail(shot *snapshot, tx memory.Tx, _ string) error {
	mail, err := tx.Inbox().List(shot.Session)
	if err != nil {
		return err
	}
	for _, letter := range mail {
		var m agent.Message
		if err := json.Unmarshal(letter.Data, &m); err != nil {
			return fmt.Errorf("read mail %d of %s: %w", letter.ID, letter.Session, err)
		}
		switch {
		case m.Note != nil:
			shot.Lines = append(shot.Lines, lineOf(agent.Reply{
				Kind: agent.Notify, Session: shot.Session, ID: m.Note.Card, Heartbeat: m.Note.Heartbeat, Text: m.Note.Text, Once: m.Note.Once,
			}, ""))
			if err := shot.addFeedback(tx); err != nil {
				return err
			}
		case m.Provenance == agent.Human && m.Text != "":
			said := agent.Reply{Kind: agent.Said, Session: shot.Session, ID: m.ID, By: string(m.From.ID), Text: m.Text}
			if m.Steer {
				said.State = agent.Stored
			}
			shot.Lines = append(shot.Lines, lineOf(said, ""))
			shot.Working = true
		}
	}
	return nil
}

// addOutbox adds what is about to be said, or was said just now, with the names by which it will come.
func addOutbox(shot *snapshot, tx memory.Tx, address string) error {
	return tx.Outbox().List(0, func(p memory.Parcel) error {
		if p.Conversation != address {
			return nil
		}
		r, err := agent.ReadReply(p)
		if err != nil {
			return err
		}
		shot.merge(lineOf(r, parcelName(p.ID)))
		return nil
	})
}

// addKept adds what nobody has seen yet and nothing else tells.
func addKept(shot *snapshot, tx memory.Tx, address string) error {
	lines, err := keptLines(tx, address)
	for _, l := range lines {
		shot.merge(l)
	}
	return err
}

// merge adds a line, unless it is there: then that one gets its parcel.
func (shot *snapshot) merge(l line) {
	named := func(other line) bool { return other.Parcel != "" && other.Parcel == l.Parcel }
	if slices.ContainsFunc(shot.Lines, named) {
		return
	}
	at := shot.find(l)
	if at < 0 {
		shot.Lines = append(shot.Lines, l)
		return
	}
	shot.Lines[at].Parcel = l.Parcel
}

// find is the place of the newest line that is the same reply and has no parcel yet; -1 when there is none.
func (shot *snapshot) find(l line) int {
	identity := l.identity()
	if identity == "" {
		return -1
	}
	for i := len(shot.Lines) - 1; i >= 0; i-- {
		if shot.Lines[i].Parcel == "" && shot.Lines[i].identity() == identity {
			return i
		}
	}
	return -1
}

// parcelName is the key that the Hub gives the reply in a parcel.
func parcelName(id uint64) string { return parcelPrefix + strconv.FormatUint(id, 10) }

const parcelPrefix = "parcel-"

// parcelNumber is the number of the parcel that a key names, if it names one.
func parcelNumber(name string) (id uint64, ok bool) {
	number, ok := strings.CutPrefix(name, parcelPrefix)
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseUint(number, 10, 64)
	return id, err == nil
}
