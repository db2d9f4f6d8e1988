package bot_test

import (
	"slices"
	"sync/atomic"
	"testing"

	"nudge/bot"
)

func TestRecentRemembersTheLastNames(t *testing.T) {
	r := bot.NewRecent[int](2)
	if !r.Put("a", 1) || r.Put("a", 2) {
		t.Error("a name is new once")
	}
	if value, known := r.Get("a"); !known || value != 2 {
		t.Errorf("remembered is %d, %v", value, known)
	}
	r.Put("b", 3)
	r.Put("c", 4)
	if all := r.All(); len(all) != 2 || all["b"] != 3 || all["c"] != 4 {
		t.Errorf("of three names remembered are %v", all)
	}
}

func TestANameThatWasTakenIsRememberedAnewForAsLongAsAny(t *testing.T) {
	r := bot.NewRecent[int](2)
	r.Put("a", 1)
	if value, known := r.Take("a"); !known || value != 1 {
		t.Errorf("taken is %d, %v", value, known)
	}
	if _, known := r.Take("a"); known {
		t.Error("a name is taken twice")
	}
	r.Put("a", 2)
	r.Put("b", 3)
	if all := r.All(); len(all) != 2 {
		t.Errorf("there is room for two, and remembered are %v", all)
	}
}

// TestLanes has one lane held up and one that panics: the others go on, each in its order.
func TestLanes(t *testing.T) {
	var faults atomic.Int64
	lanes := bot.Lanes{Fault: func(lane string, fault any) {
		if lane == "bad" && fault == "a fault" {
			faults.Add(1)
		}
	}}
	held, done := make(chan struct{}), make(chan struct{})
	lanes.Do("held", func() { <-held })
	var order []int
	for i := range 100 {
		lanes.Do("bad", func() { order = append(order, i); panic("a fault") })
	}
	lanes.Do("bad", func() { close(done) })
	<-done
	lanes.Beside("bad", func() { panic("a fault") })
	close(held)
	lanes.Wait()
	if !slices.IsSorted(order) || len(order) != 100 || faults.Load() != 101 {
		t.Errorf("%d were done, %v, with %d faults", len(order), order, faults.Load())
	}
}
