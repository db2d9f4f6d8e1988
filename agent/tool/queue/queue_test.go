package queue

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"nudge/agent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// No more are in than there is room for, everybody gets in who waits, and nothing is left behind.
func TestQueues(t *testing.T) {
	const room = 3
	rapid.Check(t, func(rt *rapid.T) {
		type visit struct {
			name                        string
			want, comes, stay, patience int // patience is 0 for as long as it takes
		}
		visits := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) visit {
			return visit{
				name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"), want: rapid.IntRange(1, room).Draw(t, "want"),
				comes: rapid.IntRange(0, 20).Draw(t, "comes"), stay: rapid.IntRange(0, 10).Draw(t, "stay"), patience: rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "patience"),
			}
		}), 1, 12).Draw(rt, "visits")
		synctest.Test(t, func(t *testing.T) {
			q := New(room)
			var used [2]atomic.Int64
			var came atomic.Int32
			for _, v := range visits {
				go func() {
					defer came.Add(1)
					time.Sleep(time.Duration(v.comes) * time.Second)
					ctx, cancel := t.Context(), func() {}
					if v.patience > 0 {
						ctx, cancel = context.WithTimeout(ctx, time.Duration(v.patience)*time.Second)
					}
					defer cancel()
					leave, err := q.Enter(ctx, v.name, int64(v.want))
					if err != nil {
						if v.patience == 0 || !errors.Is(err, context.DeadlineExceeded) {
							t.Error(err)
						}
						return
					}
					at := &used[v.name[0]-'a']
					if n := at.Add(int64(v.want)); n > room {
						t.Errorf("%d are in", n)
					}
					time.Sleep(time.Duration(v.stay) * time.Second)
					at.Add(-int64(v.want))
					leave()
				}()
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if int(came.Load()) != len(visits) || len(q.named) != 0 {
				t.Errorf("%d of %d got in or went away, and %d queues are kept", came.Load(), len(visits), len(q.named))
			}
		})
	})
}

// However many calls one person has, another's need not wait for them.
func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(4, 2)
		var running [3]atomic.Int32
		enter := func(n int, person agent.PersonID) {
			go func() {
				leave, err := p.Enter(t.Context(), person)
				if err != nil {
					t.Error(err)
					return
				}
				running[n].Add(1)
				time.Sleep(time.Minute)
				running[n].Add(-1)
				leave()
			}()
		}
		for range 10 {
			enter(0, "api:ann")
		}
		synctest.Wait()
		enter(1, "api:bob")
		synctest.Wait()
		if running[0].Load() != 2 || running[1].Load() != 1 {
			t.Errorf("%d of Ann's run and %d of Bob's", running[0].Load(), running[1].Load())
		}
		enter(1, "api:bob")
		enter(2, "api:eve")
		synctest.Wait()
		if all := running[0].Load() + running[1].Load() + running[2].Load(); all != 4 {
			t.Errorf("%d run at once", all)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.Enter(gone, "api:tim"); err == nil {
			t.Error("one gets in where there is no place")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(p.each.named) != 0 || !p.all.TryAcquire(4) {
			t.Error("places are lost")
		}
	})
}
