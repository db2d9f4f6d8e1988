package schedule

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"nudge/memory"
)

// tableUse keeps what a heartbeat's runs for each of its people used. Its rows have the key NAME/PERSON; people who were never
// woken have none.
const tableUse = "heartbeat_use"

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
	table := tx.Table(tableUse)
	for _, r := range runs {
		key := heartbeat + "/" + r.person
		if len(key) > memory.MaxID {
			continue
		}
		var u Use
		if _, err := getJSON(table, key, &u); err != nil {
			return err
		}
		u.add(r.ended)
		if err := putJSON(table, key, u); err != nil {
			return err
		}
	}
	return nil
}

// uses are what a heartbeat's people used, those with the most tokens first.
func uses(tx memory.Tx, heartbeat string) (all []Use, err error) {
	err = tx.Table(tableUse).Scan(heartbeat+"/", func(key string, value []byte) error {
		var u Use
		if err := json.Unmarshal(value, &u); err != nil {
			return fmt.Errorf("row %q: %w", key, err)
		}
		u.Person = strings.TrimPrefix(key, heartbeat+"/")
		all = append(all, u)
		return nil
	})
	slices.SortStableFunc(all, func(a, b Use) int { return cmp.Compare(b.TokensIn+b.TokensOut, a.TokensIn+a.TokensOut) })
	return all, err
}

// removeUse takes away the rows of a table of NAME/PERSON for which want is true.
func removeUse(tx memory.Tx, prefix string, want func(key string) bool) (removed int, err error) {
	var keys []string
	err = tx.Table(tableUse).Scan(prefix, func(key string, _ []byte) error {
		if want(key) {
			keys = append(keys, key)
		}
		return nil
	})
	for _, key := range keys {
		if err == nil {
			err = tx.Table(tableUse).Delete(key)
		}
	}
	return len(keys), err
}
