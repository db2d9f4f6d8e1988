package bottest

import (
	"context"
	"fmt"
	"strings"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/memory"
)

func answeredOnce(w *world) {
	w.say("hello there")
	w.once("you said so: hello there")
	if n := w.heard("hello there"); n != 1 {
		w.Errorf("the model was asked %d times about one message", n)
	}
}

func verbatim(w *world) {
	w.say(tricky)
	w.seen("It is this")
	w.settle()
	if w.heard(tricky) != 1 {
		w.Errorf("what was said did not reach the model as it is:\n%q", tricky)
		for _, req := range w.model.Requests() {
			w.Logf("%q", req.Messages[len(req.Messages)-1].Text)
		}
	}
	if n := w.count(w.who.Ann, Direct, tricky); n != 1 {
		w.Errorf("what the model said is not shown as it is:\n%q\nbut\n%s", tricky, w.view())
	}
}

func longText(w *world) {
	w.say(long)
	w.await("the long answer is there", func() bool {
		var all strings.Builder
		for _, line := range w.rig.Shown(w.who.Ann, Direct) {
			all.WriteString(line.Text)
		}
		return strings.Contains(bare(all.String()), bare(long))
	})
	requests := w.model.Requests()
	if said := agenttest.LastUser(requests[0]); !strings.HasSuffix(bare(said), bare(long)) {
		w.Errorf("a long message did not reach the model whole: %q", said)
	}
}

func commandAnswered(w *world) {
	w.say(w.slash + "usage")
	w.once("You have spent")
	w.say(w.slash + "nonsense")
	w.once("There is no command")
	if n := w.heard("usage") + w.heard("nonsense"); n != 0 {
		w.Errorf("the model was asked %d times about commands", n)
	}
}

// orderKept puts much into the outbox at once.
func orderKept(w *world) {
	w.say("hello")
	w.seen("you said so: hello")
	const many = 12
	var numbers []string
	for i := range many {
		numbers = append(numbers, fmt.Sprintf("number %02d.", i))
	}
	w.put(numbers...)
	w.seen(fmt.Sprintf("number %02d.", many-1))
	next := 0
	for _, line := range w.rig.Shown(w.who.Ann, Direct) {
		if strings.Contains(line.Text, "number ") && !strings.Contains(line.Text, fmt.Sprintf("number %02d.", next)) {
			w.Fatalf("out of order:\n%s", w.view())
		} else if strings.Contains(line.Text, "number ") {
			next++
		}
	}
	if next != many {
		w.Errorf("%d of %d were said", next, many)
	}
}

// reply is a final answer for Ann's direct conversation.
func (w *world) reply(text string) agent.Reply {
	home := w.who.Ann.ID.Home()
	return agent.Reply{Kind: agent.Final, Session: home, Text: text, Address: home}
}

func askChoice(w *world) {
	w.say("please choose")
	card := w.card(Direct, "Which colour").Card
	w.rig.Press(w.who.Ann, Direct, decision(card.ID, agent.AnswerIt, "green", ""))
	w.seen("ask_person ended")
	if got := w.result("ask_person-1"); !strings.HasSuffix(got, "answered: green") {
		w.Errorf("the model was told %q", got)
	}
	w.settled(Direct, card.ID, w.who.Ann)
}

func askWords(w *world) {
	w.say("please choose")
	line := w.card(Direct, "Which colour")
	for _, choice := range []string{"red", "green"} {
		if !strings.Contains(line.Text, choice) {
			w.Errorf("the choice %s is not shown: %q", choice, line.Text)
		}
	}
	w.say("a dark blue")
	w.seen("ask_person ended")
	if got := w.result("ask_person-1"); !strings.HasSuffix(got, "answered: a dark blue") {
		w.Errorf("the model was told %q", got)
	}
	w.settled(Direct, line.Card.ID, w.who.Ann)
}

func stopWork(w *world) {
	w.say("please work")
	w.signalled("work begins", w.tools.begun)
	w.rig.Stop(w.who.Ann, Direct)
	w.signalled("work is cut off", w.tools.cut)
	w.once("Stopped")
	if n := w.count(w.who.Ann, Direct, "work ended"); n != 0 {
		w.Error("the turn went on after it was stopped")
	}
}

func steer(w *world) {
	first := w.say("please work")
	w.signalled("work begins", w.tools.begun)
	message := w.say("do it in blue")
	receipts, shows := w.rig.(Receipts)
	if shows {
		w.await("the correction has its receipt", func() bool { return receipts.Receipt(message) == agent.Stored })
	} else {
		w.await("the correction is kept", func() bool { return w.waits(w.who.Ann.ID.Home()) })
	}
	w.tools.finish <- struct{}{}
	w.seen("you said so: do it in blue")
	if shows {
		w.await("the correction was seen", func() bool { return receipts.Receipt(message) == agent.SeenAt })
		if got := receipts.Receipt(first); got != "" {
			w.Errorf("the message that began the turn has the receipt %q", got)
		}
	}
	w.once("you said so: do it in blue")
}

// waits reports whether a session has mail that was not taken up.
func (w *world) waits(session string) (waits bool) {
	err := w.store.View(context.Background(), func(tx memory.Tx) error {
		mail, err := tx.Inbox().List(session)
		waits = len(mail) > 0
		return err
	})
	if err != nil {
		w.Error(err)
	}
	return waits
}
