package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"nudge/agent"
	"nudge/agent/tool/command"
	"nudge/memory"
	"nudge/schedule"
	"nudge/schedule/condition"
)

// heartbeats are those of the config. One that names nobody is for the given person.
func (p *program) heartbeats(person agent.PersonID) ([]schedule.Heartbeat, error) {
	var beats []schedule.Heartbeat
	for _, c := range p.config.Heartbeats {
		beat, err := c.Scheduled(string(person))
		if err != nil {
			return nil, inFile(p.config, err)
		}
		beats = append(beats, beat)
	}
	return beats, nil
}

// condition builds the check of a heartbeat.
func (p *program) condition(h schedule.Heartbeat) (schedule.Condition, error) {
	return conditionOf(h, p.checks.within(condition.Env{Dir: p.dataDir, Gauges: p.gauges, Silent: p.silent(h)}), p.checks, p.place(p.files()))
}

// conditionOf builds the check of a heartbeat in an environment of the operator's. One that was made in a conversation sees
// only its person's workspace, in which prepared commands run as well, and the public internet.
func conditionOf(h schedule.Heartbeat, env condition.Env, allowed checks, at command.Place) (schedule.Condition, error) {
	env.Zone = h.Zone
	if h.By != "" {
		by := agent.PersonID(h.By)
		folder, err := at.Dir(by)
		if err != nil {
			return nil, err
		}
		env.Preset = allowed.commands.In(at, by)
		if at.Hold != nil {
			env.Hold = func(ctx context.Context) (leave func(), err error) { return at.Hold(ctx, by, false) }
		}
		env.Dir, env.Confined = folder, true
	}
	return condition.New(h.Condition, env)
}

// silent tells since when one of a heartbeat's people has said nothing: since the heartbeat was made, at the longest.
func (p *program) silent(h schedule.Heartbeat) func(context.Context, string) (time.Time, error) {
	return func(ctx context.Context, person string) (last time.Time, err error) {
		err = p.store.View(ctx, func(tx memory.Tx) error {
			last, err = lastWord(tx, person)
			return err
		})
		if last.Before(h.Since) {
			last = h.Since
		}
		return last, err
	}
}

// lastWord is when somebody last said something, with whichever of their accounts; zero for never.
func lastWord(tx memory.Tx, account string) (last time.Time, err error) {
	accounts := []schedule.Account{{ID: account}}
	if person, err := schedule.PersonOf(tx, account); err != nil {
		return last, err
	} else if person != account {
		if accounts, err = schedule.Accounts(tx, account); err != nil {
			return last, err
		}
	}
	for _, of := range accounts {
		at, err := agent.Spoke(tx, agent.PersonID(of.ID))
		if err != nil {
			return last, err
		}
		if at.After(last) {
			last = at
		}
	}
	return last, nil
}

// zone is a person's time zone.
func (p *program) zone(person string) string {
	var zone string
	err := p.store.View(context.Background(), func(tx memory.Tx) error {
		_, known, err := agent.Home(tx, agent.PersonID(person))
		zone = known.Zone
		return err
	})
	if err != nil {
		p.log.Error("cannot look up a person's zone", "person", person, "error", err)
	}
	return zone
}

// wake runs a small turn of its own for one person of a heartbeat.
func (p *program) wake(ctx context.Context, w schedule.Waking) (schedule.Ended, error) {
	if w.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.Timeout)
		defer cancel()
	}
	wake := agent.Wake{
		Heartbeat: w.Heartbeat, Episode: w.Episode, Evidence: w.Evidence, Private: w.Private || w.Evidence != "" && !w.Public, Outside: w.Outside, Prompt: w.Prompt, Text: w.Text,
		Tools: w.Tools, Tick: w.Tick, BreakQuiet: w.BreakQuiet, Asked: w.Asked, Again: w.Again,
	}
	if w.Text != "" {
		err := p.sayFixed(ctx, agent.PersonID(w.Person), wake)
		return schedule.Ended{OK: err == nil}, err
	}
	totals, err := p.agent.Wake(ctx, agent.PersonID(w.Person), wake)
	if err != nil {
		return schedule.Ended{}, err
	}
	reason := string(totals.Reason)
	if totals.Say != "" {
		reason += ": " + totals.Say
	}
	return schedule.Ended{
		OK: totals.Reason == agent.Completed || totals.Reason == "", Reason: reason, Refused: totals.Refused, Changed: totals.Changed,
		ModelCalls: totals.Steps, TokensIn: totals.TokensIn, TokensOut: totals.TokensOut, CostUSD: totals.CostUSD,
	}, nil
}

// sayFixed says a heartbeat's fixed words to a person.
func (p *program) sayFixed(ctx context.Context, person agent.PersonID, wake agent.Wake) error {
	session, err := p.voice.Say(ctx, person, wake)
	if err == nil && session != "" {
		p.hub.Outgoing()
		if p.wants(session) {
			p.agent.Look(session)
		}
	}
	return err
}

// settled lets heartbeats wake people again whose runs the model refused, once somebody has got an answer.
func (p *program) settled(session string, totals agent.Totals) {
	if totals.Reason == agent.Completed && totals.Steps > 0 && agent.WakeOwner(session) == "" {
		p.clock.Mended()
	}
}

// unreachable notes that a heartbeat's words found nobody, and gives what follows from that.
func (p *program) unreachable(tx memory.Tx, r agent.Reply, reason string) (follows string, err error) {
	if r.Kind != agent.Notify || r.Heartbeat == "" {
		return "", nil
	}
	h, err := schedule.Load(tx, r.Heartbeat)
	if errors.Is(err, schedule.ErrNoHeartbeat) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, person := range h.For {
		home, _, err := agent.Home(tx, agent.PersonID(person))
		if err != nil {
			return "", err
		}
		if home != r.Address {
			continue
		}
		paused, err := schedule.Lose(tx, person, h.Name, reason, time.Now())
		if err != nil {
			return "", err
		}
		follows = fmt.Sprintf("Heartbeats do not wake for %s until they write to me.", person)
		if len(paused) > 0 {
			follows += " Paused: " + strings.Join(paused, ", ") + "."
		}
	}
	return follows, nil
}
