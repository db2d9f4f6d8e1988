package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
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
		{"approve", "[ID…] [always]", "lets waiting calls run; with always, also the same call from now on", verdict(agent.Approve)},
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

// verdict makes the command that decides a card. Without an id it is the one card that waits for the person.
func verdict(v agent.Verdict) func(*Hub, context.Context, Event, string) (Admission, error) {
	return func(h *Hub, ctx context.Context, e Event, rest string) (Admission, error) {
		if ids, err := h.several(ctx, rest); err != nil || ids != nil {
			return h.decideAll(ctx, e, v, ids, err)
		}
		id, text := cutWord(rest)
		always := v == agent.Approve && strings.EqualFold(rest, onceAndAlways)
		if always {
			id, text = "", rest
		}
		waiting, known, err := h.waitingFor(ctx, e.From.ID, id)
		if err != nil {
			return 0, err
		}
		switch {
		case known:
		case len(waiting) == 1 && (id == "" || v != agent.Approve):
			id, text = waiting[0], rest
		case id == "" && len(waiting) == 0:
			return h.answer(ctx, e, agent.Fault, NothingWaits)
		case id == "":
			return h.answer(ctx, e, agent.Fault, fmt.Sprintf("Say which card: %s ID. %s lists those that wait.", h.word(e.Address, string(v)), h.word(e.Address, "approvals")))
		}
		if v == agent.AnswerIt && text == "" {
			return h.answer(ctx, e, agent.Fault, fmt.Sprintf("Say the answer too: %s %s your words.", h.word(e.Address, "answer"), id))
		}
		d := &agent.Decision{Card: id, Verdict: v, Text: text}
		if v == agent.Approve && strings.EqualFold(text, onceAndAlways) {
			d.Verdict, d.Text = agent.Always, ""
		}
		return h.decide(ctx, e, d)
	}
}

// several are the cards that words name, if they name more than one and nothing else.
func (h *Hub) several(ctx context.Context, words string) (ids []string, err error) {
	ids = strings.Fields(words)
	if len(ids) < 2 || len(ids) > mostAtOnce {
		return nil, nil
	}
	err = h.Store.View(ctx, func(tx memory.Tx) error {
		for _, id := range ids {
			if _, err := agent.FindCard(tx, id); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, agent.ErrUnknownCard) {
		return nil, nil
	}
	return ids, err
}

// mostAtOnce is how many cards one command decides.
const mostAtOnce = 50

// decideAll takes the same decision about several cards, each as if it had been made alone.
func (h *Hub) decideAll(ctx context.Context, e Event, v agent.Verdict, ids []string, err error) (Admission, error) {
	if err != nil {
		return 0, err
	}
	if v == agent.AnswerIt {
		return h.answer(ctx, e, agent.Fault, "Questions are answered one at a time; nothing was decided.")
	}
	all := Repeat
	for _, id := range ids {
		one := e
		one.Keys = nil
		for _, key := range e.Keys {
			one.Keys = append(one.Keys, key+"/"+id)
		}
		admission, err := h.decide(ctx, one, &agent.Decision{Card: id, Verdict: v})
		if err != nil {
			return 0, err // what was decided is known again when the event comes once more
		}
		if admission == Taken {
			all = Taken
		}
	}
	return all, nil
}

// decide takes a decision about a card that was typed.
func (h *Hub) decide(ctx context.Context, e Event, d *agent.Decision) (Admission, error) {
	if isRequest(d.Card) {
		e.Click = d
		return h.decideRequest(ctx, e)
	}
	return h.pass(ctx, e, agent.Message{Provenance: agent.Decided, Decision: d})
}

// onceAndAlways, behind a card's id, lets the same call run from now on as well.
const onceAndAlways = "always"

// waitingFor looks for a card by its id; when there is none, for the cards that a person may decide.
func (h *Hub) waitingFor(ctx context.Context, person agent.PersonID, id string) (waiting []string, known bool, err error) {
	err = h.Store.View(ctx, func(tx memory.Tx) error {
		waiting, known = nil, false
		if isRequest(id) {
			known = true
			return nil
		}
		if id != "" && len(id) <= memory.MaxID {
			if _, err := agent.FindCard(tx, id); err == nil {
				known = true
				return nil
			} else if !errors.Is(err, agent.ErrUnknownCard) {
				return err
			}
		}
		var offers []string // that a turn may go on is meant only where nothing else waits
		err := agent.WaitingCards(tx, func(w agent.WaitingCard) error {
			switch {
			case !h.agent.MayDecide(w, person):
			case w.Reply.IsContinuation():
				offers = append(offers, w.Reply.ID)
			default:
				waiting = append(waiting, w.Reply.ID)
			}
			return nil
		})
		own, err2 := Requests(tx, person, h.agent.Owns(person), "")
		if err = errors.Join(err, err2); err != nil {
			return err
		}
		for _, q := range own {
			waiting = append(waiting, q.ID)
		}
		if len(waiting) == 0 {
			waiting = offers
		}
		return nil
	})
	return waiting, known, err
}

func (h *Hub) edit(ctx context.Context, e Event, rest string) (Admission, error) {
	id, arguments := cutWord(rest)
	if id == "" || arguments == "" {
		return h.answer(ctx, e, agent.Fault, fmt.Sprintf("Say which card and its new arguments: %s ID {\"path\": \"…\"}.", h.word(e.Address, "edit")))
	}
	if !json.Valid([]byte(arguments)) {
		return h.answer(ctx, e, agent.Fault, "The arguments are not JSON, so nothing was decided. Write them as {\"name\": \"value\"}.")
	}
	return h.pass(ctx, e, agent.Message{
		Provenance: agent.Decided, Decision: &agent.Decision{Card: id, Verdict: agent.Edit, Arguments: json.RawMessage(arguments)},
	})
}

func (h *Hub) approvals(ctx context.Context, e Event, rest string) (Admission, error) {
	if word, id := cutWord(rest); strings.EqualFold(word, "revoke") {
		return h.revoke(ctx, e, id)
	}
	return h.answerWith(ctx, e, func(tx memory.Tx) (agent.Kind, string, error) {
		var lines []string
		slash := h.slash(e.Address)
		elsewhere := 0 // cards that are not shown, since others read along
		err := agent.WaitingCards(tx, func(w agent.WaitingCard) error {
			switch {
			case w.Person != e.From.ID && !h.agent.MayDecide(w, e.From.ID):
			case w.Conversation != e.Address && !agent.Direct(e.Address):
				elsewhere++
			default:
				lines = append(lines, CardText(w.Reply, slash))
			}
			return nil
		})
		if err != nil {
			return "", "", err
		}
		own, err := Requests(tx, e.From.ID, h.agent.Owns(e.From.ID), e.Address)
		if err != nil {
			return "", "", err
		}
		for _, q := range own {
			if agent.Direct(e.Address) {
				lines = append(lines, CardText(q, slash))
			} else {
				elsewhere++
			}
		}
		if elsewhere > 0 {
			lines = append(lines, fmt.Sprintf("Waiting elsewhere: %s. Ask me in direct messages which.", schedule.Counted(elsewhere, "card")))
		}
		if lines == nil {
			lines = []string{NothingWaits}
		}
		rules, err := h.alwaysAllowed(tx, e)
		if rules != "" {
			lines = append(lines, rules)
		}
		return agent.Notice, strings.Join(lines, "\n\n"), err
	})
}

// alwaysAllowed says what a person always allows. Where others read along it says only how much that is.
func (h *Hub) alwaysAllowed(tx memory.Tx, e Event) (string, error) {
	rules, err := agent.Rules(tx, e.From.ID, time.Now())
	if err != nil || len(rules) == 0 {
		return "", err
	}
	if !agent.Direct(e.Address) {
		return fmt.Sprintf("You always allow %s. Ask me in direct messages which.", schedule.Counted(len(rules), "call")), nil
	}
	lines := []string{"You always allow, in direct messages:"}
	for _, rule := range rules {
		lines = append(lines, RuleText(rule))
	}
	return strings.Join(append(lines, h.word(e.Address, "approvals revoke ID")+" ends one of these."), "\n"), nil
}

// revoke ends one of a person's rules, or all of them.
func (h *Hub) revoke(ctx context.Context, e Event, id string) (Admission, error) {
	if id == "" {
		return h.answer(ctx, e, agent.Fault, fmt.Sprintf("Say which: %s. %s lists them.", h.word(e.Address, "approvals revoke ID"), h.word(e.Address, "approvals")))
	}
	which := id
	if strings.EqualFold(id, "all") {
		which = ""
	}
	return h.answerWith(ctx, e, func(tx memory.Tx) (agent.Kind, string, error) {
		ended, err := agent.RevokeRules(tx, e.From.ID, which)
		if ended == 0 {
			return agent.Fault, fmt.Sprintf("You have no such rule. %s lists those that you have.", h.word(e.Address, "approvals")), err
		}
		return agent.Notice, fmt.Sprintf("Revoked: %s. I ask again from now on.", schedule.Counted(ended, "rule")), err
	})
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
			if h.agent.MayDecide(w, e.From.ID) && !w.Reply.IsContinuation() {
				waiting++
			}
			return nil
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

func zoneOf(p agent.Person) *time.Location {
	zone, err := time.LoadLocation(p.Zone)
	if err != nil {
		return time.UTC
	}
	return zone
}

// pausedByAll is why heartbeats are paused by `stop all`, so that `go on` resumes those and no others.
const pausedByAll = "stop all"

// stopAll stops every turn and pauses every heartbeat, in one transaction, so that it holds after a restart too.
func (h *Hub) stopAll(ctx context.Context, e Event, _ string) (Admission, error) {
	var turns map[string]string
	admission, err := h.ofOwners(ctx, e, func(tx memory.Tx) (string, error) {
		var err error
		if turns, err = agent.StopAll(tx, e.From, e.At); err != nil {
			return "", err
		}
		beats, err := schedule.List(tx)
		if err != nil {
			return "", err
		}
		paused := 0
		for _, b := range beats {
			if b.Paused != "" || b.Ended != "" {
				continue
			}
			if err := schedule.Pause(tx, b.Name, pausedByAll); err != nil {
				return "", err
			}
			paused++
		}
		return fmt.Sprintf("Stopped: %s. Paused: %s. `go on` lets the heartbeats go on.", schedule.Counted(len(turns), "turn"), schedule.Counted(paused, "heartbeat")), nil
	})
	if err == nil {
		h.agent.Interrupt(turns)
	}
	return admission, err
}

func (h *Hub) goOn(ctx context.Context, e Event, _ string) (Admission, error) {
	admission, err := h.ofOwners(ctx, e, func(tx memory.Tx) (string, error) {
		beats, err := schedule.List(tx)
		if err != nil {
			return "", err
		}
		resumed := 0
		for _, b := range beats {
			if b.Paused != pausedByAll {
				continue
			}
			if err := schedule.Resume(tx, b.Name, time.Now()); err != nil {
				return "", err
			}
			resumed++
		}
		return fmt.Sprintf("Going on: %s.", schedule.Counted(resumed, "heartbeat")), nil
	})
	if h.Rescheduled != nil {
		h.Rescheduled()
	}
	return admission, err
}

// ofOwners does something that only owners may, and answers with its text.
func (h *Hub) ofOwners(ctx context.Context, e Event, do func(memory.Tx) (string, error)) (Admission, error) {
	return h.answerWith(ctx, e, func(tx memory.Tx) (agent.Kind, string, error) {
		if !h.agent.Owns(e.From.ID) {
			return agent.Fault, "Only an owner may do that.", nil
		}
		text, err := do(tx)
		return agent.Notice, text, err
	})
}
