package heartbeat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"nudge/agent"
	"nudge/memory"
	"nudge/schedule"
)

// lateFor is how late something of one instant still comes that fell due while the program did not run: better late than never.
const lateFor = 7 * 24 * time.Hour

type arguments struct {
	Name       string        `json:"name"`
	Cron       string        `json:"cron"`
	Timezone   string        `json:"timezone"`
	Prompt     string        `json:"prompt"`
	Text       string        `json:"text"`
	Until      string        `json:"until"`
	BreakQuiet bool          `json:"break_quiet"`
	Condition  schedule.Spec `json:"condition"`
}

func (c Config) create() agent.Tool {
	return agent.Tool{
		Spec: agent.Spec{
			Name: "create_heartbeat",
			Description: "Wake for the person. cron: five fields, \"@every 5m\" or, once, \"@in 20m\" or \"@at 2027-01-31T08:00\". condition: whether to wake (" +
				c.Checks.words() + "). Give a prompt to yourself or a text to say as is.",
			Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","pattern":"^[a-z0-9][a-z0-9_-]{0,40}$"},"cron":{"type":"string"},` +
				`"timezone":{"type":"string"},"prompt":{"type":"string"},"text":{"type":"string"},"condition":` + c.Checks.schema() +
				`,"until":{"type":"string","format":"date-time"},"break_quiet":{"type":"boolean"}},` +
				`"required":["name","cron","condition"],"additionalProperties":false}`),
			Effect: agent.Idempotent,
			Labels: agent.Labels{Lasting: true, WayOut: c.Checks.Addresses},
			Policy: agent.PolicyAsk,
			Place:  agent.WithPerson,
			// The card shows when it would wake, which is different at each call.
			EachTime: true,
		},
		Judge: func(in agent.Invocation) (agent.Policy, string, error) {
			p, err := c.read(in)
			if err == nil {
				_, err = c.replaced(context.Background(), p.Heartbeat)
			}
			return c.Checks.policy(p.Condition), "", err
		},
		LabelsOf: labels,
		Card:     c.card,
		Run:      c.save,
	}
}

// save makes the heartbeat of a call.
func (c Config) save(ctx context.Context, in agent.Invocation) (agent.Result, error) {
	p, err := c.read(in)
	if err == nil {
		_, err = c.replaced(ctx, p.Heartbeat) // somebody may have taken the name while the card waited
	}
	if err != nil {
		return agent.Result{}, err
	}
	return agent.Result{
		Text:   fmt.Sprintf("heartbeat %s is made; %s", p.Name, p.coming(time.Now())),
		Commit: func(tx memory.Tx) error { return schedule.Save(tx, p.Heartbeat, time.Now()) },
		After:  c.Changed,
	}, nil
}

// mostMade is how many heartbeats one person has at once that they asked for. A clock checks so many conditions at a
// time, and those of one person are not to keep the others' waiting.
const mostMade = 100

// proposal is the heartbeat that a call would make, with its schedule and the zone of its person's clocks.
type proposal struct {
	schedule.Heartbeat
	times schedule.Schedule
	own   *time.Location
	in    time.Duration // from when it is saved to its only instant; 0 where that was not asked for
}

// read makes a proposal of a call's arguments. Its error is for the model.
func (c Config) read(in agent.Invocation) (proposal, error) {
	var args arguments
	if err := in.Decode(&args); err != nil {
		return proposal{}, fmt.Errorf("the arguments cannot be read: %w", err)
	}
	p := proposal{own: zoneOf(in.Person), Heartbeat: schedule.Heartbeat{
		Name: args.Name, Cron: args.Cron, Zone: args.Timezone, Prompt: args.Prompt, Text: args.Text, For: []string{string(in.Person.ID)},
		By: string(in.Person.ID), BreakQuiet: args.BreakQuiet, Condition: args.Condition, Outside: in.Tainted, Private: in.Origin().Private,
	}}
	if p.Zone == "" {
		p.Zone = in.Person.Zone
	}
	if err := p.soon(time.Now()); err != nil {
		return p, err
	}
	if p.Condition.Kind == "file" && !filepath.IsLocal(p.Condition.Path) {
		return p, errors.New("condition.path must name a file in the workspace")
	}
	if args.Until != "" {
		until, err := time.Parse(time.RFC3339, args.Until)
		if err != nil || until.Before(time.Now()) {
			return p, errors.New("until must be an instant in the future, such as 2027-01-31T18:00:00+01:00")
		}
		p.Until = until
	}
	err := p.Validate()
	if err == nil {
		err = c.Checks.check(p.Heartbeat)
	}
	if err != nil {
		return p, err
	}
	if p.times, err = schedule.ParseCron(p.Cron, p.Zone); err != nil {
		return p, err
	}
	return p, p.once(time.Now())
}

// soonWord begins a spec of a length of time, from when the heartbeat is saved.
const soonWord = "@in "

// soon makes an instant of such a length of time.
func (p *proposal) soon(now time.Time) error {
	text, found := strings.CutPrefix(p.Cron, soonWord)
	if !found {
		return nil
	}
	d, err := time.ParseDuration(strings.TrimSpace(text))
	if err != nil || d < time.Second || d > 366*24*time.Hour {
		return errors.New("cron: @in needs a length of time from a second to a year, such as 20m or 36h")
	}
	p.in = d
	p.Cron = "@at " + now.Add(d+time.Second-1).Truncate(time.Second).UTC().Format(time.RFC3339)
	return nil
}

// once completes a proposal of one instant, and refuses one that is past.
func (p *proposal) once(now time.Time) error {
	at := p.times.Once()
	if at.IsZero() {
		return nil
	}
	if !at.After(now) {
		return fmt.Errorf("cron: %s is past, since it is %s now; give a later time", inWords(at), inWords(now.In(at.Location())))
	}
	if p.Grace = lateFor; !p.Until.IsZero() && p.Until.Before(at) {
		return errors.New("until is before the only time; leave it out")
	}
	return nil
}

// replaced is the heartbeat of the person's that a new one would take the place of; nil if there is none. The error, for
// a name that somebody else's bears, or when the person has too many, is for the model.
func (c Config) replaced(ctx context.Context, h schedule.Heartbeat) (*schedule.Heartbeat, error) {
	var old schedule.Heartbeat
	made := 0
	err := c.Store.View(ctx, func(tx memory.Tx) (err error) {
		if made, err = schedule.Made(tx, h.By); err != nil {
			return err
		}
		old, err = schedule.Load(tx, h.Name)
		return err
	})
	none := errors.Is(err, schedule.ErrNoHeartbeat)
	switch {
	case err != nil && !none:
		return nil, errors.New("the heartbeats cannot be read now")
	case (none || old.Ended != "") && made >= mostMade:
		return nil, fmt.Errorf("they have %d heartbeats, which is the most; one is to be deleted first", made)
	case none, old.Ended != "":
		return nil, nil
	case old.By != h.By:
		return nil, fmt.Errorf("there is a heartbeat %s already that is not theirs; take another name", h.Name)
	}
	return &old, nil
}

func zoneOf(p agent.Person) *time.Location {
	zone, err := time.LoadLocation(p.Zone)
	if err != nil {
		return time.UTC
	}
	return zone
}

// coming says when it comes, for the model.
func (p proposal) coming(now time.Time) string {
	if at := p.times.Once(); !at.IsZero() {
		return "it comes once, on " + inWords(at)
	}
	return "the next times are " + strings.Join(p.times.NextThree(now), ", ")
}

func inWords(at time.Time) string { return at.Format("Monday 2 January 2006 at 15:04 MST") }
