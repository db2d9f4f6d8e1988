package diary

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"nudge/memory"
)

// Config is what a Diary is made of. Store must be set.
type Config struct {
	Store    memory.Store
	Embedder Embedder // nil means [Local]
	// MinScore is the score from which a note counts as found, from 0 to 1; 0 means [DefaultMinScore].
	MinScore float64
	// Room is how many bytes the indexes in memory may take; 0 means [DefaultRoom].
	Room int
	Log  *slog.Logger
}

const (
	// DefaultMinScore was found on one half of the questions in testdata and tried on the other; see the table in README.md.
	DefaultMinScore = 0.4
	// DefaultRoom is enough for some 300 people of 50 notes each who are active at a time.
	DefaultRoom = 32 << 20
)

// Bounds of a search.
const (
	mostQueries = 8
	longQuery   = 2000 // bytes that count of each
)

// How long the embedder is waited for. The search goes by words then, and the note gets its vector later.
const (
	searchTime = 3 * time.Second
	writeTime  = 10 * time.Second
)

// downTime is for how long an embedder that failed is not asked while somebody waits.
const downTime = 30 * time.Second

// Diary keeps notes and finds them. Its methods may be called concurrently.
type Diary struct {
	Config
	shelf *shelf
	work  chan struct{} // has a token when there may be notes without good vectors

	mu   sync.Mutex
	down time.Time // until when the embedder is not asked; guarded by mu
}

// New returns the diary that a store has.
func New(c Config) *Diary {
	if c.Embedder == nil {
		c.Embedder = Local()
	}
	if c.MinScore == 0 {
		c.MinScore = DefaultMinScore
	}
	if c.Room == 0 {
		c.Room = DefaultRoom
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Diary{Config: c, shelf: newShelf(c.Room), work: make(chan struct{}, 1)}
}

// Hit is a note that was found.
type Hit struct {
	Note
	Score float64 // from 0 to 1
	// Before is the newest of the notes in whose place it came; nil when there is none.
	Before *Note
}

// Recall finds the notes that fit some queries, which are to mean the same in different words, best first and limit at most.
// Notes that a newer one took the place of stand behind that one, as its Before. When nothing fits there is nothing.
func (d *Diary) Recall(ctx context.Context, v View, queries []string, limit int) ([]Hit, error) {
	return d.recall(ctx, v, queries, limit, d.MinScore)
}

// Search is Recall for a person who looks through their own notes: it has no minimum.
func (d *Diary) Search(ctx context.Context, v View, query string, limit int) ([]Hit, error) {
	return d.recall(ctx, v, []string{query}, limit, 0.01)
}

func (d *Diary) recall(ctx context.Context, v View, queries []string, limit int, least float64) ([]Hit, error) {
	if err := v.sound(); err != nil {
		return nil, err
	}
	queries = asked(queries)
	if len(queries) == 0 {
		return nil, nil
	}
	none := false
	err := d.Store.View(ctx, func(tx memory.Tx) (err error) {
		none, err = Empty(tx, v.Person)
		return err
	})
	if err != nil || none {
		return nil, err
	}
	vector := d.queryVector(ctx, queries)
	terms := make([][]term, len(queries))
	for i, q := range queries {
		terms[i] = termsOf(q)
	}
	var hits []Hit
	err = d.Store.View(ctx, func(tx memory.Tx) error {
		hits = nil
		x, err := d.index(tx, v)
		if err != nil {
			return err
		}
		order, err := x.search(ctx, terms, vector, d.Embedder)
		if err != nil {
			return err
		}
		hits, err = d.hits(tx, v, order, limit, least)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look into the diary of %s: %w", v.Person, err)
	}
	return hits, nil
}

// asked are queries as they are looked for.
func asked(queries []string) []string {
	var kept []string
	for _, q := range queries {
		q = cut(strings.TrimSpace(strings.ToValidUTF8(q, " ")), longQuery)
		if q != "" && !slices.Contains(kept, q) && len(kept) < mostQueries {
			kept = append(kept, q)
		}
	}
	return kept
}

// Empty reports whether nothing is remembered of a person.
func Empty(tx memory.Tx, person string) (bool, error) {
	if person == "" {
		return true, nil
	}
	stamp, err := stampOf(tx, person)
	return stamp.changed == "", err
}

// queryVector is the direction of queries; nil where the embedder does not give one, for whatever reason: the words are
// enough for a search.
func (d *Diary) queryVector(ctx context.Context, queries []string) []float32 {
	if d.isDown() {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	vectors, err := embedAll(asking, d.Embedder, queries)
	if err != nil {
		d.fail(ctx, err)
		return nil
	}
	return mean(vectors)
}

func (d *Diary) isDown() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Now().Before(d.down)
}

// fail notes that the embedder does not answer.
func (d *Diary) fail(ctx context.Context, err error) {
	if ctx.Err() != nil || errors.Is(err, ErrTooLong) {
		return
	}
	d.Log.Warn("the embedder does not answer; notes are found by their words meanwhile", "model", d.Embedder.Model(), "error", err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down = time.Now().Add(downTime)
}

// index is that of a view as the rows are in the transaction.
func (d *Diary) index(tx memory.Tx, v View) (*index, error) {
	stamp, err := stampOf(tx, v.Person)
	if err != nil {
		return nil, err
	}
	if x := d.shelf.get(v, stamp.changed); x != nil {
		return x, nil
	}
	x, err := readIndex(tx, v, d.Embedder.Model())
	if err == nil {
		d.shelf.put(v, x)
	}
	return x, err
}

// hits are the notes that were found, as their rows say now.
func (d *Diary) hits(tx memory.Tx, v View, order []found, limit int, least float64) ([]Hit, error) {
	var hits []Hit
	had := map[string]bool{}
	for _, f := range order {
		if f.score < least {
			continue
		}
		if len(hits) == limit {
			break
		}
		n, there, err := newest(tx, v, f.id)
		if err != nil {
			return nil, err
		}
		text := plain(n.Text)
		if !there || had[text] {
			continue
		}
		had[text] = true
		h := Hit{Note: n, Score: f.score}
		if before, there, err := load(tx, v.Person, n.Older); err != nil {
			return nil, err
		} else if there && v.shows(before.Scope) {
			h.Before = &before
		}
		hits = append(hits, h)
	}
	return hits, nil
}

// longestChain is how many times the same fact may have changed and still be followed to its present state.
const longestChain = 100

// newest is the note that stands now where the one with an id stood; false when it is gone or not to be shown here.
func newest(tx memory.Tx, v View, id string) (Note, bool, error) {
	n, there, err := load(tx, v.Person, id)
	for range longestChain {
		if err != nil || !there || n.Newer == "" {
			break
		}
		next, found, err := load(tx, v.Person, n.Newer)
		if err != nil {
			return n, false, err
		}
		if !found {
			break
		}
		n = next
	}
	return n, there && v.shows(n.Scope), err
}

// wake lets [Diary.Run] look for notes without vectors.
func (d *Diary) wake() {
	select {
	case d.work <- struct{}{}:
	default:
	}
}
