package agent

import (
	"fmt"
	"slices"
	"strings"

	"nudge/agent/compact"
	"nudge/agent/model"
)

// Outside text is what strangers may have written: a page, an attached file and its name, what a server of somebody
// else's gave, what a heartbeat's check saw, in a shared conversation the words of others than the turn's person and the
// owners. It is data, but a model may take it for orders, and nothing tells from an answer that it did. So what counts is
// what the model is sent: each message of the view has its origin, an answer has that of all that stood before it, and a
// compaction's note that of all it stands for. A turn is tainted while any of this is in its view, or the description of a tool
// is offered with it that strangers wrote and nobody has agreed to.
//
// In a tainted turn no rule and no config lets a call run unasked that would carry private data out or leave something
// that speaks in later conversations: a person who sees the call is asked first. See [caution].

// taints reports whether something of an origin is outside text in a turn of a person's.
func (ag *Agent) taints(o compact.Origin, person PersonID) bool {
	return o.Outside != "" || slices.ContainsFunc(o.Speakers, func(id string) bool { return ag.stranger(PersonID(id), person) })
}

// tainted reports whether the turn under way is.
func (a *actor) tainted() bool { return a.taints(a.state.sent(), a.state.turn.person.ID) }

// foreign says in words what strangers wrote of the tools that a request offers, as far as nobody has agreed to it.
func (a *actor) foreign(offered []model.Tool) (places []string) {
	named := a.box().named
	for _, tool := range offered {
		if known := named[tool.Name]; known != nil && known.Foreign != "" && !slices.Contains(places, known.Foreign) {
			places = append(places, known.Foreign)
		}
	}
	return places
}

// stranger reports whether somebody's words are outside text in a turn of a person's.
func (ag *Agent) stranger(id, person PersonID) bool { return id != person && !ag.owns(id) }

// caution says why a call is asked about whatever its policy, the config and the rules say; "" when it is not.
func caution(tool *Tool, in Invocation) string {
	labels := labelsOf(tool, in)
	out := labels.WayOut && !labels.ToPerson
	if !in.Tainted {
		if labels.Obeys {
			return obeying
		}
		return ""
	}
	back := labels.Keeper != "" && labels.Keeper == in.origin.Keeper && effectOf(tool, in) == Read
	switch {
	case labels.Lasting:
		return ", and what this changes lasts beyond the conversation"
	case out && in.origin.Private && !back:
		return " and private data as well, and this sends something out"
	case out && labels.Private && labels.Keeper == "":
		return ", and this can read private data and send it out"
	}
	return ""
}

// warning begins what a card says of such a reason.
const warning = "I ask because"

// obeying is why a call is asked about that comes upon text of strangers by itself, when none was before the model: all
// that it takes to carry private data out is in the one call.
const obeying = warning + " this comes upon text that others may have written, may do what it says, can read private data and can send it out. Look whether it is what you want."

// exposes reports whether a call reads what is its person's own where others read along. What was read once stays before the model,
// whoever asks it next, and a person who only said something there need not want any of it: so they are asked first.
func exposes(tool *Tool, in Invocation) bool { return labelsOf(tool, in).Own && !Direct(in.Address) }

// mostSources is how many places a card names from which outside text came.
const mostSources = 3

// sources are the places from which outside text in the view came, the newest first, in words.
func (a *actor) sources() string {
	var places []string
	add := func(place string) {
		if place != "" && !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	for _, place := range a.state.turn.foreign {
		add(place)
	}
	for _, mark := range slices.Backward(a.state.marks) {
		add(mark.Origin.Outside)
		for _, id := range mark.Origin.Speakers {
			if a.stranger(PersonID(id), a.state.turn.person.ID) {
				add("words of " + strings.Replace(id, compact.Others, "several people", 1))
			}
		}
	}
	if more := len(places) - mostSources; more > 0 {
		places = append(places[:mostSources], fmt.Sprintf("%d more", more))
	}
	return strings.Join(places, "; ")
}

// exposed is what a card says of a call that [exposes].
const exposed = "Others here can see what I read of yours, now and later in this conversation."

// why is what a card says of a call that is asked about because of what else was read, or of who reads along; "" for any other.
func (a *actor) why(tool *Tool, in Invocation) string {
	var reasons []string
	if exposes(tool, in) {
		reasons = append(reasons, exposed)
	}
	switch reason := caution(tool, in); reason {
	case "":
	case obeying:
		reasons = append(reasons, reason)
	default:
		reasons = append(reasons, fmt.Sprintf(warning+" I have read text that others may have written (%s)%s. Look whether it is what you want.", a.sources(), reason))
	}
	return strings.Join(reasons, " ")
}

// longestSource is how many bytes tell a place from which outside text came.
const longestSource = 150

// sourceOf is a call as the place from which text came.
func sourceOf(tool, arguments string) string {
	return clip(strings.ReplaceAll(tool+" "+arguments, "\n", " "), longestSource)
}

// with is what a call reads that is labelled in one way and then in another.
func (l Labels) with(other Labels) Labels {
	if !other.Private {
		other.Private, other.Keeper = l.Private, l.Keeper
	}
	other.Outside = other.Outside || l.Outside
	return other
}

// originOf is what the result of a call that ran has in it.
func (w *work) originOf() compact.Origin {
	labels := w.labels
	o := compact.Origin{Private: labels.Private, Outside: clip(w.result.Outside, longestSource)}
	if labels.Private {
		o.Keeper = labels.Keeper
	}
	if labels.Outside {
		o.Outside = sourceOf(w.tool.Name, string(w.in.Arguments))
	}
	return o
}

// originOf is what the words of letters have in them besides words of the turn's person in a conversation of theirs alone.
func originOf(letters []letter) (o compact.Origin) {
	for _, l := range letters {
		o = o.With(l.Origin)
		if l.Provenance != Human {
			continue
		}
		if !Direct(l.Address) && l.From.ID != "" {
			o = o.With(compact.Origin{Speakers: []string{string(l.From.ID)}})
		}
		for _, f := range l.Files { // whoever attached a file need not have named it
			o = o.With(compact.Origin{Outside: clip("the attached file "+f.Name, longestSource)})
		}
	}
	return o
}

// originOf is what a note has in it.
func (n Note) originOf() compact.Origin {
	switch {
	case n.Digest: // of what any heartbeats would have told
		return n.Origin.With(compact.Origin{Outside: "a digest of what heartbeats found"})
	case n.Evidence == "":
		return n.Origin
	}
	return n.Origin.With(compact.Origin{Outside: "what the check of " + n.Heartbeat + " saw"})
}

// originOf is what a wake is told that its person or the config did not write for it.
func (w Wake) originOf() (o compact.Origin) {
	if w.Evidence != "" {
		o.Outside = "what the check of " + w.Heartbeat + " saw"
	}
	return o.With(w.Written())
}

// Written is what the words of a wake's heartbeat have in them besides what its person or the config wrote.
func (w Wake) Written() (o compact.Origin) {
	if w.Outside {
		o.Outside = "the heartbeat " + w.Heartbeat + ", which was made with text of others in view"
	}
	o.Private = w.Private
	return o
}
