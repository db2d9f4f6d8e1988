package compact

import "slices"

// mostSpeakers is how many people an origin names. The ones after that are told by [Others].
const mostSpeakers = 4

// Others stands among the speakers of an origin for those that are not named. It is nobody's id.
const Others = "*"

// Origin says what a message has in it, or was made from, besides what the model knows by itself. The zero value is
// nothing that matters.
type Origin struct {
	// Outside says in words where text came from that strangers may have written; "" when there is none.
	Outside string `json:"outside,omitempty"`
	Private bool   `json:"private,omitempty"` // private data
	// Keeper is who has all the private data in it anyway: a server that it was read from. "" when that is this machine, or
	// several have a part of it.
	Keeper string `json:"keeper,omitempty"`
	// Speakers are the ids of those who said something of it where several people speak, in order.
	Speakers []string `json:"speakers,omitempty"`
}

// With is the origin of what was made of two things. Of two places outside the first is told.
func (o Origin) With(other Origin) Origin {
	if o.Outside == "" {
		o.Outside = other.Outside
	}
	switch {
	case other.Private && !o.Private:
		o.Private, o.Keeper = true, other.Keeper
	case other.Private && o.Keeper != other.Keeper:
		o.Keeper = ""
	}
	for _, speaker := range other.Speakers {
		o.Speakers = with(o.Speakers, speaker)
	}
	return o
}

// with adds a speaker, to a list that is not changed.
func with(speakers []string, speaker string) []string {
	at, found := slices.BinarySearch(speakers, speaker)
	switch {
	case found:
		return speakers
	case len(speakers) >= mostSpeakers && speakers[0] == Others:
		return speakers
	case len(speakers) >= mostSpeakers:
		return slices.Insert(slices.Clone(speakers), 0, Others)
	}
	return slices.Insert(slices.Clone(speakers), at, speaker)
}

// origin is that of the note of a change: of all that its summary was made from. Without one a note tells nothing but counts.
func (c Change) origin(marks []Mark) (o Origin) {
	if c.Left.Summary == "" {
		return Origin{}
	}
	for _, span := range c.Dropped {
		from := min(max(span.From, 0), len(marks))
		for _, mark := range marks[from:max(min(span.To, len(marks)), from)] {
			if mark.Left != nil && mark.Left.Summary == c.Left.Summary {
				return mark.Origin // the summary is that of the note before; what went since is in none
			}
			o = o.With(mark.Origin)
		}
	}
	return o
}
