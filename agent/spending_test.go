package agent_test

import (
	"errors"
	"fmt"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/memory"
	"nudge/schedule"
)

// wallet is an agent with a cap of a day, at whose model each answer costs the same, and who has paid for what.
type wallet struct {
	f     *faults
	world *agenttest.World
	says  int
	paid  []payment
}

type payment struct {
	by agent.PersonID
	at time.Time
}

// price is of one answer: 300 tokens in, 60 out.
const price = 300*2e6 + 60*12e6

func newWallet(f *faults, answers float64) *wallet {
	w := &wallet{f: f}
	m := &agenttest.Model{T: f, Latency: time.Second, Script: func(model.Request) model.Answer {
		answer := agenttest.Say("done")
		answer.Usage = model.Usage{In: 300, Out: 60, Known: true}
		return answer
	}}
	w.world = &agenttest.World{T: f, Config: agent.Config{
		Store: open(f), Model: m, Limits: agent.Limits{DailyCost: agent.Money(price * answers)},
		Spec: agent.ModelSpec{Name: "scripted", Window: 1 << 20, MaxOutput: 100, PriceIn: agent.PerMillion(2), PriceOut: agent.PerMillion(12)},
	}}
	w.world.Outbox = w.world.Config.Store
	w.world.Restart()
	return w
}

// begin says something, which the model answers a second later unless there is no money left.
func (w *wallet) begin(by agent.Person) {
	w.says++
	address := fmt.Sprintf("%s:%d", by.ID.Home(), w.says) // a conversation of its own, so that all cost the same
	m := agent.Message{Keys: []string{fmt.Sprint(w.says)}, ID: fmt.Sprint(w.says), Provenance: agent.Human, From: by, Address: address, Text: "go"}
	if _, err := w.world.Pass(m); err != nil {
		w.f.Fatal(err)
	}
	synctest.Wait()
}

// finish lets all come to its end, and gives the reason and the words of the last.
func (w *wallet) finish(by agent.Person) (paid bool, words string) {
	said := w.world.Rest()
	reason := agenttest.Only(said, agent.SettledMark)[0].Reason
	if paid = reason == agent.Completed; paid {
		w.paid = append(w.paid, payment{by.ID, time.Now()})
		return true, ""
	}
	if reason != agent.Budget {
		w.f.Fatalf("a turn is settled with %s", reason)
	}
	return false, agenttest.Only(said, agent.Notice)[0].Text
}

func (w *wallet) say(by agent.Person) (paid bool, words string) {
	w.begin(by)
	return w.finish(by)
}

func (w *wallet) spent(by agent.Person) (spent agent.Money) {
	err := w.world.Config.Store.View(w.f.Context(), func(tx memory.Tx) (err error) {
		spent, err = agent.SpentToday(tx, by)
		return err
	})
	if err != nil {
		w.f.Fatal(err)
	}
	return spent
}

func (w *wallet) change(fn func(tx memory.Tx) error) {
	if err := w.world.Config.Store.Update(w.f.Context(), fn); err != nil {
		w.f.Fatal(err)
	}
}

// link and part report whether there was anything to do.
func (w *wallet) link(one, other agent.PersonID) (done bool) {
	w.change(func(tx memory.Tx) error {
		joined, err := schedule.Link(tx, string(one), string(other), time.Now())
		if errors.Is(err, schedule.ErrLinked) {
			return nil
		}
		for _, was := range joined.Was {
			err = errors.Join(err, agent.JoinSpent(tx, was, joined.Person))
		}
		done = true
		return err
	})
	return done
}

func (w *wallet) part(account agent.PersonID) (done bool) {
	w.change(func(tx memory.Tx) error {
		was, err := schedule.Unlink(tx, string(account), time.Now())
		if errors.Is(err, schedule.ErrUnlinked) {
			return nil
		}
		done = true
		return errors.Join(err, agent.PartSpent(tx, was, string(account)))
	})
	return done
}

// family says whose the accounts are, and of which answers each person knows.
type family struct {
	persons []map[int]bool         // the answers that each has paid for or has in common
	of      map[agent.PersonID]int // the person
}

func (y *family) join(one, other agent.PersonID) {
	a, b := y.of[one], y.of[other]
	for answer := range y.persons[b] {
		y.persons[a][answer] = true
	}
	for id, person := range y.of {
		if person == b {
			y.of[id] = a
		}
	}
}

func (y *family) part(id agent.PersonID) {
	same := map[int]bool{}
	for answer := range y.persons[y.of[id]] {
		same[answer] = true
	}
	y.of[id] = len(y.persons)
	y.persons = append(y.persons, same)
}

// Rule 9: whatever is linked and parted, also while a model answers, no set of accounts spends more on a day than the cap for
// each person that they were at a time; and money that both sides of a parting have spent counts once when they are joined again.
func TestNoLinkingAndPartingMakesMoney(t *testing.T) {
	type act struct{ kind, one, other int }
	ids := []agent.PersonID{"slack:T1:U1", "discord:1", "api:x", "api:y"}
	rapid.Check(t, func(rt *rapid.T) {
		answers := rapid.Float64Range(5, 12).Draw(rt, "answers a day")
		acts := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) act {
			return act{rapid.IntRange(0, 6).Draw(rt, "kind"), rapid.IntRange(0, 3).Draw(rt, "one"), rapid.IntRange(0, 3).Draw(rt, "other")}
		}), 1, 40).Draw(rt, "acts")
		inBubble(t, rt, func(f *faults) {
			w := newWallet(f, answers)
			defer func() { w.world.Kill() }()
			y := &family{of: map[agent.PersonID]int{}}
			for i, id := range ids {
				y.of[id] = i
				y.persons = append(y.persons, map[int]bool{})
			}
			exact := true
			most := map[int]int{} // by set of accounts: the persons that they were at a time
			change := func(a act, under bool) {
				one, other := ids[a.one], ids[a.other]
				switch {
				case a.kind%2 == 0 && w.link(one, other):
					y.join(one, other)
				case a.kind%2 == 1 && w.part(one):
					y.part(one)
					exact = exact && !under // the side that does not answer counts what was reserved
				}
			}
			for _, a := range acts {
				for set := 1; set < 1<<len(ids); set++ {
					persons := map[int]bool{}
					for i, id := range ids {
						if set>>i&1 == 1 {
							persons[y.of[id]] = true
						}
					}
					most[set] = max(most[set], len(persons))
				}
				by := agent.Person{ID: ids[a.other]}
				switch {
				case a.kind < 2:
					change(a, false)
				case a.kind < 4:
					w.begin(by)
					answer, knows := len(w.paid), y.persons[y.of[by.ID]]
					knows[answer] = true
					change(a, true)
					if paid, _ := w.finish(by); !paid {
						for _, knows := range y.persons {
							delete(knows, answer)
						}
					}
				default:
					if paid, _ := w.say(by); paid {
						y.persons[y.of[by.ID]][len(w.paid)-1] = true
					}
				}
				for _, id := range ids {
					got, want := w.spent(agent.Person{ID: id}), agent.Money(price*len(y.persons[y.of[id]]))
					if got < want || exact && got != want {
						f.Fatalf("%s has spent %d, want %d (exact: %t)", id, got, want, exact)
					}
				}
			}
			for set, persons := range most {
				spent := 0
				for _, p := range w.paid {
					for i, id := range ids {
						if set>>i&1 == 1 && p.by == id {
							spent++
						}
					}
				}
				if float64(spent) > answers*float64(persons) {
					f.Fatalf("accounts %04b, %d persons at most, have had %d answers of %.1f each", set, persons, spent, answers)
				}
			}
		})
	})
}

var whenItGoesOn = regexp.MustCompile(`It goes on (tomorrow|\w+ \d+ \w+ \d\d:\d\d)`)

// Whatever becomes of somebody's time zone, also of two with two accounts, the money of a second date is not to be had within
// 20 hours of the first, and in the long run there is no more of it than there are dates. When it is said that it goes on at
// some time, it does, and not before.
func TestNoTimeZoneMakesMoney(t *testing.T) {
	zones := []string{"", "Europe/Berlin", "Pacific/Kiritimati", "Pacific/Pago_Pago", "Asia/Tokyo", "America/Los_Angeles", "Etc/GMT+12"}
	type act struct {
		zone, by int
		wait     time.Duration
		holds    bool // waits until it goes on, without another zone
	}
	rapid.Check(t, func(rt *rapid.T) {
		linked := rapid.Bool().Draw(rt, "two accounts")
		acts := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) act {
			return act{
				rapid.IntRange(0, len(zones)-1).Draw(rt, "zone"), rapid.IntRange(0, 1).Draw(rt, "by"),
				time.Duration(rapid.SampledFrom([]int{0, 0, 10, 300, 700, 1300}).Draw(rt, "minutes")) * time.Minute, rapid.Bool().Draw(rt, "holds"),
			}
		}), 1, 12).Draw(rt, "acts")
		const answers = 6.5
		inBubble(t, rt, func(f *faults) {
			w := newWallet(f, answers)
			defer func() { w.world.Kill() }()
			people := []agent.Person{{ID: "slack:T1:U1"}, {ID: "discord:1"}}
			if linked {
				w.link(people[0].ID, people[1].ID)
			}
			for _, a := range acts {
				time.Sleep(a.wait)
				who := &people[0]
				if linked {
					who = &people[a.by]
				}
				who.Zone = zones[a.zone]
				words, paid := "", true
				for paid {
					paid, words = w.say(*who)
				}
				if a.holds {
					w.waits(*who, words)
				}
			}
			w.check(answers)
		})
	})
}

// waits takes at its word what was said of when it goes on.
func (w *wallet) waits(who agent.Person, words string) {
	zone, _ := time.LoadLocation(who.Zone)
	now := time.Now().In(zone)
	found := whenItGoesOn.FindStringSubmatch(words)
	if found == nil {
		w.f.Fatalf("it is not said when it goes on: %s", words)
	}
	at := time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, zone)
	if found[1] != "tomorrow" {
		said, err := time.ParseInLocation("Mon 2 Jan 15:04 2006", fmt.Sprint(found[1], " ", now.Year()), zone)
		if err != nil {
			w.f.Fatal(err)
		}
		if at = said; at.Before(now) {
			at = at.AddDate(1, 0, 0)
		}
	}
	time.Sleep(time.Until(at) - 2*time.Minute)
	if paid, _ := w.say(who); paid {
		w.f.Fatalf("at %s it goes on already: %s", time.Now().In(zone), words)
	}
	time.Sleep(time.Until(at))
	if paid, again := w.say(who); !paid {
		w.f.Fatalf("at %s it does not go on: %s Then: %s", time.Now().In(zone), words, again)
	}
}

// check compares what was paid with the cap.
func (w *wallet) check(answers float64) {
	for i, first := range w.paid {
		for j, last := range w.paid[i:] {
			took := last.at.Sub(first.at)
			days := 1 + int(took/(20*time.Hour)) + 1                 // one of which had begun
			dates := 1 + int((took+26*time.Hour)/(24*time.Hour)) + 1 // on earth
			if n := float64(j + 1); n > answers*float64(min(days, dates)) {
				w.f.Fatalf("from %s, %s: %d answers of %.1f a day", first.at, took, j+1, answers)
			}
		}
	}
}
