package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"nudge/agent"
	"nudge/agent/trace"
	"nudge/memory"
	"nudge/schedule"
)

// look reads from the data file: from the one that runs here, by holding it, or through the process that does. In
// that case it does not run fn, and the error is the exit status of args, which that process was given.
func (a *app) look(ctx context.Context, args []string, fn func(memory.Tx) error) error {
	if a.host != nil {
		return failed(a.host.store.View(ctx, fn))
	}
	_, dir, err := a.config()
	if err != nil {
		return err
	}
	store, err := openStore(dir, a.log())
	var locked *memory.LockedError
	if errors.As(err, &locked) {
		if err := a.overSocket(ctx, dir, locked, args); err != nil {
			return err
		}
		return &exitError{0}
	}
	if err != nil {
		return failed(err)
	}
	defer store.Close()
	return failed(store.View(ctx, fn))
}

func (a *app) traceCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "trace RUN",
		Short: "Show what happened in a run, or in all runs of a turn",
		Long: "Show what happened in a run, or in all runs of a turn. RUN is the id of either: `nudge sessions` lists the last turn of each\n" +
			"session, and the lines of `nudge chat --json` hold ids in their fields turn and run.",
		Args: one,
		RunE: func(cmd *cobra.Command, args []string) error {
			formats := map[string]func(io.Writer, []agent.Event) error{
				"text": trace.Text, "json": trace.Lines,
				"spans": func(w io.Writer, events []agent.Event) error { return trace.SpanLines(w, trace.Spans(events)) },
			}
			var events []agent.Event
			err := a.look(cmd.Context(), []string{"trace", "--format", format, args[0]}, func(tx memory.Tx) (err error) {
				events, err = trace.Run(tx, args[0])
				return err
			})
			if err != nil {
				return err
			}
			return failed(formats[format](a.shown(), events))
		},
	}
	formatFlags(cmd, &format, "text, json (a line an event) or spans (a line a span)")
	return cmd
}

// formatFlags are --format, and --json which stands for --format json. What format holds is the default, text when nothing.
func formatFlags(cmd *cobra.Command, format *string, help string) {
	var asJSON bool
	if *format == "" {
		*format = "text"
	}
	cmd.Flags().StringVar(format, "format", *format, help)
	cmd.Flags().BoolVar(&asJSON, "json", false, "the same as --format json")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if asJSON {
			*format = "json"
		}
		if *format != "text" && *format != "json" && !(*format == "spans" && cmd.Name() == "trace") {
			return fmt.Errorf("--format %q: it is %s", *format, help)
		}
		return nil
	}
}

func (a *app) whyCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "why HEARTBEAT",
		Short: "Tell why a heartbeat did or did not wake",
		Args:  one,
		RunE: func(cmd *cobra.Command, args []string) error {
			var report schedule.Report
			err := a.look(cmd.Context(), []string{"why", "--format", format, args[0]}, func(tx memory.Tx) (err error) {
				report, err = schedule.Why(tx, args[0], time.Now())
				return err
			})
			if err != nil {
				return err
			}
			if format == "json" {
				return failed(json.NewEncoder(a.shown()).Encode(report))
			}
			_, err = fmt.Fprintln(a.shown(), strings.TrimRight(report.String(), "\n"))
			return failed(err)
		},
	}
	formatFlags(cmd, &format, "text or json")
	return cmd
}

// sessionLine is one session as `nudge sessions` lists it.
type sessionLine struct {
	Session  string    `json:"session"`
	Entries  uint64    `json:"entries"`
	LastUsed time.Time `json:"last_used"`
	OpenTurn string    `json:"open_turn,omitempty"`
	LastTurn string    `json:"last_turn,omitempty"`
}

func (a *app) sessionsCommand() *cobra.Command {
	var format string
	limit := 50
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List the sessions, newest first; export or erase one",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var lines []sessionLine
			err := a.look(cmd.Context(), []string{"sessions", "--format", format, "--limit", strconv.Itoa(limit)}, func(tx memory.Tx) (err error) {
				lines, err = listSessions(tx)
				return err
			})
			if err != nil {
				return err
			}
			if limit > 0 && len(lines) > limit {
				lines = lines[:limit]
			}
			return failed(writeSessions(a.shown(), lines, format))
		},
	}
	cmd.Flags().IntVar(&limit, "limit", limit, "how many at most; 0 for all")
	formatFlags(cmd, &format, "text or json")
	cmd.AddCommand(a.exportSessionCommand(), a.eraseSessionCommand())
	return cmd
}

func listSessions(tx memory.Tx) ([]sessionLine, error) {
	var lines []sessionLine
	err := tx.Journal().Sessions("", func(session string, newest memory.Entry) error {
		turn, err := agent.OpenTurn(tx, session)
		if err != nil {
			return err
		}
		lines = append(lines, sessionLine{
			Session: session, Entries: newest.Seq, LastUsed: newest.At, OpenTurn: turn, LastTurn: agent.TurnOf(newest),
		})
		return nil
	})
	slices.SortStableFunc(lines, func(a, b sessionLine) int { return b.LastUsed.Compare(a.LastUsed) })
	return lines, err
}

func writeSessions(w io.Writer, lines []sessionLine, format string) error {
	if format == "json" {
		encoder := json.NewEncoder(w)
		for _, l := range lines {
			if err := encoder.Encode(l); err != nil {
				return err
			}
		}
		return nil
	}
	if lines == nil {
		_, err := fmt.Fprintln(w, "there are no sessions yet")
		return err
	}
	for _, l := range lines {
		state := ""
		switch {
		case l.OpenTurn != "":
			state = "  turn " + l.OpenTurn + " is not settled"
		case l.LastTurn != "":
			state = "  last turn " + l.LastTurn
		}
		if _, err := fmt.Fprintf(w, "%s  %5d entries  %s%s\n", l.LastUsed.Local().Format(time.DateTime), l.Entries, l.Session, state); err != nil {
			return err
		}
	}
	return nil
}

// version is set when a release is built.
var version = "development"

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, Go and revision",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if _, _, err := a.config(); err != nil {
				return err
			}
			revision := "unknown"
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						revision = s.Value
					}
				}
			}
			_, err := fmt.Fprintf(a.out, "nudge %s\n%s %s/%s\nrevision %s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH, revision)
			return failed(err)
		},
	}
}
