package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"nudge/cmd/nudge/config"
)

func (a *app) initCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init",
		Short: "Write a config by asking",
		Long: "Write a config by asking: which model answers, what it may cost, and whether to talk in Slack and Discord. Each answer is checked as the\n" +
			"config is. No secret is asked for: the config names the environment variables that hold them. A file that is there is left alone.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.writeConfig(cmd.Context()) },
	}
}

// writeConfig asks, and writes the config only when all is answered.
func (a *app) writeConfig(ctx context.Context) error {
	path := cmp.Or(a.configFile, config.UserFile())
	if path == "" {
		return errors.New("the user's config directory is not known; --config says where to write")
	}
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s is there already; `nudge doctor` checks it, and --config names another", path)
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	i := interview{lines: typedLines(ctx, a.in), out: a.out, path: path}
	if err := i.askAll(); err != nil {
		return failed(err)
	}
	if err := writeNew(path, i.answers.document()); err != nil {
		return failed(fmt.Errorf("write the config: %w", err))
	}
	_, err := fmt.Fprintf(a.out, "\n%s is written.\n%s", path, i.answers.next())
	return failed(err)
}

// writeNew writes a file that is not there, for this account alone.
func writeNew(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		_ = os.Remove(path) // half a config is worse than none
	}
	return err
}

// answers are what a config is made of. What was not asked yet holds something with which the whole is right.
type answers struct {
	provider, address, name, key string
	priceIn, priceOut            string // USD per million tokens; "" when they are not known
	turn, day                    string // USD
	slack                        bool
	botToken, appToken           string
	discord                      bool
	discordToken                 string
	allow, owners                []string
}

// document is the config.
func (a answers) document() string {
	var b strings.Builder
	line := func(key, value string) { fmt.Fprintf(&b, "%s = %s\n", key, value) }
	text := func(key, value string) {
		if value != "" {
			line(key, strconv.Quote(value))
		}
	}
	b.WriteString("# Written by `nudge init`. config.example.toml has every key with its default; `nudge doctor` checks this file.\n\n[model]\n")
	text("provider", a.provider)
	if a.provider != "demo" {
		text("base_url", a.address)
		text("name", a.name)
		if a.address == openaiAddress {
			text("profile", "max_completion_tokens")
		}
		text("api_key_env", a.key)
	}
	if a.priceIn != "" {
		line("price_in", a.priceIn)
		line("price_out", a.priceOut)
		b.WriteString("\n[limits]\n")
		line("max_cost_usd", a.turn)
		line("user_daily_cost_usd", a.day)
	}
	if a.slack {
		b.WriteString("\n[slack]\n")
		text("bot_token_env", a.botToken)
		text("app_token_env", a.appToken)
	}
	if a.discord {
		b.WriteString("\n[discord]\n")
		text("token_env", a.discordToken)
	}
	if a.slack || a.discord {
		b.WriteString("\n[access]\n")
		line("allow", list(a.allow))
		line("owners", list(a.owners))
	}
	b.WriteString(commandsOfInit)
	return b.String()
}

const openaiAddress = "https://api.openai.com/v1"

// commandsOfInit are the commands that there are without a config, which one that is there replaces.
const commandsOfInit = `
[[command]]
name = "wait"
run = ["sleep", "{seconds}"]
parameters = { seconds = { pattern = "[0-9]{1,2}", description = "how many seconds to wait" } }
effect = "read"
approve = "no"

[[command]]
name = "disk"
run = ["df", "-h", "."]
effect = "read"
approve = "no"
`

func list(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = strconv.Quote(text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// next says what there is to do after the config is written.
func (a answers) next() string {
	var variables []string
	if a.provider != "demo" && a.key != "" {
		variables = append(variables, a.key)
	}
	if a.slack {
		variables = append(variables, a.botToken, a.appToken)
	}
	if a.discord {
		variables = append(variables, a.discordToken)
	}
	var b strings.Builder
	if a.slack {
		b.WriteString("`nudge manifest slack` prints what Slack makes the app of; README.md has the steps.\n")
	}
	if a.discord {
		b.WriteString("README.md has the steps in Discord; `nudge doctor` prints the invitation.\n")
	}
	if len(variables) > 0 {
		fmt.Fprintf(&b, "Set %s. ", strings.Join(variables, ", "))
	}
	b.WriteString("`nudge doctor` checks everything, `nudge serve` runs it.\n")
	return b.String()
}

// interview asks somebody, or reads answers from a pipe, a line for each.
type interview struct {
	lines   <-chan string // closed when there are no more, or the program is to end
	out     io.Writer
	path    string
	answers answers
}

// typedLines gives the lines of a reader until they end or ctx does. A read from a terminal cannot be broken off, and Ctrl-C
// shall not wait for it.
func typedLines(ctx context.Context, in io.Reader) <-chan string {
	read, lines := make(chan string), make(chan string)
	go func() {
		defer close(read)
		for scanner := bufio.NewScanner(in); scanner.Scan(); {
			select {
			case read <- scanner.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	go func() {
		defer close(lines)
		for {
			var line string
			more := false
			select {
			case line, more = <-read:
			case <-ctx.Done():
			}
			if !more {
				return
			}
			select {
			case lines <- line:
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

func (i *interview) askAll() error {
	i.answers = answers{provider: "demo", turn: "0.0", day: "0.0"}
	err := i.ask("Which model answers: demo, which needs nothing; openai, for every server that speaks Chat Completions; or anthropic?", "demo",
		func(a *answers, said string) error {
			a.provider, a.name = strings.ToLower(said), "not asked yet"
			return nil
		})
	if err == nil && i.answers.provider != "demo" {
		err = i.askModel()
	}
	if err != nil {
		return err
	}
	err = i.ask("Talk in Slack as well: yes or no?", "no", func(a *answers, said string) error { return yes(&a.slack, said) })
	if err == nil && i.answers.slack {
		err = i.askSlack()
	}
	if err != nil {
		return err
	}
	err = i.ask("And in Discord?", "no", func(a *answers, said string) error {
		a.discordToken = "DISCORD_TOKEN" // without one, Discord is a fault
		return yes(&a.discord, said)
	})
	if err == nil && i.answers.discord {
		err = i.ask("Which environment variable holds its bot token?", "DISCORD_TOKEN", into(func(a *answers) *string { return &a.discordToken }))
	}
	if err == nil && (i.answers.slack || i.answers.discord) {
		err = i.askAccess()
	}
	return err
}

// yes keeps an answer that is yes or no.
func yes(of *bool, said string) error {
	switch strings.ToLower(said) {
	case "y", "yes":
		*of = true
	case "n", "no":
		*of = false
	default:
		return errors.New("say yes or no")
	}
	return nil
}

func (i *interview) askModel() error {
	key := "ANTHROPIC_API_KEY"
	if i.answers.provider == "openai" {
		key = "OPENAI_API_KEY"
		if err := i.ask("The server's address, up to /chat/completions?", openaiAddress, into(func(a *answers) *string { return &a.address })); err != nil {
			return err
		}
	}
	if err := i.ask("Which of its models?", "", func(a *answers, said string) error {
		a.name = said
		return nil
	}); err != nil {
		return err
	}
	if err := i.ask("Which environment variable holds the API key? none, if there is no key.", key, func(a *answers, said string) error {
		if a.key = said; said == "none" {
			a.key = ""
		}
		return nil
	}); err != nil {
		return err
	}
	if err := i.ask("What do a million tokens cost that it reads, in USD? unknown, if you do not know; then money is not limited.", "unknown",
		func(a *answers, said string) error {
			if said == "unknown" {
				return nil
			}
			a.priceOut = "0.0"
			return number(&a.priceIn, said)
		}); err != nil || i.answers.priceIn == "" {
		return err
	}
	for _, question := range []struct {
		words, standard string
		of              func(*answers) *string
	}{
		{"And a million that it writes?", "", func(a *answers) *string { return &a.priceOut }},
		{"How much may one turn cost, in USD? 0 for no limit.", "0.20", func(a *answers) *string { return &a.turn }},
		{"And one person in a day?", "2.00", func(a *answers) *string { return &a.day }},
	} {
		if err := i.ask(question.words, question.standard, func(a *answers, said string) error { return number(question.of(a), said) }); err != nil {
			return err
		}
	}
	return nil
}

func (i *interview) askSlack() error {
	// Half of Slack is a fault, so that the second variable is there before it is asked for.
	if err := i.ask("Which environment variable holds the bot token, xoxb-…?", "SLACK_BOT_TOKEN", func(a *answers, said string) error {
		a.botToken, a.appToken = said, "SLACK_APP_TOKEN"
		return nil
	}); err != nil {
		return err
	}
	return i.ask("Which one holds the app-level token, xapp-…?", "SLACK_APP_TOKEN", into(func(a *answers) *string { return &a.appToken }))
}

// askAccess asks who is let in.
func (i *interview) askAccess() error {
	such := "slack:T0123456:U0123456? Several with spaces between; slack:T0123456:* for all members."
	if !i.answers.slack {
		such = "discord:123456789012345678? Several with spaces between."
	}
	if err := i.ask("Who may talk to it, such as "+such, "",
		func(a *answers, said string) error {
			a.allow = strings.Fields(said)
			return nil
		}); err != nil {
		return err
	}
	person := func(id string) bool { return !strings.HasSuffix(id, "*") }
	first := "none"
	if at := slices.IndexFunc(i.answers.allow, person); at >= 0 {
		first = i.answers.allow[at]
	}
	return i.ask("Who of them decides what only owners may, and hears of trouble? none, if nobody but who is at this machine.", first,
		func(a *answers, said string) error {
			if a.owners = strings.Fields(said); said == "none" {
				a.owners = nil
			}
			return nil
		})
}

// into keeps an answer as it is.
func into(of func(*answers) *string) func(*answers, string) error {
	return func(a *answers, said string) error {
		*of(a) = said
		return nil
	}
}

// number keeps an answer that is an amount of money.
func number(of *string, said string) error {
	amount, err := strconv.ParseFloat(strings.TrimPrefix(said, "$"), 64)
	if err != nil {
		return errors.New("write a number, such as 0.25")
	}
	*of = strconv.FormatFloat(amount, 'f', -1, 64)
	return nil
}

// ask asks until there is an answer with which the config is right. An empty one is the standard answer, where there is one.
func (i *interview) ask(question, standard string, keep func(*answers, string) error) error {
	for {
		prompt := question
		if standard != "" {
			prompt += " [" + standard + "]"
		}
		if _, err := fmt.Fprint(i.out, prompt+" "); err != nil {
			return err
		}
		line, more := <-i.lines
		if !more {
			return errors.New("not all was answered, so nothing is written")
		}
		said := cmp.Or(strings.TrimSpace(line), standard)
		tried := i.answers
		err := errors.New("this needs an answer")
		if said != "" {
			err = keep(&tried, said)
		}
		if err == nil {
			err = config.Check(i.path, []byte(tried.document()))
		}
		if err == nil {
			i.answers = tried
			return nil
		}
		var fault *config.Error
		if errors.As(err, &fault) {
			err = errors.New(fault.Say)
		}
		if _, err := fmt.Fprintf(i.out, "  %v\n", err); err != nil {
			return err
		}
	}
}
