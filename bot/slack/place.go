package slack

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"nudge/agent"
)

// place is a conversation: a thread of a channel, or a person's direct messages or a thread in these.
type place struct {
	team    string
	channel string // "" for direct messages
	user    string // whose direct messages; "" for a channel
	thread  string // ts of the thread's first message; "" for direct messages outside threads
}

// parsePlace reads an address.
func parsePlace(address string) (place, bool) {
	parts := strings.Split(address, ":")
	for _, part := range parts {
		if part == "" {
			return place{}, false
		}
	}
	switch {
	case len(parts) < 4 || parts[0] != "slack":
		return place{}, false
	case parts[2] != "dm" && len(parts) == 4:
		return place{team: parts[1], channel: parts[2], thread: parts[3]}, true
	case parts[2] == "dm" && len(parts) == 4:
		return place{team: parts[1], user: parts[3]}, true
	case parts[2] == "dm" && len(parts) == 5:
		return place{team: parts[1], user: parts[3], thread: parts[4]}, true
	}
	return place{}, false
}

// String is the address.
func (p place) String() string {
	if p.user == "" {
		return "slack:" + p.team + ":" + p.channel + ":" + p.thread
	}
	if p.thread == "" {
		return "slack:" + p.team + ":dm:" + p.user
	}
	return "slack:" + p.team + ":dm:" + p.user + ":" + p.thread
}

// teamOf is the workspace of a person.
func teamOf(id agent.PersonID) string {
	if parts := strings.Split(string(id), ":"); len(parts) == 3 {
		return parts[1]
	}
	return ""
}

// userOf is the user in the id of a person; "" where it is nobody's in Slack.
func userOf(id agent.PersonID) string {
	if parts := strings.Split(string(id), ":"); len(parts) == 3 && parts[0] == "slack" {
		return parts[2]
	}
	return ""
}

// nameable reports whether ids can be parts of an address; "" is for one that there is none of. One with a colon in it would
// name another conversation.
func nameable(ids ...string) bool {
	return !slices.ContainsFunc(ids, func(id string) bool {
		return strings.ContainsFunc(id, func(r rune) bool { return r == ':' || unicode.IsSpace(r) || unicode.IsControl(r) })
	})
}

// direct reports whether a channel is somebody's direct messages.
func direct(channel string) bool { return strings.HasPrefix(channel, "D") }

// instant is when a ts was given; the zero time if it is none.
func instant(ts string) time.Time {
	seconds, micros, ok := strings.Cut(ts, ".")
	s, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || !ok || s <= 0 {
		return time.Time{}
	}
	m, err := strconv.ParseInt(micros, 10, 64)
	if err != nil || m < 0 || m > 999_999 {
		m = 0
	}
	return time.Unix(s, m*1000)
}

// message is where one message stands.
type message struct{ channel, ts string }

// String is the name by which the rest of the program knows a message.
func (m message) String() string { return m.channel + ":" + m.ts }

func parseMessage(name string) (message, bool) {
	channel, ts, ok := strings.Cut(name, ":")
	return message{channel, ts}, ok && channel != "" && ts != ""
}
