package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"nudge/agent"
	"nudge/agent/model/modeltest"
	"nudge/bot"
	"nudge/cmd/nudge/config"
	"nudge/memory"
)

// commands are some that load the config, serve's default included.
var commands = [][]string{{}, {"serve"}, {"chat"}, {"doctor", "--quick"}, {"sessions"}, {"version"}}

const tick = `[[heartbeat]]
name = "a"
cron = "* * * * *"
prompt = "look"
condition = { kind = "always" }
`

func TestAWrongConfigStopsEveryCommandWithItsLine(t *testing.T) {
	for name, test := range map[string]struct{ config, want string }{
		"cron":           {strings.Replace(tick, "* * * * *", "61 * * * *", 1), ":3: heartbeat.cron "},
		"zone":           {tick + `timezone = "Mars/Phobos"`, ":6: heartbeat.timezone "},
		"name":           {strings.Replace(tick, `"a"`, `"a:b"`, 1), ":2: heartbeat.name: "},
		"condition":      {strings.Replace(tick, "always", "http", 1), ":5: heartbeat.condition.url "},
		"command":        {"[[command]]\nname = \"a\"\nrun = [\"a\", \"{b}\"]\n", ":3: command.run "},
		"profile":        {"[model]\n\nprofile = \"magic\"\n", ":3: model.profile "},
		"approve":        {"[tools]\napprove = { delet_file = \"owner\" }\n", `:2: tools.approve.delet_file names no tool; did you mean "delete_file"?`},
		"deny":           {"[tools]\ndeny = [\"delet_file\"]\n", `:2: tools.deny names no tool; did you mean "delete_file"?`},
		"heartbeat tool": {tick + `tools = ["writ_file"]`, `:6: heartbeat.tools names no tool; did you mean "write_file"?`},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, nil, test.config)
			for _, command := range commands {
				if out, status := p.here(command...); status != exitWrong || !strings.Contains(out, p.config+test.want) {
					t.Errorf("nudge %v (status %d, want 2) printed, without %q:\n%s", command, status, test.want, out)
				}
			}
		})
	}
}

// TestTheDoctorFindsWhatServeRefuses lets both look at secrets that are not as they should be.
func TestTheDoctorFindsWhatServeRefuses(t *testing.T) {
	// Without Slack the rest would go on; here there is no rest.
	const tokens = "[web]\nlisten = \"\"\n[slack]\nbot_token_env = \"BOT_TOKEN\"\napp_token_env = \"APP_TOKEN\"\n"
	for name, test := range map[string]struct {
		config, bot, app, want string
		chat                   int // the exit status of chat
	}{
		"no bot token":    {config: tokens, app: "xapp-1", want: "slack.bot_token_env: read a secret: environment variable BOT_TOKEN is not set"},
		"no app token":    {config: tokens, bot: "xoxb-1", want: "slack.app_token_env: read a secret: environment variable APP_TOKEN is not set"},
		"tokens mixed up": {config: tokens, bot: "xapp-1", app: "xoxb-1", want: "a bot token begins with xoxb-"},
		"user token":      {config: tokens, bot: "xoxp-1", app: "xapp-1", want: "the bot token from BOT_TOKEN is a user token"},
		"two bot tokens":  {config: tokens, bot: "xoxb-1", app: "xoxb-1", want: "an app token begins with xapp-"},
		"no api token":    {config: "[web]\napi_token_env = \"API_TOKEN\"\n", want: "web.api_token_env: read a secret: environment variable API_TOKEN is not set"},
		"no model key": {config: "[model]\nprovider = \"openai\"\nname = \"x\"\napi_key_env = \"MODEL_KEY\"\n", chat: exitWrong,
			want: "model.api_key_env: read a secret: environment variable MODEL_KEY is not set"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("BOT_TOKEN", test.bot)
			t.Setenv("APP_TOKEN", test.app)
			p := newPlace(t, nil, test.config)
			if out, status := p.here("doctor", "--quick"); status != exitFailed || !strings.Contains(out, test.want) || !strings.Contains(out, "WRONG") {
				t.Errorf("doctor (status %d, want 1) printed:\n%s", status, out)
			}
			if out, status := p.here("serve"); status != exitWrong || !strings.Contains(out, test.want) || !strings.Contains(out, p.config) {
				t.Errorf("serve (status %d, want 2) printed:\n%s", status, out)
			}
			if out, status := p.run("chat"); status != test.chat {
				t.Errorf("chat (status %d, want %d) printed:\n%s", status, test.chat, out)
			}
		})
	}
}

func TestTheDoctorNotesWhatIsNoFault(t *testing.T) {
	p := newPlace(t, nil, strings.Replace(tick, "* * * * *", "@every 5s", 1)+
		"[[command]]\nname = \"b\"\nrun = [\"no-such-program\"]\n[[hook]]\nat = \"before_tool\"\nrun = [\"/no/such/guard\"]\n[web]\nlisten = \"\"\n")
	out, status := p.run("doctor")
	for _, want := range []string{
		`note   clock   heartbeat "a": it falls due every 5s, which is more often than once a minute`,
		`note   command command "b": the program "no-such-program" is not found in PATH; install it`,
		`note   command hook 1, which refuses while it cannot run: the program "/no/such/guard" is not there, or may not be run; put it there, or name another`,
		"note   serve   there is nothing to serve",
		"ok     model   demo", "ok     slack   off", "ok     web     off",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q", want)
		}
	}
	if status != 0 {
		t.Errorf("the status is %d", status)
	}
	if t.Failed() {
		t.Log(out)
	}
	if out, status := p.run("chat"); status != 0 || !strings.Contains(out, "more often than once a minute") {
		t.Errorf("chat (status %d) does not warn:\n%s", status, out)
	}
	if out, status := p.run("serve"); status != exitWrong || !strings.Contains(out, "there is nothing to serve") {
		t.Errorf("serve (status %d, want 2) printed:\n%s", status, out)
	}
}

// TestTheDoctorNotesWhoIsNotLetIn looks at whom the config lets in.
func TestTheDoctorNotesWhoIsNotLetIn(t *testing.T) {
	t.Setenv("BOT_TOKEN", "xoxb-1")
	t.Setenv("APP_TOKEN", "xapp-1")
	const (
		nobody = "note   access  nobody in Slack is let in"
		owner  = "note   access  the owner slack:T1:U1 is not let in"
	)
	for access, want := range map[string][]string{
		"":                                       {nobody},
		"allow = [\"api:*\"]":                    {nobody},
		"allow = [\"slack:T1:*\"]":               nil,
		"owners = [\"slack:T1:U1\", \"web:me\"]": {nobody, owner},
		"allow = [\"slack:T1:U2\", \"slack:T2:*\"]\nowners = [\"slack:T1:U1\"]": {owner},
		"allow = [\"slack:T1:*\"]\nowners = [\"slack:T1:U1\"]":                  nil,
	} {
		p := newPlace(t, nil, "[slack]\nbot_token_env = \"BOT_TOKEN\"\napp_token_env = \"APP_TOKEN\"\n[access]\n"+access+"\n")
		out, status := p.run("doctor", "--quick")
		for _, note := range []string{nobody, owner} {
			if strings.Contains(out, note) != slices.Contains(want, note) {
				t.Errorf("with %q, whether it says %q is wrong (status %d):\n%s", access, note, status, out)
			}
		}
		if status != 0 {
			t.Errorf("with %q the status is %d", access, status)
		}
	}
}

func TestTheDoctorSaysWhichServerCannotBeReached(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	host := closed.Addr().String()
	p := newPlace(t, nil, "[model]\nprovider = \"openai\"\nname = \"x\"\nbase_url = \"http://"+host+"/v1?key=s3cret\"\n")
	out, status := p.run("doctor")
	found := regexp.MustCompile(`(?m)^WRONG  model   cannot reach the model's server: .*refused \(asked ` + regexp.QuoteMeta(host) + `\); check that it runs, .*base_url`)
	if status != exitFailed || !found.MatchString(out) || strings.Contains(out, "s3cret") {
		t.Errorf("doctor (status %d) printed:\n%s", status, out)
	}
}

func TestTheDoctorAsksTheProcessThatRuns(t *testing.T) {
	server := modeltest.NewServer(t, func(int, modeltest.ChatRequest) modeltest.Reply { return modeltest.Reply{Text: "yes"} })
	p := newPlace(t, server, "")
	holder := p.chat()
	holder.say("hello")
	holder.until("settled")
	out, status := p.run("doctor", "--quick")
	if status != 0 || !strings.Contains(out, "in use by a running nudge: pid ") || strings.Contains(out, "stop it first") ||
		!strings.Contains(out, "ok     running all that it serves works") {
		t.Errorf("doctor (status %d) printed:\n%s", status, out)
	}
	if out, status := p.run("ready"); status != exitWrong {
		t.Errorf("ready, asked by nobody (status %d), printed:\n%s", status, out)
	}
	if err := os.Remove(filepath.Join(p.dir, "data", socketName)); err != nil {
		t.Fatal(err)
	}
	if out, status := p.run("doctor", "--quick"); status != exitFailed || !strings.Contains(out, "WRONG  running the process that holds the data file cannot be reached") {
		t.Errorf("without the socket, doctor (status %d) printed:\n%s", status, out)
	}
	holder.end()
}

// TestTheDoctorIsRedWhenWhatRunsIsRed plays a process that serves, and is not ready for a while.
func TestTheDoctorIsRedWhenWhatRunsIsRed(t *testing.T) {
	dir := t.TempDir()
	p, err := newProgram(config.Default(), dir, true, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.close(closeGrace); err != nil {
			t.Error(err)
		}
	}()
	doctor := func() (status int, out string) {
		var printed strings.Builder
		a := &app{in: strings.NewReader(""), out: &printed, errs: &printed, dataDir: dir}
		status = a.run(t.Context(), []string{"--data", dir, "--config", os.DevNull, "doctor", "--quick"})
		return status, printed.String()
	}
	err = p.run(t.Context(), "web:me", func(context.Context) error {
		if status, out := doctor(); status != exitFailed || !strings.Contains(out, "WRONG  running it has not begun to serve") {
			t.Errorf("before it serves, the doctor (status %d) says\n%s", status, out)
		}
		var state error
		p.ready = func() error { return state }
		if status, out := doctor(); status != 0 || !strings.Contains(out, "ok     running") {
			t.Errorf("when all is well, the doctor (status %d) says\n%s", status, out)
		}
		state = errors.Join(errors.New("slack: nothing was heard for a minute"), errors.New("and more"))
		if status, out := doctor(); status != exitFailed || !strings.Contains(out, "WRONG  running slack: nothing was heard for a minute; and more\n") {
			t.Errorf("when Slack is stale, the doctor (status %d) says\n%s", status, out)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTheDoctorSaysWhatCouldNotBeDelivered lets a platform refuse replies, and asks while the program runs and afterwards.
func TestTheDoctorSaysWhatCouldNotBeDelivered(t *testing.T) {
	p := newPlace(t, nil, "")
	dir := filepath.Join(p.dir, "data")
	running, err := newProgram(config.Default(), dir, true, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	const want = "note   replies 2 of the last 30 days could not be delivered; mend the reasons and ask again. The newest; "
	doctor := func() string {
		var printed strings.Builder
		a := &app{in: strings.NewReader(""), out: &printed, errs: &printed}
		if status := a.run(t.Context(), []string{"--data", dir, "--config", os.DevNull, "doctor", "--quick"}); status != 0 {
			t.Errorf("the status is %d", status)
		}
		return printed.String()
	}
	err = running.run(t.Context(), "web:me", func(ctx context.Context) error {
		ctx, stop := context.WithCancel(ctx)
		served := make(chan error, 1)
		go func() { served <- running.hub.Serve(ctx, running.agent, refusing{}) }()
		running.ready = func() error { return nil }
		if out := doctor(); !strings.Contains(out, "ok     replies all were delivered") {
			t.Errorf("before anything was said, the doctor says\n%s", out)
		}
		err := running.store.Update(ctx, func(tx memory.Tx) error {
			return errors.Join(agent.Send(tx, agent.Reply{Kind: agent.Final, Text: "one", Address: "none:1"}),
				agent.Send(tx, agent.Reply{Kind: agent.Final, Text: "two", Address: "none:2"}))
		})
		running.hub.Outgoing()
		err = errors.Join(err, running.hub.Drain(ctx, func(address string) bool { return strings.HasPrefix(address, "none:") }))
		if out := doctor(); !strings.Contains(out, want) || strings.Count(out, "nobody is there") != 2 || !strings.Contains(out, " to none:1: ") {
			t.Errorf("while it runs, the doctor says\n%s", out)
		}
		stop()
		return errors.Join(err, <-served)
	})
	if err := errors.Join(err, running.close(closeGrace)); err != nil {
		t.Fatal(err)
	}
	if out := doctor(); !strings.Contains(out, want) {
		t.Errorf("afterwards, the doctor says\n%s", out)
	}
}

// refusing is an adapter whose platform is not there.
type refusing struct{}

func (refusing) Platform() string         { return "none" }
func (refusing) Serves(string) bool       { return true }
func (refusing) Abilities() bot.Abilities { return bot.Abilities{Doubt: bot.CannotTell} }

func (refusing) Listen(ctx context.Context, _ bot.Receiver) error {
	<-ctx.Done()
	return nil
}

func (refusing) Say(context.Context, bot.Delivery) (string, error) {
	return "", &bot.SendError{Gone: true, Err: errors.New("nobody is there")}
}

// TestEveryToolOfTheProgramIsKnownToTheConfig holds the config's list of tools against what is wired.
func TestEveryToolOfTheProgramIsKnownToTheConfig(t *testing.T) {
	c := config.Default()
	p, err := newProgram(c, t.TempDir(), true, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	tools, err := p.tools()
	if err := errors.Join(err, p.close(closeGrace)); err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, tool := range tools {
		names = append(names, `"`+tool.Name+`"`)
	}
	server := modeltest.NewServer(t, func(int, modeltest.ChatRequest) modeltest.Reply { return modeltest.Reply{Text: "yes"} })
	k := newPlace(t, server, "").chat()
	k.say("hello")
	k.until("settled")
	k.end()
	for _, offered := range server.Requests()[0].Tools {
		names = append(names, `"`+offered.Function.Name+`"`)
	}
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte("[tools]\nonly = [\n"+strings.Join(names, ",\n")+"\n]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(path); err != nil || len(names) < 12 {
		t.Errorf("the tools are %v: %v", names, err)
	}
}
