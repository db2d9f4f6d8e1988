// Package terminal is the adapter of the command `nudge chat`: one person, one conversation, lines in and lines out.
//
// There are three manners. On a terminal a person types whenever they like. Piped, each line is one message and the next
// is read when its turn is settled or waits. As JSON, lines are read at once and everything that happens is a line of
// JSON, for scripts; its fields are those of [agent.Reply].
package terminal

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/markdown"
)

// Manner is how lines are read and written.
type Manner int

// The manners.
const (
	Typed Manner = iota // a person at a terminal
	Piped               // a line at a time
	JSON                // all at once, lines of JSON out
)

// maxLine is the longest line in bytes that is taken as one message.
const maxLine = 1 << 20

// Config is what a Terminal is made of.
type Config struct {
	In     io.Reader
	Out    io.Writer
	Manner Manner
	Person agent.Person
	// Address is the conversation. Others of the same person's are spoken in too.
	Address string
	// Rest returns when nothing runs and everything has been said.
	Rest func(ctx context.Context) error
	// Waiting are the cards that are shown at the start.
	Waiting func(ctx context.Context) ([]agent.Reply, error)
	// Color is true when the output can show it.
	Color bool
}

// Terminal is the adapter.
type Terminal struct {
	Config
	prefix string // of messages' ids and keys: no two runs of the program share them

	mu      sync.Mutex // guards choices
	choices []string   // of the last question shown

	// A write may block for as long as nobody reads; hearing must go on meanwhile.
	out    sync.Mutex // guards Out and failed
	failed error      // of the first write that failed

	broken chan struct{} // closed when a write has failed
}

var _ bot.Adapter = (*Terminal)(nil)

// New returns a terminal that does nothing yet.
func New(c Config) *Terminal {
	return &Terminal{
		Config: c, prefix: "terminal-" + strconv.FormatInt(time.Now().UnixNano(), 36) + "-", broken: make(chan struct{}),
	}
}

// Platform is "terminal".
func (t *Terminal) Platform() string { return "terminal" }

// Serves is true for every direct conversation of the person.
func (t *Terminal) Serves(address string) bool {
	home := t.Person.ID.Home()
	return address == t.Address || address == home || strings.HasPrefix(address, home+":")
}

// Resides is true for the conversation that is held here.
func (t *Terminal) Resides(address string) bool { return address == t.Address }

// Abilities says that a terminal shows plain text of any length.
func (t *Terminal) Abilities() bot.Abilities { return bot.Abilities{Slash: "/"} }

// Listen reads lines until the input or ctx ends, or the output takes nothing more, which is an error. After the
// input's end it waits until nothing runs.
func (t *Terminal) Listen(ctx context.Context, in bot.Receiver) error {
	if err := t.start(ctx); err != nil {
		return err
	}
	lines := make(chan string)
	ended := make(chan error, 1)
	// A read of a terminal cannot be cut short, so it has a goroutine of its own, which the program's end ends.
	go func() { ended <- readLines(ctx, t.In, lines) }()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-t.broken:
			return t.failure()
		case line := <-lines:
			if err := t.hear(ctx, in, line, n); err != nil {
				return err
			}
		case err := <-ended:
			if err != nil && !errors.Is(err, io.EOF) {
				return fmt.Errorf("read the input: %w", err)
			}
			return errors.Join(t.rest(ctx), t.failure())
		}
	}
}

// start shows what waits for the person.
func (t *Terminal) start(ctx context.Context) error {
	if t.Manner == Typed {
		t.print("Nudge. Say something, or /help. End with Ctrl-D.\n")
	}
	if t.Waiting == nil {
		return nil
	}
	cards, err := t.Waiting(ctx)
	if err != nil {
		return fmt.Errorf("look for cards that wait: %w", err)
	}
	for _, card := range cards {
		if _, err := t.Say(ctx, bot.Delivery{Reply: card}); err != nil {
			return err
		}
	}
	return nil
}

func (t *Terminal) rest(ctx context.Context) error {
	if err := t.Rest(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// hear gives one line to the agent.
func (t *Terminal) hear(ctx context.Context, in bot.Receiver, line string, n int) error {
	line = strings.TrimRight(line, "\r\n")
	if strings.TrimSpace(line) == "" {
		return nil
	}
	id := t.prefix + strconv.Itoa(n)
	_, err := in.Receive(ctx, bot.Event{
		Keys: []string{id}, From: t.Person, Address: t.Address, ID: id, At: time.Now(), Text: t.chosen(line),
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	if t.Manner == Piped {
		return t.rest(ctx)
	}
	return nil
}

// chosen is the choice that a number stands for, when the last thing asked had choices.
func (t *Terminal) chosen(line string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := strconv.Atoi(strings.TrimSpace(line))
	choices := t.choices
	t.choices = nil
	if err != nil || t.Manner == JSON || n < 1 || n > len(choices) {
		return line
	}
	return choices[n-1]
}

// readLines sends each line of a reader. A line that is too long is sent in pieces.
func readLines(ctx context.Context, from io.Reader, lines chan<- string) error {
	reader := bufio.NewReaderSize(from, 64<<10)
	var line []byte
	for {
		piece, err := reader.ReadSlice('\n')
		line = append(line, piece...)
		full := errors.Is(err, bufio.ErrBufferFull)
		if full && len(line) < maxLine {
			continue
		}
		end := len(line)
		if full {
			end, err = wholeRunes(line), nil
		}
		if end > 0 {
			select {
			case lines <- string(line[:end]):
			case <-ctx.Done():
				return nil
			}
			line = append(line[:0], line[end:]...)
		}
		if err != nil {
			return err
		}
	}
}

// wholeRunes is how much of a text can be cut off without cutting through a character.
func wholeRunes(text []byte) int {
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if start := len(text) - back; utf8.RuneStart(text[start]) {
			if utf8.FullRune(text[start:]) {
				return len(text)
			}
			return start
		}
	}
	return len(text)
}

// Say writes a reply.
func (t *Terminal) Say(_ context.Context, d bot.Delivery) (string, error) {
	r := d.Reply
	text := ""
	if t.Manner == JSON {
		var line bytes.Buffer
		encoder := json.NewEncoder(&line)
		encoder.SetEscapeHTML(false) // a terminal is no page
		if err := encoder.Encode(r); err != nil {
			return "", fmt.Errorf("encode a %s: %w", r.Kind, err)
		}
		text = line.String()
	} else {
		text = t.render(unlinked(r))
	}
	t.mu.Lock()
	if r.Kind == agent.Ask {
		t.choices = r.Choices
	}
	t.mu.Unlock()
	if err := t.print(text); err != nil {
		return "", &bot.SendError{Closed: true, Err: err}
	}
	return "", nil
}

func (t *Terminal) print(text string) error {
	t.out.Lock()
	defer t.out.Unlock()
	if t.failed == nil && text != "" {
		if _, t.failed = io.WriteString(t.Out, text); t.failed != nil {
			close(t.broken)
		}
	}
	return t.failed
}

// failure says what is wrong with the output, if anything is.
func (t *Terminal) failure() error {
	t.out.Lock()
	defer t.out.Unlock()
	if t.failed == nil {
		return nil
	}
	return fmt.Errorf("write the output: %w", t.failed)
}

// The colours of kinds, as terminal sequences.
const (
	dim    = "\x1b[2m"
	bold   = "\x1b[1m"
	yellow = "\x1b[33m"
	red    = "\x1b[31m"
)

// render is a reply as a person reads it; marks that say nothing to them are empty.
func (t *Terminal) render(r agent.Reply) string {
	text := printable(r.Text)
	switch r.Kind {
	case agent.Final:
		return text + "\n\n"
	case agent.Progress:
		return t.paint(dim, "  · "+strings.ReplaceAll(text, "\n", "\n    ")) + "\n"
	case agent.Notify:
		if r.Heartbeat != "" {
			text = r.Heartbeat + ": " + text
		}
		text = t.paint(bold, "♦ "+text) + "\n"
		if r.TakesFeedback() {
			text += t.paint(dim, "  "+bot.FeedbackHint(r, "/")) + "\n"
		}
		return text + "\n"
	case agent.Ask, agent.Approval:
		return t.paint(yellow, "? "+bot.CardText(r, "/")) + "\n\n"
	case agent.Notice:
		if r.IsCard() {
			text = bot.CardText(r, "/")
		}
		return t.paint(dim, text) + "\n\n"
	case agent.Fault:
		return t.paint(red, text) + "\n\n"
	case agent.DecidedMark:
		return t.paint(dim, "  "+bot.DecidedText(r)) + "\n"
	case agent.SteerMark:
		switch r.State {
		case agent.Stored:
			return t.paint(dim, "  (noted)") + "\n"
		case agent.SeenAt:
			return t.paint(dim, fmt.Sprintf("  (seen at step %d)", r.Step)) + "\n"
		case agent.NextTurn:
			return t.paint(dim, "  (taken up next)") + "\n"
		}
	}
	return ""
}

// unlinked is a reply of which a terminal is to make no links, which it would of addresses wherever they stand. What a call would
// run with is shown as it is.
func unlinked(r agent.Reply) agent.Reply {
	if !r.Unlinked {
		return r
	}
	r.Text, r.Told, r.Why, r.Choices = markdown.Defanged(r.Text), markdown.Defanged(r.Told), markdown.Defanged(r.Why), slices.Clone(r.Choices)
	for i, choice := range r.Choices {
		r.Choices[i] = markdown.Defanged(choice)
	}
	return r
}

// Steers reports whether a character would steer a terminal or turn the direction of writing.
func Steers(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp))
}

// printable writes out what steers. What joins and shapes letters stays: the text is for reading, not for a decision.
func printable(text string) string {
	var b strings.Builder
	for _, r := range strings.ReplaceAll(text, "\r\n", "\n") {
		if Steers(r) {
			fmt.Fprintf(&b, "\\u{%X}", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func (t *Terminal) paint(color, text string) string {
	if !t.Color {
		return text
	}
	return color + text + "\x1b[0m"
}
