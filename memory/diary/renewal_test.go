package diary

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// other is a local embedder under another name, which fails from some call on.
type other struct {
	Embedder
	name  string
	fails *atomic.Int64 // calls until it fails; nil means never
}

func (o other) Model() string { return o.name }

func (o other) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if o.fails != nil && o.fails.Add(-1) < 0 {
		return nil, errors.New("down")
	}
	return o.Embedder.Embed(ctx, texts)
}

// After another model was chosen notes get its vectors, people after people; what was done is not done again after a start in
// between, and meanwhile all are found by their words.
func TestAnotherModel(t *testing.T) {
	d := newDiary(t, Config{})
	for p := range 3 {
		for i := range 40 {
			remember(t, d, person(p), Note{Text: fmt.Sprintf("person %d has note %d", p, i)})
		}
	}
	if left := left(t, d); left != 0 {
		t.Fatalf("%d notes lack a vector before", left)
	}
	fails := &atomic.Int64{}
	fails.Store(50)
	cut := newDiary(t, Config{Store: d.Store, Embedder: other{Local(), "b", fails}})
	if left := left(t, cut); left != 120 {
		t.Fatalf("%d notes are to be done", left)
	}
	if _, err := cut.Renew(t.Context()); err == nil {
		t.Fatal("it did not fail")
	}
	undone := left(t, cut)
	if undone == 0 || undone > 88 {
		t.Fatalf("%d are left", undone)
	}
	if got := recall(t, cut, View{person(2), Private}, "note 7"); len(got) == 0 {
		t.Error("without a vector nothing is found")
	}
	fails.Store(1 << 40)
	again := newDiary(t, Config{Store: d.Store, Embedder: other{Local(), "b", fails}})
	if n, err := again.Renew(t.Context()); err != nil || n != undone {
		t.Errorf("renewed %d of %d: %v", n, undone, err)
	}
	if left := left(t, again); left != 0 {
		t.Errorf("%d are left", left)
	}
	for p := range 3 {
		if x := indexOf(t, again, View{person(p), Private}); x.vectors == nil || x.vectors.Count() != 40 {
			t.Errorf("person %d has not all vectors", p)
		}
	}
	if n, err := again.Renew(t.Context()); n != 0 || err != nil {
		t.Errorf("renewed again: %d, %v", n, err)
	}
}

// A note written while the embedder is down gets its vector once it is up again, without anybody asking.
func TestRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nudge.db")
	synctest.Test(t, func(t *testing.T) {
		fails := &atomic.Int64{}
		d := newDiary(t, Config{Store: openStore(t, path), Embedder: other{Local(), "b", fails}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			d.Run(ctx)
		}()
		remember(t, d, ann, Note{Text: "Likes tea"})
		synctest.Wait()
		if left := left(t, d); left != 1 {
			t.Errorf("%d lack a vector while it is down", left)
		}
		fails.Store(100)
		for range 100 {
			synctest.Wait()
			if left := left(t, d); left == 0 {
				break
			}
			time.Sleep(firstRetry)
		}
		if left := left(t, d); left != 0 {
			t.Errorf("%d lack a vector after it was up again", left)
		}
		cancel()
		<-ended
	})
}
