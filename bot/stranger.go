package bot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nudge/agent"
	"nudge/memory"
)

// Nobody is served who is not let in: by the config, or by an owner who said so on a card. Somebody who is not and speaks to the
// bot hears so once, and the owners are asked once; neither happens so often that strangers could flood anybody.

// The bounds of strangers.
const (
	strangerFor     = 30 * 24 * time.Hour // for how long somebody who was told, or ignored, is not told or asked about again
	mostStrangers   = 2000                // that are remembered; more hear nothing
	mostRequests    = 10                  // about strangers in an hour
	mostPolite      = 30                  // strangers who are told something in an hour
	strangerAskedBy = "asked"             // what is counted: see [tryOnce]
	strangerTold    = "told"
)

// The tables of who was let in by a card, and who wanted to be.
const (
	tableGrants    memory.Rows[Grant]    = "grant"    // by person
	tableStrangers memory.Rows[stranger] = "stranger" // by person
)

// Grant is somebody's leave to talk to the bot, given by an owner on a card. It holds for exactly one id until it is revoked.
type Grant struct {
	Person agent.PersonID `json:"person"`
	Name   string         `json:"name,omitempty"` // that they went by then, which proves nothing
	By     agent.PersonID `json:"by"`
	At     time.Time      `json:"at"`
}

// stranger is somebody who is not let in and has spoken to the bot.
type stranger struct {
	At      time.Time `json:"at"`
	Ignored bool      `json:"ignored,omitempty"` // by an owner
}

// granted reports whether an owner has let a person in.
func (h *Hub) granted(ctx context.Context, id agent.PersonID) (found bool, err error) {
	if id == "" || len(id) > memory.MaxID {
		return false, nil
	}
	err = h.Store.View(ctx, func(tx memory.Tx) error {
		found, err = tableGrants.Has(tx, string(id))
		return err
	})
	if err != nil {
		return false, fmt.Errorf("look whether %s is let in: %w", id, err)
	}
	return found, nil
}

// Grants gives those whom owners have let in, in order of their ids.
func Grants(tx memory.Tx) ([]Grant, error) { return tableGrants.All(tx, "") }

// refuse turns somebody away who is not let in. Whoever spoke to the bot hears so, once.
func (h *Hub) refuse(ctx context.Context, e Event) (Admission, error) {
	h.Log.Warn("refused somebody who is not let in; allow in [access] says who is, and so do owners on a card", "person", e.From.ID, "standing", e.Standing)
	speaks := (strings.TrimSpace(e.Text) != "" || len(e.Files) > 0) && !e.Overheard
	if !speaks || e.Standing == Automaton || e.From.ID == "" || len(e.From.ID) > memory.MaxID/2 {
		return Refused, nil
	}
	known := false
	err := h.Store.View(ctx, func(tx memory.Tx) (err error) {
		known, err = tableStrangers.Has(tx, string(e.From.ID))
		return err
	})
	if err != nil || known {
		return Refused, err // most of a flood ends here, and costs no write
	}
	err = h.Store.Update(ctx, func(tx memory.Tx) error { return h.meet(tx, e) })
	if err != nil {
		return 0, fmt.Errorf("turn %s away: %w", e.From.ID, err)
	}
	h.Outgoing()
	return Refused, nil
}

// meet notes a stranger, tells them where they stand and asks the owners, as far as there is room for it.
func (h *Hub) meet(tx memory.Tx, e Event) error {
	if fresh, err := markSeen(tx, e); err != nil || !fresh {
		return err
	}
	known, err := tableStrangers.Has(tx, string(e.From.ID))
	if err != nil || known {
		return err
	}
	n := 0
	if err := tableStrangers.Table(tx).Scan("", func(string, []byte) error { n++; return nil }); err != nil || n >= mostStrangers {
		return err
	}
	if err := tableStrangers.Put(tx, string(e.From.ID), stranger{At: e.at().UTC()}); err != nil {
		return err
	}
	asked, err := tryOnce(tx, strangerAskedBy, "", mostRequests, e.at())
	if err != nil {
		return err
	}
	if asked {
		if err := h.askOwners(tx, e); err != nil {
			return err
		}
	}
	told, err := tryOnce(tx, strangerTold, "", mostPolite, e.at())
	if err != nil || !told {
		return err
	}
	r := e.alone(agent.Reply{Kind: agent.Notice, Text: "I only work for people whom I was told to serve, so nothing was done. If you should be one of them, ask whoever runs me.", Address: e.Address, Session: e.Address})
	if asked {
		r.Text = "I only work for people whom I was told to serve, so nothing was done. I have asked whoever decides that."
	}
	return agent.Send(tx, r)
}

// askOwners puts a card before the owners, or before who sits at the console where the config names none.
func (h *Hub) askOwners(tx memory.Tx, e Event) error {
	owners := h.Owners
	if len(owners) == 0 {
		owners = []agent.PersonID{"web:me"}
	}
	var homes []string
	for _, owner := range owners {
		home, _, err := agent.Home(tx, owner)
		if err != nil {
			return err
		}
		if home != e.Address && !slices.Contains(homes, home) {
			homes = append(homes, home)
		}
	}
	where := "in direct messages"
	if !agent.Direct(e.Address) {
		where = "in " + e.Address
	}
	return request{
		Kind: toEnter, Of: e.From, About: "letting " + string(e.From.ID) + " in", Choices: []string{"Allow", "Ignore"}, At: e.at(), Expires: e.at().Add(strangerFor),
		Text: fmt.Sprintf("%s spoke to me %s and is not let in; their platform says that they are %s. Shall I serve them? It holds for this id until %s revokes it.",
			named(e.From), where, e.Standing, h.word(owners[0].Home(), "access revoke "+string(e.From.ID))),
	}.ask(tx, homes...)
}

// strangerDecided lets a stranger in, or not.
func (h *Hub) strangerDecided(tx memory.Tx, q request) (string, error) {
	id := string(q.Of.ID)
	line := agent.AuditLine{At: q.Decided, Did: agent.DidIgnore, By: q.By, About: id, Card: q.ID}
	if q.Decision != agent.Approve {
		err := tableStrangers.Put(tx, id, stranger{At: q.Decided, Ignored: true})
		return fmt.Sprintf("%s is ignored.", id), errors.Join(err, agent.Record(tx, line))
	}
	line.Did = agent.DidAllow
	home := q.Of.ID.Home()
	err := errors.Join(
		tableGrants.Put(tx, id, Grant{q.Of.ID, q.Of.Name, q.By, q.Decided}), tableStrangers.Delete(tx, id), agent.Record(tx, line),
		agent.Send(tx, agent.Reply{Kind: agent.Notice, Address: home, Session: home, Text: "You are let in now. Say again what you wanted; " + h.word(home, "help") + " tells what I take."}),
	)
	return fmt.Sprintf("%s is let in. %s ends that, and %s lists who is.", id, h.word(q.Stands[0], "access revoke "+id), h.word(q.Stands[0], "access")), err
}

// access lists for owners who is let in, or ends that.
func (h *Hub) access(ctx context.Context, e Event, rest string) (Admission, error) {
	word, id := cutWord(rest)
	return h.answerReply(ctx, e, func(tx memory.Tx) (r agent.Reply, err error) {
		r.Kind = agent.Notice
		switch {
		case !h.agent.Owns(e.From.ID):
			r.Kind, r.Text = agent.Fault, "Only an owner may do that."
		case word == "":
			r.Text, err = h.letIn(tx, e)
			r.Tainted = true // with names of people's own choosing
		case strings.EqualFold(word, "revoke") && id != "":
			r.Kind, r.Text, err = h.revokeAccess(tx, e, id)
		default:
			r.Kind, r.Text = agent.Fault, fmt.Sprintf("Say %s, or nothing to see who is let in.", h.word(e.Address, "access revoke ID"))
		}
		return e.alone(r), err
	})
}

// letIn says who is served, and who is not though they asked.
func (h *Hub) letIn(tx memory.Tx, e Event) (string, error) {
	lines := []string{"By the config: the people at this machine" + strings.Join(append([]string{""}, h.Allow...), ", ") + "."}
	grants, err := Grants(tx)
	if err != nil {
		return "", err
	}
	for _, g := range grants {
		lines = append(lines, fmt.Sprintf("%s, let in by %s %s", named(agent.Person{ID: g.Person, Name: g.Name}), g.By, localTime(g.At, zoneOf(e.From))))
	}
	err = tableStrangers.Scan(tx, "", func(id string, s stranger) error {
		word := "not let in"
		if s.Ignored {
			word = "ignored"
		}
		lines = append(lines, fmt.Sprintf("%s, %s, since %s", id, word, localTime(s.At, zoneOf(e.From))))
		return nil
	})
	return strings.Join(append(lines, h.word(e.Address, "access revoke ID")+" ends what a card has let in, and lets somebody who is ignored ask again."), "\n"), err
}

// revokeAccess ends a grant, or that somebody is ignored.
func (h *Hub) revokeAccess(tx memory.Tx, e Event, id string) (agent.Kind, string, error) {
	if len(id) > memory.MaxID {
		return agent.Fault, "There is nobody of that id.", nil
	}
	granted, err := tableGrants.Has(tx, id)
	if err != nil {
		return "", "", err
	}
	met, err := tableStrangers.Has(tx, id)
	switch {
	case err != nil:
		return "", "", err
	case !granted && !met:
		return agent.Fault, fmt.Sprintf("No card has let %s in. Whom the config lets in, it alone can shut out.", id), nil
	}
	err = errors.Join(tableGrants.Delete(tx, id), tableStrangers.Delete(tx, id))
	if !granted {
		return agent.Notice, fmt.Sprintf("%s may ask again.", id), err
	}
	err = errors.Join(err, agent.Record(tx, agent.AuditLine{At: e.at(), Did: agent.DidRevoke, By: e.From.ID, About: id}))
	return agent.Notice, fmt.Sprintf("%s is not let in any more. What runs for them goes on until it ends; stop all ends everything.", id), err
}

// sweepStrangers forgets who spoke to the bot long ago.
func sweepStrangers(tx memory.Tx, before time.Time) error {
	return tableStrangers.Sweep(tx, func(s stranger) bool { return s.At.Before(before) })
}
