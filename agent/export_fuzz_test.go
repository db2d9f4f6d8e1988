package agent

import (
	"fmt"
	"slices"
	"testing"

	"nudge/agent/model"
	"nudge/memory"
)

// Fold folds journal lines as a start does, and returns the conversation as it would be sent if the calls that have no
// result yet were answered now.
func Fold(lines []memory.Entry) ([]model.Message, error) {
	s := newState("session")
	for _, line := range lines {
		e, err := decode(line)
		if err != nil {
			return nil, err
		}
		if e != nil {
			s.apply(e, line.At)
		}
	}
	s.cutOff()
	return s.view, nil
}

// CheckpointAfter makes checkpoints worth while after so many bytes of journal, until the test ends.
func CheckpointAfter(t testing.TB, bytes int) {
	least, share := leastJournal, journalShare
	leastJournal, journalShare = bytes, 0
	t.Cleanup(func() { leastJournal, journalShare = least, share })
}

// Loads gives the state of a session loaded from its start and from its newest checkpoint, as text without what a
// checkpoint leaves out; at is the number of that checkpoint, 0 when there is none.
func Loads(tx memory.Tx, session string) (whole, short string, at uint64, err error) {
	if at, err = checkpointOf(tx, session); err != nil {
		return "", "", 0, err
	}
	s, err := loadFrom(tx, session, 0)
	if err != nil {
		return "", "", 0, err
	}
	from, err := load(tx, session)
	if err != nil {
		return "", "", 0, err
	}
	return s.inFull(), from.inFull(), at, nil
}

// inFull is all that a state says.
func (s *state) inFull() string {
	turn := "none"
	if s.turn != nil {
		t := *s.turn
		turn = fmt.Sprintf("%s %s %d %v %d %d %d %d %d %v %d", t.id, t.run, t.runs, t.waiting, t.steps, t.toolCalls, t.tokensIn, t.tokensOut, t.spent, t.ran, len(t.batch))
	}
	var cards []string
	for id, k := range s.cards {
		if k.verdict == "" || k.owed() {
			cards = append(cards, fmt.Sprint(id, k.cardEntry, k.verdict, k.by, k.begun))
		}
	}
	slices.Sort(cards)
	return fmt.Sprint(s.ratio, " ") + fmt.Sprintf("%d %v %+v %+v %d %v %q %v %q %s %d %v", s.last, s.began, s.view, s.marks, s.bytes, s.marked, s.plan, s.planned, s.told, turn, s.turns, cards)
}
