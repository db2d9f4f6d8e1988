package agent

import (
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
