package agent

import (
	"strings"
	"time"
)

// PersonID names a person on a platform: "slack:TEAM:USER", "discord:USER", "terminal:NAME", "web:me", "api:USER".
type PersonID string

// Platform is the part before the first colon.
func (p PersonID) Platform() string {
	platform, _, _ := strings.Cut(string(p), ":")
	return platform
}

// Local reports whether the person sits at this machine or holds its API token, so that no allow list is needed for them.
func (p PersonID) Local() bool {
	switch p.Platform() {
	case "terminal", "web", "api":
		return true
	}
	return false
}

// Home is the conversation in which the person is spoken to unasked: a direct one.
func (p PersonID) Home() string {
	parts := strings.SplitN(string(p), ":", 3)
	switch {
	case parts[0] == "slack" && len(parts) == 3:
		return "slack:" + parts[1] + ":dm:" + parts[2]
	case len(parts) >= 2:
		return parts[0] + ":local:dm:" + strings.Join(parts[1:], ":")
	}
	return string(p)
}

// Person is somebody who talks to Nudge, as the platform told of them.
type Person struct {
	ID   PersonID `json:"id"`
	Name string   `json:"name,omitempty"` // for display only; never tells who somebody is
	Zone string   `json:"zone,omitempty"` // IANA name; "" when unknown
	// Locale is the language that the person has set, as in "de-DE"; "" when unknown.
	Locale string `json:"locale,omitempty"`
}

// Wake is what a heartbeat found when it woke a turn.
type Wake struct {
	Heartbeat string    `json:"heartbeat"`
	Episode   string    `json:"episode"`            // the same while the condition stays true
	Evidence  string    `json:"evidence,omitempty"` // what the check saw; outside text
	Private   bool      `json:"private,omitempty"`  // what it saw, or Prompt or Text, is private data as well
	Outside   bool      `json:"outside,omitempty"`  // Prompt and Text were made of text that strangers may have written, or beside some
	Prompt    string    `json:"prompt"`
	Route     string    `json:"route"`           // the conversation in which the person is told
	Tools     []string  `json:"tools,omitempty"` // offered besides the read-only ones
	Tick      time.Time `json:"tick,omitzero"`   // for which the heartbeat was due
	// BreakQuiet says that what the run calls urgent may be said in the person's quiet hours.
	BreakQuiet bool `json:"break_quiet,omitempty"`
	// Asked says that the person asked for the run, so that it may tell them what it would not tell unasked.
	Asked bool `json:"asked,omitempty"`
	// Again says that the run for this tick may have begun before, and ended, when the program stopped.
	Again bool `json:"-"`
	// Text is the heartbeat's fixed words: they are said as they are, and no turn begins.
	Text string `json:"text,omitempty"`
}

func nameOf(p Person) string {
	if p.Name != "" {
		return p.Name
	}
	if p.ID == "" {
		return "nobody"
	}
	return string(p.ID)
}
