package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"nudge/agent"
	"nudge/agent/model"
	"nudge/memory"
	"nudge/memory/bolt"
)

// soakRecord is what the data file says of a soak.
type soakRecord struct {
	entries int
	bytes   int

	words    map[string][]soakWords // by mark: where the words stand in the journals
	turns    map[string]*soakTurn
	calls    map[string]*soakCall   // by session and id
	unknowns map[string]string      // cards about calls whose outcome is unknown → the id of the effect
	again    map[string]int         // effects that were let run again → how often
	allowed  []string               // and the cards that did
	money    agent.Money            // of all turns
	spent    agent.Money            // as the table has it
	left     []string               // what has not come to its end
	asked    map[string]agent.Money // by session: the reserve of the last call of the model
	lost     int                    // calls of the model that an end of the program lost
	free     []string               // those of them that were not charged their reserve
}

// soakWords is one place of a person's words.
type soakWords struct{ session, turn string }

// soakTurn is one turn.
type soakTurn struct {
	session string
	person  string
	wake    bool
	ends    []string // the runs that settled it, in order
	reasons []string
	granted int // how often it was let go on
	cost    agent.Money
	costs   []agent.Money // when it was settled
}

// soakCall is one call of the model's.
type soakCall struct {
	effect       string // its id in the log; "" when it leaves none there
	preset       string
	begun        bool
	ok, notBegun bool // by its result
}

// soakEntry is a journal's entry, as far as this looks at it.
type soakEntry struct {
	Turn      string          `json:"turn"`
	Run       string          `json:"run"`
	Provenant string          `json:"provenance"`
	Text      string          `json:"text"`
	Reason    string          `json:"reason"`
	Card      string          `json:"card"`
	Call      string          `json:"call"`
	Verdict   string          `json:"verdict"`
	Unknown   bool            `json:"unknown"`
	Ran       bool            `json:"ran"`
	Failed    bool            `json:"failed"`
	Calls     []model.Call    `json:"calls"`
	Arguments json.RawMessage `json:"arguments"`
	Cost      agent.Money     `json:"cost"`
	Charge    agent.Money     `json:"charge"`
	Reserve   agent.Money     `json:"reserve"`
	Person    struct {
		ID string `json:"id"`
	} `json:"person"`
}

var (
	soakEffect = regexp.MustCompile(`fx[0-9]+`)
	soakPreset = regexp.MustCompile(`"name":\s*"([a-z-]+)"`)
)

// readSoakRecord reads the data file of a program that has ended.
func readSoakRecord(t *testing.T, path string) *soakRecord {
	t.Helper()
	rec := &soakRecord{
		words: map[string][]soakWords{}, turns: map[string]*soakTurn{}, calls: map[string]*soakCall{}, unknowns: map[string]string{}, again: map[string]int{},
		asked: map[string]agent.Money{},
	}
	store, err := bolt.OpenReadOnly(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = store.View(t.Context(), rec.read)
	if err := errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	return rec
}

func (rec *soakRecord) read(tx memory.Tx) error {
	err := tx.Journal().Sessions("", func(session string, _ memory.Entry) error {
		return tx.Journal().Read(session, 0, func(line memory.Entry) error {
			var e soakEntry
			if err := json.Unmarshal(line.Data, &e); err != nil && line.Kind != "checkpoint" {
				return fmt.Errorf("entry %d of %s: %w", line.Seq, session, err)
			}
			rec.entries++
			rec.bytes += len(line.Data)
			rec.take(session, line.Kind, e)
			return nil
		})
	})
	return errors.Join(err, rec.remains(tx))
}

// remains reads what has not come to its end, and the money.
func (rec *soakRecord) remains(tx memory.Tx) error {
	sessions, err := tx.Inbox().Sessions()
	for _, session := range sessions {
		rec.left = append(rec.left, "mail of "+session)
	}
	for _, table := range []string{"open", "owed", "waiting"} {
		err = errors.Join(err, tx.Table(table).Scan("", func(key string, value []byte) error {
			rec.left = append(rec.left, fmt.Sprintf("%s %s (%.80s)", table, key, value))
			return nil
		}))
	}
	err = errors.Join(err, tx.Outbox().List(0, func(p memory.Parcel) error {
		rec.left = append(rec.left, fmt.Sprintf("parcel %d for %s, %q (%.200s)", p.ID, p.Conversation, p.State, p.Data))
		return nil
	}))
	return errors.Join(err, tx.Table("spend").Scan("", func(_ string, value []byte) error {
		var spent int64
		_, err := fmt.Sscan(string(value), &spent)
		rec.spent += agent.Money(spent)
		return err
	}))
}

// rest is what has not come to its end; "" when everything has.
func (rec *soakRecord) rest() string { return strings.Join(rec.left, "; ") }

func (rec *soakRecord) turn(id string) *soakTurn {
	if rec.turns[id] == nil {
		rec.turns[id] = &soakTurn{}
	}
	return rec.turns[id]
}

func (rec *soakRecord) call(session, id string) *soakCall {
	key := session + " " + id
	if rec.calls[key] == nil {
		rec.calls[key] = &soakCall{}
	}
	return rec.calls[key]
}

// take takes one entry of a journal.
func (rec *soakRecord) take(session, kind string, e soakEntry) {
	switch kind {
	case "message", "question_answered":
		for _, mark := range soakMark.FindAllString(e.Text, -1) {
			rec.words[mark] = append(rec.words[mark], soakWords{session, e.Turn})
		}
	case "turn_started":
		t := rec.turn(e.Turn)
		t.session, t.person, t.wake = session, e.Person.ID, e.Provenant == "heartbeat"
	case "run_stopped":
		if e.Reason != "waiting" {
			t := rec.turn(e.Turn)
			t.ends, t.reasons, t.costs = append(t.ends, e.Run), append(t.reasons, e.Reason), append(t.costs, t.cost)
		}
	case "continue_decided":
		if e.Verdict == "approve" {
			rec.turn(e.Turn).granted++
		}
	case "model_asked":
		rec.asked[session] = e.Reserve
	case "model_call", "model_lost", "model_retry":
		if kind == "model_lost" && strings.HasPrefix(e.Reason, "the program ended") {
			if rec.lost++; e.Charge != rec.asked[session] || !e.Unknown {
				rec.free = append(rec.free, e.Run)
			}
		}
		rec.turn(e.Turn).cost += e.Cost + e.Charge
		rec.money += e.Cost + e.Charge
		for _, c := range e.Calls {
			k := rec.call(session, c.ID)
			k.effect = soakEffect.FindString(c.Arguments)
			if found := soakPreset.FindStringSubmatch(c.Arguments); found != nil {
				k.preset = found[1]
			}
		}
	case "tool_call":
		rec.call(session, e.Call).begun = true
	case "tool_result":
		k := rec.call(session, e.Call)
		k.ok = k.ok || e.Ran && !e.Failed
		k.notBegun = strings.HasPrefix(e.Text, "not run")
	case "approval_asked":
		if e.Unknown {
			rec.unknowns[e.Card] = soakEffect.FindString(string(e.Arguments))
		}
	case "approval_decided":
		if e.Verdict == "edit" {
			rec.call(session, e.Call).effect = soakEffect.FindString(string(e.Arguments))
		}
		if effect, unknown := rec.unknowns[e.Card]; unknown && e.Verdict == "approve" {
			rec.again[effect]++
			rec.allowed = append(rec.allowed, e.Card)
		}
	}
}

// judge holds the record against what people and the provider have seen.
func (rec *soakRecord) judge(t *testing.T, s *soak) {
	rec.judgeWords(t, s)
	rec.judgeEffects(t, s)
	rec.judgeMoney(t, s)
	for _, who := range s.people {
		if !who.api {
			rec.judgeHeard(t, s, who)
		}
	}
}

// judgeWords wants what was taken in one place, and each turn ended once, and once more for each time it was let go on.
func (rec *soakRecord) judgeWords(t *testing.T, s *soak) {
	for mark, places := range rec.words {
		if len(places) > 1 {
			t.Errorf("the words %s were taken up %d times: %v", mark, len(places), places)
		}
	}
	for _, mark := range slices.Sorted(maps.Keys(s.acked)) {
		if len(rec.words[mark]) == 0 {
			t.Errorf("the words %s were taken and then lost", mark)
		}
	}
	for mark := range s.denied {
		if len(rec.words[mark]) > 0 {
			t.Errorf("the words %s were taken up, and it was said that they were not taken", mark)
		}
	}
	for id, turn := range rec.turns {
		if len(turn.ends) != 1+turn.granted {
			t.Errorf("turn %s of %s has ended %d times (%v) and was let go on %d times", id, turn.session, len(turn.ends), turn.reasons, turn.granted)
		}
	}
	s.add("words taken for certain", len(s.acked))
	s.add("words in the journals", len(rec.words))
}

// judgeEffects compares the log of effects with the journals.
func (rec *soakRecord) judgeEffects(t *testing.T, s *soak) {
	data, err := os.ReadFile(place{dir: s.dir}.workspace("effects"))
	if err != nil {
		t.Error(err)
	}
	happened := map[string]int{}
	for id := range strings.FieldsSeq(string(data)) {
		happened[id]++
	}
	for _, card := range rec.allowed {
		if !s.again[card] {
			t.Errorf("the call of card %s was run again, and nobody has said so", card)
		}
	}
	for id, n := range happened {
		if n > 1+rec.again[id] {
			t.Errorf("the effect %s happened %d times, and was let run again %d times", id, n, rec.again[id])
		}
		s.add("effects that happened twice because a person said so", max(n-1, 0))
	}
	for key, k := range rec.calls {
		switch {
		case k.effect == "" || k.preset == "same-note":
		case k.ok && happened[k.effect] == 0:
			t.Errorf("call %s is said to have run, and its effect %s did not happen", key, k.effect)
		case k.notBegun && !k.begun && happened[k.effect] > 0:
			t.Errorf("call %s is said not to have run, and its effect %s happened", key, k.effect)
		}
	}
	s.add("different effects that happened", len(happened))
	s.add("calls asked for", len(rec.calls))
	s.add("calls whose outcome was unknown", len(rec.unknowns))
}

// judgeMoney compares what is said to have been spent with what the provider has charged.
func (rec *soakRecord) judgeMoney(t *testing.T, s *soak) {
	if rec.money != rec.spent {
		t.Errorf("the journals come to $%.6f and the table of what was spent to $%.6f", rec.money.USD(), rec.spent.USD())
	}
	if rec.spent < s.model.charged {
		t.Errorf("$%.6f are said to have been spent, and the provider has charged $%.6f", rec.spent.USD(), s.model.charged.USD())
	}
	for _, run := range rec.free {
		t.Errorf("run %s does not begin with a charge for the call of the model that was lost", run)
	}
	s.add("calls of the model lost with the program", rec.lost)
	for id, turn := range rec.turns {
		if limit := agent.USD(soakTurnCost) * agent.Money(1+turn.granted); turn.cost > limit {
			t.Errorf("turn %s has cost $%.6f of $%.6f", id, turn.cost.USD(), limit.USD())
		}
	}
}

// judgeHeard compares what a person at a terminal has seen with the journals.
func (rec *soakRecord) judgeHeard(t *testing.T, s *soak, who *soakPerson) {
	type told struct{ ended, settled bool }
	runs := map[string]told{}
	seen := map[string]soakHeard{}
	receipts := map[string]map[string]bool{}
	for _, h := range who.heard {
		r := runs[h.Run]
		switch h.Kind {
		case "final", "notice":
			r.ended = true
		case "settled":
			r.settled = true
			rec.judgeCost(t, h.line)
		case "steer":
			if receipts[h.ID] == nil {
				receipts[h.ID] = map[string]bool{}
			}
			receipts[h.ID][h.State] = true
		}
		runs[h.Run] = r
		rec.judgeRepeat(t, s, who, seen, h)
	}
	if who.rude {
		return // what was said to a chat that was killed is not known here
	}
	for id, turn := range rec.turns {
		if turn.person != "terminal:"+who.name || turn.wake {
			continue
		}
		for i, run := range turn.ends {
			if r := runs[run]; !r.ended || !r.settled {
				t.Errorf("%s was not told of the end of turn %s, %s (%s): last words %v, settled %v", who.name, id, run, turn.reasons[i], r.ended, r.settled)
			}
		}
	}
	for id, states := range receipts {
		if !states["stored"] || states["seen"] == states["next_turn"] {
			t.Errorf("the receipts of %s's words %s are %v", who.name, id, slices.Sorted(maps.Keys(states)))
		}
	}
}

// judgeCost compares the cost that a person was told with that of the journal.
func (rec *soakRecord) judgeCost(t *testing.T, l line) {
	turn := rec.turn(l.Turn)
	at := slices.Index(turn.ends, l.Run)
	if at < 0 {
		t.Errorf("the run %s is said to be settled, and its journal does not say so", l.Run)
		return
	}
	if diff := turn.costs[at].USD() - l.CostUSD; diff > 1e-9 || diff < -1e-9 {
		t.Errorf("turn %s is said to have cost $%.9f, and the journal comes to $%.9f", l.Turn, l.CostUSD, turn.costs[at].USD())
	}
}

// judgeRepeat counts what was told twice. That may be only where a kill or the end of the chat left it in doubt whether
// it was told; a terminal cannot find out, and shows no label.
func (rec *soakRecord) judgeRepeat(t *testing.T, s *soak, who *soakPerson, seen map[string]soakHeard, h soakHeard) {
	if h.Kind == "notice" && (h.Run == "" || h.ID == "" || h.To != "") || h.Kind == "waiting" {
		return // answers to commands and to late decisions may be the same words twice
	}
	key := strings.Join([]string{h.Kind, h.Turn, h.Run, h.ID, h.State, h.Decision, h.Heartbeat, h.Text}, "|")
	if h.Kind == "notify" || h.Kind == "decided" && h.Decision == "" {
		return
	}
	first, twice := seen[key]
	seen[key] = h
	if !twice {
		return
	}
	card := h.Kind == "approval" || h.Kind == "ask" || h.Kind == "notice"
	switch killed := slices.ContainsFunc(s.kills, func(life int) bool { return first.life <= 2*life && 2*life < h.life }); {
	case card && h.chat != first.chat:
		s.count("cards shown again at the start of a chat")
	case killed:
		s.count("told again after a kill: " + h.Kind)
	case h.chat != first.chat:
		s.count("told again in another chat without a kill: " + h.Kind)
	default:
		t.Errorf("%s was told twice in one chat: %s", who.name, h.raw)
	}
	if strings.Contains(h.Text, "possibly a repeat") {
		s.count("of these with a label")
	}
}

// tell prints what the record says.
func (rec *soakRecord) tell(w io.Writer) {
	reasons := map[string]int{}
	for _, turn := range rec.turns {
		for _, reason := range turn.reasons {
			if turn.wake {
				reason = "wakes: " + reason
			}
			reasons[reason]++
		}
	}
	fmt.Fprintf(w, "\n%d turns in %d entries of %s; $%.4f spent", len(rec.turns), rec.entries, megabytes(int64(rec.bytes)), rec.spent.USD())
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(w, "\n%6d  %s", reasons[reason], reason)
	}
}

// readKept reads at rest what is kept: words in the inbox were taken for certain, and no journal may have become shorter.
func (s *soak) readKept(t *testing.T) {
	t.Helper()
	store, err := bolt.OpenReadOnly(place{dir: s.dir}.dataFile(), bolt.Options{})
	if err != nil {
		t.Error(err)
		return
	}
	err = store.View(t.Context(), func(tx memory.Tx) error {
		sessions, err := tx.Inbox().Sessions()
		for _, session := range sessions {
			mail, listed := tx.Inbox().List(session)
			err = errors.Join(err, listed)
			for _, m := range mail {
				for _, mark := range soakMark.FindAllString(string(m.Data), -1) {
					s.ack(mark)
				}
			}
		}
		lasts := map[string]uint64{}
		err = errors.Join(err, tx.Journal().Sessions("", func(session string, newest memory.Entry) error {
			lasts[session] = newest.Seq
			return nil
		}))
		for session, last := range s.lasts {
			if lasts[session] < last {
				t.Errorf("the journal of %s had %d entries and has %d", session, last, lasts[session])
			}
		}
		s.lasts = lasts
		return err
	})
	if err := errors.Join(err, store.Close()); err != nil {
		t.Error(err)
	}
}

// dataFile is where the place's data file is.
func (p place) dataFile() string { return filepath.Join(p.dir, "data", dataFileName) }
