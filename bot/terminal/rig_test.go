package terminal_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/bottest"
	"nudge/bot/terminal"
	"nudge/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ann = agent.Person{ID: "terminal:ann", Name: "ann", Zone: "Europe/Berlin"}

// rig is a script that speaks lines of text and reads lines of JSON. What it has read stays when the program restarts.
type rig struct {
	*testing.T
	in   *io.PipeWriter // of the adapter that listens
	ends []func()

	mu    sync.Mutex
	lines []bottest.Line
	marks map[string]string // message → the state of its receipt
}

func TestContract(t *testing.T) {
	bottest.Run(t, func(t *testing.T) bottest.Rig {
		r := &rig{T: t, marks: map[string]string{}}
		t.Cleanup(r.end)
		return r
	})
}

func (r *rig) Judge(from agent.Person, at bottest.Place, heartbeat string, f bot.Feedback) {
	r.Say(from, at, "/"+bottest.Judgement(heartbeat, f))
}

func (r *rig) People() bottest.People { return bottest.People{Ann: ann} }

// Adapter starts a program with pipes of its own.
func (r *rig) Adapter(p bottest.Program) bot.Adapter {
	r.end()
	fromScript, in := io.Pipe()
	out, toScript := io.Pipe()
	r.in = in
	read := make(chan struct{})
	go func() {
		defer close(read)
		r.read(out)
	}()
	r.ends = []func(){func() {
		_, _, _, _ = in.Close(), fromScript.Close(), toScript.Close(), out.Close()
		<-read
	}}
	return terminal.New(terminal.Config{
		In: fromScript, Out: toScript, Manner: terminal.JSON, Person: ann, Address: ann.ID.Home(), Rest: p.Rest,
		Waiting: func(ctx context.Context) ([]agent.Reply, error) { return waiting(ctx, p.Store) },
	})
}

func (r *rig) end() {
	for _, end := range r.ends {
		end()
	}
	r.ends = nil
}

// waiting are the cards that wait for Ann.
func waiting(ctx context.Context, store memory.Store) (cards []agent.Reply, err error) {
	err = store.View(ctx, func(tx memory.Tx) error {
		cards = nil
		return agent.WaitingCards(tx, func(w agent.WaitingCard) error {
			cards = append(cards, w.Reply)
			return nil
		})
	})
	return cards, err
}

func (r *rig) read(out io.Reader) {
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			r.take(line)
		}
		if err != nil {
			return
		}
	}
}

// take keeps what a line of JSON says.
func (r *rig) take(line string) {
	var said agent.Reply
	if err := json.Unmarshal([]byte(line), &said); err != nil {
		r.Errorf("not a line of JSON: %q: %v", line, err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch said.Kind {
	case agent.Approval, agent.Ask:
		if r.card(said.ID) == nil {
			r.lines = append(r.lines, bottest.Line{Text: bot.CardText(said, "/"), Card: &bottest.Card{ID: said.ID, Open: true}})
		}
	case agent.Notify:
		r.lines = append(r.lines, bottest.Line{Text: said.Text, Card: &bottest.Card{ID: said.ID, Open: true}})
	case agent.DecidedMark:
		if card := r.card(said.ID); card != nil {
			card.Open, card.Outcome = false, bot.DecidedText(said)
		}
	case agent.SteerMark:
		r.marks[said.Text] = said.State
	case agent.WaitingMark, agent.SettledMark:
	default:
		r.lines = append(r.lines, bottest.Line{Text: said.Text})
	}
}

func (r *rig) card(id string) *bottest.Card {
	for _, l := range r.lines {
		if l.Card != nil && l.Card.ID == id {
			return l.Card
		}
	}
	return nil
}

// Say writes a line. A script knows its message by its words.
func (r *rig) Say(_ agent.Person, _ bottest.Place, text string) string {
	// A line ends a message, so a script says on one line what has several.
	if _, err := fmt.Fprintln(r.in, strings.ReplaceAll(text, "\n", " ")); err != nil {
		r.Errorf("say %q: %v", text, err)
	}
	return text
}

func (r *rig) Press(from agent.Person, at bottest.Place, d agent.Decision) {
	words := d.Text
	switch d.Verdict {
	case agent.Edit:
		words = string(d.Arguments)
	case agent.Always:
		d.Verdict, words = agent.Approve, bottest.AlwaysWords(d)
	}
	r.Say(from, at, strings.TrimSpace(fmt.Sprintf("/%s %s %s", d.Verdict, d.Card, words)))
}

func (r *rig) PressAll(from agent.Person, at bottest.Place, cards []string, verdict agent.Verdict) {
	r.Say(from, at, fmt.Sprintf("/%s %s", verdict, strings.Join(cards, " ")))
}

func (r *rig) Stop(from agent.Person, at bottest.Place) { r.Say(from, at, "stop") }

func (r *rig) Shown(agent.Person, bottest.Place) []bottest.Line {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := make([]bottest.Line, len(r.lines))
	for i, l := range r.lines {
		if l.Card != nil {
			card := *l.Card
			l.Card = &card
		}
		lines[i] = l
	}
	return lines
}

func (r *rig) Receipt(message string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.marks[message]
}
