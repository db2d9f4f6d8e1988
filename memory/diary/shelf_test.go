package diary

import (
	"fmt"
	"testing"
)

// However many people ask, the indexes in memory stay within their room, and those who ask most often keep theirs.
func TestRoom(t *testing.T) {
	d := newDiary(t, Config{})
	for p := range 12 {
		for i := range 5 {
			remember(t, d, person(p), Note{Text: fmt.Sprintf("person %d has note %d", p, i)})
		}
	}
	recall(t, d, View{person(0), Private}, "note")
	d.shelf.room = 4 * d.shelf.used
	for p := range 12 {
		recall(t, d, View{person(0), Private}, "note")
		if got := recall(t, d, View{person(p), Private}, "note"); len(got) != 5 {
			t.Errorf("person %d has %q", p, got)
		}
		if d.shelf.used > d.shelf.room {
			t.Fatalf("%d bytes of %d are taken", d.shelf.used, d.shelf.room)
		}
	}
	var kept []int
	for p := range 12 {
		if d.shelf.named[key(person(p), Private)] != nil {
			kept = append(kept, p)
		}
	}
	if len(kept) < 2 || kept[0] != 0 || kept[len(kept)-1] != 11 {
		t.Errorf("kept are %v", kept)
	}
	d.shelf.room = 1
	if got := recall(t, d, View{person(3), Private}, "note"); len(got) != 5 {
		t.Errorf("without any room: %q", got)
	}
}
