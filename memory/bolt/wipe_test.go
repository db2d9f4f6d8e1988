package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nudge/memory"
)

// holds reports whether a file has the words in any of its bytes.
func holds(t *testing.T, path, words string) bool {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(data, []byte(words))
}

// fillAndErase writes sessions and rows of all sizes with a word in each, deletes those, and leaves others.
func fillAndErase(t *testing.T, s *Store, word string) {
	t.Helper()
	ctx := context.Background()
	for i := range 60 {
		err := s.Update(ctx, func(tx memory.Tx) error {
			text := []byte(strings.Repeat(word+" ", 1+rand.IntN(1200)))
			for _, name := range []string{"gone", "stays"} {
				if name == "stays" {
					text = bytes.ReplaceAll(text, []byte(word), []byte("other"))
				}
				if _, err := tx.Journal().Append(name, memory.Entry{Kind: "k", Data: text}); err != nil {
					return err
				}
				if err := tx.Table(name).Put(fmt.Sprint(i), text); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	err := s.Update(ctx, func(tx memory.Tx) error {
		_, err := tx.Journal().Erase("gone")
		for i := range 60 {
			err = errors.Join(err, tx.Table("gone").Delete(fmt.Sprint(i)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWipeLeavesNothingOfWhatWasDeleted(t *testing.T) {
	const word = "canary-5190"
	path := filepath.Join(t.TempDir(), "nudge.db")
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fillAndErase(t, s, word)
	if !holds(t, path, word) {
		t.Fatal("deleting alone leaves nothing: the test shows nothing")
	}
	if n, err := s.Wipe(context.Background()); err != nil || n == 0 {
		t.Fatalf("wiped %d bytes, %v", n, err)
	}
	if holds(t, path, word) {
		t.Error("the word is still in the file")
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	if _, err := s.Backup(context.Background(), copied, false, nil); err != nil || holds(t, copied, word) {
		t.Errorf("a backup has the word, or failed: %v", err)
	}
	// The store goes on, and nothing else was lost.
	if _, err := s.Check(context.Background(), func(problem string) { t.Error(problem) }, nil); err != nil {
		t.Fatal(err)
	}
	err = s.Update(context.Background(), func(tx memory.Tx) error {
		last, err := tx.Journal().Last("stays")
		if last != 60 {
			t.Errorf("%d entries are left of 60", last)
		}
		_, err2 := tx.Journal().Append("stays", memory.Entry{Kind: "k", Data: make([]byte, 9000)})
		return errors.Join(err, err2)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A reader of the state before the deleting is waited for, and reads what it began with.
func TestWipeWaitsForReaders(t *testing.T) {
	const word = "canary-5190"
	s, err := Open(filepath.Join(t.TempDir(), "nudge.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.Update(context.Background(), func(tx memory.Tx) error {
		return tx.Table("gone").Put("k", []byte(strings.Repeat(word, 5000)))
	})
	if err != nil {
		t.Fatal(err)
	}
	began, read := make(chan struct{}), make(chan error)
	goOn := make(chan struct{})
	go func() {
		read <- s.View(context.Background(), func(tx memory.Tx) error {
			close(began)
			<-goOn
			value, found, err := tx.Table("gone").Get("k")
			if err == nil && (!found || string(value) != strings.Repeat(word, 5000)) {
				err = errors.New("the reader's state was wiped")
			}
			return err
		})
	}()
	<-began
	if err := s.Update(context.Background(), func(tx memory.Tx) error { return tx.Table("gone").Delete("k") }); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithTimeout(context.Background(), 20*wipePoll)
	defer cancel()
	if _, err := s.Wipe(cancelled); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a reader of the old state it ended with %v", err)
	}
	close(goOn)
	if err := <-read; err != nil {
		t.Error(err)
	}
	if _, err := s.Wipe(context.Background()); err != nil {
		t.Error(err)
	}
	if holds(t, s.path, word) {
		t.Error("the word is still in the file")
	}
}

// Cut short anywhere it leaves a whole file, and is done when it is done again.
func TestWipeCutShort(t *testing.T) {
	const word = "canary-5190"
	path := filepath.Join(t.TempDir(), "nudge.db")
	steps, failAt := 0, 3
	broken := errors.New("cut short")
	s, err := Open(path, Options{step: func(name string) error {
		if name == "wipe" {
			if steps++; steps == failAt {
				return broken
			}
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	fillAndErase(t, s, word)
	if _, err := s.Wipe(context.Background()); !errors.Is(err, broken) {
		t.Fatalf("ended with %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(path, Options{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Check(context.Background(), func(problem string) { t.Error(problem) }, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Wipe(context.Background()); err != nil || holds(t, path, word) {
		t.Errorf("done again: %v, and the word is there: %t", err, holds(t, path, word))
	}
}
