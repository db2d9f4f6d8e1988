package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"nudge/memory"
)

// The audit is who decided what, when, and what they saw. Most of it is read from the journals. What stands in no session's
// journal is recorded ([Record]), and so is what a journal told when that is removed, without a word that anybody said.

// AuditLine is one thing that somebody decided or did. Of a card that still waits it says who was asked.
type AuditLine struct {
	At       time.Time `json:"at"`                // when it was done; of a card that waits, when it was asked
	Did      string    `json:"did"`               // a [Verdict], [DidAsk], [DidRule], or such as [DidLink]
	By       PersonID  `json:"by,omitempty"`      // who; "" for nobody, as where a time-out decided
	About    string    `json:"about,omitempty"`   // the account or person that it was done to
	With     string    `json:"with,omitempty"`    // the other account of a link
	Asked    PersonID  `json:"asked,omitempty"`   // whose turn needed the decision
	AskedAt  time.Time `json:"asked_at,omitzero"` // when the card was shown
	Session  string    `json:"session,omitempty"` // "" of one that was removed
	Turn     string    `json:"turn,omitempty"`
	Card     string    `json:"card,omitempty"`
	Tool     string    `json:"tool,omitempty"`
	Policy   Policy    `json:"policy,omitempty"`    // by which it was asked
	Question bool      `json:"question,omitempty"`  // asked by the model, and not about a call
	Digest   string    `json:"digest,omitempty"`    // of the call that was shown
	Rule     string    `json:"rule,omitempty"`      // that was saved with it, or let the call run
	EditedTo string    `json:"edited_to,omitempty"` // the digest of the call as it was edited

	// What was seen and said. All of it is gone with the session or the person.
	Shown  json.RawMessage `json:"shown,omitempty"`  // the arguments on the card
	Edited json.RawMessage `json:"edited,omitempty"` // and as they were edited
	Open   []Opening       `json:"open,omitempty"`   // what is left open by the rule that was saved with it
	Left   json.RawMessage `json:"left,omitempty"`   // the values that a call let run by a rule had for what the rule leaves open
	Text   string          `json:"text,omitempty"`   // the reason, or the answer
}

// What is done besides the verdicts about cards.
const (
	DidAsk    = "asked"    // a card waits
	DidRule   = "ruled"    // a rule let a call run without a card
	DidLink   = "linked"   // two accounts became one person's
	DidUnlink = "unlinked" // an account was parted from the others of its person
	DidForget = "forgot"   // all that was kept of a person was removed
	DidAllow  = "allowed"  // a stranger was let in
	DidIgnore = "ignored"  // a stranger was not
	DidRevoke = "revoked"  // somebody who had been let in no longer is
)

// The table of what no journal tells: number → AuditLine. Numbers have as many digits each. Nothing is ever changed in it but
// that the ids of people who were forgotten become opaque.
const tableAudit = "audit"

// Record adds a line to the audit, in the transaction that does what it says.
func Record(tx memory.Tx, lines ...AuditLine) error {
	table := tx.Table(tableAudit)
	last := uint64(0)
	err := table.ScanBack("", func(key string, _ []byte) (err error) {
		if last, err = strconv.ParseUint(key, 10, 64); err != nil {
			return fmt.Errorf("number %q: %w", key, err)
		}
		return memory.ErrStop
	})
	for _, line := range lines {
		line.At = line.At.UTC()
		var data []byte
		if err == nil {
			data, err = plainJSON(line)
		}
		if err == nil {
			last++
			err = table.Put(fmt.Sprintf("%020d", last), data)
		}
	}
	if err != nil {
		return fmt.Errorf("record in the audit: %w", err)
	}
	return nil
}

// Audit gives the whole audit in order of time. It reads every journal.
func Audit(tx memory.Tx) ([]AuditLine, error) {
	all, err := recorded(tx)
	if err != nil {
		return nil, fmt.Errorf("read the audit: %w", err)
	}
	err = tx.Journal().Sessions("", func(session string, _ memory.Entry) error {
		lines, err := auditOf(tx, session)
		all = append(all, lines...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the audit: %w", err)
	}
	slices.SortStableFunc(all, func(a, b AuditLine) int { return a.At.Compare(b.At) })
	return all, nil
}

func recorded(tx memory.Tx) (lines []AuditLine, err error) {
	err = tx.Table(tableAudit).Scan("", func(key string, data []byte) error {
		var line AuditLine
		if err := json.Unmarshal(data, &line); err != nil {
			return fmt.Errorf("line %s: %w", key, err)
		}
		lines = append(lines, line)
		return nil
	})
	return lines, err
}

// auditOf is what a session's journal tells.
func auditOf(tx memory.Tx, session string) ([]AuditLine, error) {
	var lines []AuditLine
	cards := map[string]int{}
	err := readEntries(tx, session, func(e entry, at time.Time) {
		switch e := e.(type) {
		case *cardEntry:
			if e.Resumes {
				return // nothing but more of the same is asked
			}
			cards[e.Card] = len(lines)
			lines = append(lines, AuditLine{
				At: at.UTC(), Did: DidAsk, Asked: e.Asked, AskedAt: at.UTC(), Session: session, Turn: e.Turn, Card: e.Card, Tool: e.Tool, Policy: e.Policy,
				Question: e.Question, Digest: e.Digest, Shown: e.Arguments,
			})
		case *decidedEntry:
			if i, found := cards[e.Card]; found && lines[i].Did == DidAsk {
				l := &lines[i]
				l.At, l.Did, l.By, l.Text, l.Edited, l.EditedTo, l.Rule, l.Open = at.UTC(), string(e.Verdict), e.By, e.Text, e.Arguments, e.Digest, e.Rule, e.Open
			}
		case *toolCallEntry:
			if e.Rule != "" {
				l := AuditLine{At: at.UTC(), Did: DidRule, By: e.RuleOf, Session: session, Turn: e.Turn, Tool: e.Tool, Rule: e.Rule}
				if e.Left != "" {
					l.Left = anyJSON(e.Left)
				}
				lines = append(lines, l)
			}
		}
	}, kindApproval, kindQuestion, kindDecided, kindAnswered, kindToolCall)
	for i := range lines {
		if strings.HasPrefix(string(lines[i].Asked), forgottenPrefix) {
			lines[i] = lines[i].wordless()
		}
	}
	return lines, err
}

// wordless is a line without anything that was seen or said.
func (l AuditLine) wordless() AuditLine {
	l.Shown, l.Edited, l.Open, l.Left, l.Text = nil, nil, nil, nil, ""
	return l
}

// keepAudit records what the journal of a session tells that is about to be removed.
func keepAudit(tx memory.Tx, session string) error {
	lines, err := auditOf(tx, session)
	for i := range lines {
		lines[i] = lines[i].wordless()
		lines[i].Session = ""
		if lines[i].Did == DidAsk {
			lines[i].At, lines[i].Did = now().UTC(), string(Withdrawn) // nobody can decide it any more
		}
	}
	if err != nil || len(lines) == 0 {
		return err
	}
	return Record(tx, lines...)
}

// hideInAudit makes the ids of a person opaque in what was recorded, and takes away what may tell who they are.
func hideInAudit(tx memory.Tx, hide *strings.Replacer) error {
	table := tx.Table(tableAudit)
	changed := map[string][]byte{}
	err := table.Scan("", func(key string, data []byte) error {
		if hidden := hide.Replace(string(data)); hidden != string(data) {
			changed[key] = []byte(hidden)
		}
		return nil
	})
	for key, data := range changed {
		if err == nil {
			err = table.Put(key, data)
		}
	}
	return err
}
