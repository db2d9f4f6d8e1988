package bottest

import (
	"context"
)

// redeliver delivers the last thing once more, where the platform may.
func (w *world) redeliver() bool {
	again, may := w.rig.(Redeliverer)
	if may {
		again.Redeliver()
	}
	return may
}

func redelivery(w *world) {
	w.say("hello there")
	w.seen("you said so: hello there")
	if !w.redeliver() {
		w.Log("this platform delivers nothing twice")
		return
	}
	w.once("you said so: hello there")
	if n := w.heard("hello there"); n != 1 {
		w.Errorf("the model was asked %d times about one message", n)
	}
	w.say(w.slash + "usage")
	w.seen("You have spent")
	w.redeliver()
	w.settle()
	if n := w.count(w.who.Ann, Direct, "You have spent"); n != 1 {
		w.Errorf("a command was answered %d times", n)
	}
}

func acknowledgedWhenKept(w *world) {
	platform, may := able[Acknowledger](w, "this platform takes no acknowledgements")
	if !may {
		return
	}
	w.await("the first message is acknowledged", func() bool { return platform.Acknowledged() == 1 })
	reached, release := w.store.hold()
	defer release()
	w.say("hold on")
	w.signalled("the message is being written", reached)
	if n := platform.Acknowledged(); n != 1 {
		w.Error("a message was acknowledged before it was on disk")
	}
	release()
	w.await("the second message is acknowledged", func() bool { return platform.Acknowledged() == 2 })
	w.seen("you said so: hold on")
}

func notAcknowledgedWhenLost(w *world) {
	platform, knows := able[Acknowledger](w, "this platform takes no acknowledgements")
	again, may := w.rig.(Redeliverer)
	if !knows || !may {
		return
	}
	w.await("the first message is acknowledged", func() bool { return platform.Acknowledged() == 1 })
	failed := w.store.fail()
	w.say("keep this")
	w.signalled("the message cannot be written", failed)
	again.Redeliver()
	w.once("you said so: keep this")
	w.await("the message is acknowledged", func() bool { return platform.Acknowledged() >= 2 })
	// "is that all?" and the redelivery are acknowledged, the delivery that could not be kept is not.
	w.await("all is acknowledged", func() bool { return platform.Acknowledged() >= 3 })
	if n := platform.Acknowledged(); n != 3 {
		w.Errorf("of four deliveries, one of which could not be kept, %d were acknowledged", n)
	}
}

func failedReply(w *world) {
	platform, may := able[Flaky](w, "this platform always shows what is said")
	if !may {
		return
	}
	platform.FailSends(2)
	w.say("still there?")
	w.once("you said so: still there?")
}

func droppedLink(w *world) {
	platform, may := able[Dropper](w, "this platform has no link to cut")
	if !may {
		return
	}
	platform.DropLink()
	w.say("are you back?")
	w.once("you said so: are you back?")
}

func outboxAfterRestart(w *world) {
	w.greet()
	w.end()
	w.put("said while nobody spoke")
	w.start()
	w.once("said while nobody spoke")
	if n := w.count(w.who.Ann, Direct, "you said so: hello"); n != 1 {
		w.Errorf("what was said before the restart stands there %d times", n)
	}
}

// turnAfterRestart ends the adapter in the middle of a turn that ends without it.
func turnAfterRestart(w *world) {
	w.say("please work")
	w.signalled("work begins", w.tools.begun)
	w.silence()
	w.tools.finish <- struct{}{}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := w.agent.WaitIdle(ctx, nil); err != nil {
		w.Fatalf("the turn did not end: %v", err)
	}
	w.restart()
	w.once("work ended: work was done")
}
