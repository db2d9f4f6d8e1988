package bot

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"nudge/agent"
	"nudge/memory"
	"nudge/schedule"
)

// chatCommand is a word that is answered without the model.
type chatCommand struct {
	name, arguments, help string
	run                   func(h *Hub, ctx context.Context, e Event, rest string) (Admission, error)
}

// chatCommands are the words, in the order in which help lists them.
func chatCommands() []chatCommand {
	return []chatCommand{
		{"help", "", "lists these commands", (*Hub).help},
		{"stop", "", "stops what is being done; the word alone does too", func(h *Hub, ctx context.Context, e Event, _ string) (Admission, error) {
			return h.pass(ctx, e, agent.Message{Stop: true, Provenance: agent.Human})
		}},
		{"stop all", "", "for owners: stops everything and pauses every heartbeat, until `go on`", (*Hub).stopAll},
		{"go on", "", "for owners: lets the heartbeats go on", (*Hub).goOn},
		{"access", "[revoke ID]", "for owners: lists who is let in, or ends what a card has let in", (*Hub).access},
		{"approve", "[ID…] [always [any NAME…]]", "lets waiting calls run; with always, also the same call from now on; any NAME leaves open what the card says can be", verdict(agent.Approve)},
		{"deny", "[ID…] [reason]", "refuses waiting calls", verdict(agent.Deny)},
		{"edit", "ID {arguments}", "lets a waiting call run with other arguments", (*Hub).edit},
		{"answer", "[ID] text", "answers a question", verdict(agent.AnswerIt)},
		{"approvals", "[revoke ID|all]", "lists what waits for a decision and what you always allow, or ends that", (*Hub).approvals},
		{"new", "", "begins a fresh conversation", (*Hub).newSession},
		{"sessions", "[erase NUMBER]", "lists the conversations here, or erases one of them", (*Hub).sessions},
		{"resume", "NUMBER", "goes back to one of them", (*Hub).resumeSession},
		{"export", "", "shows all that is kept of this conversation", (*Hub).export},
		{"diary", "[search WORDS|edit ID TEXT|delete ID|export]", "shows what I remember of you", (*Hub).diary},
		{"remember", "TEXT", "notes something about you", (*Hub).remember},
		{"forget", "ID", "removes a note about you", (*Hub).forgetNote},
		{"heartbeats", "[why|pause|resume|run|delete NAME]", "lists what wakes me for you; tells why one did or did not; pauses it, lets it go on, runs it now, deletes it", (*Hub).heartbeats},
		{"useful", "[NAME]", "says that what a heartbeat told you last was useful", judgeBy(schedule.Useful)},
		{"less", "[NAME]", "asks for less of what a heartbeat told you last", judgeBy(schedule.Less)},
		{"snooze", "[1h|4h|tomorrow|off] [NAME]", "keeps everything, or one heartbeat, from speaking to you for a while", (*Hub).snooze},
		{"zone", "[NAME]", "says which time zone you are in, or sets it, as in Europe/Berlin", (*Hub).zone},
		{"link", "[new|CODE|remove ACCOUNT]", "makes several accounts of yours one person, or says which are", (*Hub).link},
		{"forget-me", "", "removes all that I keep of you, once you have said so twice", (*Hub).forgetMe},
		{"status", "", "says what is going on here", (*Hub).status},
		{"usage", "", "says what you have spent today", (*Hub).usage},
		{"model", "", "says which model answers", func(h *Hub, ctx context.Context, e Event, _ string) (Admission, error) {
			return h.answer(ctx, e, agent.Notice, "The model is "+h.Model+".")
		}},
	}
}

// IsCommand reports whether a text is a command, where commands are the word "nudge" and then their own, or the word that
// stops: then it is answered at once, and no turn begins with it. What is one only from an owner counts as one from anybody.
func IsCommand(text string) bool {
	text = strings.TrimSpace(text)
	_, _, ok := spokenCommand(text)
	return ok || strings.EqualFold(text, "stop") || ownersWords(text) != ""
}

// ownersWords is the command that a text alone is from an owner, who needs nothing before it there; "" for none.
func ownersWords(text string) string {
	for _, words := range []string{"stop all", "go on"} {
		if strings.EqualFold(text, words) {
			return words
		}
	}
	return ""
}

var commandWord = regexp.MustCompile(`^[a-z][a-z-]*$`)

// word is a command as it is typed in a conversation.
func (h *Hub) word(address, command string) string {
	return spelled(h.slash(address), command)
}

// spelled is a command as it is typed where [Abilities.Slash] is slash.
func spelled(slash, command string) string {
	if slash != "" {
		return slash + command
	}
	return "nudge " + command
}

// slash is what stands before a command in a conversation; "" where it is the word nudge.
func (h *Hub) slash(address string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if adapter := h.serves(address); adapter != nil {
		return adapter.Abilities().Slash
	}
	return "/"
}

// command reads a text as a command: its word and what stands behind it.
func (h *Hub) command(address, text string) (word, rest string, ok bool) {
	slash := h.slash(address)
	if slash == "" {
		return spokenCommand(text)
	}
	if text, ok = strings.CutPrefix(text, slash); !ok {
		return "", "", false
	}
	word, rest = cutWord(text)
	return word, rest, commandWord.MatchString(word)
}

// spokenCommand reads a command that is the word "nudge" and then its own. A sentence that begins so without naming a
// command is a sentence.
func spokenCommand(text string) (word, rest string, ok bool) {
	if first, after := cutWord(text); strings.EqualFold(first, "nudge") {
		word, rest = cutWord(after)
	}
	word = strings.ToLower(word)
	known := slices.ContainsFunc(chatCommands(), func(c chatCommand) bool {
		return c.name == word || c.name == word+" "+rest
	})
	return word, rest, commandWord.MatchString(word) && (known || rest == "")
}

// cutWord parts a text behind its first word.
func cutWord(text string) (word, rest string) {
	text = strings.TrimSpace(text)
	end := strings.IndexFunc(text, unicode.IsSpace)
	if end < 0 {
		return text, ""
	}
	return text[:end], strings.TrimSpace(text[end:])
}

// obey runs a command, or says that there is none of that name.
func (h *Hub) obey(ctx context.Context, e Event, word, rest string) (Admission, error) {
	if two := word + " " + rest; two == "stop all" || two == "go on" {
		word, rest = two, ""
	}
	for _, c := range chatCommands() {
		if c.name == word {
			return c.run(h, ctx, e, rest)
		}
	}
	return h.answer(ctx, e, agent.Fault, fmt.Sprintf("There is no command %q. %s lists those that there are.", word, h.word(e.Address, "help")))
}

func (h *Hub) help(ctx context.Context, e Event, _ string) (Admission, error) {
	var b strings.Builder
	b.WriteString("Say what you want in plain words. While I work, what you say corrects me. Commands:")
	for _, c := range chatCommands() {
		fmt.Fprintf(&b, "\n%s - %s", h.word(e.Address, strings.TrimSpace(c.name+" "+c.arguments)), c.help)
	}
	return h.answer(ctx, e, agent.Notice, b.String())
}

func (h *Hub) status(ctx context.Context, e Event, _ string) (Admission, error) {
	return h.answerWith(ctx, e, func(tx memory.Tx) (agent.Kind, string, error) {
		session, err := agent.SessionOf(tx, e.Address)
		if err != nil {
			return "", "", err
		}
		turn, err := agent.OpenTurn(tx, session)
		if err != nil {
			return "", "", err
		}
		waiting := 0
		err = agent.WaitingCards(tx, func(w agent.WaitingCard) error {
			may, err := h.agent.MayDecide(tx, w, e.From.ID)
			if may && !w.Reply.IsContinuation() {
				waiting++
			}
			return err
		})
		going := "Nothing is being done here."
		if turn != "" {
			going = "Turn " + turn + " is under way."
		}
		return agent.Notice, fmt.Sprintf("%s Waiting for you: %s. The model is %s. The session is %s.", going, schedule.Counted(waiting, "card"), h.Model, session), err
	})
}

func (h *Hub) usage(ctx context.Context, e Event, _ string) (Admission, error) {
	return h.answerAlone(ctx, e, func(tx memory.Tx) (agent.Kind, string, error) {
		spent, err := agent.SpentToday(tx, e.From)
		return agent.Notice, fmt.Sprintf("You have spent $%.4f today.", spent.USD()), err
	})
}
