package terminal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unicode/utf8"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/bot"
	"nudge/bot/terminal"
	"nudge/memory"
	"nudge/memory/bolt"
)

// ear is a receiver that keeps what it hears.
type ear struct {
	mu     sync.Mutex
	events []bot.Event
	err    error
	heard  func(bot.Event) // if set, is called with each
}

func (e *ear) Receive(_ context.Context, event bot.Event) (bot.Admission, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.events = append(e.events, event)
	if e.heard != nil {
		e.heard(event)
	}
	return bot.Taken, e.err
}

func (e *ear) Card(context.Context, string) (agent.Reply, bool, error) {
	return agent.Reply{}, false, nil
}

func (e *ear) Schema(string) json.RawMessage { return nil }

func (e *ear) Weigh(context.Context, bot.Event) (*agent.Objection, error) { return nil, nil }

func (e *ear) Overview(context.Context, agent.Person, bot.Standing) (bot.Overview, error) {
	return bot.Overview{}, nil
}

func (e *ear) Renew(context.Context, agent.Person) error { return nil }

func (e *ear) Complete(context.Context, agent.Person, string) ([]bot.Completion, error) {
	return nil, nil
}

func (e *ear) Kept(context.Context, string) (map[string]string, error) { return nil, nil }

func (e *ear) Keep(context.Context, string, map[string]string) error { return nil }

func (e *ear) texts() []string {
	texts := make([]string, len(e.events))
	for i, event := range e.events {
		texts[i] = event.Text
	}
	return texts
}

// screen is an output that takes nothing.
type screen struct{ err error }

func (s *screen) Write([]byte) (int, error) { return 0, s.err }

func rested(context.Context) error { return nil }

func at(manner terminal.Manner, in io.Reader, out io.Writer) terminal.Config {
	return terminal.Config{In: in, Out: out, Manner: manner, Person: ann, Address: ann.ID.Home(), Rest: rested}
}

// TestLines is what becomes of the bytes that come in.
func TestLines(t *testing.T) {
	kilo := strings.Repeat("0123456789abcdef", 64)
	for _, test := range []struct {
		name, in string
		want     []string
	}{
		{"none", "", nil},
		{"one", "hello\n", []string{"hello"}},
		{"without an end", "hello", []string{"hello"}},
		{"several", "one\ntwo\n\n  \t \nthree", []string{"one", "two", "three"}},
		{"of another system", "one\r\ntwo\r\n\r\nthree\r", []string{"one", "two", "three"}},
		{"with blanks", "  two  words \n", []string{"  two  words "}},
		{"long", strings.Repeat(kilo, 65) + "\nshort\n", []string{strings.Repeat(kilo, 65), "short"}},
		{"just under the limit", strings.Repeat(kilo, 1023) + "\n", []string{strings.Repeat(kilo, 1023)}},
		{"with a zero", "a\x00b\n", []string{"a\x00b"}},
		{"that are no text", "a\xff\xfeb\n", []string{"a\xff\xfeb"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := &ear{}
			var out bytes.Buffer
			if err := terminal.New(at(terminal.JSON, strings.NewReader(test.in), &out)).Listen(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			if fmt.Sprintf("%q", e.texts()) != fmt.Sprintf("%q", test.want) {
				t.Errorf("heard %.200q, want %.200q", e.texts(), test.want)
			}
			keys := map[string]bool{}
			for _, event := range e.events {
				if len(event.Keys) != 1 || keys[event.Keys[0]] || event.ID == "" || event.From != ann || event.Address != ann.ID.Home() || event.At.IsZero() {
					t.Errorf("the event is %.200q", fmt.Sprintf("%+v", event))
				}
				keys[event.Keys[0]] = true
			}
		})
	}
}

// TestTooLongALine comes in pieces that lose nothing and cut through no character.
func TestTooLongALine(t *testing.T) {
	for shift := range 5 {
		line := strings.Repeat("x", shift) + strings.Repeat("日🙂é", 400_000)
		e := &ear{}
		if err := terminal.New(at(terminal.JSON, strings.NewReader(line+"\nshort\n"), io.Discard)).Listen(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		texts := e.texts()
		if len(texts) < 3 || strings.Join(texts[:len(texts)-1], "") != line || texts[len(texts)-1] != "short" {
			t.Fatalf("%d pieces, which are not the line", len(texts))
		}
		for _, text := range texts {
			if len(text) > 2<<20 || !utf8.ValidString(text) {
				t.Errorf("a piece of %d bytes, valid: %v", len(text), utf8.ValidString(text))
			}
		}
	}
}

// TestRunsShareNoKeys, so that what a second run is told is not taken for a repeat.
func TestRunsShareNoKeys(t *testing.T) {
	e := &ear{}
	for range 2 {
		if err := terminal.New(at(terminal.JSON, strings.NewReader("same\n"), io.Discard)).Listen(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if e.events[0].Keys[0] == e.events[1].Keys[0] {
		t.Errorf("both have the key %s", e.events[0].Keys[0])
	}
}

// TestPipedTakesTurns reads the next line only when the last one's turn rests.
func TestPipedTakesTurns(t *testing.T) {
	var order []string
	e := &ear{heard: func(event bot.Event) { order = append(order, event.Text) }}
	c := at(terminal.Piped, strings.NewReader("one\n\ntwo\n"), io.Discard)
	c.Rest = func(context.Context) error { order = append(order, "rest"); return nil }
	if err := terminal.New(c).Listen(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, " "); got != "one rest two rest rest" {
		t.Errorf("order: %s", got)
	}
}

// TestChoices takes the number of a choice for the choice, once.
func TestChoices(t *testing.T) {
	ask := agent.Reply{Kind: agent.Ask, ID: "q1", Text: "Which?", Choices: []string{"red", "green"}}
	for _, test := range []struct {
		manner terminal.Manner
		in     string
		want   string
	}{
		{terminal.Piped, "2\n", "green"},
		{terminal.Typed, " 1 \n", "red"},
		{terminal.Typed, "1\n1\n", "red|1"},
		{terminal.Typed, "blue\n1\n", "blue|1"},
		{terminal.Typed, "0\n", "0"},
		{terminal.Typed, "3\n", "3"},
		{terminal.Typed, "-1\n", "-1"},
		{terminal.Typed, "1.\n", "1."},
		{terminal.JSON, "2\n", "2"},
	} {
		e := &ear{}
		term := terminal.New(at(test.manner, strings.NewReader(test.in), io.Discard))
		if _, err := term.Say(t.Context(), bot.Delivery{Reply: ask}); err != nil {
			t.Fatal(err)
		}
		if err := term.Listen(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(e.texts(), "|"); got != test.want {
			t.Errorf("%q was taken as %q, want %q", test.in, got, test.want)
		}
	}
}

// everything is one reply of each kind.
func everything() []agent.Reply {
	return []agent.Reply{
		{Kind: agent.Progress, Text: "☐ one\n☑ two"},
		{Kind: agent.Final, Text: "All done.\nReally."},
		{Kind: agent.Notify, Heartbeat: "stretch", Text: "Time to stretch."},
		{Kind: agent.Ask, ID: "q1", Text: "Which?", Choices: []string{"red", "green"}},
		{Kind: agent.Approval, ID: "c1", Tool: "erase", Arguments: []byte(`{"x":"a & b"}`), MayDecide: []string{"terminal:ann"}},
		{Kind: agent.DecidedMark, ID: "c1", Tool: "erase", Decision: agent.Approve, By: "terminal:ann"},
		{Kind: agent.Notice, Text: "Stopped."},
		{Kind: agent.Fault, Text: "There is no such thing."},
		{Kind: agent.SteerMark, ID: "m1", Text: "blue", State: agent.Stored},
		{Kind: agent.SteerMark, ID: "m1", Text: "blue", State: agent.SeenAt, Step: 2},
		{Kind: agent.SteerMark, ID: "m1", Text: "blue", State: agent.NextTurn},
		{Kind: agent.WaitingMark},
		{Kind: agent.SettledMark, Totals: &agent.Totals{Reason: agent.Completed}},
		{Kind: agent.Notify, ID: "n1", Heartbeat: "drink", Text: "Time to drink."},
	}
}

const golden = `  · ☐ one
    ☑ two
All done.
Really.

♦ stretch: Time to stretch.

? Which?
  1) red
  2) green
Reply here, or: /answer q1 your words

? May I run erase?
{
  "x": "a & b"
}
terminal:ann may decide.  /approve c1   /deny c1 [reason]   /edit c1 {arguments}

  erase (c1): approved by terminal:ann
Stopped.

There is no such thing.

  (noted)
  (seen at step 2)
  (taken up next)
♦ drink: Time to drink.
  /useful drink   /less drink   /snooze 1h|4h|tomorrow

`

func TestHowRepliesLook(t *testing.T) {
	for _, test := range []struct {
		manner terminal.Manner
		color  bool
	}{{terminal.Piped, false}, {terminal.Typed, false}, {terminal.Typed, true}} {
		var out bytes.Buffer
		c := at(test.manner, strings.NewReader(""), &out)
		c.Color = test.color
		term := terminal.New(c)
		for _, r := range everything() {
			if _, err := term.Say(t.Context(), bot.Delivery{Reply: r}); err != nil {
				t.Fatal(err)
			}
		}
		got := out.String()
		if colored := strings.Contains(got, "\x1b["); colored != test.color {
			t.Errorf("manner %d, color %v: %q", test.manner, test.color, got)
		}
		for _, code := range []string{"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[33m"} {
			got = strings.ReplaceAll(got, code, "")
		}
		if got != golden {
			t.Errorf("manner %d:\n%s\nwant:\n%s", test.manner, got, golden)
		}
	}
}

func TestJSONLines(t *testing.T) {
	var out bytes.Buffer
	term := terminal.New(at(terminal.JSON, strings.NewReader(""), &out))
	for _, r := range everything() {
		if _, err := term.Say(t.Context(), bot.Delivery{Reply: r, Key: "not part of it"}); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != len(everything()) {
		t.Fatalf("%d lines", len(lines))
	}
	for i, want := range map[int]string{
		1:  `{"kind":"final","text":"All done.\nReally."}`,
		3:  `{"kind":"ask","id":"q1","text":"Which?","choices":["red","green"]}`,
		5:  `{"kind":"decided","id":"c1","tool":"erase","decision":"approve","by":"terminal:ann"}`,
		9:  `{"kind":"steer","id":"m1","text":"blue","state":"seen","step":2}`,
		11: `{"kind":"waiting"}`,
		12: `{"kind":"settled","reason":"completed","steps":0,"tool_calls":0,"tokens_in":0,"tokens_out":0,"cost_usd":0}`,
	} {
		if lines[i] != want {
			t.Errorf("line %d is %s, want %s", i, lines[i], want)
		}
	}
}

// TestNothingSteersTheScreen writes out what a model or a file says to the terminal instead of to the person.
func TestNothingSteersTheScreen(t *testing.T) {
	evil := "a\x1b[2J\x1b]0;owned\x07b\x9bc\u009bd\re\x08f\u202eg\u2066h\u2028i\x00j"
	for _, kind := range []agent.Kind{agent.Final, agent.Progress, agent.Notify, agent.Notice, agent.Fault, agent.Ask, agent.Approval, agent.DecidedMark} {
		var out bytes.Buffer
		term := terminal.New(at(terminal.Typed, strings.NewReader(""), &out))
		r := agent.Reply{Kind: kind, Text: evil, Choices: []string{evil}, Decision: agent.Deny, Arguments: []byte(`{"x":"\u001b[2J"}`)}
		if _, err := term.Say(t.Context(), bot.Delivery{Reply: r}); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); strings.ContainsAny(got, "\x1b\x07\r\x08\x00\u009b\u202e\u2066\u2028") || !utf8.ValidString(got) {
			t.Errorf("%s: %q", kind, got)
		}
	}
	var out bytes.Buffer
	term := terminal.New(at(terminal.Typed, strings.NewReader(""), &out))
	plain := "👩‍👩‍👧 ❤️ می\u200cخواهم\tno-break\u00a0space\r\nnext"
	if _, err := term.Say(t.Context(), bot.Delivery{Reply: agent.Reply{Kind: agent.Final, Text: plain}}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != strings.ReplaceAll(plain, "\r\n", "\n")+"\n\n" {
		t.Errorf("shown as %q", got)
	}
}

// TestCardsAtTheStart shows again what waits, and takes a number for a choice of it.
func TestCardsAtTheStart(t *testing.T) {
	var out bytes.Buffer
	e := &ear{}
	c := at(terminal.Typed, strings.NewReader("1\n"), &out)
	c.Waiting = func(context.Context) ([]agent.Reply, error) {
		return []agent.Reply{everything()[4], everything()[3]}, nil
	}
	if err := terminal.New(c).Listen(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	if !strings.HasPrefix(got, "Nudge. Say something, or /help. End with Ctrl-D.\n? May I run erase?") || !strings.Contains(got, "? Which?\n  1) red") {
		t.Errorf("the start is %q", got)
	}
	if fmt.Sprint(e.texts()) != "[red]" {
		t.Errorf("heard %q", e.texts())
	}
	errDisk := errors.New("the disk is gone")
	c.Waiting = func(context.Context) ([]agent.Reply, error) { return nil, errDisk }
	if err := terminal.New(c).Listen(t.Context(), e); !errors.Is(err, errDisk) {
		t.Errorf("listen: %v", err)
	}
}

// TestListenEnds with its context, with an error of the input, of the receiver or of the output.
func TestListenEnds(t *testing.T) {
	silent, stillOpen := io.Pipe()
	defer func() { _ = stillOpen.Close() }()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := terminal.New(at(terminal.Typed, silent, io.Discard)).Listen(ctx, &ear{}); err != nil {
		t.Errorf("after its context: %v", err)
	}
	errInput := errors.New("the line is dead")
	broken, in := io.Pipe()
	_ = in.CloseWithError(errInput)
	if err := terminal.New(at(terminal.Piped, broken, io.Discard)).Listen(t.Context(), &ear{}); !errors.Is(err, errInput) {
		t.Errorf("after an error of the input: %v", err)
	}
	errFull := errors.New("the disk is full")
	if err := terminal.New(at(terminal.Piped, strings.NewReader("a\nb\n"), io.Discard)).Listen(t.Context(), &ear{err: errFull}); !errors.Is(err, errFull) {
		t.Errorf("after an error of the receiver: %v", err)
	}
	out := &screen{err: syscall.EPIPE}
	if err := terminal.New(at(terminal.Typed, strings.NewReader(""), out)).Listen(t.Context(), &ear{}); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("after an error of the output: %v", err)
	}
}

// TestClosedOutput ends a terminal that waits for input, and what it could not say is said by the next.
func TestClosedOutput(t *testing.T) {
	store, err := bolt.Open(filepath.Join(t.TempDir(), "nudge.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	out := &screen{err: syscall.EPIPE}
	fromPerson, in := io.Pipe()
	defer func() { _ = in.Close() }()
	hub := bot.NewHub(bot.Config{Store: store})
	ag := echoing(t, store, hub)
	served := make(chan error, 1)
	go func() { served <- hub.Serve(t.Context(), ag, terminal.New(at(terminal.JSON, fromPerson, out))) }()
	if _, err := io.WriteString(in, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-served; !errors.Is(err, syscall.EPIPE) {
		t.Errorf("serve: %v", err)
	}
	ag.Close(t.Context())
	var later bytes.Buffer
	if err := talk(t, store, at(terminal.Piped, strings.NewReader(""), &later)); err != nil || later.String() != "echo hello\n\n" {
		t.Errorf("the next terminal: %v, %q", err, later.String())
	}
}

// TestPipedTalk is a whole conversation, word for word.
func TestPipedTalk(t *testing.T) {
	store, err := bolt.Open(filepath.Join(t.TempDir(), "nudge.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	var out bytes.Buffer
	in := strings.NewReader("hello\n/model\nerase it\n/deny too risky\nchoose\n2\nstop\n")
	if err := talk(t, store, at(terminal.Piped, in, &out)); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	for _, d := range cards(t, got) {
		got = strings.ReplaceAll(got, d, "ID")
	}
	want, err := os.ReadFile("testdata/piped.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the conversation is\n%s\nwant\n%s", got, want)
	}
}

// cards are the ids on a screen, and the instants until which cards stay.
func cards(t *testing.T, screen string) (ids []string) {
	t.Helper()
	for line := range strings.Lines(screen) {
		for _, before := range []string{"/approve ", "/answer ", "decide until ", "messages, until "} {
			if _, after, found := strings.Cut(line, before); found {
				id, _, _ := strings.Cut(after, ".")
				if !strings.HasSuffix(before, "until ") {
					id, _, _ = strings.Cut(id, " ")
				}
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// talk lets a terminal talk until its input ends.
func talk(t *testing.T, store memory.Store, c terminal.Config) error {
	hub := bot.NewHub(bot.Config{Store: store, Model: "scripted"})
	ag := echoing(t, store, hub)
	defer ag.Close(t.Context())
	c.Rest = func(ctx context.Context) error {
		return errors.Join(ag.WaitIdle(ctx, nil), hub.Drain(ctx, nil))
	}
	return hub.Serve(t.Context(), ag, terminal.New(c))
}

// echoing is an agent that says again what was said, and can be made to ask.
func echoing(t *testing.T, store memory.Store, hub *bot.Hub) *agent.Agent {
	script := func(req model.Request) model.Answer {
		said := agenttest.LastUser(req)
		said = said[strings.LastIndexByte(said, '\n')+1:]
		for _, call := range []model.Call{agenttest.Call(1, "erase", `{"x":"notes"}`), agenttest.Call(1, "ask_person", `{"question":"Which?","choices":["red","green"]}`)} {
			if said != map[string]string{"erase": "erase it", "ask_person": "choose"}[call.Name] {
				continue
			}
			if result, done := agenttest.Results(req)[call.ID]; done {
				return agenttest.Say("then: " + result)
			}
			return agenttest.Do(call)
		}
		return agenttest.Say("echo " + said)
	}
	erase := agenttest.Tool("erase", agent.Effectful, agent.PolicyAsk, func(context.Context, agent.Invocation) (agent.Result, error) {
		return agent.Result{Text: "erased"}, nil
	})
	ag, err := agent.New(agent.Config{
		Store: store, Model: &agenttest.Model{T: t, Script: script}, Spec: agent.ModelSpec{MaxOutput: 1000}, Tools: []agent.Tool{erase},
		Outgoing: hub.Outgoing, Live: hub.Live,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := ag.Resume(t.Context(), func(string) bool { return true }); err != nil {
		t.Fatal(err)
	}
	return ag
}

func TestServes(t *testing.T) {
	c := at(terminal.Piped, strings.NewReader(""), io.Discard)
	c.Address = "terminal:local:dm:ann:work"
	term := terminal.New(c)
	for address, want := range map[string][2]bool{
		"terminal:local:dm:ann":       {true, false},
		"terminal:local:dm:ann:work":  {true, true},
		"terminal:local:dm:ann:other": {true, false},
		"terminal:local:dm:anna":      {false, false},
		"terminal:local:dm:bob":       {false, false},
		"web:local:dm:ann":            {false, false},
		"":                            {false, false},
	} {
		if term.Serves(address) != want[0] || term.Resides(address) != want[1] {
			t.Errorf("%q: serves %v, resides %v", address, term.Serves(address), term.Resides(address))
		}
	}
}

// TestZone takes the name that the environment gives, if there is such a zone.
func TestZone(t *testing.T) {
	for given, want := range map[string]string{"Europe/Berlin": "Europe/Berlin", ":Asia/Tokyo": "Asia/Tokyo", "UTC": "UTC"} {
		t.Setenv("TZ", given)
		if got := terminal.Zone(); got != want {
			t.Errorf("TZ=%s gives %s", given, got)
		}
	}
	for _, given := range []string{"", "Local", "Nowhere/Atall", "../etc"} {
		t.Setenv("TZ", given)
		if got := terminal.Zone(); got == "" || got == given || got == "Local" {
			t.Errorf("TZ=%q gives %q", given, got)
		}
	}
}
