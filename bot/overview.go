package bot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"nudge/agent"
	"nudge/memory"
	"nudge/memory/diary"
	"nudge/schedule"
)

// Overview is what one person may see of their own at a glance. Nothing of anybody else's is in it but the calls that wait
// for this person's decision.
type Overview struct {
	Served     bool          // the person is let in; if not, the rest is empty
	Cards      []agent.Reply // that wait for the person, in the order in which they were asked
	Heartbeats []Beat        // that wake for the person and have not ended, by name
	Diary      string        // what is remembered of the person, in a sentence or more
	Spent      agent.Money   // on the person's present date
	Zone       string        // the person's, as far as it is known
}

// Beat is a heartbeat as its person sees it.
type Beat struct {
	Name     string
	About    string    // its prompt, or the words that it says
	Schedule string    // in words
	Next     time.Time // in the person's zone; zero when it does not fall due
	State    string    // "on", or why it is not
	Paused   bool
	Said     []string // what the person said of it and what follows, in words
	Governed bool     // the person may pause it, and delete it if it was made in a conversation
	Made     bool     // in a conversation
}

// noDiary is what there is to say of a diary that nothing keeps.
const noDiary = "I keep no diary: of you I know your name and time zone, and what stands in our conversations."

// What a person is told of whom nothing waits, or whom nothing wakes.
const (
	NothingWaits = "Nothing waits for a decision of yours."
	NothingWakes = "No heartbeat wakes me for you."
)

// Overview gives what a person may see of their own.
func (h *Hub) Overview(ctx context.Context, of agent.Person, standing Standing) (Overview, error) {
	served, err := h.lets(ctx, of.ID, standing)
	if err != nil || !served {
		return Overview{}, err
	}
	if of, err = h.known(ctx, of); err != nil {
		return Overview{}, err
	}
	var o Overview
	err = h.Store.View(ctx, func(tx memory.Tx) (err error) {
		o = Overview{Served: true, Zone: of.Zone, Diary: noDiary}
		if h.Diary != nil {
			if o.Diary, err = h.ofDiary(tx, of); err != nil {
				return err
			}
		}
		if o.Spent, err = agent.SpentToday(tx, of); err != nil {
			return err
		}
		if o.Heartbeats, err = h.beatsOf(tx, of); err != nil {
			return err
		}
		err = agent.WaitingCards(tx, func(w agent.WaitingCard) error {
			may, err := h.agent.MayDecide(tx, w, of.ID)
			if may && !w.Reply.IsContinuation() {
				o.Cards = append(o.Cards, Hide(w.Reply, h.Secrets))
			}
			return err
		})
		if err != nil {
			return err
		}
		own, err := Requests(tx, of.ID, h.agent.Owns(of.ID), of.ID.Home())
		o.Cards = append(o.Cards, own...)
		return err
	})
	if err != nil {
		return Overview{}, fmt.Errorf("look up what there is of %s: %w", of.ID, err)
	}
	return o, nil
}

// shownOfDiary is how many notes stand in an overview.
const shownOfDiary = 5

// ofDiary says how much is remembered of a person, and what was noted last.
func (h *Hub) ofDiary(tx memory.Tx, of agent.Person) (string, error) {
	e := Event{From: of, Address: of.ID.Home(), At: time.Now()}
	v, err := h.diaryOf(tx, e)
	if err != nil {
		return "", err
	}
	all, err := diary.List(tx, v)
	if err != nil || len(all) == 0 {
		return nothingRemembered(e), err
	}
	lines := []string{schedule.Counted(len(all), "note") + ". The newest:"}
	for _, n := range all[:min(shownOfDiary, len(all))] {
		lines = append(lines, noteLine(n, e, true))
	}
	return strings.Join(append(lines, h.word(e.Address, "diary")+" shows all."), "\n"), nil
}

func (h *Hub) beatsOf(tx memory.Tx, of agent.Person) ([]Beat, error) {
	heartbeats, err := heartbeatsFor(tx, of.ID)
	if err != nil {
		return nil, err
	}
	attention, err := schedule.LoadAttention(tx, string(of.ID))
	if err != nil {
		return nil, err
	}
	var beats []Beat
	for _, b := range heartbeats {
		next, err := schedule.NextFor(tx, b, of.Zone)
		if err != nil {
			return nil, err
		}
		beat := Beat{
			Name: b.Name, About: b.About(), Schedule: b.InWords() + whenOf(b.Condition), Next: next, State: "on", Paused: b.Paused != "",
			Said: attention.About(b.Name, time.Now(), zoneOf(of)), Governed: h.governs(b, of.ID), Made: b.By != "",
		}
		if b.Paused != "" {
			beat.State = "paused: " + b.Paused
		}
		if !next.IsZero() {
			beat.Next = next.In(zoneOf(of))
		}
		beats = append(beats, beat)
	}
	return beats, nil
}

// heartbeatsFor are the heartbeats that wake for a person and have not ended.
func heartbeatsFor(tx memory.Tx, person agent.PersonID) ([]schedule.Heartbeat, error) {
	beats, err := schedule.List(tx)
	return slices.DeleteFunc(beats, func(b schedule.Heartbeat) bool {
		return b.Ended != "" || !slices.Contains(b.For, string(person))
	}), err
}
