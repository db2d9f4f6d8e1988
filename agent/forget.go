package agent

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"nudge/memory"
	"nudge/schedule"
)

// Forgetting a person removes the sessions that are theirs, and takes their words out of those that are not. What else is kept
// by person goes too, and in the journals and the audit an opaque id stands for each of theirs.

// Forgotten is what was removed of a person.
type Forgotten struct {
	Erased          // of all their own sessions together
	Opaque   string // what stands for the person from now on
	Sessions []Erasing
	Shared   int // sessions with others from which their words were taken
	Blanked  int // lines of those that were blanked or changed
	Days     int // on which it was kept what they had spent
	Known    int // accounts of which a name or a time zone was kept
}

// Erasing is one session that is removed.
type Erasing struct {
	Session string
	Began   time.Time // its first entry; zero when it had none
	Erased
}

// Forgetting says whom to forget.
type Forgetting struct {
	Accounts []PersonID                // all that the person has
	Own      func(session string) bool // the sessions that are theirs alone
}

const (
	forgottenPrefix = "forgotten:"
	removedWords    = "[removed: this person asked to be forgotten]"
	removedMark     = "[removed]"
	removedSummary  = "[A summary of what was said before stood here. It was removed, since somebody whose words were in it asked to be forgotten.]"
	// quoted is how many bytes words have at least that are looked for wherever somebody may have quoted them. Shorter ones
	// stand everywhere.
	quoted = 12
	// sharedWait is how long at most a turn of somebody else's in a shared session is waited for.
	sharedWait = 30 * time.Second
)

// errMoreSessions takes a transaction back that met a session of the person's of which something may run.
var errMoreSessions = errors.New("another session has begun")

// Forget stops what runs for a person and removes all that the agent keeps of them, in one transaction, in which also, if not
// nil, goes on: it may be called more than once. Until it is done nothing of theirs can begin. A turn of somebody else's in a
// session that they share is waited for. After an error nothing was removed, but what ran may have been stopped.
func (ag *Agent) Forget(ctx context.Context, f Forgetting, also func(tx memory.Tx, removed Forgotten) error) (removed Forgotten, err error) {
	places := map[string]*actor{}
	defer func() {
		for _, place := range places {
			ag.release(place)
		}
	}()
	for {
		sessions, err := ag.sessionsOf(ctx, f)
		if err != nil {
			return Forgotten{}, err
		}
		for _, session := range sessions {
			if places[session] != nil {
				continue
			}
			place, err := ag.quiet(ctx, f, session)
			if err != nil {
				return Forgotten{}, fmt.Errorf("forget %s: %w", f.Accounts[0], err)
			}
			places[session] = place
		}
		err = ag.Store.Update(ctx, func(tx memory.Tx) (err error) {
			if removed, err = f.remove(tx, func(session string) bool { return places[session] != nil }); err != nil || also == nil {
				return err
			}
			return also(tx, removed)
		})
		if errors.Is(err, errMoreSessions) {
			continue
		}
		if err != nil {
			return Forgotten{}, fmt.Errorf("forget %s: %w", f.Accounts[0], err)
		}
		for session := range places {
			if f.Own(session) {
				ag.tellEnded(session, Totals{Reason: Cancelled})
			}
		}
		ag.Outgoing()
		ag.Rescheduled()
		return removed, nil
	}
}

// ForgetAtRest is [Agent.Forget] within a transaction, while no agent runs on the store.
func ForgetAtRest(tx memory.Tx, f Forgetting) (Forgotten, error) {
	return f.remove(tx, func(string) bool { return true })
}

func (ag *Agent) sessionsOf(ctx context.Context, f Forgetting) (sessions []string, err error) {
	err = ag.Store.View(ctx, func(tx memory.Tx) error {
		own, shared, err := f.sessions(tx)
		sessions = append(own, shared...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for the sessions of %s: %w", f.Accounts[0], err)
	}
	return sessions, nil
}

// quiet takes the place of a session once nothing of it runs. The person's own turns are stopped.
func (ag *Agent) quiet(ctx context.Context, f Forgetting, session string) (*actor, error) {
	if f.Own(session) {
		return ag.seize(ctx, session)
	}
	var turn *turnEntry
	err := ag.Store.View(ctx, func(tx memory.Tx) (err error) {
		turn, err = openTurnOf(tx, session)
		return err
	})
	if err != nil {
		return nil, err
	}
	if turn != nil && slices.Contains(f.Accounts, turn.Person.ID) {
		stop := Message{Keys: []string{"forget " + rand.Text()}, Session: session, Provenance: Timer, At: now(), Address: turn.Address, Stop: true}
		if _, err := ag.Receive(ctx, stop); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, sharedWait)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		ag.mu.Lock()
		defer ag.mu.Unlock()
		ag.idle.Broadcast()
	})()
	ag.mu.Lock()
	defer ag.mu.Unlock()
	for ctx.Err() == nil && ag.actors[session] != nil {
		ag.idle.Wait()
	}
	if ag.actors[session] != nil {
		return nil, fmt.Errorf("a turn of somebody else's is under way in %s; try again when it has ended", session)
	}
	place := &actor{Agent: ag, session: session}
	ag.actors[session] = place
	ag.shelf.take(session)
	return place, nil
}

// openTurnOf is the turn that is under way in a session; nil for none.
func openTurnOf(tx memory.Tx, session string) (turn *turnEntry, err error) {
	open, err := OpenTurn(tx, session)
	if err != nil || open == "" {
		return nil, err
	}
	err = readEntries(tx, session, func(e entry, _ time.Time) {
		if begun, ok := e.(*turnEntry); ok && begun.Turn == open {
			turn = begun
		}
	}, kindTurn)
	return turn, err
}

// sessions are those of which the person has anything: their own, and others that name them.
func (f Forgetting) sessions(tx memory.Tx) (own, shared []string, err error) {
	all := map[string]bool{}
	mailed, err := tx.Inbox().Sessions()
	if err != nil {
		return nil, nil, err
	}
	for _, session := range mailed {
		all[session] = true
	}
	err = tx.Journal().Sessions("", func(session string, _ memory.Entry) error {
		all[session] = true
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	for _, session := range slices.Sorted(maps.Keys(all)) {
		if f.Own(session) {
			own = append(own, session)
			continue
		}
		names, err := f.named(tx, session)
		if err != nil {
			return nil, nil, err
		}
		if names {
			shared = append(shared, session)
		}
	}
	return own, shared, nil
}

// named reports whether a session's journal or mail has one of the person's ids in it.
func (f Forgetting) named(tx memory.Tx, session string) (found bool, err error) {
	err = tx.Journal().Read(session, 0, func(line memory.Entry) error {
		if f.in(line.Data) {
			found = true
			return memory.ErrStop
		}
		return nil
	})
	if err != nil || found {
		return found, err
	}
	mail, err := tx.Inbox().List(session)
	return slices.ContainsFunc(mail, func(m memory.Mail) bool { return f.in(m.Data) }), err
}

// in reports whether JSON has one of the person's ids as a string.
func (f Forgetting) in(data []byte) bool {
	return slices.ContainsFunc(f.Accounts, func(id PersonID) bool { return bytes.Contains(data, quotedID(id)) })
}

func quotedID(id PersonID) []byte {
	data, err := plainJSON(string(id))
	if err != nil { // strings always encode
		return nil
	}
	return data
}

// remove does all of it in one transaction. held tells of which sessions nothing runs.
func (f Forgetting) remove(tx memory.Tx, held func(session string) bool) (Forgotten, error) {
	r := forgetting{Forgetting: f, tx: tx, of: Forgotten{Opaque: forgottenPrefix + strings.ToLower(rand.Text()[:16])}}
	var pairs []string
	for _, id := range f.Accounts {
		was, is := string(quotedID(id)), string(quotedID(PersonID(r.of.Opaque)))
		pairs = append(pairs, was, is, was[:len(was)-1]+"/", is[:len(is)-1]+"/") // the latter begins a day of spending
	}
	r.hide = strings.NewReplacer(pairs...)
	own, shared, err := f.sessions(tx)
	if err != nil {
		return Forgotten{}, err
	}
	for _, session := range append(own[:len(own):len(own)], shared...) {
		if !held(session) {
			return Forgotten{}, errMoreSessions
		}
	}
	for _, session := range own {
		if err := r.erase(session); err != nil {
			return Forgotten{}, err
		}
	}
	for _, session := range shared {
		if err := r.blank(session); err != nil {
			return Forgotten{}, fmt.Errorf("take their words out of %s: %w", session, err)
		}
	}
	for _, step := range []func() error{r.outbox, r.turns, r.rows, func() error { return hideInAudit(tx, r.hide) }} {
		if err := step(); err != nil {
			return Forgotten{}, err
		}
	}
	return r.of, nil
}

// forgetting is the removal of one person in one transaction.
type forgetting struct {
	Forgetting
	tx   memory.Tx
	hide *strings.Replacer // their ids, as JSON
	of   Forgotten
}

// erase removes a session of their own.
func (r *forgetting) erase(session string) error {
	s := Erasing{Session: session}
	err := r.tx.Journal().Read(session, 0, func(line memory.Entry) error {
		s.Began = line.At
		return memory.ErrStop
	})
	if err != nil {
		return err
	}
	e := erasure{tx: r.tx, session: session, keepsEnds: true}
	if s.Erased, err = e.all(); err != nil {
		return err
	}
	r.of.Sessions = append(r.of.Sessions, s)
	r.of.Erased.add(s.Erased)
	return nil
}

// add sums up what was removed of several sessions.
func (e *Erased) add(more Erased) {
	e.Entries += more.Entries
	e.Turns += more.Turns
	e.Cards = append(e.Cards, more.Cards...)
	e.Mail += more.Mail
	e.Parcels += more.Parcels
	e.Results += more.Results
	e.Rules += more.Rules
}

// blank takes the person's words out of a session that is not theirs alone. The lines stay, with their numbers and times.
func (r *forgetting) blank(session string) error {
	b := blanking{forgetting: r, names: map[string]bool{}, others: map[string]bool{}, open: map[string]*cardEntry{}}
	for _, id := range r.Accounts {
		row, err := personOf(r.tx, id)
		if err != nil {
			return err
		}
		if row.Name != "" {
			b.names[row.Name] = true
		}
	}
	var lines []memory.Entry
	err := r.tx.Journal().Read(session, 0, func(line memory.Entry) error {
		lines = append(lines, line)
		return b.meet(line)
	})
	for _, line := range lines {
		if err == nil {
			err = b.learn(line)
		}
	}
	if err != nil {
		return err
	}
	slices.SortFunc(b.words, func(x, y string) int { return len(y) - len(x) })
	b.marks = marksIn(b.words)
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
	return errors.Join(r.tx.Table(tableCheckpoints).Delete(session), r.mail(session), b.files(session))
}

// mail takes out what they said to a session and it has not taken up.
func (r *forgetting) mail(session string) error {
	mail, err := r.tx.Inbox().List(session)
	if err != nil {
		return err
	}
	var ids []uint64
	for _, m := range mail {
		if r.in(m.Data) {
			ids = append(ids, m.ID)
		}
	}
	r.of.Mail += len(ids)
	return r.tx.Inbox().Remove(session, ids...)
}

// outbox takes out what is about to be said to them alone, and their words from receipts.
func (r *forgetting) outbox() error {
	var ids []uint64
	err := r.tx.Outbox().List(0, func(p memory.Parcel) error {
		reply, err := ReadReply(p)
		if err != nil {
			return nil // of what cannot be read nobody knows whose it is
		}
		if r.Own(p.Conversation) && reply.Kind != SettledMark || slices.Contains(r.Accounts, reply.To) || reply.Kind == SteerMark && r.Own(reply.Session) {
			ids = append(ids, p.ID)
		}
		return nil
	})
	r.of.Parcels += len(ids)
	if err != nil {
		return err
	}
	return r.tx.Outbox().Remove(ids...)
}

// turns lets the rows of turns name nobody.
func (r *forgetting) turns() error {
	changed := map[string][]byte{}
	err := r.tx.Table(tableTurns).Scan("", func(key string, data []byte) error {
		if r.in(data) {
			changed[key] = []byte(r.hide.Replace(string(data)))
		}
		return nil
	})
	for key, data := range changed {
		if err == nil {
			err = r.tx.Table(tableTurns).Put(key, data)
		}
	}
	return err
}

// rows are those that are kept by person.
func (r *forgetting) rows() error {
	for _, id := range r.Accounts {
		if _, known, err := r.tx.Table(tablePeople).Get(string(id)); err != nil {
			return err
		} else if known {
			r.of.Known++
		}
		rules, err := removeRules(r.tx, "", func(rule Rule) bool { return rule.Person == id })
		if err == nil {
			err = r.tx.Table(tablePeople).Delete(string(id))
		}
		if err == nil {
			err = r.spent(id)
		}
		if err != nil {
			return err
		}
		r.of.Rules += rules
	}
	return nil
}

// recent is for how long what was spent on a day still counts somewhere on earth.
const recent = 48 * time.Hour

// spent forgets what was spent, but for the amounts of today, which keep each account within its cap.
func (r *forgetting) spent(id PersonID) error {
	person, err := schedule.PersonOf(r.tx, string(id))
	if err != nil {
		return err
	}
	days := map[string]Money{}
	if err := scanSpent(r.tx, person, func(date string, amount Money) { days[date] = amount }); err != nil {
		return err
	}
	for date, amount := range days {
		at, err := time.Parse(time.DateOnly, date)
		old := err != nil || now().Sub(at) > recent
		if old {
			r.of.Days++
			err = r.tx.Table(tableSpend).Delete(person + "/" + date)
		} else if err = nil; person != string(id) {
			err = r.tx.Table(tableSpend).Put(string(id)+"/"+date, []byte(fmt.Sprint(int64(amount))))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// blanking is the blanking of one shared session.
type blanking struct {
	*forgetting
	names    map[string]bool // by which they went there
	others   map[string]bool // and others did
	words    []string        // that they said, longest first
	marks    []string        // in their words, that tell somebody or something apart: numbers, addresses, names with digits
	attached []string        // ids of files
	open     map[string]*cardEntry
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
	case *modelCallEntry:
		e.Text, e.Reasoning = b.derived(e.Text), b.derived(e.Reasoning)
		if e.Summary {
			e.Text = removedSummary
		}
		for i := range e.Calls {
			e.Calls[i].Arguments = b.withoutIn(e.Calls[i].Arguments)
		}
	case *modelAskedEntry:
		e.Tail = b.derived(e.Tail)
	case *toolCallEntry:
		e.Arguments = b.withoutIn(e.Arguments)
	case *toolResultEntry:
		e.Text = b.derived(e.Text)
		for name := range b.names {
			e.Text = strings.ReplaceAll(e.Text, name+" denied this call", "somebody denied this call")
		}
	case *progressEntry:
		e.Line = b.derived(e.Line)
	case *cardEntry:
		e.Arguments = json.RawMessage(b.withoutIn(string(e.Arguments)))
	case *notedEntry:
		e.Text, e.Evidence = b.derived(e.Text), b.derived(e.Evidence)
	case *stoppedEntry:
		e.Say = b.derived(e.Say)
	case *compactedEntry:
		if e.Change.Left.Summary != "" {
			e.Change.Note, e.Change.Left.Summary = removedSummary, removedSummary
		}
	}
	blank, err := encode(e, line.At)
	blank.Data = []byte(b.hide.Replace(string(blank.Data)))
	return blank, err
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
		if err := b.tx.Table(tableFiles).Delete(savedKey(session, id)); err != nil {
			return err
		}
	}
	if b.attached == nil {
		return nil
	}
	removed, err := EraseSaved(b.tx, session) // which of them have a file's words is not kept
	b.of.Results += removed
	return err
}
