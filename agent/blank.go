package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"nudge/memory"
)

const (
	removedWords = "[removed: this person asked to be forgotten]"
	removedMark  = "[removed]"
	// What was read of theirs, and what the model made of it, may be in any words.
	removedResult  = "[removed: what was read here was of a person who asked to be forgotten]"
	removedAnswer  = "[removed: this was said to a person who asked to be forgotten]"
	removedSummary = "[A summary of what was said before stood here. It was removed, since somebody whose words were in it asked to be forgotten.]"
	// quoted is how many bytes words have at least that are looked for wherever somebody may have quoted them. Shorter ones
	// stand everywhere.
	quoted = 12
)

// blank takes the person's words out of a session that is not theirs alone. The lines stay, with their numbers and times.
func (r *forgetting) blank(session string) error {
	b := blanking{
		forgetting: r, names: map[string]bool{}, others: map[string]bool{}, open: map[string]*cardEntry{}, turns: map[string]bool{}, cards: map[string]bool{},
	}
	lines, err := b.read(session)
	if err != nil {
		return err
	}
	for i, line := range lines {
		if lines[i], err = b.line(line); err != nil {
			return err
		}
		if string(lines[i].Data) != string(line.Data) {
			r.of.Blanked++
		}
	}
	lines, err = b.withdraw(session, lines)
	if err != nil {
		return err
	}
	if _, err := r.tx.Journal().Erase(session); err != nil {
		return err
	}
	if len(lines) > 0 {
		if _, err := r.tx.Journal().Append(session, lines...); err != nil {
			return err
		}
	}
	r.of.Shared++
	return errors.Join(r.tx.Table(tableCheckpoints).Delete(session), r.mail(session), b.files(session), b.parcels(session))
}

// blanking is the blanking of one shared session.
type blanking struct {
	*forgetting
	names    map[string]bool // by which they went there
	others   map[string]bool // and others did
	words    []string        // that they said, longest first
	marks    []string        // in their words, that tell somebody or something apart: numbers, addresses, names with digits
	attached []string        // ids of files
	turns    map[string]bool // that were theirs
	cards    map[string]bool // that those turns asked
	private  []string        // lines of what was read of theirs, to be looked for in what the model said later
	quotes   *strings.Replacer
	saved    bool // something was read of theirs, of which the whole may be saved
	open     map[string]*cardEntry
}

// read reads a session's journal, and learns from it what to look for.
func (b *blanking) read(session string) (lines []memory.Entry, err error) {
	for _, id := range b.Accounts {
		row, err := personOf(b.tx, id)
		if err != nil {
			return nil, err
		}
		if row.Name != "" {
			b.names[row.Name] = true
		}
	}
	err = b.tx.Journal().Read(session, 0, func(line memory.Entry) error {
		lines = append(lines, line)
		return b.meet(line)
	})
	for _, line := range lines {
		if err == nil {
			err = b.learn(line) // once all names are known
		}
	}
	slices.SortFunc(b.words, func(x, y string) int { return len(y) - len(x) })
	b.marks = marksIn(b.words)
	slices.SortFunc(b.private, func(x, y string) int { return cmp.Or(len(y)-len(x), strings.Compare(x, y)) })
	var pairs []string
	for _, line := range slices.Compact(b.private) {
		pairs = append(pairs, line, removedMark)
	}
	b.quotes = strings.NewReplacer(pairs...)
	return lines, err
}

func (b *blanking) theirs(id PersonID) bool { return slices.Contains(b.Accounts, id) }

// meet notes by which names people went.
func (b *blanking) meet(line memory.Entry) error {
	var id PersonID
	name := ""
	e, err := decode(line)
	switch e := e.(type) {
	case *turnEntry:
		id, name = e.Person.ID, e.Person.Name
		b.turns[e.Turn] = b.theirs(id)
	case *cardEntry:
		b.cards[e.Card] = b.theirs(e.Asked)
	case *decidedEntry:
		id, name = e.By, e.Name
	}
	switch {
	case name == "":
	case b.theirs(id):
		b.names[name] = true
	default:
		b.others[name] = true
	}
	return err
}

// learn notes what they said, what they attached, and which cards of theirs wait.
func (b *blanking) learn(line memory.Entry) error {
	e, err := decode(line)
	switch e := e.(type) {
	case *messageEntry:
		b.words = append(b.words, b.saidIn(e)...)
		if b.theirs(e.From) {
			for _, f := range e.Files {
				b.attached = append(b.attached, f.ID)
				b.words = append(b.words, f.Name)
			}
		}
	case *modelAskedEntry:
		if b.turns[e.Turn] && e.Notes {
			b.reads(e.Tail)
		}
	case *toolResultEntry:
		if b.turns[e.Turn] && (e.Origin.Private || e.Tool == planTool) {
			b.reads(e.Text)
		}
	case *cardEntry:
		if b.theirs(e.Asked) {
			b.open[e.Card] = e
		}
	case *decidedEntry:
		delete(b.open, e.Card)
		if b.theirs(e.By) {
			b.words = append(b.words, e.Text)
			for _, owed := range e.Owed {
				b.words = append(b.words, owed.Text, owed.journaled())
			}
		}
	}
	return err
}

// reads notes what was read of theirs. Short lines stand everywhere.
func (b *blanking) reads(text string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); len(line) >= quoted {
			b.private = append(b.private, line)
		}
	}
}

// saidIn is what they said in a message, in which others may have spoken as well: each after their name, if that is known. Where
// it cannot be told who of them said something, it counts as theirs.
func (b *blanking) saidIn(e *messageEntry) (said []string) {
	if e.Provenance != Human {
		return nil
	}
	text := e.undated()
	own := b.theirs(e.From)
	speaks := own
	for _, part := range strings.Split(text, "\n\n") {
		switch speaker, rest, named := strings.Cut(part, ": "); {
		case named && b.names[speaker]:
			speaks, part = true, rest
		case named && b.others[speaker]:
			speaks = false
		}
		if speaks {
			said = append(said, part)
		}
	}
	if own && len(e.IDs) < 2 {
		said = append(said, text)
	}
	for _, owed := range e.Owed {
		if slices.ContainsFunc(said, func(s string) bool {
			return strings.Contains(owed.journaled(), s) || strings.Contains(s, owed.journaled())
		}) {
			said = append(said, owed.Text, owed.journaled())
		}
	}
	return said
}

// without is a text with their words taken out. Short ones count only where they are all that is said, or its end.
func (b *blanking) without(text string) string {
	for _, words := range b.words {
		switch {
		case strings.TrimSpace(words) == "":
		case text == words:
			return removedWords
		case len(words) >= quoted:
			text = strings.ReplaceAll(text, words, removedWords)
		case strings.HasSuffix(text, ": "+words):
			text = strings.TrimSuffix(text, words) + removedWords
		}
	}
	return b.nameless(text)
}

// mark is how what tells somebody or something apart is written.
var mark = regexp.MustCompile(`[\pL\pN][\pL\pN_.@+:/-]{4,}[\pL\pN]`)

// marksIn are the marks in words, longest first. Plain words are none.
func marksIn(words []string) (marks []string) {
	for _, text := range words {
		for _, m := range mark.FindAllString(text, -1) {
			if strings.ContainsAny(m, "@0123456789") {
				marks = append(marks, m)
			}
		}
	}
	slices.SortFunc(marks, func(x, y string) int { return cmp.Or(len(y)-len(x), strings.Compare(x, y)) })
	return slices.Compact(marks)
}

// derived is without for what was made of what they said: there not even a mark may stand.
func (b *blanking) derived(text string) string {
	text = b.without(text)
	for _, m := range b.marks {
		text = strings.ReplaceAll(text, m, removedMark)
	}
	if b.quotes != nil {
		text = b.quotes.Replace(text)
	}
	return text
}

// nameless is a text without the name before removed words.
func (b *blanking) nameless(text string) string {
	for name := range b.names {
		text = strings.ReplaceAll(text, name+": "+removedWords, removedWords)
	}
	return text
}

// line is an entry without the person.
func (b *blanking) line(line memory.Entry) (memory.Entry, error) {
	if line.Kind == kindCheckpoint {
		// Without it the journal is folded from its start.
		return memory.Entry{Kind: kindRemoved, At: line.At, Data: []byte("{}")}, nil
	}
	e, err := decode(line)
	if err != nil || e == nil {
		return line, err
	}
	b.entry(e)
	blank, err := encode(e, line.At)
	blank.Data = []byte(b.hide.Replace(string(blank.Data)))
	return blank, err
}

// entry blanks what an entry has of the person, but for their ids.
func (b *blanking) entry(e entry) {
	switch e := e.(type) {
	case *turnEntry:
		if b.theirs(e.Person.ID) {
			e.Person = Person{ID: e.Person.ID}
		}
	case *messageEntry:
		b.message(e)
	case *decidedEntry:
		if b.theirs(e.By) {
			e.Text, e.Name, e.Owed = "", "", nil
		}
		e.Text = b.without(e.Text)
		if b.cards[e.Card] && e.Arguments != nil {
			e.Arguments, e.Diff = json.RawMessage("{}"), ""
		}
	case *modelCallEntry:
		b.answer(e)
	case *modelAskedEntry:
		e.Tail = b.derived(e.Tail)
		if b.turns[e.Turn] && e.Tail != "" {
			e.Tail = removedResult
		}
	case *toolCallEntry:
		e.Arguments, e.Left = b.argumentsOf(e.Turn, e.Arguments), b.argumentsOf(e.Turn, e.Left)
	case *toolResultEntry:
		e.Text = b.derived(e.Text)
		if b.turns[e.Turn] && (e.Origin.Private || e.Tool == planTool) {
			e.Text, b.saved = removedResult, true
		} else if b.turns[e.Turn] && e.Ends {
			e.Text = removedAnswer
		}
		for name := range b.names {
			e.Text = strings.ReplaceAll(e.Text, name+" denied this call", "somebody denied this call")
		}
	case *progressEntry:
		e.Line = b.derived(e.Line)
		if b.turns[e.Turn] {
			e.Line = removedMark
		}
	case *hookEntry:
		if b.turns[e.Turn] {
			e.Ruling, e.Fault = Ruling{Hide: e.Ruling.Hide}, ""
		}
	case *cardEntry:
		e.Arguments, e.Why = json.RawMessage(b.argumentsOf(e.Turn, string(e.Arguments))), b.derived(e.Why)
	case *notedEntry:
		e.Text, e.Evidence = b.derived(e.Text), b.derived(e.Evidence)
		for id, theirs := range b.cards {
			if theirs && strings.Contains(e.Text, id) { // what became of a parked call of theirs
				e.Text = removedResult
			}
		}
	case *stoppedEntry:
		e.Say = b.derived(e.Say)
	case *compactedEntry:
		b.compaction(e)
	}
}

// answer blanks what the model said: all of it in turns of theirs, where it may tell what was read of theirs in any words.
func (b *blanking) answer(e *modelCallEntry) {
	e.Text, e.Reasoning = b.derived(e.Text), b.derived(e.Reasoning)
	switch {
	case e.Summary:
		e.Text, e.Reasoning = removedSummary, ""
	case b.turns[e.Turn]:
		if strings.TrimSpace(e.Text) != "" {
			e.Text = removedAnswer
		}
		e.Reasoning = ""
	}
	for i := range e.Calls {
		e.Calls[i].Arguments = b.argumentsOf(e.Turn, e.Calls[i].Arguments)
	}
}

// argumentsOf are arguments that the model wrote in a turn, blanked: none in turns of theirs.
func (b *blanking) argumentsOf(turn, arguments string) string {
	if b.turns[turn] && arguments != "" {
		return "{}"
	}
	return b.withoutIn(arguments)
}

// compaction blanks what stands for what was left out, which may be in any words as well.
func (b *blanking) compaction(e *compactedEntry) {
	if e.Change.Left.Summary != "" {
		e.Change.Note, e.Change.Left.Summary = removedSummary, removedSummary
	}
	if !slices.Contains(slices.Collect(maps.Values(b.turns)), true) {
		return
	}
	for i := range e.Change.Replaced {
		e.Change.Replaced[i].Text = removedMark
		for j := range e.Change.Replaced[i].Arguments {
			e.Change.Replaced[i].Arguments[j] = "{}"
		}
	}
	if e.Change.Note != "" {
		e.Change.Note = removedSummary
	}
}

// withoutIn is derived for JSON, in which words may be escaped.
func (b *blanking) withoutIn(text string) string {
	for _, words := range b.words {
		if len(words) < quoted {
			continue
		}
		if data, err := plainJSON(words); err == nil {
			text = strings.ReplaceAll(text, string(data[1:len(data)-1]), removedWords)
		}
	}
	for _, m := range b.marks {
		text = strings.ReplaceAll(text, m, removedMark)
	}
	for _, line := range b.private {
		if data, err := plainJSON(line); err == nil {
			text = strings.ReplaceAll(text, string(data[1:len(data)-1]), removedMark)
		}
	}
	return text
}

// message blanks what they said in a message, and leaves what others did.
func (b *blanking) message(e *messageEntry) {
	said := b.saidIn(e)
	if said == nil {
		e.Text = b.without(e.Text)
		return
	}
	own := b.theirs(e.From)
	if own && len(e.IDs) < 2 {
		mark, _, dated := strings.Cut(e.Text, "\n")
		e.Text = removedWords
		if dated && !e.Mark.IsZero() {
			e.Text = mark + "\n" + removedWords
		}
		e.Files = nil
	} else {
		slices.SortFunc(said, func(x, y string) int { return len(y) - len(x) })
		for _, words := range said {
			if words != "" {
				e.Text = strings.ReplaceAll(e.Text, words, removedWords)
			}
		}
		if own {
			e.Files = nil
		}
	}
	e.Text = b.nameless(e.Text)
	for i := range e.Owed {
		if slices.Contains(said, e.Owed[i].Text) || slices.Contains(said, e.Owed[i].journaled()) {
			e.Owed[i].Text, e.Owed[i].Journaled = removedWords, ""
		}
	}
}

// withdraw takes back the cards of the person that still wait in a session: nothing runs for them any more.
func (b *blanking) withdraw(session string, lines []memory.Entry) ([]memory.Entry, error) {
	for _, id := range slices.Sorted(maps.Keys(b.open)) {
		k := b.open[id]
		d := decidedEntry{Turn: k.Turn, Run: k.Run, Card: id, Call: k.Call, Tool: k.Tool, Verdict: Withdrawn, Question: k.Question, Resumes: k.Resumes}
		line, err := encode(d, now())
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
		if err := b.tx.Table(tableWaiting).Delete(id); err != nil {
			return nil, err
		}
		if err := b.tx.Due().Remove(timerKey(id)); err != nil {
			return nil, err
		}
		b.of.Cards = append(b.of.Cards, id)
	}
	return lines, b.tx.Table(tableOwed).Delete(session)
}

// files forgets the files that they attached, and what was read of them.
func (b *blanking) files(session string) error {
	for _, id := range b.attached {
		if err := tableFiles.Delete(b.tx, savedKey(session, id)); err != nil {
			return err
		}
	}
	if b.attached == nil && !b.saved {
		return nil
	}
	removed, err := EraseSaved(b.tx, session) // which of them have a file's words is not kept
	b.of.Results += removed
	return err
}

// parcels takes out what a session is about to say of turns of theirs, but for the marks of their ends.
func (b *blanking) parcels(session string) error {
	var ids []uint64
	err := b.tx.Outbox().List(0, func(p memory.Parcel) error {
		reply, err := ReadReply(p)
		if err == nil && reply.Session == session && b.turns[reply.Turn] && reply.Kind != SettledMark && reply.Kind != WaitingMark {
			ids = append(ids, p.ID)
		}
		return nil // of what cannot be read nobody knows whose it is
	})
	if err != nil {
		return err
	}
	b.of.Parcels += len(ids)
	return b.tx.Outbox().Remove(ids...)
}
