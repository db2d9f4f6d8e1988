package bot_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"nudge/bot"
	"nudge/memory"
)

// fullStore is a store on a disk that may be full.
type fullStore struct {
	memory.Store
	full atomic.Bool
}

// Update fails while the disk is full.
func (s *fullStore) Update(ctx context.Context, fn func(memory.Tx) error) error {
	if s.full.Load() {
		return fmt.Errorf("commit: %w", memory.ErrFull)
	}
	return s.Store.Update(ctx, fn)
}

// While the disk is full nothing is taken, which is said once a minute; with room again everything goes on by itself.
func TestAFullDiskIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.doubt = bot.NoDoubt
		store := &fullStore{Store: openStore(t)}
		s := serve(t, store, bot.Config{Allow: []string{"chat:*"}}, f)
		s.receive(s.event("hello"))
		store.full.Store(true)
		for range 3 {
			if _, err := s.hub.Receive(context.Background(), s.event("and now?")); !errors.Is(err, memory.ErrFull) {
				t.Errorf("taken with %v", err)
			}
		}
		synctest.Wait()
		if told := strings.Count(f.texts(annHome), "My disk is full"); told != 1 {
			t.Errorf("it was told %d times: %s", told, f.texts(annHome))
		}
		time.Sleep(2 * time.Minute)
		_, _ = s.hub.Receive(context.Background(), s.event("and now?"))
		synctest.Wait()
		if told := strings.Count(f.texts(annHome), "My disk is full"); told != 2 {
			t.Errorf("it was told %d times: %s", told, f.texts(annHome))
		}
		store.full.Store(false)
		s.receive(s.event("again"))
		if got := f.texts(annHome); !strings.HasSuffix(got, "|echo again") || strings.Contains(got, "echo and now?") {
			t.Errorf("said %s", got)
		}
		s.end()
	})
}

// A turn in whose middle the disk fills up says so, and goes on by itself once there is room.
func TestATurnOnAFullDiskGoesOnLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		store := &fullStore{Store: openStore(t)}
		s := serve(t, store, bot.Config{Allow: []string{"chat:*"}}, f)
		s.model.Latency = time.Minute
		if _, err := s.hub.Receive(context.Background(), s.event("hello")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		store.full.Store(true)
		time.Sleep(2 * time.Minute)
		if told := strings.Count(f.texts(annHome), "My disk is full, so I cannot go on"); told == 0 {
			t.Errorf("said %s", f.texts(annHome))
		}
		store.full.Store(false)
		time.Sleep(time.Hour)
		if got := f.texts(annHome); strings.Count(got, "echo hello") != 1 {
			t.Errorf("said %s", got)
		}
		s.end()
	})
}
