package discord

import (
	"strconv"
	"strings"
	"time"

	"nudge/agent"
)

// place is a conversation: a thread of a guild's channel, or a person's direct messages. A thread that was begun under a
// message has that message's id, so that its address is known before it is there.
type place struct {
	guild   string // "" for direct messages
	channel string // in which the thread is
	thread  string
	user    string // whose direct messages; "" for a thread
}

// parsePlace reads an address. Ids are numbers, so that none can be anything else in the path of a call.
func parsePlace(address string) (place, bool) {
	parts := strings.Split(address, ":")
	if len(parts) != 4 || parts[0] != platform || !isID(parts[3]) {
		return place{}, false
	}
	switch {
	case parts[1] == "local" && parts[2] == "dm":
		return place{user: parts[3]}, true
	case isID(parts[1]) && isID(parts[2]):
		return place{guild: parts[1], channel: parts[2], thread: parts[3]}, true
	}
	return place{}, false
}

// String is the address. That of direct messages is the person's home.
func (p place) String() string {
	if p.user != "" {
		return personID(p.user).Home()
	}
	return platform + ":" + p.guild + ":" + p.channel + ":" + p.thread
}

func personID(user string) agent.PersonID { return agent.PersonID(platform + ":" + user) }

// userOf is a person's id on Discord; "" for people of other platforms.
func userOf(id agent.PersonID) string {
	user, ok := strings.CutPrefix(string(id), platform+":")
	if !ok || !isID(user) {
		return ""
	}
	return user
}

// isID reports whether a text is one of Discord's ids, which are numbers of 64 bits
// (docs.discord.com/developers/reference#snowflakes).
func isID(text string) bool {
	n, err := strconv.ParseUint(text, 10, 64)
	return err == nil && n > 0
}

// epoch is the first second of 2015, from which ids count their milliseconds.
var epoch = time.UnixMilli(1420070400000)

// instant is when an id was given; the zero time if it is none.
func instant(id string) time.Time {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return epoch.Add(time.Duration(n>>22) * time.Millisecond)
}

// idAt is the least id of an instant.
func idAt(at time.Time) string {
	return strconv.FormatUint(uint64(max(at.Sub(epoch).Milliseconds(), 0))<<22, 10)
}

// message is where one message stands.
type message struct{ channel, id string }

// String is the name by which the rest of the program knows a message.
func (m message) String() string { return m.channel + ":" + m.id }

func parseMessage(name string) (message, bool) {
	channel, id, ok := strings.Cut(name, ":")
	return message{channel, id}, ok && isID(channel) && isID(id)
}
