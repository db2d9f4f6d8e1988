package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"nudge/agent"
	"nudge/cmd/nudge/config"
	"nudge/memory"
	"nudge/memory/diary"
	"nudge/schedule"
)

func (a *app) diaryCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "diary USER",
		Short: "Print what is remembered of a person",
		Long: "Print what is remembered of a person, the newest first. USER is an id such as slack:T1:U1; a name alone is one at a terminal. In a\n" +
			"conversation with nudge the person finds, changes and deletes notes with the command diary, and in the browser under Diary.",
		Args: one,
		RunE: func(cmd *cobra.Command, args []string) error {
			person := personNamed(args[0])
			return a.printExport(cmd.Context(), []string{"diary", "--format", format, string(person)}, func(tx memory.Tx) (data any, text func() string, err error) {
				notes, err := notesOf(tx, person)
				if err == nil && len(notes) == 0 {
					err = fmt.Errorf("nothing is remembered of %s", person)
				}
				return notes, func() string { return diaryText(notes, time.Now(), time.Local) }, err
			}, format)
		},
	}
	formatFlags(cmd, &format, "text or json")
	return cmd
}

// personNamed is the person that an argument names.
func personNamed(name string) agent.PersonID {
	if !strings.Contains(name, ":") {
		return agent.PersonID("terminal:" + name)
	}
	return agent.PersonID(name)
}

// notesOf are all notes of whoever has an account.
func notesOf(tx memory.Tx, account agent.PersonID) ([]diary.Note, error) {
	person, err := schedule.PersonOf(tx, string(account))
	if err != nil {
		return nil, err
	}
	return diary.List(tx, diary.View{Person: person, Scope: diary.Private})
}

// diaryText is notes for reading, one after the other.
func diaryText(notes []diary.Note, at time.Time, zone *time.Location) string {
	var b strings.Builder
	for _, n := range notes {
		fmt.Fprintf(&b, "%s  %s, %s: %s\n", n.ID, n.Said.In(zone).Format(time.DateOnly), n.Age(at), strings.ReplaceAll(n.Text, "\n", "\n    "))
		if len(n.Aliases) > 0 {
			fmt.Fprintf(&b, "    also found by: %s\n", strings.Join(n.Aliases, ", "))
		}
		if n.Newer != "" {
			fmt.Fprintf(&b, "    note %s took its place\n", n.Newer)
		}
		if n.Scope != diary.Private {
			fmt.Fprintf(&b, "    told in %s\n", n.Scope)
		}
	}
	return b.String()
}

// unembeddedName is the command by which a running process is asked how many notes lack a vector.
const unembeddedName = "unembedded"

func (a *app) unembeddedCommand() *cobra.Command {
	return &cobra.Command{
		Use:    unembeddedName + " MODEL",
		Hidden: true,
		Args:   one,
		RunE: func(cmd *cobra.Command, args []string) error {
			var left int
			err := a.look(cmd.Context(), []string{"doctor", unembeddedName, args[0]}, func(tx memory.Tx) (err error) {
				left, err = diary.Left(tx, args[0])
				return err
			})
			if err != nil {
				return err
			}
			return failed(json.NewEncoder(a.out).Encode(left))
		},
	}
}

// diaryFindings say whether the embedder answers, and how many notes it has to give a vector yet.
func diaryFindings(ctx context.Context, c config.Config, dir string, embedder diary.Embedder, quick bool) []finding {
	say := "by words, without an embedding service"
	var err error
	if c.Diary.Embedder == "openai" {
		say = "vectors of " + c.Diary.Model
		if !quick {
			if _, err = embedder.Embed(ctx, []string{"ok"}); err != nil {
				err = fmt.Errorf("the embedder does not answer, and notes are found by their words alone: %w; check [diary] base_url, model and api_key_env", err)
			}
		}
	}
	findings := []finding{judge("diary", say, err)}
	left, err := unembedded(ctx, dir, embedder.Model())
	switch {
	case err != nil:
		return append(findings, finding{"diary", noted, "how many notes wait for a vector is not known: " + oneLine(err.Error())})
	case left > 0:
		return append(findings, finding{"diary", noted, fmt.Sprintf("%d notes have no vector of this model yet and are found by their words; they get one while nudge runs", left)})
	}
	return findings
}

// unembedded counts the notes that lack a vector of a model, through the process that holds the data file if there is one.
func unembedded(ctx context.Context, dir, model string) (left int, err error) {
	store, err := openStore(dir, slog.New(slog.DiscardHandler))
	var locked *memory.LockedError
	if errors.As(err, &locked) {
		printed, err := ask(ctx, dir, "doctor", unembeddedName, model)
		if err != nil {
			return 0, err
		}
		return left, json.Unmarshal([]byte(printed), &left)
	}
	if err != nil {
		return 0, err
	}
	defer store.Close()
	err = store.View(ctx, func(tx memory.Tx) (err error) {
		left, err = diary.Left(tx, model)
		return err
	})
	return left, err
}

// writeDiary is the part of an export that has the notes.
func writeDiary(w io.Writer, notes []diary.Note, zone *time.Location) {
	if len(notes) > 0 {
		fmt.Fprintf(w, "\n## Diary\n")
	}
	for _, n := range notes {
		fmt.Fprintf(w, "\n**%s**, %s\n> %s\n", n.ID, n.Said.In(zone).Format("2006-01-02 15:04"), strings.ReplaceAll(n.Text, "\n", "\n> "))
	}
}
