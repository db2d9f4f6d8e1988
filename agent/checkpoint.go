package agent

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nudge/agent/compact"
	"nudge/agent/model"
	"nudge/memory"
)

// A checkpoint is the state of a session at rest, as one entry of its journal: loading begins there. Cards that were
// decided are not in it; a late click finds them in the journal.

// How much of a journal is worth a checkpoint; variables for tests.
var (
	leastJournal = 256 << 10 // bytes
	// journalShare is how many times as long as the conversation it must be, or checkpoints would make up much of the data
	// file.
	journalShare = 8
)

// checkpointEntry is what a session with no turn under way knows.
type checkpointEntry struct {
	Began      time.Time       `json:"began"`
	View       []model.Message `json:"view"`
	Marks      []compact.Mark  `json:"marks"`
	Marked     time.Time       `json:"marked"`
	Plan       string          `json:"plan,omitempty"`
	Planned    bool            `json:"planned,omitempty"`
	Told       string          `json:"told,omitempty"`
	PlanOrigin compact.Origin  `json:"plan_origin,omitzero"`
	ToldOrigin compact.Origin  `json:"told_origin,omitzero"`
	Given      []given         `json:"given,omitempty"`
	Turns      int             `json:"turns"`
	Ratio      float64         `json:"ratio,omitempty"`
	Cards      []keptCard      `json:"cards,omitempty"` // parked ones that are not done with
}

// keptCard is a card in a checkpoint.
type keptCard struct {
	cardEntry
	Verdict Verdict   `json:"verdict,omitempty"`
	By      Person    `json:"by,omitzero"`
	At      time.Time `json:"at,omitzero"`
	Text    string    `json:"said,omitempty"`
	Begun   bool      `json:"begun,omitempty"`
	Effect  Effect    `json:"effect,omitempty"`
}

func (checkpointEntry) kind() string { return kindCheckpoint }

// worthCheckpoint reports whether the session may be kept in a checkpoint here, and is worth one.
func (s *state) worthCheckpoint() bool {
	return s.turn == nil && s.continuation() == nil && s.journal >= max(leastJournal, journalShare*s.bytes)
}

// checkpoint is the state as an entry.
func (s *state) checkpoint() checkpointEntry {
	e := checkpointEntry{
		Began: s.began, View: s.view, Marks: s.marks, Marked: s.marked, Plan: s.plan, Planned: s.planned, Told: s.told, Turns: s.turns, Ratio: s.ratio,
		PlanOrigin: s.planOrigin, ToldOrigin: s.toldOrigin, Given: s.given,
	}
	for _, k := range s.cards {
		if k.verdict == "" || k.owed() {
			e.Cards = append(e.Cards, keptCard{k.cardEntry, k.verdict, k.by, k.at, k.text, k.begun, k.effect})
		}
	}
	slices.SortFunc(e.Cards, func(a, b keptCard) int { return strings.Compare(a.Card, b.Card) })
	return e
}

// restore takes a checkpoint for the state. One that cannot be sent, which only a damaged journal has, is passed over.
func (s *state) restore(e *checkpointEntry) {
	if len(e.View) > 0 && unpaired(append(slices.Clone(e.View), model.Message{Role: model.User, Text: "on"})) != "" {
		return
	}
	s.began, s.view, s.marked, s.plan, s.planned, s.told, s.turns, s.ratio = e.Began, e.View, e.Marked, e.Plan, e.Planned, e.Told, e.Turns, e.Ratio
	s.marks = append(slices.Clone(e.Marks), make([]compact.Mark, max(len(e.View)-len(e.Marks), 0))...)[:len(e.View)]
	s.planOrigin, s.toldOrigin, s.given = e.PlanOrigin, e.ToldOrigin, e.Given
	s.turn, s.halted, s.journal = nil, nil, 0
	s.weighAll()
	s.cards = map[string]*card{}
	for _, k := range e.Cards {
		s.cards[k.Card] = &card{cardEntry: k.cardEntry, verdict: k.Verdict, by: k.By, at: k.At, text: k.Text, begun: k.Begun, effect: k.Effect}
	}
}

// keepCheckpoint journals the state with the next commit, which must add nothing after it, if that is worth it.
func (a *actor) keepCheckpoint() error {
	if !a.state.worthCheckpoint() {
		return nil
	}
	if err := a.add(a.state.checkpoint()); err != nil {
		return err
	}
	a.also(func(tx memory.Tx) error {
		last, err := tx.Journal().Last(a.session)
		if err != nil {
			return err
		}
		return tx.Table(tableCheckpoints).Put(a.session, binary.BigEndian.AppendUint64(nil, last))
	})
	return nil
}

// load folds a session's journal from its newest checkpoint on.
func load(tx memory.Tx, session string) (*state, error) {
	at, err := checkpointOf(tx, session)
	if err != nil {
		return nil, fmt.Errorf("load session %s: %w", session, err)
	}
	s, err := loadFrom(tx, session, at)
	if errors.Is(err, errNoCheckpoint) {
		s, err = loadFrom(tx, session, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("load session %s: %w", session, err)
	}
	return s, nil
}

var errNoCheckpoint = errors.New("there is no checkpoint where one should be")

// checkpointOf is the number of a session's newest checkpoint; 0 when it has none.
func checkpointOf(tx memory.Tx, session string) (uint64, error) {
	row, found, err := tx.Table(tableCheckpoints).Get(session)
	if err != nil || !found || len(row) != 8 {
		return 0, err
	}
	return binary.BigEndian.Uint64(row), nil
}

// loadFrom folds a journal from the checkpoint with a number on, or from the start for 0.
func loadFrom(tx memory.Tx, session string, at uint64) (*state, error) {
	s := newState(session)
	err := tx.Journal().Read(session, max(at, 1)-1, func(line memory.Entry) error {
		if at > 0 && s.last == 0 && line.Kind != kindCheckpoint {
			return errNoCheckpoint
		}
		s.last = line.Seq
		s.journal += len(line.Data)
		e, err := decode(line)
		if err != nil || e == nil {
			return err
		}
		s.apply(e, line.At)
		return nil
	})
	if err == nil && at > 0 && s.last == 0 {
		err = errNoCheckpoint
	}
	return s, err
}

// card finds a card of the session, also one that was decided long ago; nil when there is none.
func (a *actor) card(id string) (k *card, err error) {
	if k := a.state.cards[id]; k != nil {
		return k, nil
	}
	err = a.Store.View(context.Background(), func(tx memory.Tx) (err error) {
		k, err = oldCard(tx, a.session, id)
		return err
	})
	return k, err
}

// oldCard finds a card that the state no longer has; nil when there is none.
func oldCard(tx memory.Tx, session, id string) (*card, error) {
	s := newState(session)
	err := tx.Journal().Read(session, 0, func(line memory.Entry) error {
		switch line.Kind {
		case kindApproval, kindQuestion, kindOffer, kindDecided, kindAnswered, kindOffered:
		default:
			return nil
		}
		e, err := decode(line)
		if err != nil {
			return err
		}
		switch e := e.(type) {
		case *cardEntry:
			if e.Card == id {
				s.cards[id] = &card{cardEntry: *e}
			}
		case *decidedEntry:
			if e.Card == id {
				s.decided(e, line.At)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for card %s in session %s: %w", id, session, err)
	}
	return s.cards[id], nil
}
