package diary

import (
	"strings"

	"nudge/agent"
	"nudge/memory"
	"nudge/memory/diary"
	"nudge/schedule"
)

// Scope is where what is said in a conversation may be told again: in private only, or in that channel. It is "" for what is
// no conversation.
func Scope(address string) string {
	if agent.Direct(address) {
		return diary.Private
	}
	parts := strings.SplitN(address, ":", 4)
	if len(parts) < 3 {
		return address
	}
	return strings.Join(parts[:3], ":")
}

// ViewOf is the diary of whoever has an account, as it may be shown in a conversation.
func ViewOf(tx memory.Tx, account agent.PersonID, address string) (diary.View, error) {
	person, err := schedule.PersonOf(tx, string(account))
	return diary.View{Person: person, Scope: Scope(address)}, err
}
