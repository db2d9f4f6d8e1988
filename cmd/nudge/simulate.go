package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"nudge/agent"
	"nudge/agent/tool/command"
	"nudge/cmd/nudge/config"
	"nudge/memory"
	"nudge/schedule"
	"nudge/schedule/condition"
)

// simulateFlags say which stretch of time is played through.
type simulateFlags struct {
	from, to   string
	heartbeats []string
	format     string
	config     string // the file that the process which asks for it read; "" for this one's own
}

func (a *app) simulateCommand() *cobra.Command {
	var flags simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Play a stretch of time through: what each tick of the heartbeats would decide",
		Long: "Play a stretch of time through: what each tick of the heartbeats would decide, changes of the clocks included. No model is asked and\n" +
			"nothing is written. The heartbeats are those of the config as it stands now and those made in conversations. A tick of which\n" +
			"an outcome is kept is told as it was recorded. For the others conditions are checked: programs run and addresses are asked\n" +
			"once, as the world is now, while the time is that of the tick.\n\n" +
			"--from and --to take an instant (2027-03-28T06:00:00+02:00), a date and perhaps a time on this machine's clocks (2027-03-28,\n" +
			"2027-03-28T06:00) or a length of time (24h, 7d), which --from counts from now, also back (-24h), and --to from --from.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.simulate(cmd.Context(), flags) },
	}
	cmd.Flags().StringVar(&flags.from, "from", "0s", "where it begins")
	cmd.Flags().StringVar(&flags.to, "to", "24h", "where it ends")
	cmd.Flags().StringSliceVar(&flags.heartbeats, "heartbeat", nil, "only the heartbeat of this `NAME`; may be given several times")
	cmd.Flags().StringVar(&flags.config, "of", "", "the config that another process was given")
	_ = cmd.Flags().MarkHidden("of") // there is such a flag
	formatFlags(cmd, &flags.format, "text or json (a line a tick)")
	return cmd
}

// longestSimulation bounds the stretch of time.
const longestSimulation = 10 * 366 * 24 * time.Hour

// stretch reads where a simulation begins and ends.
func (f simulateFlags) stretch(now time.Time) (from, to time.Time, err error) {
	if from, err = instant(f.from, now); err != nil {
		return from, to, fmt.Errorf("--from %w", err)
	}
	if to, err = instant(f.to, from); err != nil {
		return from, to, fmt.Errorf("--to %w", err)
	}
	switch {
	case to.Before(from):
		return from, to, fmt.Errorf("--to is before --from")
	case to.Sub(from) > longestSimulation:
		return from, to, fmt.Errorf("--to is more than ten years after --from")
	}
	return from, to, nil
}

// instant reads an instant, or a length of time from another.
func instant(text string, from time.Time) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	var span config.Duration
	length, back := strings.CutPrefix(text, "-")
	if err := span.UnmarshalText([]byte(length)); err != nil {
		return time.Time{}, fmt.Errorf("%q: it is an instant such as 2027-03-28T06:00:00+02:00, a date such as 2027-03-28 or a length of time such as 24h", text)
	}
	if back {
		return from.Add(-span.Std()), nil
	}
	return from.Add(span.Std()), nil
}

func (a *app) simulate(ctx context.Context, flags simulateFlags) error {
	if flags.config != "" {
		a.configFile = flags.config
	}
	c, dir, err := a.config()
	if err != nil {
		return err
	}
	if a.host != nil {
		dir = a.host.dataDir
	}
	now := time.Now()
	from, to, err := flags.stretch(now)
	if err != nil {
		return err
	}
	// A process that holds the data file reads the config that was named here, which may not be the one that it runs with.
	args := []string{"simulate", "--format", flags.format, "--from", from.Format(time.RFC3339Nano), "--to", to.Format(time.RFC3339Nano)}
	for _, name := range flags.heartbeats {
		args = append(args, "--heartbeat", name)
	}
	if file, err := filepath.Abs(c.File); c.File != "" && err == nil {
		args = append(args, "--of", file)
	}
	world := &simulated{config: c, dir: dir}
	budget, err := c.Attention.Budget()
	if err != nil {
		return failed(fmt.Errorf("%s: %w", c.File, err))
	}
	s := schedule.Simulation{From: from, To: to, Budget: budget}
	err = a.look(ctx, args, func(tx memory.Tx) error {
		if s.Heartbeats, err = world.read(tx, flags.heartbeats); err != nil {
			return err
		}
		s.Past, err = schedule.Recall(tx, s.Heartbeats, now)
		return err
	})
	if err != nil {
		return err
	}
	if err := world.prepare(); err != nil {
		return failed(err)
	}
	s.Zone, s.Conditions = world.zone, world.condition
	return failed(tellSimulation(ctx, a.shown(), s, flags.format))
}

// simulated is what is known of the world in which time is played through.
type simulated struct {
	config config.Config
	dir    string
	people map[string]agent.Person
	spoke  map[string]time.Time // by person
	env    condition.Env
	checks checks
}

// read gives the heartbeats that are to be played, and what must be known of their people.
func (w *simulated) read(tx memory.Tx, names []string) ([]schedule.Heartbeat, error) {
	all, err := w.heartbeats(tx)
	if err != nil {
		return nil, err
	}
	var known []string
	for _, h := range all {
		known = append(known, h.Name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no heartbeat %q; there are: %s", name, strings.Join(known, ", "))
		}
	}
	if len(names) > 0 {
		all = slices.DeleteFunc(all, func(h schedule.Heartbeat) bool { return !slices.Contains(names, h.Name) })
	}
	w.people, w.spoke = map[string]agent.Person{}, map[string]time.Time{}
	for _, h := range all {
		for _, person := range h.For {
			if _, w.people[person], err = agent.Home(tx, agent.PersonID(person)); err != nil {
				return nil, err
			}
			if w.spoke[person], err = lastWord(tx, person); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// heartbeats are those of the config, and those that were made in conversations and have not ended.
func (w *simulated) heartbeats(tx memory.Tx) ([]schedule.Heartbeat, error) {
	stored, err := schedule.List(tx)
	if err != nil {
		return nil, err
	}
	byName := map[string]schedule.Heartbeat{}
	for _, h := range stored {
		byName[h.Name] = h
	}
	var all []schedule.Heartbeat
	for _, c := range w.config.Heartbeats {
		known, found := byName[c.Name]
		person := "web:me"
		if found && known.By == "" && len(known.For) > 0 {
			person = known.For[0]
		}
		h, err := c.Scheduled(person)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.config.File, err)
		}
		if found && known.By == "" {
			h.Paused, h.Since = known.Paused, known.Since
		}
		all = append(all, h)
	}
	for _, h := range stored {
		if h.By != "" && h.Ended == "" {
			all = append(all, h)
		}
	}
	return all, nil
}

func (w *simulated) prepare() error {
	gauges, err := condition.NewGauges(w.config.Measured(), w.dir)
	if err != nil {
		return err
	}
	w.checks, err = newChecks(w.config)
	w.env = w.checks.within(condition.Env{Dir: w.dir, Gauges: gauges}).Once()
	return err
}

func (w *simulated) zone(person string) string { return w.people[person].Zone }

func (w *simulated) condition(h schedule.Heartbeat, now func() time.Time) (schedule.Condition, error) {
	env := w.env
	env.Now = now
	env.Silent = func(_ context.Context, person string) (time.Time, error) {
		if last := w.spoke[person]; last.After(h.Since) {
			return last, nil
		}
		return h.Since, nil
	}
	dirs := workspaces(w.config, w.dir)
	return conditionOf(h, env, w.checks, command.Place{Dir: dirs.Path, Closed: closed(w.config, w.dir, dirs)})
}

// tellSimulation writes each decision as it is made, and at the end what they come to.
func tellSimulation(ctx context.Context, out io.Writer, s schedule.Simulation, format string) error {
	if format == "json" {
		encoder := json.NewEncoder(out)
		return s.Run(ctx, func(d schedule.Decision) error { return encoder.Encode(d) })
	}
	words := map[string]int{}
	err := s.Run(ctx, func(d schedule.Decision) error {
		if d.Word != schedule.ClockChange {
			words[d.Word]++
		}
		_, err := fmt.Fprintln(out, d)
		return err
	})
	if err != nil {
		return err
	}
	var parts []string
	for _, word := range slices.Sorted(maps.Keys(words)) {
		parts = append(parts, fmt.Sprintf("%d %s", words[word], word))
	}
	if len(parts) == 0 {
		parts = []string{"no tick falls due"}
	}
	_, err = fmt.Fprintf(out, "%s from %s to %s: %s. No model was asked, and nothing was written.\n",
		schedule.Counted(len(s.Heartbeats), "heartbeat"), s.From.Format(time.RFC3339), s.To.Format(time.RFC3339), strings.Join(parts, ", "))
	return err
}
