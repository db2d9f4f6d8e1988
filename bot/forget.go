package bot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nudge/agent"
	"nudge/agent/tool/notify"
	"nudge/agent/tool/workspace"
	"nudge/memory"
	"nudge/memory/diary"
	"nudge/schedule"
)

// A person is forgotten in steps, of which the store keeps how far they are: asked for, then removed in one transaction, then
// done, when neither their files nor the bytes of what was removed are there any more. Killed in between, it is gone on with
// at the next start, or when it is asked for again; nobody is told that it is done before it is.

// Oblivion is a person who is being forgotten.
type Oblivion struct {
	Person   string           `json:"person"` // as schedule.PersonOf has them
	Accounts []agent.PersonID `json:"accounts"`
	By       agent.PersonID   `json:"by,omitempty"`      // who asked for it; "" for whoever runs the program
	Answer   string           `json:"answer,omitempty"`  // the conversation in which it is told when it is done
	Removed  string           `json:"removed,omitempty"` // what was, in words; "" as long as nothing is
	At       time.Time        `json:"at"`
}

// tableOblivion keeps those that are not done, by person.
const tableOblivion memory.Rows[Oblivion] = "oblivion"

func (o Oblivion) put(tx memory.Tx) error { return tableOblivion.Put(tx, o.Person, o) }

// BeginForget keeps that a person is to be forgotten, with all accounts that they have. Of one who is being forgotten already
// it gives how far that is.
func BeginForget(tx memory.Tx, account, by agent.PersonID, answer string, now time.Time) (Oblivion, error) {
	if account == "" || len(account) > memory.MaxID {
		return Oblivion{}, fmt.Errorf("forget %.100q: %w", account, memory.ErrBadID)
	}
	begun, err := Oblivions(tx)
	if err != nil {
		return Oblivion{}, err
	}
	for _, o := range begun {
		if slices.Contains(o.Accounts, account) {
			return o, nil
		}
	}
	person, err := schedule.PersonOf(tx, string(account))
	if err != nil {
		return Oblivion{}, err
	}
	all, err := schedule.Accounts(tx, string(account))
	if err != nil {
		return Oblivion{}, err
	}
	o := Oblivion{Person: person, By: by, Answer: answer, At: now.UTC()}
	for _, a := range all {
		o.Accounts = append(o.Accounts, agent.PersonID(a.ID))
	}
	return o, o.put(tx)
}

// Oblivions gives those who are being forgotten.
func Oblivions(tx memory.Tx) ([]Oblivion, error) { return tableOblivion.All(tx, "") }

// own reports whether a session, or a conversation, is the person's alone.
func (o Oblivion) own(session string) bool {
	if owner := agent.WakeOwner(session); owner != "" {
		return slices.Contains(o.Accounts, owner)
	}
	return slices.ContainsFunc(o.Accounts, func(id agent.PersonID) bool { return isOwn(id, conversationOf(session)) })
}

// Remove stops what an agent runs for the person and removes all that is kept of them in the store, in one transaction. One of
// whom all was removed already is left as they are. notes has their diary; nil for none.
func (o Oblivion) Remove(ctx context.Context, ag *agent.Agent, notes *diary.Diary) (Oblivion, error) {
	if o.Removed != "" {
		return o, nil
	}
	done := o
	_, err := ag.Forget(ctx, agent.Forgetting{Accounts: o.Accounts, Own: o.own}, func(tx memory.Tx, of agent.Forgotten) (err error) {
		done, err = o.remove(tx, of, notes)
		return err
	})
	return done, err
}

// RemoveAtRest is Remove within a transaction, while no agent runs on the store.
func (o Oblivion) RemoveAtRest(tx memory.Tx, notes *diary.Diary) (Oblivion, error) {
	if o.Removed != "" {
		return o, nil
	}
	of, err := agent.ForgetAtRest(tx, agent.Forgetting{Accounts: o.Accounts, Own: o.own})
	if err != nil {
		return o, err
	}
	return o.remove(tx, of, notes)
}

// Done keeps that all is done, and answers who asked for it. more is what was removed besides, in words.
func (o Oblivion) Done(tx memory.Tx, more string) (receipt string, err error) {
	receipt = o.Removed
	if more != "" {
		receipt += "\n" + more
	}
	if err := tableOblivion.Delete(tx, o.Person); err != nil || o.Answer == "" {
		return receipt, err
	}
	return receipt, agent.Send(tx, agent.Reply{Kind: agent.Notice, Text: receipt, Address: o.Answer, Session: o.Answer})
}

// removal is what was removed of a person by all rooms.
type removal struct {
	agent.Forgotten
	traces     Erased // of all their sessions, what this room keeps
	notes      int
	vectors    int
	requests   int
	heartbeats int
	attention  int
	told       int
	config     []string // heartbeats of the config that still name them
}

// remove goes on, in the same transaction, where the agent's part of forgetting ended.
func (o Oblivion) remove(tx memory.Tx, of agent.Forgotten, notes *diary.Diary) (Oblivion, error) {
	r := removal{Forgotten: of}
	if notes != nil {
		if err := o.notes(tx, notes, &r); err != nil {
			return o, err
		}
	}
	for _, s := range of.Sessions {
		traces, err := eraseTraces(tx, s.Session, s.Began, s.Erased)
		if err != nil {
			return o, err
		}
		r.traces.Told += traces.Told
		r.traces.Receipts += traces.Receipts
		r.traces.Kept += traces.Kept
		r.traces.Letters += traces.Letters
	}
	for _, step := range []func(memory.Tx, *removal) error{o.schedule, o.letters, o.requests, o.codes, o.kept, o.access} {
		if err := step(tx, &r); err != nil {
			return o, fmt.Errorf("forget %s: %w", o.Accounts[0], err)
		}
	}
	said, anything := o.words(r)
	if o.Removed = said; !anything {
		return o, o.put(tx)
	}
	err := agent.Record(tx, agent.AuditLine{At: o.At, Did: agent.DidForget, By: o.by(of.Opaque), About: of.Opaque})
	return o, errors.Join(err, o.put(tx))
}

// by is who asked for it, as the audit may know them.
func (o Oblivion) by(opaque string) agent.PersonID {
	if slices.Contains(o.Accounts, o.By) {
		return agent.PersonID(opaque)
	}
	return o.By
}

// notes forgets what was remembered, before it is forgotten whose the accounts are.
func (o Oblivion) notes(tx memory.Tx, notes *diary.Diary, r *removal) error {
	people := []string{o.Person}
	for _, id := range o.Accounts {
		people = append(people, string(id))
	}
	for _, person := range people {
		removed, err := notes.Forget(tx, person)
		if err != nil {
			return err
		}
		r.notes += removed.Notes
		r.vectors += removed.Vectors
	}
	return nil
}

// schedule forgets heartbeats, attention and what heartbeats told.
func (o Oblivion) schedule(tx memory.Tx, r *removal) (err error) {
	var accounts []string
	for _, id := range o.Accounts {
		accounts = append(accounts, string(id))
		n, err := schedule.ForgetPerson(tx, string(id))
		if err != nil {
			return err
		}
		r.attention += n
	}
	for _, person := range append(accounts, o.Person) {
		n, err := notify.Forget(tx, person)
		if err != nil {
			return err
		}
		r.told += n
	}
	if r.heartbeats, r.config, err = schedule.ForgetHeartbeats(tx, accounts...); err != nil {
		return err
	}
	_, err = schedule.ForgetAccounts(tx, o.Person, o.At)
	return err
}

// letters removes what could not be said to them, also in conversations of which no session is left, and that it was tried.
func (o Oblivion) letters(tx memory.Tx, r *removal) error {
	blanked, err := forgetLetters(tx, o.own)
	r.traces.Letters += blanked
	return err
}

// requests removes those that name them.
func (o Oblivion) requests(tx memory.Tx, r *removal) error {
	named := func(id agent.PersonID) bool { return id != "" && slices.Contains(o.Accounts, id) }
	all, err := requests(tx, func(q request) bool { return named(q.Of.ID) || named(q.With.ID) || named(q.Asked) || named(q.By) })
	for _, q := range all {
		if err == nil {
			err = q.remove(tx)
		}
	}
	r.requests = len(all)
	return err
}

// codes removes their codes for linking, and how often they tried some.
func (o Oblivion) codes(tx memory.Tx, _ *removal) error {
	for _, id := range o.Accounts {
		if err := dropCodes(tx, id, time.Now()); err != nil {
			return err
		}
		for _, what := range []string{triedMaking, triedSaying} {
			if err := tableTries.Delete(tx, what+" "+string(id)); err != nil {
				return err
			}
		}
	}
	return nil
}

// kept removes what adapters keep of them, and what their files are called in which strangers' text may be.
func (o Oblivion) kept(tx memory.Tx, _ *removal) error {
	for _, id := range o.Accounts {
		if _, err := ForgetKept(tx, string(id)); err != nil {
			return err
		}
		if _, err := workspace.ForgetOutside(tx, id); err != nil {
			return err
		}
	}
	return nil
}

// access removes that an owner has let them in, or that they wanted to be.
func (o Oblivion) access(tx memory.Tx, _ *removal) error {
	for _, id := range o.Accounts {
		if err := errors.Join(tableGrants.Delete(tx, string(id)), tableStrangers.Delete(tx, string(id))); err != nil {
			return err
		}
	}
	return nil
}

// words is the receipt, as far as the store is concerned, and whether there was anything to remove. It must not say what stands
// for the person in the audit: it is kept for a while, and would tell who that is.
func (o Oblivion) words(r removal) (text string, anything bool) {
	var who, parts []string
	for _, id := range o.Accounts {
		who = append(who, string(id))
	}
	for _, of := range []struct {
		n     int
		thing string
	}{
		{r.notes, "note"}, {r.vectors, "vector"}, {len(r.Sessions), "session"}, {r.Entries, "journal line"}, {len(r.Cards), "card"}, {r.Mail, "waiting message"}, {r.Parcels, "undelivered parcel"},
		{r.Results, "saved result"}, {r.Rules, "rule"}, {r.heartbeats, "heartbeat"}, {r.attention, "opinion of being spoken to"}, {r.told + r.traces.Told, "note of what was told"},
		{r.traces.Receipts, "card receipt"}, {r.traces.Kept, "kept line"}, {r.traces.Letters, "dead letter"}, {r.requests, "request"}, {r.Days, "day of spending"}, {r.Known, "name and time zone"},
	} {
		if of.n > 0 {
			parts = append(parts, schedule.Counted(of.n, of.thing))
		}
	}
	text = "Forgotten: " + strings.Join(who, ", ") + ". "
	if parts == nil {
		text += "Nothing was kept in the data file."
	} else {
		text += "Removed: " + strings.Join(parts, ", ") + "."
	}
	if r.Shared > 0 {
		text += fmt.Sprintf(" In %s with others, %s had their words and lost them.", schedule.Counted(r.Shared, "conversation"), schedule.Counted(r.Blanked, "line"))
	}
	text += " The audit keeps when what was decided, with no words and no name."
	if r.config != nil {
		text += " The config still wakes them: " + strings.Join(r.config, ", ") + "."
	}
	return text, parts != nil || r.Shared > 0
}

// forgetMe asks a person whether they really want to be forgotten.
func (h *Hub) forgetMe(ctx context.Context, e Event, _ string) (Admission, error) {
	if !isOwn(e.From.ID, e.Address) {
		return h.aside(ctx, e, "", onlyDirect)
	}
	if h.Forget == nil {
		return h.answer(ctx, e, agent.Fault, "Nobody can be forgotten here; ask whoever runs me for `nudge forget`.")
	}
	return h.admitOnce(ctx, e, func(tx memory.Tx) error {
		if err := withdraw(tx, toForget, e.From.ID, e.at()); err != nil {
			return err
		}
		accounts, err := accountsOf(tx, e.From.ID)
		if err != nil {
			return err
		}
		q := request{
			Kind: toForget, Of: e.From, Accounts: [][]agent.PersonID{accounts}, Asked: e.From.ID, About: "forgetting", Choices: []string{"Forget me", "Keep everything"}, At: e.at(), Expires: e.at().Add(forgetFor),
			Text: fmt.Sprintf("Shall I forget you (%s)? What we said, what I remember, your files, heartbeats and rules go for good, and what runs for you is stopped. "+
				"Where others took part only your own words go. What stands on the platform and in old backups is not mine to remove.", listed(accounts)),
		}
		return q.ask(tx, e.Address)
	})
}

// forgetFor is for how long somebody who wants to be forgotten can say so again.
const forgetFor = 10 * time.Minute

// forgetDecided begins to forget who asked for it.
func (h *Hub) forgetDecided(tx memory.Tx, q request) (string, error) {
	if q.Decision != agent.Approve {
		return "Nothing was removed.", nil
	}
	now, err := accountsOf(tx, q.Of.ID)
	if err != nil {
		return "", err
	}
	if len(q.Accounts) != 1 || !slices.Equal(now, q.Accounts[0]) {
		return fmt.Sprintf("Nothing was removed: your accounts are others than those that I asked about, now %s. Ask anew with %s.", listed(now), h.word(q.Stands[0], "forget-me")), nil
	}
	if _, err := BeginForget(tx, q.Of.ID, q.Of.ID, q.Stands[0], q.Decided); err != nil {
		return "", err
	}
	return "I am forgetting you. I tell you here when it is done.", nil
}
