package condition

import (
	"context"
	"errors"

	"nudge/schedule"
)

// personal is a condition in which a person's silence counts, for each person by themselves. All see the same answers of
// programs and addresses, which are asked once; files and the time are looked at each time.
type personal struct{ whole schedule.Condition }

var _ schedule.Personal = personal{}

// newPersonal builds the condition of a description that is personal.
func newPersonal(spec schedule.Spec, env Env) (schedule.Condition, error) {
	env.Run, env.Get = runOnce(env.Run), newGetOnce(env.Get)
	if env.Public != nil {
		env.Public = publicOnce{newGetOnce(env.Public), env.Public.Check}
	}
	whole, err := build(spec, env, spec.Level())
	if err != nil {
		return nil, err
	}
	return personal{whole}, nil
}

func (personal) Check(context.Context, string) (schedule.Finding, error) {
	return schedule.Finding{}, errors.New("check whether somebody was silent: nobody was named")
}

func (p personal) For(person string) schedule.Condition { return forPerson(p.whole, person) }

// forPerson is a condition or a part of one for one person: itself, unless it is about them.
func forPerson(c schedule.Condition, person string) schedule.Condition {
	if own, is := c.(interface {
		of(person string) schedule.Condition
	}); is {
		return own.of(person)
	}
	return c
}

func (i idle) of(person string) schedule.Condition {
	i.person = person
	return i
}

func (c combined) of(person string) schedule.Condition {
	parts := make([]schedule.Condition, len(c.parts))
	for i, part := range c.parts {
		parts[i] = forPerson(part, person)
	}
	c.parts = parts
	return c
}
