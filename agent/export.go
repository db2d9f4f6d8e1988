package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nudge/memory"
	"nudge/schedule"
)

// What is kept of a person or a session as a document for the person. What only the program needs is left out: digests,
// keys, checkpoints, token counts, and what a model thought, which some providers sign. document.go writes it for people to read.

// SessionExport is all that is kept of one session. Times are in UTC.
type SessionExport struct {
	Session  string           `json:"session"`
	Began    time.Time        `json:"began,omitzero"`
	LastUsed time.Time        `json:"last_used,omitzero"`
	OpenTurn string           `json:"open_turn,omitempty"` // that is not settled
	Lines    []ExportedLine   `json:"lines"`               // oldest first
	Mail     []ExportedLine   `json:"mail,omitempty"`      // said to it and not taken up yet
	Unsaid   []ExportedLine   `json:"unsaid,omitempty"`    // said by it and not delivered yet; kinds are those of [Reply]
	Results  []ExportedResult `json:"results,omitempty"`   // long results of tools, of which the lines have a part, and attached files that were read
}

// ExportedLine is one thing that was said, done or decided.
type ExportedLine struct {
	At   time.Time  `json:"at,omitzero"`
	Kind ExportKind `json:"kind"`
	// Session is where it was said; "" in the export of a session, which names it once.
	Session   string          `json:"session,omitempty"`
	Turn      string          `json:"turn,omitempty"`
	By        PersonID        `json:"by,omitempty"` // who said or decided it
	Text      string          `json:"text,omitempty"`
	Files     []File          `json:"files,omitempty"` // that came with the text
	Heartbeat string          `json:"heartbeat,omitempty"`
	Evidence  string          `json:"evidence,omitempty"` // what a heartbeat's check saw
	Tool      string          `json:"tool,omitempty"`
	Call      string          `json:"call,omitempty"`      // pairs a call with its result
	Arguments json.RawMessage `json:"arguments,omitempty"` // any JSON; a text where the model wrote none
	Failed    bool            `json:"failed,omitempty"`
	Card      string          `json:"card,omitempty"`
	Expires   time.Time       `json:"expires,omitzero"`
	Decision  Verdict         `json:"decision,omitempty"`
	Open      []Opening       `json:"open,omitempty"`   // what the rule leaves open that was saved with the decision
	Reason    StopReason      `json:"reason,omitempty"` // why a turn ended
}

// ExportKind says what an exported line is.
type ExportKind string

// The kinds of exported lines.
const (
	ExportSaid     ExportKind = "said"     // by a person
	ExportWoke     ExportKind = "woke"     // what a heartbeat told the model
	ExportOutcome  ExportKind = "outcome"  // what came of a call that had waited, as the model was told
	ExportNote     ExportKind = "note"     // what a heartbeat told the person, or what became of a waiting call
	ExportAnswer   ExportKind = "answer"   // words of the model's
	ExportCall     ExportKind = "call"     // that the model asked for
	ExportProgress ExportKind = "progress" // a line that a tool wrote while it ran
	ExportResult   ExportKind = "result"   // of a call, as the model was told
	ExportAsked    ExportKind = "asked"    // a card
	ExportDecided  ExportKind = "decided"  // what became of it
	ExportSummary  ExportKind = "summary"  // of what the model was no longer sent
	ExportEnded    ExportKind = "ended"    // a turn
	ExportStop     ExportKind = "stop"     // a Stop that lies in the mail
)

// ExportedResult is a long result that was saved whole, or the content of an attached file that was read.
type ExportedResult struct {
	// ID is as the line of the result names it, behind [SavedPrefix]; of an attached file it is [FilePrefix] and the file's.
	ID    string    `json:"id"`
	Saved time.Time `json:"saved"`
	Text  string    `json:"text"`
}

// PersonExport is all that the agent keeps of one person. Other people are named in it only where the person was shown their
// names: who decided a card of theirs, who spoke in a conversation of their own.
type PersonExport struct {
	Person   PersonID        `json:"person"`
	Name     string          `json:"name,omitempty"`
	Zone     string          `json:"zone,omitempty"` // IANA name
	Locale   string          `json:"locale,omitempty"`
	Home     string          `json:"home,omitempty"` // the direct conversation in which they spoke last
	Sessions []SessionExport `json:"sessions"`       // their own: direct conversations, and the wakes for them
	Said     []ExportedLine  `json:"said"`           // by them in shared conversations
	Mail     []ExportedLine  `json:"mail"`           // said by them in shared conversations and not taken up yet
	Cards    []ExportedCard  `json:"cards"`          // asked in turns of theirs, or decided by them
	Rules    []Rule          `json:"rules"`          // what they allowed from then on, also what has ended and lies there still
	Spent    []ExportedDay   `json:"spent"`          // oldest first
}

// ExportedCard is a card and what became of it.
type ExportedCard struct {
	Card      string          `json:"card"`
	Session   string          `json:"session,omitempty"` // "" when it is somebody else's
	Yours     bool            `json:"yours"`             // asked in a turn of theirs
	Question  bool            `json:"question,omitempty"`
	Asked     time.Time       `json:"asked"`
	Expires   time.Time       `json:"expires,omitzero"`
	Tool      string          `json:"tool,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"` // as they were asked
	Edited    json.RawMessage `json:"edited,omitempty"`    // as they were approved
	Decision  Verdict         `json:"decision,omitempty"`  // "" while it waits
	Open      []Opening       `json:"open,omitempty"`      // what the rule leaves open that was saved with it
	By        PersonID        `json:"by,omitempty"`
	Decided   time.Time       `json:"decided,omitzero"`
	Text      string          `json:"text,omitempty"` // the reason, or the answer
}

// ExportedDay is what a person spent on a day of theirs.
type ExportedDay struct {
	Day string  `json:"day"` // 2006-01-02
	USD float64 `json:"usd"` // with what is reserved for calls under way
}

// Empty reports whether nothing is kept of the person.
func (p PersonExport) Empty() bool {
	return p.Name == "" && p.Zone == "" && p.Locale == "" && p.Home == "" && len(p.Sessions)+len(p.Said)+len(p.Mail)+len(p.Cards)+len(p.Rules)+len(p.Spent) == 0
}

// ErrUnknownSession is wrapped by the error for a session of which nothing is kept.
var ErrUnknownSession = errors.New("there is no such session")

// HasSession reports whether a session has entries or mail.
func HasSession(tx memory.Tx, session string) (bool, error) {
	if session == "" || len(session) > memory.MaxID {
		return false, nil
	}
	last, err := tx.Journal().Last(session)
	if err != nil || last > 0 {
		return last > 0, err
	}
	mail, err := tx.Inbox().List(session)
	return len(mail) > 0, err
}

// ExportSession gives all that is kept of a session. The error for one of which there is nothing wraps [ErrUnknownSession].
func ExportSession(tx memory.Tx, session string) (SessionExport, error) {
	s, err := exportSession(tx, session)
	if err != nil {
		return SessionExport{}, fmt.Errorf("export session %.100q: %w", session, err)
	}
	return s, nil
}

func exportSession(tx memory.Tx, session string) (s SessionExport, err error) {
	if there, err := HasSession(tx, session); err != nil || !there {
		return s, errors.Join(err, ErrUnknownSession)
	}
	s = SessionExport{Session: session, Lines: []ExportedLine{}}
	if s.OpenTurn, err = OpenTurn(tx, session); err != nil {
		return s, err
	}
	err = readEntries(tx, session, func(e entry, at time.Time) {
		if s.Began.IsZero() {
			s.Began = at
		}
		s.LastUsed = at
		for _, line := range exportedLines(e) {
			line.At = at
			s.Lines = append(s.Lines, line)
		}
	})
	if err != nil {
		return s, err
	}
	if s.Mail, err = exportedMail(tx, session, func(letter) bool { return true }); err != nil {
		return s, err
	}
	if s.Unsaid, err = exportedParcels(tx, session); err != nil {
		return s, err
	}
	s.Results, err = exportedResults(tx, session)
	return s, err
}

// readEntries calls fn for each entry of a journal that this program knows; with kinds, for those only.
func readEntries(tx memory.Tx, session string, fn func(e entry, at time.Time), kinds ...string) error {
	return tx.Journal().Read(session, 0, func(line memory.Entry) error {
		if len(kinds) > 0 && !slices.Contains(kinds, line.Kind) {
			return nil
		}
		e, err := decode(line)
		if err == nil && e != nil {
			fn(e, line.At)
		}
		return err
	})
}

// exportedLines is an entry as its person may have it.
func exportedLines(e entry) []ExportedLine {
	switch e := e.(type) {
	case *messageEntry:
		return []ExportedLine{{Kind: saidBy(e.Provenance), Turn: e.Turn, By: e.From, Text: e.undated(), Files: e.Files}}
	case *notedEntry:
		return []ExportedLine{{Kind: ExportNote, Heartbeat: e.Heartbeat, Text: e.Note.Text, Evidence: e.Evidence}}
	case *wokeEntry:
		return nil // the message that follows says it
	case *modelCallEntry:
		var lines []ExportedLine
		if e.Text != "" {
			lines = append(lines, ExportedLine{Kind: ExportAnswer, Turn: e.Turn, Text: e.Text})
		}
		for _, c := range e.Calls {
			lines = append(lines, ExportedLine{Kind: ExportCall, Turn: e.Turn, Tool: c.Name, Call: c.ID, Arguments: anyJSON(c.Arguments)})
		}
		return lines
	case *progressEntry:
		return []ExportedLine{{Kind: ExportProgress, Turn: e.Turn, Tool: e.Tool, Call: e.Call, Text: e.Line}}
	case *toolResultEntry:
		return []ExportedLine{{Kind: ExportResult, Turn: e.Turn, Tool: e.Tool, Call: e.Call, Card: e.Card, Text: e.Text, Failed: e.Failed}}
	case *cardEntry:
		if e.Resumes {
			return nil // the turn's end offers it
		}
		return []ExportedLine{{Kind: ExportAsked, Turn: e.Turn, Tool: e.Tool, Call: e.Call, Card: e.Card, Arguments: e.Arguments, Expires: e.Expires, Text: e.Why}}
	case *decidedEntry:
		return []ExportedLine{{
			Kind: ExportDecided, Turn: e.Turn, Tool: e.Tool, Call: e.Call, Card: e.Card, Decision: e.Verdict, By: e.By, Text: cmp.Or(e.Text, e.Diff), Arguments: e.Arguments, Open: e.Open,
		}}
	case *compactedEntry:
		if e.Change.Left.Summary == "" {
			return nil
		}
		return []ExportedLine{{Kind: ExportSummary, Turn: e.Turn, Text: e.Change.Left.Summary}}
	case *stoppedEntry:
		if e.Reason == Waiting {
			return nil
		}
		return []ExportedLine{{Kind: ExportEnded, Turn: e.Turn, Card: e.Offer, Reason: e.Reason, Text: e.Say}}
	}
	return nil
}

func saidBy(p Provenance) ExportKind {
	switch p {
	case Human:
		return ExportSaid
	case Heartbeat:
		return ExportWoke
	}
	return ExportOutcome
}

// undated is the message without the date that was put before it.
func (e *messageEntry) undated() string {
	if e.Mark.IsZero() {
		return e.Text
	}
	_, text, _ := strings.Cut(e.Text, "\n")
	return text
}

// anyJSON is a text as JSON: itself where it is, otherwise a string.
func anyJSON(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	data, err := plainJSON(text)
	if err != nil { // strings always encode
		return nil
	}
	return data
}

func exportedMail(tx memory.Tx, session string, want func(letter) bool) ([]ExportedLine, error) {
	mail, err := tx.Inbox().List(session)
	if err != nil {
		return nil, err
	}
	var lines []ExportedLine
	for _, m := range mail {
		l, err := openLetter(m)
		if err != nil {
			return nil, err
		}
		if want(l) {
			lines = append(lines, l.exported())
		}
	}
	return lines, nil
}

func (l letter) exported() ExportedLine {
	line := ExportedLine{At: l.At, Kind: saidBy(l.Provenance), By: l.From.ID, Text: withFiles(l.Text, l.Files), Files: l.Files}
	switch {
	case l.Stop:
		line.Kind = ExportStop
	case l.Decision != nil:
		line.Kind, line.Card, line.Decision, line.Text, line.Arguments = ExportDecided, l.Decision.Card, l.Decision.Verdict, l.Decision.Text, l.Decision.Arguments
	case l.Wake != nil:
		line.Heartbeat, line.Text, line.Evidence = l.Wake.Heartbeat, l.Wake.Prompt, l.Wake.Evidence
	case l.Note != nil:
		line.Kind, line.Heartbeat, line.Text, line.Evidence = ExportNote, l.Note.Heartbeat, l.Note.Text, l.Note.Evidence
	}
	return line
}

// exportedParcels are the words of a session's that lie in the outbox.
func exportedParcels(tx memory.Tx, session string) (lines []ExportedLine, err error) {
	err = tx.Outbox().List(0, func(p memory.Parcel) error {
		r, err := ReadReply(p)
		if err != nil || r.Session != session || r.Text == "" && len(r.Arguments) == 0 {
			return nil // of what cannot be read nobody knows whose it is
		}
		lines = append(lines, ExportedLine{
			Kind: ExportKind(r.Kind), Turn: r.Turn, Text: r.Text, Heartbeat: r.Heartbeat, Tool: r.Tool, Arguments: r.Arguments, Card: r.ID, Decision: r.Decision,
			By: PersonID(r.By),
		})
		return nil
	})
	return lines, err
}

func exportedResults(tx memory.Tx, session string) (results []ExportedResult, err error) {
	prefix := savedKey(session, "")
	err = tx.Table(tableSaved).Scan(prefix, func(key string, value []byte) error {
		at, err := time.Parse(savedTime, string(value[:min(len(savedTime), len(value))]))
		if err != nil {
			return fmt.Errorf("read the saved result %s: %w", key, memory.ErrDamaged)
		}
		r := ExportedResult{ID: strings.TrimPrefix(key, prefix), Saved: at, Text: string(value[len(savedTime):])}
		if last := len(results) - 1; last >= 0 && pieceOf(r.ID, results[last].ID) {
			results[last].Text += r.Text
			return nil
		}
		if strings.HasPrefix(r.ID, FilePrefix) {
			r.Text = exportedContent(r.Text)
		}
		results = append(results, r)
		return nil
	})
	return results, err
}

// ExportPerson gives all that the agent keeps of a person. own says which sessions are theirs; of all others it gives what
// they said themselves, and their cards. Words that others said in the same breath, which a journal has as one message, are
// left out. It reads every journal. One of whom nothing is kept gives an export that is [PersonExport.Empty].
func ExportPerson(tx memory.Tx, id PersonID, own func(session string) bool) (PersonExport, error) {
	if id == "" || len(id) > memory.MaxID {
		return PersonExport{}, fmt.Errorf("export what is kept of %.100q: %w", id, memory.ErrBadID)
	}
	x := exporting{
		tx: tx, own: own, of: PersonExport{
			Person: id, Sessions: []SessionExport{}, Said: []ExportedLine{}, Mail: []ExportedLine{}, Cards: []ExportedCard{}, Rules: []Rule{}, Spent: []ExportedDay{},
		},
	}
	for _, step := range []func() error{x.who, x.sessions, x.rules, x.spent} {
		if err := step(); err != nil {
			return PersonExport{}, fmt.Errorf("export what is kept of %s: %w", id, err)
		}
	}
	return x.of, nil
}

// exporting is the export of one person under way.
type exporting struct {
	tx  memory.Tx
	own func(session string) bool
	of  PersonExport
}

func (x *exporting) who() error {
	row, err := personOf(x.tx, x.of.Person)
	x.of.Name, x.of.Zone, x.of.Locale, x.of.Home = row.Name, row.Zone, row.Locale, row.Home
	return err
}

// sessions goes through all sessions in order of name, those that have mail only too.
func (x *exporting) sessions() error {
	names, err := x.tx.Inbox().Sessions()
	if err != nil {
		return err
	}
	err = x.tx.Journal().Sessions("", func(session string, _ memory.Entry) error {
		names = append(names, session)
		return nil
	})
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, session := range slices.Compact(names) {
		if err := x.session(session); err != nil {
			return fmt.Errorf("session %s: %w", session, err)
		}
	}
	return nil
}

func (x *exporting) session(session string) error {
	if err := x.cards(session); err != nil {
		return err
	}
	if !x.own(session) {
		return x.shared(session)
	}
	s, err := exportSession(x.tx, session)
	x.of.Sessions = append(x.of.Sessions, s)
	return err
}

// shared takes what the person said in somebody else's session.
func (x *exporting) shared(session string) error {
	begins := "" // the turn whose first words have not come yet
	var author Person
	err := readEntries(x.tx, session, func(e entry, at time.Time) {
		switch e := e.(type) {
		case *turnEntry:
			begins, author = e.Turn, e.Person
		case *messageEntry:
			for _, text := range e.saidOnlyBy(x.of.Person, e.Turn == begins, author) {
				x.of.Said = append(x.of.Said, ExportedLine{At: at, Kind: ExportSaid, Session: session, By: x.of.Person, Text: text})
			}
			begins = ""
		}
	}, kindTurn, kindMessage)
	if err != nil {
		return err
	}
	mail, err := exportedMail(x.tx, session, func(l letter) bool { return l.From.ID == x.of.Person && l.Provenance == Human })
	for _, line := range mail {
		line.Session = session
		x.of.Mail = append(x.of.Mail, line)
	}
	return err
}

// saidOnlyBy is what one person said in a message of a shared conversation. The words that begin a turn are of its author
// alone. Words said during a turn may be joined with an owner's, each after its speaker's name: the message is from who
// spoke last, and of the others only those are sure to be theirs that stand after the same name.
func (e *messageEntry) saidOnlyBy(id PersonID, begins bool, author Person) []string {
	text := e.undated()
	switch {
	case e.Provenance != Human || e.From != id:
		return nil
	case begins && author.Name != "":
		return []string{strings.TrimPrefix(text, author.Name+": ")}
	case begins, len(e.IDs) == 1 && len(e.Owed) == 0:
		return []string{text}
	}
	return e.ofLastSpeaker(text)
}

// ofLastSpeaker parts joined words from their end, as far as the receipts have each of them.
func (e *messageEntry) ofLastSpeaker(text string) (said []string) {
	last := ""
	for i := range e.Owed {
		owed, id := e.Owed[len(e.Owed)-1-i], len(e.IDs)-1-i
		before, whole := strings.CutSuffix(text, owed.journaled())
		if id < 0 || e.IDs[id] != owed.ID || !whole {
			break
		}
		speaker := before
		text = ""
		if at := strings.LastIndex(before, "\n\n"); at >= 0 {
			text, speaker = before[:at], before[at+2:]
		}
		if i == 0 {
			last = speaker
		}
		if speaker == last {
			said = append(said, owed.journaled())
		}
	}
	slices.Reverse(said)
	return said
}

// cards takes the cards of a session that were asked in the person's turns or that they decided.
func (x *exporting) cards(session string) error {
	cards := map[string]*ExportedCard{}
	var order []string
	err := readEntries(x.tx, session, func(e entry, at time.Time) {
		switch e := e.(type) {
		case *cardEntry:
			order = append(order, e.Card)
			cards[e.Card] = &ExportedCard{
				Card: e.Card, Yours: e.Asked == x.of.Person, Question: e.Question, Asked: at, Expires: e.Expires, Tool: e.Tool, Arguments: e.Arguments,
			}
		case *decidedEntry:
			if k := cards[e.Card]; k != nil && k.Decision == "" {
				k.Decision, k.By, k.Decided, k.Text, k.Edited, k.Open = e.Verdict, e.By, at, e.Text, e.Arguments, e.Open
			}
		}
	}, kindApproval, kindQuestion, kindOffer, kindDecided, kindAnswered, kindOffered)
	for _, id := range order {
		k := cards[id]
		if !k.Yours && k.By != x.of.Person {
			continue
		}
		if k.Yours || x.own(session) {
			k.Session = session // its name may have another person's id in it
		}
		x.of.Cards = append(x.of.Cards, *k)
	}
	return err
}

func (x *exporting) rules() (err error) {
	rules, err := Rules(x.tx, x.of.Person, time.Time{})
	x.of.Rules = append(x.of.Rules, rules...)
	return err
}

func (x *exporting) spent() error {
	person, err := schedule.PersonOf(x.tx, string(x.of.Person))
	if err != nil {
		return err
	}
	return scanSpending(x.tx, person, func(date string, s spending) {
		x.of.Spent = append(x.of.Spent, ExportedDay{Day: date, USD: s.total().USD()})
	})
}

// zoneName is the name of the zone; of the machine's own, which has none, its abbreviation at an instant.
func (d *document) zoneName(at time.Time) string {
	if d.zone == time.Local {
		return at.In(d.zone).Format("MST")
	}
	return d.zone.String()
}
