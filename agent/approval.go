package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"nudge/agent/compact"
	"nudge/memory"
)

// policy says who must agree to a call: what the config says of it, else what the tool does.
func (a *actor) policy(c *call, arguments json.RawMessage) (Policy, error) {
	return a.policyOf(c.tool, a.invocation(c, arguments))
}

func (ag *Agent) policyOf(tool *Tool, in Invocation) (Policy, error) {
	policy, err := ag.judgedPolicy(tool, in)
	if err != nil {
		return "", err
	}
	if policy == "" {
		policy = PolicyNo
	}
	if caution(tool, in) != "" {
		policy = stricter(policy, PolicyAsk)
	}
	return policy, nil
}

// judgedPolicy is what the config and the tool say of a call.
func (ag *Agent) judgedPolicy(tool *Tool, in Invocation) (Policy, error) {
	set, isSet := ag.Approve[tool.Name]
	if tool.Judge == nil {
		if isSet {
			return set, nil
		}
		return tool.Policy, nil
	}
	policy, as, err := tool.Judge(in)
	if err != nil {
		return "", err
	}
	if as != "" && as != tool.Name {
		if ofThis, ok := ag.Approve[as]; ok {
			return ofThis, nil
		}
	}
	if isSet {
		// What the tool says of this very call cannot be loosened by what the config says of all its calls.
		policy = stricter(policy, set)
	}
	return policy, nil
}

// stricter is the one of two policies that asks more.
func stricter(a, b Policy) Policy {
	order := []Policy{"", PolicyNo, PolicyAsk, PolicyOwner, PolicySecond}
	if slices.Index(order, a) > slices.Index(order, b) {
		return a
	}
	return b
}

// digest stands for one exact call: an approval is bound to it.
func (a *actor) digest(tool *Tool, in Invocation) string {
	depends := ""
	if tool.Digest != nil {
		depends = tool.Digest(in)
	}
	return digestOf(in.Session, in.Turn, in.Call, tool.Name, string(in.Arguments), depends)
}

// askCard asks a person about a call. The turn waits if it is the turn's own person who decides; otherwise the call
// is parked: it is answered now, and run if and when somebody agrees.
func (a *actor) askCard(c *call, policy Policy, question bool) error {
	return a.askWith(c, policy, question, c.arguments)
}

func (a *actor) askWith(c *call, policy Policy, question bool, arguments json.RawMessage) error {
	t := a.state.turn
	in := a.invocation(c, arguments)
	k := cardEntry{
		Turn: t.id, Run: t.run, Card: newID(""), Call: c.ID, Tool: c.Name, Arguments: arguments, Digest: a.digest(c.tool, in),
		Policy: policy, Asked: t.person.ID, Question: question, Wake: t.wake, Address: t.address,
		Expires: now().Add(a.Limits.Approval), Origin: in.origin, Why: a.why(c.tool, in),
	}
	if question {
		k.Expires = now().Add(a.Limits.Question)
	}
	k.Parked = !question && (t.provenance == Heartbeat || policy == PolicySecond || policy == PolicyOwner && !a.owns(t.person.ID))
	a.offersRule(&k, c.tool, in)
	if err := a.add(k); err != nil {
		return err
	}
	if err := a.show(k, c.tool, in); err != nil {
		return err
	}
	if !k.Parked {
		return nil
	}
	return a.answer(c, fmt.Sprintf("waiting for %s, id %s: it is run if and when that is approved; go on without it and do not ask for it again", strings.Join(a.deciders(k), " or "), k.Card), false)
}

// show puts a card into the outbox, and where it can be found again: by its id, and among those that wait.
func (a *actor) show(k cardEntry, tool *Tool, in Invocation) error {
	reply := Reply{
		Kind: Approval, Session: a.session, Turn: k.Turn, Run: k.Run, ID: k.Card, Address: k.Address,
		Tool: k.Tool, Arguments: k.Arguments, MayDecide: a.deciders(k), Expires: &k.Expires,
		Parked: k.Parked, Always: k.always(), Why: k.Why,
	}
	if tool.Card != nil {
		reply.Text = tool.Card(in)
	}
	if k.Question {
		var q questionArguments
		if err := in.Decode(&q); err != nil {
			return fmt.Errorf("read a question: %w", err)
		}
		reply = Reply{
			Kind: Ask, Session: a.session, Turn: k.Turn, Run: k.Run, ID: k.Card, Address: k.Address,
			Text: q.Question, Choices: q.Choices, Deadline: &k.Expires, Tainted: in.Tainted,
		}
	}
	return a.register(k, reply)
}

// always is until when the rule would hold that can be saved with a card; nil when none can be.
func (k cardEntry) always() *time.Time {
	if k.Rule == "" {
		return nil
	}
	return &k.Until
}

// register puts a card's reply into the outbox, and the card where it can be found again.
func (a *actor) register(k cardEntry, reply Reply) error {
	if reply.Kind == Approval {
		a.shown = append(a.shown, &reply)
	}
	addresses, asked := a.showAt(k), now()
	a.also(func(tx memory.Tx) error {
		data, err := plainJSON(reply) // once it is known which others go out with it
		if err != nil {
			return err
		}
		waiting, err := plainJSON(WaitingCard{Reply: reply, Conversation: k.Address, Person: k.Asked, Policy: k.Policy, Asked: asked, Origin: k.Origin})
		if err != nil {
			return err
		}
		if err := tx.Table(tableCards).Put(k.Card, []byte(a.session)); err != nil {
			return err
		}
		if err := tx.Table(tableWaiting).Put(k.Card, waiting); err != nil {
			return err
		}
		expiry := memory.DueRow{Key: timerKey(k.Card), At: k.Expires, Data: []byte(a.session)}
		if err := tx.Due().Put(expiry); err != nil {
			return err
		}
		for _, address := range addresses {
			if _, err := tx.Outbox().Put(address, data); err != nil {
				return err
			}
		}
		return nil
	})
	a.then(a.Outgoing, a.Rescheduled)
	return nil
}

// gather lets the last of several like cards of a batch, which are yet to be shown, decide all of them. Alike are those that
// the same people decide, and that differ in their calls alone.
func (a *actor) gather() {
	like := map[string][]*Reply{}
	for _, reply := range a.shown {
		key := digestOf(append([]string{reply.Tool, reply.Why}, reply.MayDecide...)...)
		like[key] = append(like[key], reply)
	}
	for _, cards := range like {
		cards[len(cards)-1].together(cards)
	}
	a.shown = nil
}

// showAt are the conversations where a card stands: where the conversation is, and for a card of owners also with
// each of them.
func (ag *Agent) showAt(k cardEntry) []string {
	addresses := []string{k.Address}
	if k.Policy != PolicyOwner {
		return addresses
	}
	owners := ag.Owners
	if len(owners) == 0 {
		owners = []PersonID{"web:me"}
	}
	for _, owner := range owners {
		if home := owner.Home(); !slices.Contains(addresses, home) && k.Asked != owner {
			addresses = append(addresses, home)
		}
	}
	return addresses
}

// WaitingCard is a card that awaits a decision.
type WaitingCard struct {
	Reply        Reply     `json:"reply"`
	Conversation string    `json:"conversation"`
	Person       PersonID  `json:"person"` // whose turn asked
	Policy       Policy    `json:"policy"`
	Asked        time.Time `json:"asked"`
	// Origin is what the model had before it when it asked for the call.
	Origin compact.Origin `json:"origin,omitzero"`
}

// WaitingCards calls fn for each card that awaits a decision, in the order in which they were asked.
func WaitingCards(tx memory.Tx, fn func(WaitingCard) error) error {
	var cards []WaitingCard
	err := tx.Table(tableWaiting).Scan("", func(_ string, data []byte) error {
		var w WaitingCard
		if err := json.Unmarshal(data, &w); err != nil {
			return fmt.Errorf("read a waiting card: %w", err)
		}
		w.Reply.Address = w.Conversation
		cards = append(cards, w)
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(cards, func(a, b WaitingCard) int { return a.Asked.Compare(b.Asked) })
	for _, w := range cards {
		if err := fn(w); err != nil {
			return err
		}
	}
	return nil
}

// WaitingCardOf gives the card with an id, if it awaits a decision.
func WaitingCardOf(tx memory.Tx, id string) (Reply, bool, error) {
	w, waiting, err := waitingCard(tx, id)
	return w.Reply, waiting, err
}

// FindCard is the session that a card belongs to. A card that was never asked gives ErrUnknownCard.
func FindCard(tx memory.Tx, card string) (string, error) {
	if card == "" || len(card) > memory.MaxID {
		return "", fmt.Errorf("card %.20q: %w", card, ErrUnknownCard)
	}
	session, found, err := tx.Table(tableCards).Get(card)
	if err == nil && !found {
		err = fmt.Errorf("card %q: %w", card, ErrUnknownCard)
	}
	return string(session), err
}

// deciders say who may decide about a card.
func (ag *Agent) deciders(k cardEntry) []string {
	switch k.Policy {
	case PolicyOwner:
		owners := make([]string, len(ag.Owners))
		for i, o := range ag.Owners {
			owners[i] = string(o)
		}
		if len(owners) == 0 {
			return []string{"an owner"}
		}
		return owners
	case PolicySecond:
		return []string{"anyone but " + string(k.Asked)}
	}
	return []string{string(k.Asked)}
}

// entitled reports whether a person may decide about a card under a policy, when asked is whose turn it is.
func (ag *Agent) entitled(asked PersonID, policy Policy, by PersonID) bool {
	switch policy {
	case PolicyOwner:
		return ag.owns(by)
	case PolicySecond:
		return by != asked && by != ""
	}
	return by == asked
}

// MayDecide reports whether a person may decide about a card that waits.
func (ag *Agent) MayDecide(w WaitingCard, by PersonID) bool {
	return ag.entitled(w.Person, w.Policy, by)
}

// decide takes a decision about a card of this session. The first one counts; the others are told what it was.
func (a *actor) decide(l letter, k *card) error {
	a.take(l)
	switch {
	case k == nil:
		return a.refuse(l, "I do not know a card with the id "+l.Decision.Card+".")
	case l.Decision.Verdict == Expire:
		if k.verdict != "" {
			return nil
		}
		return a.close(k, decidedEntry{Verdict: Expire})
	case k.verdict == "" && !l.At.Before(k.Expires):
		// The time-out's own mail has not come yet; the card has expired all the same.
		if err := a.close(k, decidedEntry{Verdict: Expire}); err != nil {
			return err
		}
		return a.tellOutcome(l, k)
	case k.verdict != "":
		return a.tellOutcome(l, k)
	case !a.entitled(k.Asked, k.Policy, l.From.ID):
		return a.refuseOthers(l, k)
	case k.Resumes:
		return a.decideOffer(l, k)
	case k.Unknown:
		return a.decideUnknown(l, k)
	case k.Question:
		return a.decideQuestion(l, k)
	}
	return a.decideCall(l, k)
}

// tellOutcome tells who comes late what was decided about a card.
func (a *actor) tellOutcome(l letter, k *card) error {
	a.say(Reply{Kind: Notice, ID: k.Card, Address: l.Address, To: l.From.ID, Text: k.outcome(l.From.Zone)})
	return nil
}

// decideOffer decides whether an ended turn goes on.
func (a *actor) decideOffer(l letter, k *card) error {
	switch d := l.Decision; {
	case d.Verdict == Approve, d.Verdict == Deny, d.Verdict == AnswerIt && chooses(d.Text, ChoiceContinue):
		return a.continueTurn(l, k)
	}
	return a.refuse(l, "This only asks whether to go on: answer with "+ChoiceContinue+", or say what else to do.")
}

// decideUnknown decides whether a call whose outcome is unknown is run again.
func (a *actor) decideUnknown(l letter, k *card) error {
	switch d := l.Decision; {
	case d.Verdict == Approve, d.Verdict == AnswerIt && chooses(d.Text, ChoiceAgain):
		return a.closeBy(l, k, decidedEntry{Verdict: Approve})
	case d.Verdict == Deny, d.Verdict == AnswerIt && chooses(d.Text, ChoiceLeave):
		return a.closeBy(l, k, decidedEntry{Verdict: Deny, Text: d.Text})
	}
	return a.refuse(l, "This only asks whether to run it again: answer with "+ChoiceAgain+" or "+ChoiceLeave+", or say what else to do.")
}

func (a *actor) decideQuestion(l letter, k *card) error {
	switch l.Decision.Verdict {
	case Approve, Always, Edit:
		return a.refuse(l, "That is a question; answer it in your own words.")
	}
	return a.answerQuestion(l, k, l.Decision.Text)
}

// decideCall decides whether a call is run.
func (a *actor) decideCall(l letter, k *card) error {
	switch d := l.Decision; d.Verdict {
	case AnswerIt:
		return a.refuse(l, "That is no question; approve it or deny it.")
	case Edit:
		return a.edit(l, k)
	case Always:
		return a.always(l, k)
	default:
		return a.closeBy(l, k, decidedEntry{Verdict: d.Verdict, Text: d.Text})
	}
}

// closeBy closes a card for the person who decided, and shows it to them as well.
func (a *actor) closeBy(l letter, k *card, d decidedEntry) error {
	d.By, d.Name = l.From.ID, l.From.Name
	a.tellDecider(l, k, d)
	return a.close(k, d)
}

// mark is what the places where a card stands are told of its decision.
func (d decidedEntry) mark() Reply {
	r := Reply{
		Kind: DecidedMark, Turn: d.Turn, ID: d.Card, Tool: d.Tool, Decision: d.Verdict, By: string(d.By), Text: d.Text, Arguments: d.Arguments, Rule: d.Rule,
	}
	if d.Rule != "" {
		r.Always = &d.Until
	}
	if d.Verdict == Edit {
		r.Told = d.Diff
	}
	return r
}

// tellDecider shows a decision where it was made, when the card stands elsewhere.
func (a *actor) tellDecider(l letter, k *card, d decidedEntry) {
	if l.Address == "" || slices.Contains(a.showAt(k.cardEntry), l.Address) {
		return
	}
	about := k.about(d)
	d.Turn, d.Card, d.Tool, d.Arguments = k.Turn, k.Card, k.Tool, nil
	mark := d.mark()
	mark.Told, mark.Address, mark.Tainted = about, l.Address, a.taints(k.Origin, k.Asked)
	a.say(mark)
}

// mostTold is how many bytes an outcome has of what its card asked.
const mostTold = 300

// about is what a card asked, in short, for its outcome: the arguments that run, or how they were changed, or the question.
func (k cardEntry) about(d decidedEntry) string {
	text := string(k.Arguments)
	var q questionArguments
	switch {
	case k.Resumes || k.Unknown:
		return ""
	case d.Verdict == Edit:
		return d.Diff
	case k.Question && json.Unmarshal(k.Arguments, &q) == nil:
		text = q.Question
	}
	return clip(text, mostTold)
}

func (a *actor) refuse(l letter, text string) error {
	a.say(Reply{Kind: Fault, ID: l.Decision.Card, Address: l.Address, To: l.From.ID, Text: text})
	return nil
}

// refuseOthers is refuse for somebody who may not decide.
func (a *actor) refuseOthers(l letter, k *card) error {
	var text string
	err := a.Store.View(context.Background(), func(tx memory.Tx) (err error) {
		text, err = a.notYours(tx, k.cardEntry)
		return err
	})
	if err != nil {
		return fmt.Errorf("look who may decide about card %s: %w", k.Card, err)
	}
	return a.refuse(l, text)
}

// close journals what was decided about a card, and everywhere the card stands says so. A call that shall not run
// gets its result in words.
func (a *actor) close(k *card, d decidedEntry) error {
	t := a.state.turn
	d.Turn, d.Card, d.Call, d.Tool, d.Question, d.Resumes = k.Turn, k.Card, k.Call, k.Tool, k.Question, k.Resumes
	if t != nil {
		d.Run = t.run
	}
	if err := a.add(d); err != nil {
		return err
	}
	if k.Parked && d.Verdict == Approve {
		a.owe()
	}
	a.settleCard(k, d)
	if k.Resumes {
		return nil
	}
	c := a.state.open(k.Call)
	if c == nil || c.card != k {
		if d.Verdict == Expire || d.Verdict == Deny {
			return a.notRun(k, d)
		}
		return nil
	}
	if k.Unknown && d.Verdict != Approve {
		return a.leave(c)
	}
	switch d.Verdict {
	case Deny:
		return a.answer(c, denied(d), false)
	case Expire:
		return a.answer(c, expired(k), false)
	}
	return nil
}

// settleCard takes a card from those that wait, and marks it everywhere it stands.
func (a *actor) settleCard(k *card, d decidedEntry) {
	id := k.Card
	a.also(func(tx memory.Tx) error {
		if err := tx.Table(tableWaiting).Delete(id); err != nil {
			return err
		}
		return tx.Due().Remove(timerKey(id))
	})
	for _, at := range a.showAt(k.cardEntry) {
		mark := d.mark()
		mark.Run, mark.Arguments, mark.Told, mark.Address = d.Run, nil, k.about(d), at
		mark.Tainted = a.taints(k.Origin, k.Asked)
		a.say(mark)
	}
}

// chooses reports whether words are a choice.
func chooses(words, choice string) bool {
	return strings.EqualFold(strings.Trim(words, " \t\r\n.!"), choice)
}

// expired is a time-out as the model reads it.
func expired(k *card) string {
	until := k.Expires.Format(time.RFC3339)
	if k.Question {
		return fmt.Sprintf("no answer came until %s; go on without one, and say what you assumed", until)
	}
	return fmt.Sprintf("not run: nobody decided about it until %s, so it counts as denied", until)
}

// notRun tells a person and the model of their session that a parked call is not going to run.
func (a *actor) notRun(k *card, d decidedEntry) error {
	why := denied(d)
	if d.Verdict == Expire {
		why = expired(k)
	}
	a.say(Reply{Kind: Notice, Turn: k.Turn, ID: k.Card, Address: k.Address, Text: fmt.Sprintf("%s (card %s): %s.", k.Tool, k.Card, strings.TrimSuffix(why, "."))})
	note := Note{Text: fmt.Sprintf("the call of %s with %s that waited (card %s): %s", k.Tool, k.Arguments, k.Card, why), Origin: k.Origin}
	if d.By != "" && d.By != k.Asked {
		note.Origin = note.Origin.With(compact.Origin{Speakers: []string{string(d.By)}})
	}
	a.send(k.Address, Message{Provenance: Decided, Note: &note})
	return nil
}

// send puts a message into the inbox of a conversation's session, which may be this one, with the next commit.
func (a *actor) send(conversation string, m Message) {
	var session string
	a.also(func(tx memory.Tx) (err error) {
		session, err = post(tx, conversation, m)
		return err
	})
	a.then(func() { a.look(session) })
}

// post puts a message into the mail of a conversation's present session.
func post(tx memory.Tx, conversation string, m Message) (session string, err error) {
	if session, err = SessionOf(tx, conversation); err != nil {
		return "", err
	}
	data, err := plainJSON(m)
	if err != nil {
		return "", fmt.Errorf("encode a message for %s: %w", session, err)
	}
	_, err = tx.Inbox().Put(session, data)
	return session, err
}

// denied is a denial as the model reads it.
func denied(d decidedEntry) string {
	who := nameOf(Person{ID: d.By, Name: d.Name})
	if d.Text == "" {
		return fmt.Sprintf("not run: %s denied this call and gave no reason", who)
	}
	return fmt.Sprintf("not run: %s denied this call: %s", who, d.Text)
}

// edit decides a card with other arguments, which go through the policy anew.
func (a *actor) edit(l letter, k *card) error {
	tool := a.box().named[k.Tool]
	if tool == nil {
		return a.refuse(l, toolGone(k.Tool))
	}
	c := a.state.open(k.Call)
	if c == nil || c.card != k {
		return a.refuse(l, parkedEdit)
	}
	arguments, err := tool.schema.Check(string(l.Decision.Arguments))
	if err != nil {
		return a.refuse(l, "These arguments do not fit, and nothing was decided: "+err.Error())
	}
	c.tool = tool.Tool
	policy, err := a.policy(c, arguments)
	if err != nil {
		return a.refuse(l, "This cannot be run, and nothing was decided: "+err.Error())
	}
	if policy != PolicyNo && !a.entitled(k.Asked, policy, l.From.ID) {
		return a.refuse(l, "With these arguments it is not yours to decide; nothing was decided.")
	}
	return a.closeBy(l, k, decidedEntry{
		Verdict: Edit, Arguments: arguments, Digest: a.digest(tool.Tool, a.invocation(c, arguments)), Diff: editDiff(k.Arguments, arguments),
	})
}

// editedBy tells the model, before a result, that a person changed the arguments.
func editedBy(k *card) string {
	if k == nil || k.verdict != Edit {
		return ""
	}
	return fmt.Sprintf("(%s changed the arguments to %s)\n", nameOf(k.by), k.Arguments)
}

// outcome is what was decided about a card, for a person who comes late.
func (k *card) outcome(zone string) string {
	if k.verdict == "" {
		return "it is not decided yet"
	}
	at := ""
	if zone != "" {
		at = " at " + local(k.at, zone)
	}
	switch k.verdict {
	case Approve:
		return fmt.Sprintf("It was already approved by %s%s.", nameOf(k.by), at)
	case Edit:
		return fmt.Sprintf("It was already approved by %s%s, with other arguments.", nameOf(k.by), at)
	case Always:
		return fmt.Sprintf("It was already approved by %s%s, and allowed from then on.", nameOf(k.by), at)
	case Deny:
		return fmt.Sprintf("It was already denied by %s%s.", nameOf(k.by), at)
	case AnswerIt:
		return fmt.Sprintf("It was already answered by %s%s.", nameOf(k.by), at)
	case Expire:
		return "It had expired" + at + ", which counts as denied."
	}
	return "It was withdrawn" + at + "."
}

func nameOf(p Person) string {
	if p.Name != "" {
		return p.Name
	}
	if p.ID == "" {
		return "nobody"
	}
	return string(p.ID)
}

// TimerPrefix begins the keys of the due rows that are the agent's: cards that expire.
const TimerPrefix = "timer/"

func timerKey(card string) string { return TimerPrefix + "card/" + card }

// Expired puts the news that a due row of the agent's fell due into its session's inbox, in the transaction that
// takes the row out. It returns that session, for [Agent.Look] once that is on disk.
func Expired(tx memory.Tx, row memory.DueRow) (session string, err error) {
	data, err := json.Marshal(Message{
		Provenance: Timer, At: row.At, Decision: &Decision{Card: strings.TrimPrefix(row.Key, timerKey("")), Verdict: Expire},
	})
	if err != nil {
		return "", err
	}
	session = string(row.Data)
	_, err = tx.Inbox().Put(session, data)
	return session, err
}
