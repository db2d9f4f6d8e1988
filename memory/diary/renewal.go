package diary

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"nudge/memory"
)

const (
	renewBatch   = 32 // notes that get vectors in one transaction
	firstRetry   = 30 * time.Second
	longestRetry = 10 * time.Minute
	commitTime   = time.Second // that the transaction may take which writes a note, after it says that there is one
)

// Run gives notes vectors that have none, or those of another model, until ctx ends: after the embedder was down, and after
// another was chosen. Until a note has its vector it is found by its words. What is done stays done when it is cut short.
func (d *Diary) Run(ctx context.Context) {
	var retry time.Duration
	for {
		renewed, err := d.Renew(ctx)
		wait := longestRetry
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			retry = min(max(2*retry, firstRetry), longestRetry)
			wait = retry
			d.Log.Warn("notes without a vector have to wait", "again_in", wait, "error", err)
		case renewed > 0:
			retry = 0
			d.Log.Info("all notes have their vectors", "renewed", renewed, "model", d.Embedder.Model())
		}
		if !d.rest(ctx, wait) {
			return
		}
	}
}

// rest waits until it is time to look again, or for a note that was written without a vector. It reports false when ctx has
// ended.
func (d *Diary) rest(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-d.work:
		timer.Reset(commitTime)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// Renew gives all notes that need it a vector of the present model, and returns how many that were.
func (d *Diary) Renew(ctx context.Context) (renewed int, err error) {
	var people []string
	err = d.Store.View(ctx, func(tx memory.Tx) (err error) {
		people, err = unfinished(tx, d.Embedder.Model())
		return err
	})
	if err != nil {
		return 0, err
	}
	for i, person := range people {
		for {
			n, more, err := d.renewSome(ctx, person)
			renewed += n
			if err != nil {
				return renewed, fmt.Errorf("make vectors for the notes of %s: %w", person, err)
			}
			if !more {
				break
			}
			d.Log.Info("notes get new vectors", "done", renewed, "people_left", len(people)-i)
		}
	}
	return renewed, nil
}

// Left counts the notes that have no vector of a model.
func Left(tx memory.Tx, model string) (left int, err error) {
	people, err := unfinished(tx, model)
	for _, person := range people {
		if err != nil {
			return 0, err
		}
		var notes []Note
		notes, err = lacking(tx, person, model, 0)
		left += len(notes)
	}
	return left, err
}

// unfinished are the people of whom some note has no vector of a model.
func unfinished(tx memory.Tx, model string) (people []string, err error) {
	err = tx.Table(tableStamp).Scan("", func(person string, row []byte) error {
		if len(row) < stampSize || string(row[stampSize:]) != model {
			people = append(people, person)
		}
		return nil
	})
	return people, err
}

// lacking are a person's notes that have no vector of a model, most of them at most; 0 means all.
func lacking(tx memory.Tx, person, model string, most int) (notes []Note, err error) {
	prefix := key(person, "")
	err = tx.Table(tableTrait).Scan(prefix, func(name string, row []byte) error {
		t, err := decodeTrait(row)
		if err == nil && t.model == model {
			return nil
		}
		n, found, err := load(tx, person, strings.TrimPrefix(name, prefix))
		if err != nil || !found {
			return err
		}
		notes = append(notes, n)
		if len(notes) == most {
			return memory.ErrStop
		}
		return nil
	})
	return notes, err
}

// renewSome makes vectors for some of a person's notes; more says that there may be others.
func (d *Diary) renewSome(ctx context.Context, person string) (renewed int, more bool, err error) {
	var before stamp
	var notes []Note
	err = d.Store.View(ctx, func(tx memory.Tx) (err error) {
		if before, err = stampOf(tx, person); err != nil {
			return err
		}
		notes, err = lacking(tx, person, d.Embedder.Model(), renewBatch)
		return err
	})
	if err != nil {
		return 0, false, err
	}
	vectors := make([][][]float32, len(notes))
	for i, n := range notes {
		vectors[i], err = embed(ctx, d.Embedder, n.spoken())
		if err != nil && !errors.Is(err, ErrTooLong) && !errors.Is(err, errNoVector) {
			return 0, false, err
		}
		// A note of which no vector can be made counts as done: asking again would not help, and its words are enough.
	}
	err = d.Store.Update(ctx, func(tx memory.Tx) error {
		now, err := stampOf(tx, person)
		if err != nil {
			return err
		}
		more = len(notes) == renewBatch || now != before
		if renewed, err = d.saveVectors(tx, person, notes, vectors); err != nil {
			return err
		}
		return d.renewed(tx, person, more)
	})
	return renewed, more, err
}

// saveVectors gives notes the vectors that were made for them, but for notes that were changed meanwhile.
func (d *Diary) saveVectors(tx memory.Tx, person string, notes []Note, vectors [][][]float32) (renewed int, err error) {
	for i, n := range notes {
		now, found, err := load(tx, person, n.ID)
		if err != nil {
			return 0, err
		}
		if !found || now.spoken() != n.spoken() {
			continue
		}
		t := now.trait()
		t.model, t.vectors = d.Embedder.Model(), vectors[i]
		if err := save(tx, person, now, t); err != nil {
			return 0, err
		}
		renewed++
	}
	return renewed, nil
}

// renewed notes how far a person's diary has come. One that is empty now stays without a stamp.
func (d *Diary) renewed(tx memory.Tx, person string, more bool) error {
	before, err := stampOf(tx, person)
	if err != nil || before.changed == "" {
		return err
	}
	if more {
		return touch(tx, person, "")
	}
	return touch(tx, person, d.Embedder.Model())
}
