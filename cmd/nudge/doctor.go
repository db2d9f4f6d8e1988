package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"nudge/agent/model"
	"nudge/cmd/nudge/config"
	"nudge/memory"
	"nudge/schedule"
)

// finding is what one check of the doctor's came to.
type finding struct {
	name string
	ok   bool
	text string // what was seen, or what is wrong and how to mend it
}

func (a *app) doctorCommand() *cobra.Command {
	quick := false
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the config, the store and the model, and say how to mend what is wrong",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, dir, err := a.config()
			if err != nil {
				return err
			}
			findings := []finding{configFinding(c), dirFinding(dir), storeFinding(cmd.Context(), dir), zoneFinding(c)}
			if !quick {
				findings = append(findings, modelFinding(cmd.Context(), c.Model))
			}
			return a.report(findings)
		},
	}
	cmd.Flags().BoolVar(&quick, "quick", false, "do not ask the model, which may cost a little")
	return cmd
}

func (a *app) report(findings []finding) error {
	bad := 0
	for _, f := range findings {
		mark := "ok   "
		if !f.ok {
			mark = "WRONG"
			bad++
		}
		fmt.Fprintf(a.out, "%s  %-7s %s\n", mark, f.name, f.text)
	}
	if bad > 0 {
		return failed(fmt.Errorf("%d of %d checks found something wrong", bad, len(findings)))
	}
	return nil
}

func configFinding(c config.Config) finding {
	where := c.File
	if where == "" {
		where = "embedded defaults; write one from config.example.toml when you need it"
	}
	return finding{"config", true, where}
}

func dirFinding(dir string) finding {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return finding{"data", false, fmt.Sprintf("%s cannot be made (%v); choose another with --data or data_dir", dir, errors.Unwrap(err))}
	}
	probe, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return finding{"data", false, fmt.Sprintf("%s cannot be written to (%v); mend its permissions or choose another with --data", dir, errors.Unwrap(err))}
	}
	probe.Close()
	os.Remove(probe.Name())
	return finding{"data", true, dir}
}

func storeFinding(ctx context.Context, dir string) finding {
	store, err := openStore(dir)
	var locked *memory.LockedError
	switch {
	case errors.As(err, &locked):
		return finding{"store", true, "in use by a running Nudge: " + locked.Error()}
	case err != nil:
		return finding{"store", false, err.Error()}
	}
	defer store.Close()
	sessions, beats := 0, 0
	err = store.View(ctx, func(tx memory.Tx) error {
		sessions = 0
		all, err := schedule.List(tx)
		beats = len(all)
		if err != nil {
			return err
		}
		return tx.Journal().Sessions("", func(string, memory.Entry) error {
			sessions++
			return nil
		})
	})
	if err != nil {
		return finding{"store", false, err.Error()}
	}
	return finding{"store", true, fmt.Sprintf("bolt, %d sessions, %d heartbeats", sessions, beats)}
}

func zoneFinding(c config.Config) finding {
	names := map[string]bool{}
	for _, h := range c.Heartbeats {
		names[h.Timezone] = true
	}
	delete(names, "")
	return finding{"clock", true, fmt.Sprintf("%s here; %d heartbeats in the config, %d zones named", time.Now().Format(time.RFC3339), len(c.Heartbeats), len(names))}
}

// modelFinding asks the model for a word.
func modelFinding(ctx context.Context, c config.Model) finding {
	llm, err := newModel(c)
	if err != nil {
		return finding{"model", false, err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	began := time.Now()
	answer, err := llm.Answer(ctx, model.Request{
		System: "You are being checked.", Messages: []model.Message{{Role: model.User, Text: "Say ok."}}, MaxOutput: 64,
	}, nil)
	if err != nil {
		var fault *model.Error
		if errors.As(err, &fault) {
			return finding{"model", false, fault.Say + "; check [model] base_url, name and api_key_env"}
		}
		return finding{"model", false, err.Error()}
	}
	name := answer.Model
	if name == "" {
		name = c.Name
	}
	tokens := "it does not report its tokens, so costs are reckoned at their most"
	if answer.Usage.Known {
		tokens = fmt.Sprintf("%d tokens in, %d out", answer.Usage.In, answer.Usage.Out)
	}
	return finding{"model", true, strings.TrimSpace(fmt.Sprintf("%s %s answered in %d ms; %s", c.Provider, name, time.Since(began).Milliseconds(), tokens))}
}
