package condition

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"nudge/schedule/process"
)

// Gauge is a number that expressions read, given by a program. It is read only when an expression asks for it.
type Gauge struct {
	Name  string        // letters, digits and _, as an expression writes it
	Run   []string      // the program and its arguments; what it prints is the number, which may end in %
	Every time.Duration // how long a reading stays good
}

const (
	maxReading = 4 << 10     // bytes of what a program prints
	failedFor  = time.Minute // how long at most a reading that failed is not tried again
)

// Gauges read the gauges that were declared, each once at a time however many expressions ask. They may be used
// concurrently; a nil one has none.
type Gauges struct {
	dir  string
	run  func(ctx context.Context, spec process.Spec) (process.Outcome, error)
	now  func() time.Time
	list map[string]*dial
}

// dial is one gauge and its last reading, which whoever holds turn may touch.
type dial struct {
	Gauge
	turn  chan struct{} // holds one while somebody reads
	value float64
	err   error
	good  time.Time // until when the last reading is
}

var gaugeName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,62}$`)

// NewGauges makes gauges whose programs run in the folder. It refuses what cannot be read, in an error that names the key.
func NewGauges(list []Gauge, dir string) (*Gauges, error) {
	g := &Gauges{dir: dir, run: process.Ask, now: time.Now, list: map[string]*dial{}}
	for _, gauge := range list {
		switch {
		case !gaugeName.MatchString(gauge.Name):
			return nil, fmt.Errorf("gauge.name: %q needs a letter, then letters, digits or _, 63 at most", gauge.Name)
		case reserved(gauge.Name):
			return nil, fmt.Errorf("gauge.name: %q has a meaning of its own in expressions; take another", gauge.Name)
		case g.list[gauge.Name] != nil:
			return nil, fmt.Errorf("gauge.name: %q stands twice", gauge.Name)
		case len(gauge.Run) == 0 || gauge.Run[0] == "":
			return nil, errors.New("gauge.run: is empty; it is the program and its arguments")
		case gauge.Every < 0:
			return nil, errors.New("gauge.every: is below zero")
		}
		g.list[gauge.Name] = &dial{Gauge: gauge, turn: make(chan struct{}, 1)}
	}
	return g, nil
}

// names are those of all gauges, in order.
func (g *Gauges) names() []string {
	if g == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(g.list))
}

// read gives a gauge's number: the last one while that is good.
func (g *Gauges) read(ctx context.Context, name string) (float64, error) {
	d := g.list[name]
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for gauge %s: %w", name, ctx.Err())
	}
	defer func() { <-d.turn }()
	if g.now().Before(d.good) {
		return d.value, d.err
	}
	d.value, d.err = g.ask(ctx, d.Gauge)
	d.good = g.now().Add(d.Every)
	switch {
	case d.err != nil && ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		d.good = time.Time{} // it was this look that ended, not the gauge that failed
	case d.err != nil:
		d.good = g.now().Add(min(d.Every, failedFor))
	}
	return d.value, d.err
}

func (g *Gauges) ask(ctx context.Context, gauge Gauge) (float64, error) {
	outcome, err := g.run(ctx, process.Spec{Argv: gauge.Run, Dir: g.dir, Limit: maxReading})
	program := filepath.Base(gauge.Run[0])
	switch {
	case err != nil:
		return 0, fmt.Errorf("read gauge %s: %w", gauge.Name, err)
	case outcome.TimedOut:
		return 0, fmt.Errorf("read gauge %s: %s took too long and was killed", gauge.Name, program)
	case outcome.Cancelled:
		return 0, fmt.Errorf("read gauge %s: %s was stopped: %w", gauge.Name, program, context.Canceled)
	case outcome.LeftOut > 0:
		return 0, fmt.Errorf("read gauge %s: %s printed more than a number", gauge.Name, program)
	case outcome.Exit != 0:
		return 0, fmt.Errorf("read gauge %s: %s ended with %s", gauge.Name, program, ending(outcome))
	}
	text := strings.TrimSpace(string(outcome.Output))
	value, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(text, "%")), 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
		return 0, fmt.Errorf("read gauge %s: %s printed no number: %q", gauge.Name, program, short(text))
	}
	return value, nil
}

func ending(outcome process.Outcome) string {
	if outcome.Signal != "" {
		return "a signal: " + outcome.Signal
	}
	return fmt.Sprintf("exit status %d", outcome.Exit)
}

// short is the beginning of a text that an error shows.
func short(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
