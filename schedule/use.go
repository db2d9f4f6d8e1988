package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"nudge/memory"
)

// tableUse keeps what a heartbeat's runs for each of its people used. Its rows have the key NAME/PERSON; people who were never
// woken have none.
const tableUse memory.Rows[Use] = "heartbeat_use"

// Use sums up the runs that a heartbeat woke for one person.
type Use struct {
	Person     string  `json:"person,omitempty"`
	Wakes      int     `json:"wakes"`
	ModelCalls int     `json:"model_calls"`
	TokensIn   int     `json:"tokens_in"`
	TokensOut  int     `json:"tokens_out"`
	CostUSD    float64 `json:"cost_usd"`
}

func (u *Use) add(e Ended) {
	u.Wakes++
	u.ModelCalls += e.ModelCalls
	u.TokensIn += e.TokensIn
	u.TokensOut += e.TokensOut
	u.CostUSD += e.CostUSD
}

func (u Use) String() string {
	return fmt.Sprintf("%s, %s, %d tokens in, %d out, %.4f USD", Counted(u.Wakes, "wake"), Counted(u.ModelCalls, "model call"), u.TokensIn, u.TokensOut, u.CostUSD)
}

// noteUse adds what a tick's runs used to that of their people.
func noteUse(tx memory.Tx, heartbeat string, runs []run) error {
	for _, r := range runs {
		key := heartbeat + "/" + r.person
		if len(key) > memory.MaxID {
			continue
		}
		u, _, err := tableUse.Get(tx, key)
		if err != nil {
			return err
		}
		u.add(r.ended)
		if err := tableUse.Put(tx, key, u); err != nil {
			return err
		}
	}
	return nil
}

// uses are what a heartbeat's people used, those with the most tokens first.
func uses(tx memory.Tx, heartbeat string) (all []Use, err error) {
	err = tableUse.Scan(tx, heartbeat+"/", func(key string, u Use) error {
		u.Person = strings.TrimPrefix(key, heartbeat+"/")
		all = append(all, u)
		return nil
	})
	slices.SortStableFunc(all, func(a, b Use) int { return cmp.Compare(b.TokensIn+b.TokensOut, a.TokensIn+a.TokensOut) })
	return all, err
}
