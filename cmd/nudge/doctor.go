package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"nudge/agent"
	"nudge/agent/model"
	"nudge/bot"
	"nudge/cmd/nudge/config"
	"nudge/memory"
	"nudge/schedule"
)

// finding is what one check of the doctor's came to.
type finding struct {
	name string
	mark string
	text string // what was seen, or what is wrong and how to mend it
}

// The marks. Only wrong makes the doctor fail.
const (
	fine  = "ok   "
	noted = "note "
	wrong = "WRONG"
)

// judge is a finding that is fine with one text, or wrong with an error's.
func judge(name, text string, err error) finding {
	if err != nil {
		return finding{name, wrong, oneLine(err.Error())}
	}
	return finding{name, fine, text}
}

func oneLine(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ") }

func (a *app) doctorCommand() *cobra.Command {
	quick := false
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the config, the secrets, the store, the model, the diary, Slack and Discord, and say how to mend what is wrong",
		Long: "Check the config, the secrets, the store, the model, the diary, Slack and Discord, and say how to mend what is wrong. While another nudge runs, it is\n" +
			"asked whether all that it serves works. The exit status is 1 when something is wrong; notes are no faults.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.host != nil {
				return errors.New("a running nudge does not examine itself")
			}
			c, dir, err := a.config()
			if err != nil {
				return err
			}
			return a.report(a.examine(cmd.Context(), c, dir, quick))
		},
	}
	cmd.Flags().BoolVar(&quick, "quick", false, "do not ask the model and the embedder, which may cost a little, nor Slack, Discord and MCP servers")
	cmd.AddCommand(a.undeliveredCommand(), a.unembeddedCommand())
	return cmd
}

// examine makes all checks.
func (a *app) examine(ctx context.Context, c config.Config, dir string, quick bool) []finding {
	findings := []finding{configFinding(c), dirFinding(dir)}
	findings = append(findings, storeFindings(ctx, c, dir)...)
	findings = append(findings, clockFindings(c)...)
	findings = append(findings, programFindings(c)...)
	findings = append(findings, wideFindings(c)...)
	findings = append(findings, triangleFinding(c, dir))
	if len(c.MCP) > 0 && !quick {
		findings = append(findings, a.mcpFindings(ctx, c, dir)...)
	}
	made := parts{alarms: &alarms{}}
	for _, part := range allParts {
		say, err := part.make(c, a.log(), &made)
		switch {
		case err != nil:
			findings = append(findings, judge(part.name, say, err))
		case part.name == "model" && !quick:
			findings = append(findings, modelFindings(ctx, c.Model, made)...)
		case part.name == "diary":
			findings = append(findings, diaryFindings(ctx, c, dir, made.embedder, quick)...)
		default:
			findings = append(findings, platformFinding(ctx, part.name, say, made, quick))
		}
	}
	findings = append(findings, accessFindings(c)...)
	if c.Web.Listen == "" && c.Slack.BotTokenEnv == "" && c.Discord.TokenEnv == "" {
		findings = append(findings, finding{"serve", noted, errNothingToServe.Error()})
	}
	return findings
}

// modelFindings asks the model and its fallbacks.
func modelFindings(ctx context.Context, c config.Model, made parts) []finding {
	findings := []finding{modelFinding(ctx, c, made.model)}
	for i, fallback := range made.fallbacks {
		findings = append(findings, modelFinding(ctx, c.Fallbacks[i], fallback.Model))
	}
	return findings
}

// platformFinding asks the platform of a part that was made, if it has one, whether it would serve. say is what is known without.
func platformFinding(ctx context.Context, name, say string, made parts, quick bool) finding {
	for _, adapter := range made.platforms() {
		if asks, ok := adapter.(checker); ok && name == adapter.Platform() && !quick {
			say, err := asks.Check(ctx)
			return judge(name, say, err)
		}
	}
	return judge(name, say, nil)
}

// accessFindings notes where nobody would be served, or an owner could not say a word.
func accessFindings(c config.Config) (findings []finding) {
	for _, platform := range []struct{ name, token, id string }{
		{"Slack", c.Slack.BotTokenEnv, "slack:TEAM:USER"}, {"Discord", c.Discord.TokenEnv, "discord:USER"},
	} {
		prefix, _, _ := strings.Cut(platform.id, ":")
		ofIt := func(id string) bool { return strings.HasPrefix(id, prefix+":") }
		if platform.token != "" && !slices.ContainsFunc(c.Access.Allow, ofIt) {
			findings = append(findings, finding{"access", noted, fmt.Sprintf("nobody in %s is let in: put %q into allow of [access]; whom it refuses stands in the log with their id", platform.name, platform.id)})
		}
	}
	for _, owner := range c.Access.Owners {
		letsIn := func(allowed string) bool {
			prefix, pattern := strings.CutSuffix(allowed, "*")
			return allowed == owner || pattern && strings.HasPrefix(owner, prefix)
		}
		if !agent.PersonID(owner).Local() && !slices.ContainsFunc(c.Access.Allow, letsIn) {
			findings = append(findings, finding{"access", noted, fmt.Sprintf("the owner %s is not let in, and so decides nothing: put them into allow of [access] as well", owner)})
		}
	}
	return findings
}

// checker is an adapter that can ask its platform whether it would be served.
type checker interface {
	Check(ctx context.Context) (say string, err error)
}

func (a *app) report(findings []finding) error {
	bad := 0
	for _, f := range findings {
		if f.mark == wrong {
			bad++
		}
		fmt.Fprintf(a.shown(), "%s  %-7s %s\n", f.mark, f.name, f.text)
	}
	if bad > 0 {
		return failed(fmt.Errorf("%d of %d checks found something wrong", bad, len(findings)))
	}
	return nil
}

func configFinding(c config.Config) finding {
	where := c.File
	if where == "" {
		where = "embedded defaults; `nudge init` writes one"
	}
	return finding{"config", fine, where}
}

func dirFinding(dir string) finding {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return finding{"data", wrong, fmt.Sprintf("%s cannot be made (%v); choose another with --data or data_dir", dir, errors.Unwrap(err))}
	}
	probe, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return finding{"data", wrong, fmt.Sprintf("%s cannot be written to (%v); mend its permissions or choose another with --data", dir, errors.Unwrap(err))}
	}
	probe.Close()
	os.Remove(probe.Name())
	return finding{"data", fine, dir}
}

func storeFindings(ctx context.Context, c config.Config, dir string) []finding {
	store, err := openStore(dir, slog.New(slog.DiscardHandler))
	var locked *memory.LockedError
	switch {
	case errors.As(err, &locked):
		lost, err := ask(ctx, dir, "doctor", undeliveredName)
		return []finding{
			{"store", fine, "in use by " + holder(locked)}, judge("running", "all that it serves works", askReady(ctx, dir)),
			repliesFinding(lost, err),
		}
	case err != nil:
		return []finding{judge("store", "", err)}
	}
	defer store.Close()
	sessions, beats, lost := 0, []schedule.Heartbeat(nil), ""
	err = store.View(ctx, func(tx memory.Tx) (err error) {
		sessions = 0
		if beats, err = schedule.List(tx); err != nil {
			return err
		}
		if lost, err = undelivered(tx); err != nil {
			return err
		}
		return tx.Journal().Sessions("", func(string, memory.Entry) error {
			sessions++
			return nil
		})
	})
	findings := []finding{judge("store", fmt.Sprintf("bolt, %s, %s", schedule.Counted(sessions, "session"), schedule.Counted(len(beats), "heartbeat")), err)}
	if err == nil {
		findings = append(findings, repliesFinding(lost, nil))
	}
	for _, beat := range beats {
		taken := slices.ContainsFunc(c.Heartbeats, func(h config.Heartbeat) bool { return h.Name == beat.Name })
		if taken && beat.By != "" && beat.Ended == "" {
			findings = append(findings, finding{"store", wrong, fmt.Sprintf("%s made a heartbeat %q in chat; give that of the config another name", beat.By, beat.Name)})
		}
	}
	return findings
}

// holder says which process holds the data file.
func holder(locked *memory.LockedError) string {
	if locked.PID == 0 {
		return "another process"
	}
	return fmt.Sprintf("a running nudge: pid %d, since %s", locked.PID, locked.Since.Format(time.DateTime))
}

// readyTimeout is how long a running process may take to say whether it is ready.
const readyTimeout = 5 * time.Second

// askReady asks the process that holds the data file whether it is ready; the error says why it is not.
func askReady(ctx context.Context, dir string) error {
	_, err := ask(ctx, dir, "ready")
	return err
}

// ask has a command done by the process that holds the data file, and gives what it prints.
func ask(ctx context.Context, dir string, args ...string) (printed string, err error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	var out, said strings.Builder
	asking := &app{in: strings.NewReader(""), out: &out, errs: &said}
	err = asking.overSocket(ctx, dir, errors.New("the process that holds the data file cannot be reached through its socket; restart it"), args)
	var told *exitError
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("the process that holds the data file did not answer within %v; restart it", readyTimeout)
	case errors.As(err, &told):
		return "", errors.New(strings.TrimPrefix(said.String(), "nudge: "))
	}
	return out.String(), err
}

// undeliveredName is the command by which a running process is asked for what it could not deliver. It and [unembeddedName]
// are the only parts of the doctor that are done for other processes.
const undeliveredName = "undelivered"

func (a *app) undeliveredCommand() *cobra.Command {
	return &cobra.Command{
		Use:    undeliveredName,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			var lost string
			err := a.look(cmd.Context(), []string{"doctor", undeliveredName}, func(tx memory.Tx) (err error) {
				lost, err = undelivered(tx)
				return err
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(a.shown(), lost)
			return failed(err)
		},
	}
}

// undelivered says in one line how many replies were given up and why the newest were; "" when none was.
func undelivered(tx memory.Tx) (string, error) {
	total, newest, err := bot.DeadLetters(tx, 3)
	if err != nil || total == 0 {
		return "", err
	}
	text := fmt.Sprintf("%d of the last 30 days could not be delivered; mend the reasons and ask again. The newest", total)
	for _, l := range newest {
		text += fmt.Sprintf("; %s to %s: %s", l.At.Local().Format(time.DateTime), l.Conversation, l.Reason)
	}
	return oneLine(text), nil
}

// repliesFinding tells of what could not be delivered, which is no fault of the installation.
func repliesFinding(lost string, err error) finding {
	switch {
	case err != nil:
		return finding{"replies", noted, "whether some could not be delivered is not known: " + oneLine(err.Error())}
	case lost != "":
		return finding{"replies", noted, lost}
	}
	return finding{"replies", fine, "all were delivered, or wait to be"}
}

func clockFindings(c config.Config) []finding {
	names := map[string]bool{}
	var warnings []finding
	for _, h := range c.Heartbeats {
		names[h.Timezone] = true
		for _, warning := range schedule.Warnings(h.Cron) {
			warnings = append(warnings, finding{"clock", noted, fmt.Sprintf("heartbeat %q: %s", h.Name, warning)})
		}
	}
	delete(names, "")
	here := fmt.Sprintf("%s here; %s in the config, %s named", time.Now().Format(time.RFC3339), schedule.Counted(len(c.Heartbeats), "heartbeat"), schedule.Counted(len(names), "zone"))
	return append([]finding{{"clock", fine, here}}, warnings...)
}

// programFindings looks for the programs that commands and conditions run. One that is missing is only noted: it may
// come, and nothing but its command fails without it.
func programFindings(c config.Config) []finding {
	var missing []finding
	look := func(whose string, run []string) {
		if len(run) == 0 || strings.Contains(run[0], "/") && !filepath.IsAbs(run[0]) {
			return // which program that is depends on the folder in which it runs
		}
		if _, err := exec.LookPath(run[0]); err == nil {
			return
		}
		why := "is not found in PATH; install it"
		if filepath.IsAbs(run[0]) {
			why = "is not there, or may not be run; put it there, or name another"
		}
		missing = append(missing, finding{"command", noted, fmt.Sprintf("%s: the program %q %s", whose, run[0], why)})
	}
	for _, command := range c.Commands {
		look(fmt.Sprintf("command %q", command.Name), command.Run)
		if command.Box {
			look(fmt.Sprintf("command %q, which runs in a box", command.Name), []string{"bwrap"})
		}
	}
	for i, h := range c.Hooks {
		look(fmt.Sprintf("hook %d, which refuses while it cannot run", i+1), h.Run)
	}
	for _, g := range c.Gauges {
		look(fmt.Sprintf("gauge %q", g.Name), g.Run)
	}
	for _, h := range c.Heartbeats {
		for _, condition := range append([]config.Condition{h.Condition}, h.Condition.Of...) {
			look(fmt.Sprintf("the condition of heartbeat %q", h.Name), condition.Run)
		}
	}
	if missing == nil {
		return []finding{{"command", fine, fmt.Sprintf("%d in the config", len(c.Commands))}}
	}
	return missing
}

// wideFindings notes which commands could be given paths that lead out of the workspace, or be told by files what to do.
func wideFindings(c config.Config) (findings []finding) {
	for _, preset := range c.Presets() {
		for _, name := range preset.Wide() {
			findings = append(findings, finding{"command", noted, fmt.Sprintf("command %q: the pattern of %q allows / and .. together, so that a value can name files outside the workspace: "+
				"narrow it, or set box = true", preset.Name, name)})
		}
		if preset.Policy == agent.PolicyNo && preset.Obeys() {
			findings = append(findings, finding{"command", noted, fmt.Sprintf("command %q: runs unasked and without a box. If its program does what files say, as make, npm and git do, "+
				"whoever has files written into a workspace has it do what they like: set approve = \"ask\" or box = true", preset.Name)})
		}
	}
	return findings
}

// modelFinding asks the model for a word.
func modelFinding(ctx context.Context, c config.Model, llm model.Model) finding {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	began := time.Now()
	answer, err := llm.Answer(ctx, model.Request{
		System: "You are being checked.", Messages: []model.Message{{Role: model.User, Text: "Say ok."}}, MaxOutput: 64,
	}, nil)
	if err != nil {
		return finding{"model", wrong, modelFault(c, err)}
	}
	name := answer.Model
	if name == "" {
		name = c.Name
	}
	tokens := "it does not report its tokens, so costs are reckoned at their most"
	if answer.Usage.Known {
		tokens = fmt.Sprintf("%d tokens in, %d out", answer.Usage.In, answer.Usage.Out)
	}
	return finding{"model", fine, strings.TrimSpace(fmt.Sprintf("%s %s answered in %d ms; %s", c.Provider, name, time.Since(began).Milliseconds(), tokens))}
}

// modelFault says what is wrong with a model, where it was looked for, and what to check.
func modelFault(c config.Model, err error) string {
	var fault *model.Error
	if !errors.As(err, &fault) {
		return oneLine(err.Error())
	}
	text, check := fault.Say, "check [model] base_url, name and api_key_env"
	if fault.Status == 0 && fault.Fault == model.FaultPassing {
		check = "check that it runs, that [model] base_url is its address, and that a firewall or proxy lets this machine reach it"
		if fault.Err != nil {
			text += ": " + fault.Err.Error()
		}
	}
	if host := modelHost(c); host != "" {
		text += " (asked " + host + ")"
	}
	return oneLine(text + "; " + check)
}
