package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"nudge/memory"
)

const (
	// wipedKey is the row of the store's own bucket that is written so that both heads are of after the deleting.
	wipedKey = "wiped"
	// wipePoll is how often it is looked whether readers of an earlier state have ended.
	wipePoll = 5 * time.Millisecond
	// wipeAtOnce is how many bytes of zeros are written at once.
	wipeAtOnce = 1 << 20
)

// Wipe writes zeros over what deleting has left in the file, while the store goes on, and returns how many bytes it wrote.
// What was deleted by transactions that ended before cannot be found in the file afterwards, nor in a backup that begins
// after. It waits for reading that began before, and others' writing waits for it while it writes. After an error, or when it
// was cut short, nothing but free space has changed, and it can be done again.
func (s *Store) Wipe(ctx context.Context) (wiped int64, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("wipe the free space of %s: %w", s.path, err)
		}
	}()
	// A page is given up by one commit and listed as free by its head. When both heads say so, no reader needs it, not even
	// one for whom the newer head was damaged.
	for range 2 {
		err := s.Update(ctx, func(m memory.Tx) error {
			b, err := m.(*tx).writing(storeBucket)
			if err != nil {
				return err
			}
			return b.Put([]byte(wipedKey), []byte(time.Now().UTC().Format(time.RFC3339Nano)))
		})
		if err != nil {
			return 0, err
		}
	}
	if err := s.waitForReaders(ctx); err != nil {
		return 0, err
	}
	if err := s.begin(); err != nil {
		return 0, err
	}
	defer s.begun.Done()
	select {
	case s.writer.turn <- struct{}{}: // so that no page that is free now is taken into use
		defer s.writer.give()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	free, err := s.freeInBoth()
	if err != nil {
		return 0, err
	}
	return s.zero(ctx, free)
}

// waitForReaders returns when those have ended who read now.
func (s *Store) waitForReaders(ctx context.Context) error {
	s.heads.Lock()
	var now []*bbolt.Tx
	for b := range s.reading {
		now = append(now, b)
	}
	s.heads.Unlock()
	poll := time.NewTicker(wipePoll)
	defer poll.Stop()
	for {
		s.heads.Lock()
		now = slices.DeleteFunc(now, func(b *bbolt.Tx) bool { return !s.reading[b] })
		s.heads.Unlock()
		if len(now) == 0 {
			return nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// freeInBoth are the pages that both heads have in their list of free ones, in order.
func (s *Store) freeInBoth() (pages []uint64, err error) {
	info, err := s.file.Stat()
	if err != nil {
		return nil, err
	}
	listed := map[uint64]int{}
	for at := int64(0); at <= s.pageSize; at += s.pageSize {
		head, whole := readMeta(s.file, at)
		if !whole {
			return nil, errors.New("one of its heads is damaged; make a backup, and restore it")
		}
		if err := head.fits(info.Size()); err != nil {
			return nil, err
		}
		if err := readFreelist(s.file, head, func(page uint64) { listed[page]++ }, nil); err != nil {
			return nil, err
		}
	}
	for page, lists := range listed {
		if lists == 2 {
			pages = append(pages, page)
		}
	}
	slices.Sort(pages)
	return pages, nil
}

// zero writes zeros over pages where there is anything else, and that to disk.
func (s *Store) zero(ctx context.Context, pages []uint64) (wiped int64, err error) {
	zeros, there := make([]byte, wipeAtOnce), make([]byte, wipeAtOnce)
	for len(pages) > 0 {
		run := 1
		for run < len(pages) && pages[run] == pages[0]+uint64(run) && int64(run+1)*s.pageSize <= wipeAtOnce {
			run++
		}
		if err := errors.Join(ctx.Err(), s.opts.at("wipe")); err != nil {
			return wiped, err
		}
		size, at := int64(run)*s.pageSize, int64(pages[0])*s.pageSize
		pages = pages[run:]
		if _, err := s.file.ReadAt(there[:size], at); err == nil && bytes.Equal(there[:size], zeros[:size]) {
			continue
		}
		if _, err := s.file.WriteAt(zeros[:size], at); err != nil {
			return wiped, full(err)
		}
		wiped += size
	}
	return wiped, s.file.Sync()
}
