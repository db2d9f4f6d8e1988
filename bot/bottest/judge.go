package bottest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"nudge/agent"
	"nudge/bot"
	"nudge/memory"
	"nudge/schedule"
)

// Judgement is the command that says the same as the buttons of a notify card of a heartbeat's, without what stands before
// commands: for rigs of platforms without buttons.
func Judgement(heartbeat string, f bot.Feedback) string {
	if f.Said == schedule.Snooze {
		return "snooze " + string(f.Span)
	}
	return string(f.Said) + " " + heartbeat
}

const disk = "disk"

// ping lets a heartbeat tell Ann something.
func (w *world) ping(text string) (card string) {
	w.Helper()
	home := w.who.Ann.ID.Home()
	now := time.Now()
	err := w.store.Store.Update(context.Background(), func(tx memory.Tx) error {
		session, err := agent.SessionOf(tx, home)
		if err != nil {
			return err
		}
		made, err := schedule.AddCard(tx, schedule.Card{
			Person: string(w.who.Ann.ID), Heartbeat: disk, Address: home, Session: session, Text: text, Tick: now, Told: now,
		})
		if err != nil {
			return err
		}
		card = made.ID
		_, err = agent.Tell(tx, home, agent.Note{Heartbeat: disk, Text: text, Card: card}, "normal", disk)
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	w.hub.Outgoing()
	return card
}

// attention is what Ann has said of being spoken to.
func (w *world) attention() (a schedule.Attention) {
	w.Helper()
	err := w.store.Store.View(context.Background(), func(tx memory.Tx) (err error) {
		a, err = schedule.LoadAttention(tx, string(w.who.Ann.ID))
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	return a
}

// judged waits until Ann is told what her feedback changes: on the card, where that can be changed.
func (w *world) judged(card, text string) {
	w.Helper()
	if !w.edits {
		w.seen(text)
		return
	}
	w.await(fmt.Sprintf("the card says %q", text), func() bool {
		now := w.find(Direct, card)
		return now.ID == card && !now.Open && strings.Contains(now.Outcome, text)
	})
}

// feedback lets Ann say what she makes of a notify card, change her mind, and go on after a restart.
func feedback(w *world) {
	w.say("hello")
	w.seen("you said so: hello")
	const text = "The disk fills up, look at it."
	id := w.ping(text)
	if card := w.card(Direct, text).Card; card.ID != id {
		w.Fatalf("the card is %q, want %q", card.ID, id)
	}
	less := bot.Feedback{Card: id, Said: schedule.Less}
	w.othersJudge(less)
	w.rig.Judge(w.who.Ann, Direct, disk, less)
	w.judged(id, "disk speaks to you at most every hour")
	w.redeliver()
	w.settle()
	if taste := w.attention().Tastes[disk]; taste == nil || taste.Less != 1 || taste.Asked != 1 {
		w.Errorf("after less of this: %+v", taste)
	}
	w.restart()
	began := time.Now()
	w.rig.Judge(w.who.Ann, Direct, disk, bot.Feedback{Card: id, Said: schedule.Snooze, Span: schedule.FourHours})
	w.judged(id, "Snoozed until ")
	if lasts := w.attention().Snoozed.Sub(began); lasts < 4*time.Hour-time.Minute || lasts > 4*time.Hour+time.Minute {
		w.Errorf("a snooze of four hours lasts %s", lasts)
	}
	w.settle()
	w.restart()
	useful := bot.Feedback{Card: id, Said: schedule.Useful}
	w.rig.Judge(w.who.Ann, Direct, disk, useful)
	w.judged(id, "Noted as useful.")
	w.rig.Judge(w.who.Ann, Direct, disk, useful)
	w.once(text)
	if taste := w.attention().Tastes[disk]; taste == nil || taste.Useful != 1 || taste.Less != 0 {
		w.Errorf("after useful: %+v", taste)
	}
}

// othersJudge lets everybody but Ann press the buttons of Ann's card.
func (w *world) othersJudge(f bot.Feedback) {
	w.Helper()
	if w.who.Bob.ID == "" {
		w.Log("this platform has one person")
		return
	}
	w.rig.Judge(w.who.Eve, Direct, disk, f)
	w.rig.Judge(w.who.Bob, Direct, disk, f)
	w.await("Bob is told whose card it is", func() bool { return w.count(w.who.Bob, Direct, "not yours to decide") > 0 })
	w.settle()
	if n := w.count(w.who.Ann, Direct, "not yours"); n != 0 {
		w.Errorf("Ann sees what Bob is told:\n%s", w.view())
	}
	if a := w.attention(); len(a.Tastes) > 0 || !w.find(Direct, f.Card).Open {
		w.Errorf("somebody else judged the card: %+v", a)
	}
}
