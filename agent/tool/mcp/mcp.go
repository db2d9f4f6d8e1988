// Package mcp lets the agent use the tools of other programs, over the Model Context Protocol.
//
// A [Server] is such a program: one that is started and talked to over its input and output, or one at an address. A link
// (link.go) keeps the connection, begins it anew when it breaks, and never keeps Nudge from starting. Which of a server's
// tools are offered, the operator lists by name. How a tool describes itself is text of strangers that the model reads with
// every request; so it is kept when it is seen for the first time (pin.go), and a tool that describes itself anew is not
// offered until somebody has agreed. What it said at first is offered at once, and is outside text until somebody agrees.
// What a tool gives is outside text, and what it is given leaves the machine, as far as anybody knows: what a server claims
// about itself is shown to people and believed by nobody.
package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"time"

	"nudge/agent"
	"nudge/memory"
)

// DefaultTimeout is how long a call may take when a server does not say.
const DefaultTimeout = time.Minute

// Server is a program with tools. Either Command or URL is set.
type Server struct {
	Name    string   // small letters, digits and single _; the names of its tools begin with it
	Command []string // the program, found in PATH, and its arguments; it runs in Dir
	Env     []string // NAME=value, which it has in its environment besides PATH, HOME, LANG and TZ
	Dir     string
	URL     string // where it speaks streamable HTTP
	Token   string // bearer token for URL; "" when none is needed

	Tools    []string     // as the server names them; no others are offered
	ReadOnly []string     // of these, those that change nothing, as the operator knows
	Policy   agent.Policy // of the others; agent.PolicyAsk when empty
	Timeout  time.Duration
}

// Config is what Servers are made of. All but Servers must be set.
type Config struct {
	Servers []Server
	Store   memory.Store
	// Offer is given all tools that may be offered, each time they change. It is not called concurrently.
	Offer func(tools []agent.Tool)
	// Tell is given a line for the owners: a tool describes itself anew.
	Tell func(text string)
	Log  *slog.Logger
}

// Servers are the links to all servers. Its methods may be called concurrently.
type Servers struct {
	Config
	links []*link
	times times

	offering sync.Mutex
}

// times are how long is waited.
type times struct {
	first time.Duration // before a server is tried again, twice as long each time
	back  time.Duration // by a call, for a server that is not there
	ping  time.Duration // for a sign of life when in doubt
	anew  time.Duration // from asking for a server's tools until it is believed that they have changed again
}

var serverName = regexp.MustCompile(`^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$`)

// CheckName says what is wrong with a server's name.
func CheckName(name string) error {
	const most = 30
	if len(name) > most || !serverName.MatchString(name) {
		return fmt.Errorf("the name of an MCP server has small letters, digits and single _, %d at most", most)
	}
	return nil
}

// New returns links that nothing is done with yet.
func New(c Config) *Servers {
	s := &Servers{Config: c, times: times{first: time.Second, back: 5 * time.Second, ping: 5 * time.Second, anew: time.Minute}}
	for _, server := range c.Servers {
		if server.Policy == "" {
			server.Policy = agent.PolicyAsk
		}
		if server.Timeout <= 0 {
			server.Timeout = DefaultTimeout
		}
		s.links = append(s.links, newLink(s, server))
	}
	return s
}

// Run keeps the links until ctx ends, and returns when all programs that were started have ended.
func (s *Servers) Run(ctx context.Context) {
	s.Look(ctx)
	var running sync.WaitGroup
	for _, l := range s.links {
		running.Go(func() { l.run(ctx) })
	}
	running.Wait()
}

// Settle waits until each server has been asked for its tools once, or could not be reached, but not longer than a while
// and not for those whose tools are known from before.
func (s *Servers) Settle(ctx context.Context, atMost time.Duration) {
	s.wait(ctx, atMost, func(l *link) bool { return !l.known() })
}

// Meet waits until each server has been asked for its tools once, or could not be reached, but not longer than a while.
func (s *Servers) Meet(ctx context.Context, atMost time.Duration) {
	s.wait(ctx, atMost, func(*link) bool { return true })
}

func (s *Servers) wait(ctx context.Context, atMost time.Duration, forIt func(*link) bool) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	for _, l := range s.links {
		if !forIt(l) {
			continue
		}
		select {
		case <-l.asked:
		case <-ctx.Done():
			return
		}
	}
}

// Look reads anew what was agreed to, and offers what may be offered.
func (s *Servers) Look(ctx context.Context) {
	for _, l := range s.links {
		if err := l.readPins(ctx); err != nil {
			s.Log.Error("cannot read which tools of an MCP server were agreed to; they are not offered", "server", l.Name, "error", err)
		}
	}
	s.offer()
}

// offer hands out the tools of all links.
func (s *Servers) offer() {
	s.offering.Lock()
	defer s.offering.Unlock()
	var tools []agent.Tool
	for _, l := range s.links {
		tools = append(tools, l.tools()...)
	}
	s.Offer(tools)
}

// Status is what is known of a server now.
type Status struct {
	Server string
	Error  string // why it cannot be reached; "" when it can, or was not tried yet
	Tools  []ToolStatus
}

// ToolStatus is what is known of a tool of a server's.
type ToolStatus struct {
	Name    string // as the model reads it
	Offered bool
	Why     string // it is not offered
	Agreed  bool   // somebody has agreed to how it describes itself; otherwise it was only seen
	Policy  agent.Policy
	Says    string // how it describes itself
	Claims  string // what it claims about what it does; "" for nothing
}

// Status tells of all servers, in the order of the config.
func (s *Servers) Status() []Status {
	var all []Status
	for _, l := range s.links {
		all = append(all, l.status())
	}
	return all
}

func (s Server) readOnly(tool string) bool { return slices.Contains(s.ReadOnly, tool) }

// policy is who must agree to a call of a tool.
func (s Server) policy(tool string) agent.Policy {
	if s.readOnly(tool) {
		return agent.PolicyNo
	}
	return s.Policy
}
