package bottest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"nudge/agent"
	"nudge/bot"
	"nudge/memory"
)

// repeated is what stands before a reply that may have been said already.
const repeated = "(possibly a repeat) "

// limitedReply lets the platform refuse the first of several, because there are too many.
func limitedReply(w *world) {
	platform, may := able[Limiter](w, "this platform takes all that is said")
	if !may {
		return
	}
	platform.LimitSends(2)
	w.put("number 1.", "number 2.")
	w.seen("number 2.")
	w.once("number 1.")
	var said []string
	for _, line := range w.rig.Shown(w.who.Ann, Direct) {
		if strings.Contains(line.Text, "number ") {
			said = append(said, line.Text)
		}
	}
	if len(said) != 2 || !strings.Contains(said[0], "number 1.") {
		w.Errorf("out of order: %q", said)
	}
}

func lostAnswer(w *world) {
	platform, may := able[Forgetful](w, "this platform loses no answers")
	if !may {
		return
	}
	if w.doubt == bot.NoDoubt {
		w.Fatal("the platform can lose an answer, and the adapter says that nothing can be in doubt")
	}
	platform.LoseAnswers(1)
	w.say("did you hear me?")
	w.saidOnce("you said so: did you hear me?")
}

// saidOnce checks that Ann sees a text once, or a second time where the adapter could not know and says so.
func (w *world) saidOnce(text string) {
	w.Helper()
	if w.doubt != bot.CannotTell {
		w.once(text)
		return
	}
	w.seen(repeated + text)
	w.once(repeated + text)
	if n := w.count(w.who.Ann, Direct, text); n != 2 {
		w.Errorf("Ann sees %q %d times, want it and its repeat:\n%s", text, n, w.view())
	}
}

func refusedReply(w *world) {
	platform, may := able[Refuser](w, "this platform refuses nothing")
	if !may {
		return
	}
	platform.RefuseSends(1)
	w.put("never said.", "said after it.")
	w.once("said after it.")
	if n := w.count(w.who.Ann, Direct, "never said."); n != 0 {
		w.Errorf("what was refused stands there %d times", n)
	}
	err := w.store.View(context.Background(), func(tx memory.Tx) error {
		total, letters, err := bot.DeadLetters(tx, 10)
		if err == nil && (total != 1 || letters[0].Text != "never said." || letters[0].Reason == "" ||
			letters[0].Conversation != w.who.Ann.ID.Home()) {
			err = fmt.Errorf("there are %d dead letters: %+v", total, letters)
		}
		return err
	})
	if err != nil {
		w.Error(err)
	}
}

// crashedSend crashes after something was said and before that could be noted.
func crashedSend(w *world) {
	if w.doubt == bot.NoDoubt {
		w.Log("this adapter says things itself, and may say them again after a crash")
		return
	}
	w.crashable()
	crashed := w.store.crash(1) // after it was noted that a try begins
	w.put("said in a crash.")
	w.signalled("it was said and cannot be noted", crashed)
	w.seen("said in a crash.")
	w.revive()
	w.saidOnce("said in a crash.")
}

// crashedBefore crashes before anything was sent.
func crashedBefore(w *world) {
	if w.doubt == bot.NoDoubt {
		w.Log("this adapter says things before anything is noted")
		return
	}
	w.crashable()
	crashed := w.store.crash(0)
	w.put("said after a crash.")
	w.signalled("it cannot be noted that a try begins", crashed)
	if n := w.count(w.who.Ann, Direct, "said after a crash."); n != 0 {
		w.Error("it was said though that could not be noted")
	}
	w.revive()
	w.once("said after a crash.")
	if n := w.count(w.who.Ann, Direct, repeated); n != 0 {
		w.Errorf("it is called a repeat:\n%s", w.view())
	}
}

// put puts replies for Ann into the outbox, also when the program cannot write any more.
func (w *world) put(texts ...string) {
	w.Helper()
	err := w.store.Store.Update(context.Background(), func(tx memory.Tx) error {
		for _, text := range texts {
			if err := agent.Send(tx, w.reply(text)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
	w.hub.Outgoing()
}

// crashable starts the program anew in a way that lets it be ended at once, as if it were killed.
func (w *world) crashable() {
	w.Helper()
	w.greet()
	w.end()
	w.grace = time.Millisecond
	w.start()
	w.settle()
}

// revive ends the program whose writes fail and starts it again.
func (w *world) revive() {
	w.Helper()
	w.end()
	w.store, w.grace = &gate{Store: w.store.Store}, 0
	w.start()
}
