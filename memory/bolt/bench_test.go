package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"nudge/memory"
)

// BenchmarkCommits writes the same small row durably in three ways, one after the other in turns so that a busy
// machine is as unfair to each, and reports how many times faster than bbolt's own two the store is.
func BenchmarkCommits(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			s := open(b, b.TempDir(), Options{})
			db, err := bbolt.Open(filepath.Join(b.TempDir(), "plain.db"), 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = db.Close() })
			value := make([]byte, 200)
			plain := func(key string) func(*bbolt.Tx) error {
				return func(tx *bbolt.Tx) error {
					bucket, err := tx.CreateBucketIfNotExists([]byte("t"))
					return errors.Join(err, bucket.Put([]byte(key), value))
				}
			}
			ways := []func(key string) error{
				func(key string) error {
					return s.Update(context.Background(), func(tx memory.Tx) error { return tx.Table("t").Put(key, value) })
				},
				func(key string) error { return db.Batch(plain(key)) },
				func(key string) error { return db.Update(plain(key)) },
			}
			var took [3]time.Duration
			const round = 10 // commits of each writer before the next way's turn
			for b.Loop() {
				for i, way := range ways {
					begun := time.Now()
					spread(b, writers, round, way)
					took[i] += time.Since(begun)
				}
			}
			commits := float64(b.N * writers * round)
			b.ReportMetric(commits/took[0].Seconds(), "commits/s")
			b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "×Batch")
			b.ReportMetric(took[2].Seconds()/took[0].Seconds(), "×Update")
		})
	}
}

// spread has each of several writers write n rows, each a row of its own time and again.
func spread(b *testing.B, writers, n int, write func(key string) error) {
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for range n {
				if err := write(fmt.Sprint("writer ", w)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	group.Wait()
}

// BenchmarkAppend appends durably to a journal of 10 entries and to one of 10,000 in turns.
func BenchmarkAppend(b *testing.B) {
	s := open(b, b.TempDir(), Options{})
	entry := memory.Entry{Kind: "said", At: time.Unix(1_796_000_000, 0), Data: make([]byte, 300)}
	grow := func(session string, n int) {
		err := s.Update(context.Background(), func(tx memory.Tx) error {
			_, err := tx.Journal().Append(session, slices.Repeat([]memory.Entry{entry}, n)...)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	grow("long", 10_000)
	var took [2]time.Duration
	for i := 0; b.Loop(); i++ {
		short := fmt.Sprint("short ", i)
		b.StopTimer()
		grow(short, 9)
		b.StartTimer()
		for j, session := range []string{short, "long"} {
			begun := time.Now()
			err := s.Update(context.Background(), func(tx memory.Tx) error {
				_, err := tx.Journal().Append(session, entry)
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
			took[j] += time.Since(begun)
		}
	}
	b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "long/short")
}

// BenchmarkDisk reports what a message costs on disk: six entries and the traffic of inbox, outbox and seen.
func BenchmarkDisk(b *testing.B) {
	const sessions = 8
	for b.Loop() {
		s := open(b, b.TempDir(), Options{})
		const messages = 400
		for i := range messages {
			session := fmt.Sprint("slack:T012345/D0123456", i%sessions)
			for _, fn := range oneMessage(session, i) {
				if err := s.Update(context.Background(), fn); err != nil {
					b.Fatal(err)
				}
			}
		}
		info, err := os.Stat(s.path)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(info.Size())/messages, "B/message")
	}
}

// oneMessage is the work of one message with a tool call: received, taken up, called, answered, delivered.
func oneMessage(session string, i int) []func(memory.Tx) error {
	entry := memory.Entry{Kind: "answer", At: time.Unix(int64(i), 0), Data: make([]byte, 150)}
	add := func(tx memory.Tx, n int) error {
		for range n {
			if _, err := tx.Journal().Append(session, entry); err != nil {
				return err
			}
		}
		return nil
	}
	var mail, parcel uint64
	return []func(memory.Tx) error{
		func(tx memory.Tx) (err error) {
			mail, err = tx.Inbox().Put(session, entry.Data)
			_, err2 := tx.Seen().Mark(fmt.Sprint("Ev0123456", i), entry.At)
			return errors.Join(err, err2)
		},
		func(tx memory.Tx) error { return errors.Join(tx.Inbox().Remove(session, mail), add(tx, 2)) },
		func(tx memory.Tx) error { return add(tx, 1) },
		func(tx memory.Tx) error { return add(tx, 1) },
		func(tx memory.Tx) (err error) {
			parcel, err = tx.Outbox().Put(session, entry.Data)
			return errors.Join(err, add(tx, 2))
		},
		func(tx memory.Tx) error { return tx.Outbox().Remove(parcel) },
	}
}

// BenchmarkOpen opens a file with as many sessions as NUDGE_BENCH_SESSIONS says, 1,000 when it is not set, each of
// ten small entries, and lists them once.
func BenchmarkOpen(b *testing.B) {
	sessions := 1000
	if n, err := strconv.Atoi(os.Getenv("NUDGE_BENCH_SESSIONS")); err == nil {
		sessions = n
	}
	path := seedSessions(b, sessions)
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	var listing time.Duration
	for b.Loop() {
		s, err := Open(path, Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		begun := time.Now()
		err = s.View(context.Background(), func(tx memory.Tx) error {
			return tx.Journal().Sessions("", func(string, memory.Entry) error { return nil })
		})
		listing += time.Since(begun)
		if err := errors.Join(err, s.Close()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(info.Size())/(1<<20), "MiB")
	b.ReportMetric(listing.Seconds()*1000/float64(b.N), "ms/listing")
}

// seedSessions fills a file in few large transactions.
func seedSessions(b *testing.B, sessions int) (path string) {
	s := open(b, b.TempDir(), Options{})
	const each, share = 10, 5000
	entries := make([]memory.Entry, each)
	for i := range entries {
		entries[i] = memory.Entry{Kind: "said", Data: make([]byte, 40)}
	}
	for from := 0; from < sessions; from += share {
		err := s.Update(context.Background(), func(tx memory.Tx) error {
			for i := from; i < min(from+share, sessions); i++ {
				if _, err := tx.Journal().Append(fmt.Sprintf("session %08d", i), entries...); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	return s.path
}
