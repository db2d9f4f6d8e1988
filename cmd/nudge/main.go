// Command nudge is the program: a chat agent that works with tools, asks before what cannot be taken back, and wakes
// itself when a check in code says that there is something to see.
//
// main.go reads the command line, program.go wires the rooms in order of dependence, and each command has a file of
// its own. What the config asks for is made in part.go and tool.go; what the rooms ask of the program stands in
// wake.go, timer.go and alarm.go, and whom it serves in presence.go. Package config reads the configuration.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	_ "time/tzdata" // zones must be known on machines that have none

	"github.com/spf13/cobra"

	"nudge/agent/secret"
	"nudge/cmd/nudge/config"
)

// The exit statuses.
const (
	exitFailed = 1 // the work failed
	exitWrong  = 2 // the command or the config is wrong
)

func main() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// Main runs the program with the given arguments and returns its exit status. SIGINT and SIGTERM end what runs.
func Main(args []string, in io.Reader, out, errs io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return (&app{in: in, out: out, errs: errs}).run(ctx, args)
}

// run runs one command and returns its exit status. What went wrong is told.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.command()
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.errs)
	err := root.ExecuteContext(ctx)
	// Only now, since cobra adds commands and flags of its own while it executes. A command that has others below it takes no words
	// itself, so that nothing was done.
	if wrong := misnamed(root, args); wrong != nil {
		err = wrong
	}
	var told *exitError
	var work *workError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &told):
		return told.status
	}
	fmt.Fprintln(a.errs, "nudge:", a.redactor().Text(err.Error()))
	if errors.As(err, &work) {
		return exitFailed
	}
	return exitWrong
}

// workError is an error of the work itself; all others are of the command line or the config.
type workError struct{ err error }

func (e *workError) Error() string { return e.err.Error() }
func (e *workError) Unwrap() error { return e.err }

// failed marks an error as one of the work.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return &workError{err}
}

// app is what all commands share.
type app struct {
	in        io.Reader
	out, errs io.Writer

	configFile, dataDir string
	verbose             bool

	secrets *secret.Redactor // see redactor

	// In a process that does commands for others:
	host   *program       // what runs here; nil when the command must hold the data file itself
	remote *remoteCommand // what the other process asked for
	attach attach
}

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:           "nudge",
		Short:         "A chat agent that works with tools, asks first, and speaks first when there is a reason",
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 { // cobra looks at none behind two dashes
				return cobra.NoArgs(cmd, args)
			}
			return a.serve(cmd.Context())
		},
	}
	root.PersistentFlags().StringVar(&a.configFile, "config", "", "config file (default: nudge/config.toml in the user's config directory, if it is there)")
	root.PersistentFlags().StringVar(&a.dataDir, "data", "", "data directory (default: data_dir of the config, or nudge in the user's data directory)")
	root.PersistentFlags().BoolVarP(&a.verbose, "verbose", "v", false, "log more")
	root.AddCommand(a.serveCommand(), a.chatCommand(), a.initCommand(), a.doctorCommand(), a.traceCommand(), a.whyCommand(), a.simulateCommand(), a.sessionsCommand(), a.exportCommand(), a.diaryCommand(), a.mcpCommand(), a.manifestCommand(), a.readyCommand(), a.versionCommand(), a.scriptCommand())
	root.AddCommand(a.forgetCommand(), a.auditCommand())
	root.AddCommand(a.dataFileCommands()...)
	root.SetHelpCommand(helpCommand())
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if misnamed(cmd, cmd.Flags().Args()) == nil { // help of the command above would hide what is wrong
			help(cmd, args)
		}
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	return root
}

// helpCommand prints the help of a command, and refuses one that is not there.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := misnamed(cmd.Root(), args); err != nil {
				return err
			}
			about, rest, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return fmt.Errorf("unknown command %q for %q", rest[0], about.CommandPath())
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// misnamed refuses a word that stands where the name of a command would and is none. It does so whatever flags are with it, which
// are of the command that was meant: not even --help makes it one. It says which command is the nearest, if one is near.
func misnamed(from *cobra.Command, args []string) error {
	cmd, rest, _ := from.Find(args) // its error is one of those that are told here
	word := firstWord(cmd, rest)
	if !cmd.HasSubCommands() || word == "" {
		return nil
	}
	text := fmt.Sprintf("unknown command %q for %q", word, cmd.CommandPath())
	var names []string
	for _, one := range cmd.Commands() {
		if one.IsAvailableCommand() {
			names = append(names, one.Name())
		}
	}
	switch near, found := config.Nearest(word, names); {
	case near == word && found:
		return fmt.Errorf("the command %q stands behind --, where none is looked for; leave out the --", word)
	case found:
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	return errors.New(text)
}

// firstWord is the first argument that is neither a flag of a command's nor the value of one; "" for none.
func firstWord(cmd *cobra.Command, args []string) string {
	for i := 0; i < len(args); i++ {
		name, dashed := strings.CutPrefix(args[i], "-")
		if !dashed {
			return args[i]
		}
		flag := cmd.Flags().Lookup(strings.TrimPrefix(name, "-"))
		if len(name) == 1 {
			flag = cmd.Flags().ShorthandLookup(name)
		}
		if flag != nil && flag.NoOptDefVal == "" {
			i++ // its value
		}
	}
	return ""
}

// one lets a command have exactly one argument, and says what it is for when it is not there.
func one(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return fmt.Errorf("say which: %s", strings.TrimSuffix(cmd.UseLine(), " [flags]"))
	case 1:
		return nil
	}
	return fmt.Errorf("one at a time: %s", strings.TrimSuffix(cmd.UseLine(), " [flags]"))
}

// config loads the configuration and finds the data directory.
func (a *app) config() (config.Config, string, error) {
	c, err := config.Load(config.Find(a.configFile))
	if err != nil {
		return c, "", err
	}
	a.redactor().Add(c.Secrets()...)
	dir, err := c.FindDataDir(a.dataDir)
	if err != nil {
		return c, dir, err
	}
	if err := c.CheckWorkspace(dir); err != nil {
		return c, dir, inFile(c, err)
	}
	return c, dir, nil
}

// redactor hides the secrets of the config, once that is loaded, and what looks like one.
func (a *app) redactor() *secret.Redactor {
	if a.secrets == nil {
		a.secrets = secret.New()
		if a.host != nil {
			a.secrets = a.host.secrets
		}
	}
	return a.secrets
}

// shown is the output for what may hold anything that was said or done.
func (a *app) shown() io.Writer { return a.redactor().Writer(plainWriter{a.out}) }

func (a *app) log() *slog.Logger {
	level := slog.LevelWarn
	if a.verbose {
		level = slog.LevelDebug
	}
	return slog.New(a.redactor().Handler(slog.NewTextHandler(a.errs, &slog.HandlerOptions{Level: level})))
}
