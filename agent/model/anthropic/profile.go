package anthropic

import "nudge/agent/model/wire"

// Profile says how a server differs from Anthropic's own. The zero value is Anthropic's.
type Profile struct {
	NoStream bool // answers are asked for whole
	NoCache  bool // nothing is marked for a cache, which some servers refuse
	Bearer   bool // the key is sent as a bearer token
}

// quirks are the words that a profile is written with.
var quirks = []wire.Quirk[Profile]{
	{Name: "no_stream", Set: func(p *Profile) { p.NoStream = true }},
	{Name: "no_cache", Set: func(p *Profile) { p.NoCache = true }},
	{Name: "bearer", Set: func(p *Profile) { p.Bearer = true }},
}

// ParseProfile reads a comma-separated list of quirks, in any order; "" is the zero value. An unknown quirk is an
// error that lists those there are.
func ParseProfile(list string) (Profile, error) { return wire.ParseProfile(list, quirks) }
