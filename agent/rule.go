package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nudge/memory"
)

// A rule lets one exact call run without a card: the same tool with the same canonical arguments, for the one person who
// said so on a card of that very call. Where they chose so, it lets the call run with other values of arguments that it leaves
// open (opening.go), and is bound to all others. It holds in their direct conversations, in turns that they began themselves, and
// only where they would be the one to decide: a stricter policy, a heartbeat, a shared conversation and a tool that is asked
// about each time ask as ever. What else the call depends on is part of it as well, so that a rule ends by itself when that
// changes.

// RuleTime is for how long a rule holds, from when the card was asked with which it is saved.
const RuleTime = 30 * 24 * time.Hour

// MaxRule is how many bytes of arguments a rule can be about: nobody reads through more to see what they allow.
const MaxRule = 4 << 10

const (
	tableRules     = "rule"         // person, what stands for its calls → Rule
	tableRulesTime = "rule by time" // instant of its end, person, digest → nothing
)

// Rule is what a person has allowed from now on.
type Rule struct {
	ID        string          `json:"id"`
	Person    PersonID        `json:"person"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"` // to which it is bound: without those that it leaves open
	Open      []Opening       `json:"open,omitempty"`
	Until     time.Time       `json:"until"`
	Saved     time.Time       `json:"saved"`
	Card      string          `json:"card"` // the decision with which it was saved
	Session   string          `json:"session"`
}

// ruleSkew is how far a clock may have been set back since a rule was saved.
const ruleSkew = time.Hour

// Text says which calls a rule lets run, in one line.
func (r Rule) Text() string {
	return r.Tool + " " + string(r.Arguments) + withOpen(r.Open)
}

// holds reports whether a rule lets its calls run at an instant. Before it was saved it does not: then the clock is wrong, or
// was when the rule got its end, which may be years from now.
func (r Rule) holds(at time.Time) bool {
	return !at.Before(r.Saved.Add(-ruleSkew)) && at.Before(r.Until)
}

// ruleKey names the row of a rule; "" for the digest is the beginning of all rows of the person's. A digest stands for the
// person, so that nobody's rows begin with another's.
func ruleKey(person PersonID, digest string) string {
	sum := sha256.Sum256([]byte(person))
	return hex.EncodeToString(sum[:]) + "/" + digest
}

// ruleTimeRow names the row of a rule in the order of their ends.
func ruleTimeRow(key string, until time.Time) string {
	return until.UTC().Format(savedTime) + "/" + key
}

// lasting stands for a call whenever it is made: for the person, the tool as it is described to the model, the arguments
// and what else it depends on.
func (ag *Agent) lasting(tool *Tool, in Invocation) string {
	depends := ""
	if tool.Digest != nil {
		depends = tool.Digest(in)
	}
	return digestOf(string(in.Person.ID), tool.Name, string(in.Arguments), depends, tool.Description, string(tool.Schema), string(effectOf(tool, in)))
}

// digestOf stands for texts in their order.
func digestOf(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// ruled reports whether rules are for the turn: a person began it, in a conversation where nobody else speaks or listens.
func (t *turn) ruled() bool {
	return t.provenance == Human && t.wake == nil && t.person.ID != "" && Direct(t.address)
}

// offersRule puts the rule that may be saved with a card onto it, where there may be one.
func (a *actor) offersRule(k *cardEntry, tool *Tool, in Invocation) {
	if k.Policy != PolicyAsk || tool.EachTime || k.Question || k.Parked || k.Unknown || k.Why != "" || !a.state.turn.ruled() || len(k.Arguments) > MaxRule {
		return
	}
	if tool.Once != nil && tool.Once(in) {
		return
	}
	k.Rule, k.Until = a.lasting(tool, in), now().Add(RuleTime)
	open, frame := a.openings(tool, in)
	if k.Open = readable(open); len(k.Open) > 0 {
		k.Frame = frame
	}
}

// saves is what stands for the calls of the rule that a card saves when some arguments are left open, and to which arguments that
// is bound.
func (k cardEntry) saves(open []Opening) (digest string, bound json.RawMessage, err error) {
	if len(open) == 0 {
		return k.Rule, k.Arguments, nil
	}
	bound, _, err = parted(k.Arguments, open)
	return openDigest(k.Frame, bound, open), bound, err
}

// ruleFor is the rule that lets a call run about which its person would be asked; nil when there is none.
func (a *actor) ruleFor(c *call) (*Rule, error) {
	t := a.state.turn
	if !t.ruled() || c.tool.EachTime {
		return nil, nil
	}
	in := a.invocation(c, c.arguments)
	if caution(c.tool, in) != "" || exposes(c.tool, in) {
		return nil, nil
	}
	key := ruleKey(t.person.ID, a.lasting(c.tool, in))
	open, frame := a.openings(c.tool, in)
	var rule *Rule
	err := a.Store.View(context.Background(), func(tx memory.Tx) error {
		rule = nil
		found, there, err := ruleAt(tx, key)
		if there && found.lets(t.person.ID, c, c.arguments) && len(found.Open) == 0 {
			rule = &found
			return err
		}
		if err == nil && len(open) > 0 {
			rule, err = openRuleFor(tx, t.person.ID, c, open, frame)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for a rule of %s about %s: %w", t.person.ID, c.Name, err)
	}
	return rule, nil
}

// lets reports whether a rule is one of a person's that holds now, for the tool of a call and with arguments that are bound.
func (r Rule) lets(person PersonID, c *call, bound json.RawMessage) bool {
	return r.Person == person && r.Tool == c.Name && string(r.Arguments) == string(bound) && r.holds(now())
}

// left are the arguments that a rule leaves open, as a call has them; nil where it leaves none open.
func (r Rule) left(arguments json.RawMessage) (left json.RawMessage, err error) {
	if len(r.Open) > 0 {
		_, left, err = parted(arguments, r.Open)
	}
	return left, err
}

// openRuleFor is a rule of a person's that lets a call run since it leaves open what differs; nil when there is none. open is what
// may be left open of the call, and frame stands for it besides its arguments. A rule that cannot be read lets nothing run.
func openRuleFor(tx memory.Tx, person PersonID, c *call, open []Opening, frame string) (rule *Rule, err error) {
	err = tx.Table(tableRules).Scan(ruleKey(person, openRule), func(key string, data []byte) error {
		found, err := readRule(data)
		if err != nil || len(found.Open) == 0 || !covers(open, found.Open) {
			return nil
		}
		bound, _, err := parted(c.arguments, found.Open)
		if err == nil && found.lets(person, c, bound) && ruleKey(person, openDigest(frame, bound, found.Open)) == key {
			rule = &found
			return memory.ErrStop
		}
		return nil
	})
	return rule, err
}

// free reports whether a call needs nobody's word: by its policy, or by a rule.
func (a *actor) free(c *call) bool {
	policy, err := a.policy(c, c.arguments)
	return err == nil && (policy == PolicyNo || policy == PolicyAsk && c.rule != nil)
}

var errNoRule = errors.New("not run: the rule that let it run without asking holds no more; ask anew")

// ruleStands looks again for the rule by which a call is about to run.
func (a *actor) ruleStands(c *call) error {
	if c.rule == nil {
		return nil
	}
	rule, err := a.ruleFor(c)
	if err != nil {
		a.Log.Warn("a rule could not be looked up, which refuses", "session", a.session, "error", err)
	}
	if rule == nil || !a.free(c) {
		return errNoRule
	}
	c.rule = rule
	return nil
}

// always approves a call and saves the rule that its card offers, which leaves open what the person chose of it, in one commit.
func (a *actor) always(l letter, k *card) error {
	open, fault := chosen(k.Open, l.Decision.Open)
	switch {
	case k.Rule == "":
		return a.refuse(l, "This can be approved once, and not always; nothing was decided.")
	case !l.At.Before(k.Until):
		return a.refuse(l, "It is too late to allow this from now on; it can still be approved once. Nothing was decided.")
	case fault != "":
		return a.refuse(l, fault+" Nothing was decided.")
	}
	digest, bound, err := k.saves(open)
	if err != nil {
		return err
	}
	rule := Rule{
		ID: newID(""), Person: k.Asked, Tool: k.Tool, Arguments: bound, Open: open, Until: k.Until, Saved: now(), Card: k.Card, Session: a.session,
	}
	key := ruleKey(k.Asked, digest)
	a.also(func(tx memory.Tx) error { return putRule(tx, key, rule) })
	return a.closeBy(l, k, decidedEntry{Verdict: Always, Rule: rule.ID, Open: open, Until: rule.Until})
}

func ruleAt(tx memory.Tx, key string) (rule Rule, found bool, err error) {
	data, found, err := tx.Table(tableRules).Get(key)
	if err != nil || !found {
		return Rule{}, false, err
	}
	rule, err = readRule(data)
	return rule, err == nil, err
}

func readRule(data []byte) (rule Rule, err error) {
	if err := json.Unmarshal(data, &rule); err != nil {
		return Rule{}, fmt.Errorf("read a rule: %w", err)
	}
	return rule, nil
}

// putRule saves a rule in the place of one about the same calls.
func putRule(tx memory.Tx, key string, rule Rule) error {
	if err := removeRule(tx, key); err != nil {
		return err
	}
	data, err := plainJSON(rule)
	if err != nil {
		return err
	}
	if err := tx.Table(tableRules).Put(key, data); err != nil {
		return err
	}
	return tx.Table(tableRulesTime).Put(ruleTimeRow(key, rule.Until), nil)
}

// removeRule takes a rule out, with its row in the order of time; one that is not there is no error.
func removeRule(tx memory.Tx, key string) error {
	data, found, err := tx.Table(tableRules).Get(key)
	if err != nil || !found {
		return err
	}
	if rule, err := readRule(data); err == nil { // one that cannot be read has no place in time
		if err := tx.Table(tableRulesTime).Delete(ruleTimeRow(key, rule.Until)); err != nil {
			return err
		}
	}
	return tx.Table(tableRules).Delete(key)
}

// Rules are the rules of a person's that hold at an instant, those that end first first.
func Rules(tx memory.Tx, person PersonID, at time.Time) (rules []Rule, err error) {
	err = eachRule(tx, ruleKey(person, ""), func(_ string, rule Rule) {
		if at.Before(rule.Until) {
			rules = append(rules, rule)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list the rules of %s: %w", person, err)
	}
	slices.SortFunc(rules, func(a, b Rule) int {
		if order := a.Until.Compare(b.Until); order != 0 {
			return order
		}
		return strings.Compare(a.ID, b.ID)
	})
	return rules, nil
}

func eachRule(tx memory.Tx, prefix string, fn func(key string, rule Rule)) error {
	return tx.Table(tableRules).Scan(prefix, func(key string, data []byte) error {
		rule, err := readRule(data)
		if err == nil {
			fn(key, rule)
		}
		return err
	})
}

// RevokeRules ends rules of a person's: the one with an id, or all for "". It returns how many it ended. A call that has not
// begun when that is on disk is asked about again.
func RevokeRules(tx memory.Tx, person PersonID, id string) (ended int, err error) {
	return removeRules(tx, ruleKey(person, ""), func(rule Rule) bool { return id == "" || rule.ID == id })
}

// removeRules takes out the rules for which is holds, of those whose rows begin with a prefix.
func removeRules(tx memory.Tx, prefix string, is func(Rule) bool) (removed int, err error) {
	var keys []string
	err = eachRule(tx, prefix, func(key string, rule Rule) {
		if is(rule) {
			keys = append(keys, key)
		}
	})
	for _, key := range keys {
		if err == nil {
			err = removeRule(tx, key)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("remove rules: %w", err)
	}
	return len(keys), nil
}

// SweepRules removes at most limit rules that ended before an instant, and returns how many it removed: fewer than limit
// when no more are that old.
func SweepRules(tx memory.Tx, before time.Time, limit int) (removed int, err error) {
	var old []string
	until := before.UTC().Format(savedTime)
	err = tx.Table(tableRulesTime).Scan("", func(row string, _ []byte) error {
		if len(old) >= limit || row >= until {
			return memory.ErrStop
		}
		old = append(old, row)
		return nil
	})
	for _, row := range old {
		_, key, _ := strings.Cut(row, "/")
		if err == nil {
			err = errors.Join(tx.Table(tableRules).Delete(key), tx.Table(tableRulesTime).Delete(row))
		}
	}
	if err != nil {
		return 0, fmt.Errorf("sweep the rules: %w", err)
	}
	return len(old), nil
}
