package bot

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nudge/agent"
	"nudge/agent/tool/notify"
	"nudge/memory"
	"nudge/schedule"
)

// Two accounts of one person are linked in three steps: with one a code is made, with the other it is said and agreed to, and
// with the first that is agreed to again. Nobody is linked with an account that they have not been shown: where one that is
// agreed to has become one with others meanwhile, it is to be asked anew. A code that somebody was talked into saying, or that
// somebody has overheard, is of no use without the other side.

// The bounds of codes.
const (
	codeFor     = 10 * time.Minute // for how long one is good, and then as long again to agree
	codeLetters = 15               // 75 bits
	codeGroup   = 5
	mostCodes   = 5 // that one account makes in an hour
	mostWrong   = 5 // that one account says wrong in an hour
	triesFor    = time.Hour
)

// The tables of codes and of who made and tried how many.
const (
	tableCodes memory.Rows[linkCode] = "link_code" // by digest of the code
	tableTries memory.Rows[tries]    = "link_try"  // by what was done and account
)

// What is counted.
const (
	triedMaking = "made"
	triedSaying = "said"
)

// linkCode is a code that was made and not said yet. What it is itself is not kept.
type linkCode struct {
	Of      agent.Person `json:"of"`
	Expires time.Time    `json:"expires"`
}

// tries is how often an account has done something of late.
type tries struct {
	Since time.Time `json:"since"`
	Count int       `json:"count"`
}

const linkUsage = "%s makes a code, to be said with your other account as %s. %s parts an account from the others."

// link lists a person's accounts, makes or takes a code, or parts an account from the others. All of it is for them alone.
func (h *Hub) link(ctx context.Context, e Event, rest string) (Admission, error) {
	word, more := cutWord(rest)
	word = strings.ToLower(word)
	switch {
	case !isOwn(e.From.ID, e.Address):
		return h.linkElsewhere(ctx, e, rest)
	case word == "":
		return h.answerWith(ctx, e, func(tx memory.Tx) (agent.Kind, string, error) { return h.linked(tx, e) })
	case word == "new" && more == "":
		return h.answerWith(ctx, e, func(tx memory.Tx) (agent.Kind, string, error) { return h.newCode(tx, e) })
	case word == "remove":
		return h.answerWith(ctx, e, func(tx memory.Tx) (agent.Kind, string, error) { return h.unlink(tx, e, more) })
	}
	return h.answerWith(ctx, e, func(tx memory.Tx) (agent.Kind, string, error) { return h.takeCode(tx, e, rest) })
}

// linkElsewhere answers where others read along, and spoils a code that was said there.
func (h *Hub) linkElsewhere(ctx context.Context, e Event, rest string) (Admission, error) {
	return h.answerReply(ctx, e, func(tx memory.Tx) (agent.Reply, error) {
		err := tableCodes.Delete(tx, codeKey(rest))
		return agent.Reply{Kind: agent.Fault, To: e.From.ID, Text: onlyDirect + " A code that was said here is no good any more."}, err
	})
}

// linked lists the accounts of an event's person.
func (h *Hub) linked(tx memory.Tx, e Event) (agent.Kind, string, error) {
	accounts, err := schedule.Accounts(tx, string(e.From.ID))
	if err != nil {
		return "", "", err
	}
	usage := fmt.Sprintf(linkUsage, h.word(e.Address, "link new"), h.word(e.Address, "link CODE"), h.word(e.Address, "link remove ACCOUNT"))
	if len(accounts) < 2 {
		return agent.Notice, "This account stands for itself. " + usage, nil
	}
	lines := []string{"You are one person with these accounts:"}
	for _, a := range accounts {
		line := fmt.Sprintf("%s  since %s", a.ID, localTime(a.Since, zoneOf(e.From)))
		if a.ID == string(e.From.ID) {
			line += "  (this one)"
		}
		lines = append(lines, line)
	}
	return agent.Notice, strings.Join(append(lines, usage), "\n"), nil
}

// newCode makes a code, in place of one that was made before.
func (h *Hub) newCode(tx memory.Tx, e Event) (agent.Kind, string, error) {
	if ok, err := tryOnce(tx, triedMaking, e.From.ID, mostCodes, e.at()); err != nil || !ok {
		return agent.Fault, "You have made many codes of late. Try again in an hour.", err
	}
	if err := dropCodes(tx, e.From.ID, e.at()); err != nil {
		return "", "", err
	}
	letters := rand.Text()[:codeLetters]
	if err := tableCodes.Put(tx, codeKey(letters), linkCode{e.From, e.at().Add(codeFor).UTC()}); err != nil {
		return "", "", err
	}
	var groups []string
	for at := 0; at < codeLetters; at += codeGroup {
		groups = append(groups, letters[at:at+codeGroup])
	}
	return agent.Notice, fmt.Sprintf("Within %d minutes, give me this code in direct messages of your other account, with /link or nudge link, as commands are written there:\n%s\n"+
		"It works once. Give it to nobody else: whoever becomes one person with you reads what I remember of you.",
		int(codeFor.Minutes()), strings.Join(groups, "-")), nil
}

// codeKey is the row of a code, however its letters are grouped.
func codeKey(code string) string {
	code = strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '2' && r <= '7' {
			return r
		}
		return -1
	}, strings.ToUpper(code))
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:])
}

// dropCodes forgets the codes of an account, and all that are over.
func dropCodes(tx memory.Tx, of agent.PersonID, now time.Time) error {
	return tableCodes.Sweep(tx, func(c linkCode) bool { return c.Of.ID == of || !now.Before(c.Expires) })
}

// tryOnce counts that an account does something, and reports whether it may.
func tryOnce(tx memory.Tx, what string, who agent.PersonID, most int, now time.Time) (ok bool, err error) {
	key := what + " " + string(who)
	if len(key) > memory.MaxID {
		return false, nil
	}
	t, _, err := tableTries.Get(tx, key)
	if err != nil {
		return false, fmt.Errorf("look how often %s has %s a code: %w", who, what, err)
	}
	if now.Sub(t.Since) >= triesFor || now.Before(t.Since) {
		t = tries{Since: now.UTC()}
	}
	if t.Count >= most {
		return false, nil
	}
	t.Count++
	return true, tableTries.Put(tx, key, t)
}

// sweepTries forgets counts that are over.
func sweepTries(tx memory.Tx, now time.Time) error {
	return tableTries.Sweep(tx, func(t tries) bool { return now.Sub(t.Since) >= triesFor })
}

const noCode = "That code is wrong, used or too old. Make a new one with your other account."

// takeCode takes a code that was said, which is then used up, and asks who said it whether they want what it leads to.
func (h *Hub) takeCode(tx memory.Tx, e Event, code string) (agent.Kind, string, error) {
	c, found, err := tableCodes.Get(tx, codeKey(code))
	if err != nil {
		return "", "", err
	}
	if c.Of.ID == e.From.ID && found {
		return agent.Fault, "This is the account that made the code. Say it with the other one.", nil
	}
	ok, err := tryOnce(tx, triedSaying, e.From.ID, mostWrong, e.at())
	switch {
	case err != nil:
		return "", "", err
	case !ok:
		return agent.Fault, "You have tried many codes of late. Try again in an hour.", nil
	case !found || !e.at().Before(c.Expires):
		return agent.Fault, noCode, nil
	}
	if err := tableCodes.Delete(tx, codeKey(code)); err != nil {
		return "", "", err
	}
	q := request{
		Kind: toLink, Of: c.Of, With: e.From, Asked: e.From.ID, About: "one person with " + string(c.Of.ID), Choices: []string{"Join", "Don't join"},
		At: e.at(), Expires: e.at().Add(codeFor),
	}
	if q.Accounts, err = bothSides(tx, q); err != nil {
		return "", "", err
	}
	if fault := againstLink(q); fault != "" {
		return agent.Fault, fault, nil
	}
	q.Text = linkText(q.With, q.Of, q.Accounts)
	return agent.Notice, "The code is good. Nothing is joined before both sides agree.", q.ask(tx, e.Address)
}

// bothSides are all accounts that a request would join: those of who made the code first, and then those of who said it.
func bothSides(tx memory.Tx, q request) (sides [][]agent.PersonID, err error) {
	for _, id := range []agent.PersonID{q.Of.ID, q.With.ID} {
		side, err := accountsOf(tx, id)
		if err != nil {
			return nil, err
		}
		sides = append(sides, side)
	}
	return sides, nil
}

// accountsOf are all accounts of whoever has one, in an order that only depends on which they are.
func accountsOf(tx memory.Tx, id agent.PersonID) (ids []agent.PersonID, err error) {
	all, err := schedule.Accounts(tx, string(id))
	for _, a := range all {
		ids = append(ids, agent.PersonID(a.ID))
	}
	slices.Sort(ids)
	return ids, err
}

// linkText asks somebody with one account whether to be one person with another. All accounts that would be joined are named:
// whoever agrees lets each of them read what is remembered.
func linkText(asked, with agent.Person, sides [][]agent.PersonID) string {
	here, there := "this account", named(with)
	for _, side := range sides {
		others := slices.DeleteFunc(slices.Clone(side), func(id agent.PersonID) bool { return id == asked.ID || id == with.ID })
		switch {
		case len(others) == 0:
		case slices.Contains(side, asked.ID):
			here += ", what it is linked with (" + listed(others) + ")"
		default:
			there += ", what that is linked with (" + listed(others) + ")"
		}
	}
	return fmt.Sprintf("Shall %s and %s be one person? Then each reads what I remember of any, and they share what I may spend and how often I may speak unasked. "+
		"Agree only if all of them are yours. Sessions and rights stay each account's own.", here, there)
}

func listed(ids []agent.PersonID) string {
	var names []string
	for _, id := range ids {
		names = append(names, string(id))
	}
	return strings.Join(names, ", ")
}

// named is an account with the name that it goes by, which proves nothing.
func named(p agent.Person) string {
	if p.Name == "" {
		return string(p.ID)
	}
	return fmt.Sprintf("%s (it calls itself %q)", p.ID, oneLine(Visible(p.Name)))
}

// againstLink says why the two sides of a request cannot be linked; "" when they can.
func againstLink(q request) (fault string) {
	one, other := q.Accounts[0], q.Accounts[1]
	switch {
	case slices.Contains(one, q.With.ID):
		return "These two accounts are one person's already."
	case len(one)+len(other) > schedule.MostAccounts:
		return fmt.Sprintf("One person has %d accounts at most.", schedule.MostAccounts)
	}
	return ""
}

// linkStale says that one of the sides is not any more what was shown to who decides, or is being forgotten; "" when both are.
func linkStale(tx memory.Tx, q request) (fault string, err error) {
	begun, err := Oblivions(tx)
	if err != nil {
		return "", err
	}
	for _, o := range begun {
		if slices.Contains(o.Accounts, q.Of.ID) || slices.Contains(o.Accounts, q.With.ID) {
			return "Nothing was joined: one side is being forgotten. Make a new code once that is done.", nil
		}
	}
	now, err := bothSides(tx, q)
	if err != nil || slices.EqualFunc(now, q.Accounts, slices.Equal[[]agent.PersonID]) {
		return "", err
	}
	return "Nothing was joined: which accounts these would be has changed since I asked. Make a new code to be asked anew.", nil
}

// linkAgreed goes on when who said the code has decided: who made it is asked.
func (h *Hub) linkAgreed(tx memory.Tx, q request) (string, error) {
	if q.Decision != agent.Approve {
		return "Nothing was joined.", nil
	}
	if fault, err := linkStale(tx, q); err != nil || fault != "" {
		return fault, err
	}
	next := request{
		Kind: toLinkBack, Of: q.Of, With: q.With, Accounts: q.Accounts, Asked: q.Of.ID, About: "one person with " + string(q.With.ID), Choices: q.Choices,
		Text: "Your code was said. " + linkText(q.Of, q.With, q.Accounts), At: q.Decided, Expires: q.Decided.Add(codeFor),
	}
	return fmt.Sprintf("Now agree with %s as well, within %d minutes: I have asked there.", q.Of.ID, int(codeFor.Minutes())), next.ask(tx, q.Of.ID.Home())
}

// linkDecided joins the two when both sides have agreed.
func (h *Hub) linkDecided(tx memory.Tx, q request) (string, error) {
	tell := func(text string) error {
		address := q.With.ID.Home()
		return agent.Send(tx, agent.Reply{Kind: agent.Notice, Text: text, Address: address, Session: address})
	}
	if q.Decision != agent.Approve {
		return "Nothing was joined.", tell(fmt.Sprintf("%s did not agree, so nothing was joined.", q.Of.ID))
	}
	if fault, err := linkStale(tx, q); err != nil || fault != "" {
		return fault, errors.Join(err, tell(fault))
	}
	if err := h.joinPeople(tx, q); err != nil {
		return "", err
	}
	text := "%s and this account are one person now: I remember what you tell me in either, and what I may spend and say unasked counts for both. %s parts them again."
	return fmt.Sprintf(text, q.With.ID, h.word(q.Of.ID.Home(), "link remove "+string(q.With.ID))),
		tell(fmt.Sprintf(text, q.Of.ID, h.word(q.With.ID.Home(), "link remove "+string(q.Of.ID))))
}

// joinPeople makes two accounts one person's in every room that keeps something by person.
func (h *Hub) joinPeople(tx memory.Tx, q request) error {
	joined, err := schedule.Link(tx, string(q.Of.ID), string(q.With.ID), q.Decided)
	if err != nil {
		return err
	}
	for i, was := range joined.Was {
		if err := errors.Join(agent.JoinSpent(tx, was, joined.Person), notify.Join(tx, was, joined.Person)); err != nil {
			return err
		}
		if h.Diary == nil {
			continue
		}
		account := ""
		if side := q.Accounts[i]; len(side) == 1 {
			account = string(side[0])
		}
		if _, err := h.Diary.Move(tx, was, joined.Person, account); err != nil {
			return err
		}
	}
	return agent.Record(tx, agent.AuditLine{At: q.Decided, Did: agent.DidLink, By: q.By, About: string(q.Of.ID), With: string(q.With.ID), Card: q.ID})
}

// partPeople parts an account from the others of its person in every room that keeps something by person, and gives how many
// notes went with it.
func (h *Hub) partPeople(tx memory.Tx, account string, at time.Time) (notes int, err error) {
	was, err := schedule.Unlink(tx, account, at)
	if err == nil {
		err = errors.Join(agent.PartSpent(tx, was, account), notify.Part(tx, was, account))
	}
	if err != nil || h.Diary == nil {
		return 0, err
	}
	return h.Diary.Part(tx, was, account)
}

// unlink parts one of a person's accounts from the others.
func (h *Hub) unlink(tx memory.Tx, e Event, account string) (agent.Kind, string, error) {
	accounts, err := schedule.Accounts(tx, string(e.From.ID))
	if err != nil {
		return "", "", err
	}
	theirs := false
	for _, a := range accounts {
		theirs = theirs || a.ID == account
	}
	if !theirs {
		return agent.Fault, fmt.Sprintf("You have no account %q. %s lists yours.", account, h.word(e.Address, "link")), nil
	}
	notes, err := h.partPeople(tx, account, e.at())
	if errors.Is(err, schedule.ErrUnlinked) {
		return agent.Fault, "This account is linked with no other.", nil
	}
	if err == nil {
		err = agent.Record(tx, agent.AuditLine{At: e.at(), Did: agent.DidUnlink, By: e.From.ID, About: account})
	}
	if err != nil {
		return "", "", err
	}
	went := "No note was made with it, so what I remember stays with your other accounts."
	if notes > 0 {
		went = fmt.Sprintf("%s made with it went along; what else I remember stays with your other accounts.", schedule.Counted(notes, "note"))
	}
	text := fmt.Sprintf("%s stands for itself from now on. %s What was spent of the day's money counts for both.", account, went)
	if account != string(e.From.ID) {
		address := agent.PersonID(account).Home()
		told := agent.Reply{Kind: agent.Notice, Address: address, Session: address, Text: fmt.Sprintf("%s has parted this account from their others: it stands for itself from now on, and has what I was told with it: %s.", e.From.ID, schedule.Counted(notes, "note"))}
		if err := agent.Send(tx, told); err != nil {
			return "", "", err
		}
	}
	return agent.Notice, text, nil
}
