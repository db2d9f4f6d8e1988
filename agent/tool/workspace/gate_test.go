package workspace

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// Whoever changes a folder is alone in it, whoever looks is not, everybody gets in, and nothing is left behind.
func TestGate(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type visit struct {
			folder      string
			alone       bool
			comes, stay int
			patience    int // 0 for as long as it takes
		}
		visits := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) visit {
			return visit{
				folder: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "folder"), alone: rapid.Bool().Draw(t, "alone"),
				comes: rapid.IntRange(0, 20).Draw(t, "comes"), stay: rapid.IntRange(0, 10).Draw(t, "stay"), patience: rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "patience"),
			}
		}), 1, 12).Draw(rt, "visits")
		synctest.Test(t, func(t *testing.T) {
			g := NewGate()
			var inside, writers [2]atomic.Int32
			var came atomic.Int32
			for _, v := range visits {
				go func() {
					ctx := t.Context()
					time.Sleep(time.Duration(v.comes) * time.Second)
					if v.patience > 0 {
						limited, cancel := context.WithTimeout(ctx, time.Duration(v.patience)*time.Second)
						defer cancel()
						ctx = limited
					}
					defer came.Add(1)
					leave, err := g.Enter(ctx, v.folder, v.alone)
					if err != nil {
						if v.patience == 0 || !errors.Is(err, context.DeadlineExceeded) {
							t.Error(err)
						}
						return
					}
					at := v.folder[0] - 'a'
					if v.alone && writers[at].Add(1) != 1 {
						t.Error("two change a folder at once")
					}
					if n := inside[at].Add(1); n > 1 && writers[at].Load() > 0 {
						t.Errorf("%d are in a folder that one changes", n)
					}
					time.Sleep(time.Duration(v.stay) * time.Second)
					inside[at].Add(-1)
					if v.alone {
						writers[at].Add(-1)
					}
					leave()
				}()
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if int(came.Load()) != len(visits) || len(g.folders) != 0 {
				t.Errorf("%d of %d got in or went away, and %d folders are kept", came.Load(), len(visits), len(g.folders))
			}
		})
	})
}

// Those who look are together.
func TestManyLookAtOnce(t *testing.T) {
	g := NewGate()
	for range 3 {
		if _, err := g.Enter(t.Context(), "a", false); err != nil {
			t.Fatal(err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Enter(gone, "a", true); err == nil || fmt.Sprint(err) == context.Canceled.Error() {
		t.Errorf("one who is alone gets in beside them, or is not told what was waited for: %v", err)
	}
	if _, err := g.Enter(t.Context(), "b", true); err != nil {
		t.Error(err)
	}
}
