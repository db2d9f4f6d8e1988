package schedule

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"nudge/memory"
)

// Report tells why a heartbeat did or did not wake.
type Report struct {
	Heartbeat Heartbeat
	Next      []time.Time // the next three instants over all its zones; none when it is paused or has ended
	Outcomes  []Outcome   // newest first; at most the last 200, of the last 90 days or the last ten
	Counters  Counters
	State     State
	Used      []Use    // by each of its people who was ever woken, those with the most tokens first
	Said      []Regard // what its people said of it, in order of their ids
}

// mostUsed is of how many people a report tells in words what they used.
const mostUsed = 20

// Regard is what one person said of a heartbeat, as [Attention.About] tells it.
type Regard struct {
	Person string   `json:"person"`
	Parts  []string `json:"parts"`
}

// Why reports on the heartbeat of that name as it stands now. For a name that none bears the error wraps [ErrNoHeartbeat]
// and lists those that there are.
func Why(tx memory.Tx, name string, now time.Time) (Report, error) {
	h, err := Load(tx, name)
	if err != nil {
		return Report{}, err
	}
	state, err := loadState(tx, h)
	if err != nil {
		return Report{}, err
	}
	report := Report{Heartbeat: h, Counters: state.Counters, State: *state}
	err = tableTicks.ScanBack(tx, name+"/", func(_ string, outcome Outcome) error {
		report.Outcomes = append(report.Outcomes, outcome)
		return nil
	})
	if err == nil && h.resting() == "" {
		report.Next, err = upcoming(tx, h, state)
	}
	if err == nil {
		report.Used, err = uses(tx, name)
	}
	if err == nil {
		report.Said, err = regards(tx, h, now)
	}
	if err != nil {
		return Report{}, fmt.Errorf("tell why heartbeat %s did or did not wake: %w", name, err)
	}
	return report, nil
}

// For is the report as one of the heartbeat's people may see it: nothing in it is of others.
func (r Report) For(person string) Report {
	if len(r.Heartbeat.For) == 1 && r.Heartbeat.For[0] == person {
		return r
	}
	r.Heartbeat.For = []string{person}
	r.State = State{}
	r.Used = slices.DeleteFunc(slices.Clone(r.Used), func(used Use) bool { return used.Person != person })
	r.Said = slices.DeleteFunc(slices.Clone(r.Said), func(said Regard) bool { return !slices.Contains(strings.Split(said.Person, " and "), person) })
	r.Outcomes = slices.Clone(r.Outcomes)
	for i := range r.Outcomes {
		r.Outcomes[i].Reason = "" // it may name others
	}
	return r
}

// regards reads what the heartbeat's people said of it. Instants stand in its own zone, and in UTC where it has none.
func regards(tx memory.Tx, h Heartbeat, now time.Time) (all []Regard, err error) {
	zone, err := loadZone(h.Zone)
	if err != nil {
		return nil, err
	}
	people := map[string][]string{}
	for _, account := range h.For {
		person, err := PersonOf(tx, account)
		if err != nil {
			return nil, err
		}
		people[person] = append(people[person], account)
		row, gone, err := loadGone(tx, account)
		if err != nil {
			return nil, err
		}
		if gone {
			all = append(all, Regard{account, []string{row.String()}})
		}
	}
	err = tableAttention.Table(tx).Scan("", func(person string, value []byte) error {
		var a Attention
		if err := json.Unmarshal(value, &a); err != nil {
			all = append(all, Regard{person, []string{"what they said cannot be read, so that they are not woken"}})
			return nil
		}
		if parts := append(a.About(h.Name, now, zone), a.precision(h.Name)...); len(people[person]) > 0 && len(parts) > 0 {
			all = append(all, Regard{strings.Join(people[person], " and "), parts})
		}
		return nil
	})
	return all, err
}

// precision says in words how much of what a heartbeat told the person was not what they wanted, as far as they said so.
func (a Attention) precision(heartbeat string) (parts []string) {
	taste := a.Tastes[heartbeat]
	if taste == nil || taste.Told == 0 {
		return nil
	}
	parts = []string{"told " + times(taste.Told)}
	if taste.Asked > 0 {
		parts = append(parts, "asked for less "+times(taste.Asked))
	}
	return parts
}

// upcoming reads the next instants from the due index, which holds the first of each zone.
func upcoming(tx memory.Tx, h Heartbeat, state *State) ([]time.Time, error) {
	var all []time.Time
	add := func(row memory.DueRow, zone string, counts bool) error {
		timed, err := h.timed(zone)
		if err != nil {
			return err
		}
		if counts {
			all = append(all, row.At.In(timed.zone))
		}
		all = append(all, timed.Upcoming(row.At, 3)...)
		return nil
	}
	for zone := range state.Zones {
		row, found, err := tx.Due().Get(heartbeatKey(h.Name, zone))
		if err == nil && found {
			err = add(row, zone, true)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		row, found, err := tx.Due().Get(heartbeatKey(h.Name, ""))
		if err == nil && found {
			err = add(row, h.Zone, false)
		}
		if err != nil {
			return nil, err
		}
	}
	all = slices.DeleteFunc(all, h.isOver)
	slices.SortFunc(all, time.Time.Compare)
	all = slices.CompactFunc(all, time.Time.Equal)
	return all[:min(3, len(all))], nil
}

// String tells the report in plain words, one outcome a line. Instants stand in the zone of the outcome; where that is
// not the heartbeat's own, the line names it.
func (r Report) String() string {
	var text strings.Builder
	h := r.Heartbeat
	zone := h.Zone
	if zone == "" {
		zone = "each person's own zone"
	}
	fmt.Fprintf(&text, "heartbeat %s: %s (%s), condition %s, for %s\n",
		h.Name, h.spec(), zone, h.Condition.Kind, clip(strings.Join(h.For, ", "), maxReason))
	if resting := h.resting(); resting != "" {
		text.WriteString(resting + "\n")
	}
	for i, at := range r.Next {
		word := "next:"
		if i > 0 {
			word = "then:"
		}
		fmt.Fprintf(&text, "%s %s\n", word, inWords(at))
	}
	c := r.Counters
	fmt.Fprintf(&text, "%s, %s, %s, %d tokens in, %d out, %.4f USD\n",
		Counted(c.Ticks, "tick"), Counted(c.Wakes, "wake"), Counted(c.ModelCalls, "model call"), c.TokensIn, c.TokensOut, c.CostUSD)
	for i, u := range r.Used {
		if i == mostUsed {
			fmt.Fprintf(&text, "and %d more people\n", len(r.Used)-mostUsed)
			break
		}
		fmt.Fprintf(&text, "%s: %s\n", u.Person, u)
	}
	for _, regard := range r.Said {
		fmt.Fprintf(&text, "%s: %s\n", regard.Person, strings.Join(regard.Parts, "; "))
	}
	if len(r.Outcomes) == 0 {
		text.WriteString("no tick yet\n")
	}
	for _, outcome := range r.Outcomes {
		text.WriteString(outcome.line(h.Zone) + "\n")
	}
	return text.String()
}

func (o Outcome) line(own string) string {
	at := o.Tick
	suffix := ""
	if location, err := loadZone(o.Zone); err == nil {
		at = at.In(location)
	}
	if o.Zone != own {
		suffix = "  (" + o.Zone + ")"
	}
	return fmt.Sprintf("%s  %-7s %s%s", at.Format(time.DateTime), o.Word, oneLine(o.Reason), suffix)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
