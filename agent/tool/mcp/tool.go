package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"nudge/agent"
)

// longestName is what a tool may be called.
const longestName = 64

// toolName is how the model names a tool of a server: what a name cannot have becomes _.
func toolName(server, tool string) string {
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, tool)
	return server + "__" + safe
}

// ToolName is how the model names a tool of a server, and the config in [tools].
func (s Server) ToolName(tool string) string { return toolName(s.Name, tool) }

// tools are those that may be offered.
func (l *link) tools() []agent.Tool {
	l.mu.Lock()
	defer l.mu.Unlock()
	var tools []agent.Tool
	for _, name := range l.Tools {
		if why := l.withheld(name); why == "" {
			tools = append(tools, l.tool(name, l.pins[name]))
		}
	}
	return tools
}

// withheld says why a tool is not offered; "" when it is. The caller holds mu.
func (l *link) withheld(name string) string {
	p, seen := l.pins[name]
	switch {
	case l.faults[name] != "":
		return l.faults[name]
	case !seen && l.down != "":
		return "its server was never reached"
	case !seen:
		return "its server was not asked yet"
	case p.Anew != nil:
		return "it describes itself anew; `nudge mcp agree " + l.Name + "` shows how, and asks"
	case len(l.ToolName(name)) > longestName:
		return fmt.Sprintf("its name %s has more than %d letters", l.ToolName(name), longestName)
	}
	for _, other := range l.Tools {
		if other == name {
			break
		}
		if l.ToolName(other) == l.ToolName(name) {
			return fmt.Sprintf("it would have the same name as %s", other)
		}
	}
	return ""
}

// LabelsOf are those of the tools of a server: nobody knows what it gives but that it has that itself, nor to whom it passes on
// what it is given.
func LabelsOf(server string) agent.Labels {
	return agent.Labels{Private: true, Keeper: "MCP server " + server, Outside: true, WayOut: true}
}

func (l *link) tool(name string, p pin) agent.Tool {
	effect := agent.Effectful
	if l.readOnly(name) {
		effect = agent.Read
	}
	foreign := ""
	if !p.Agreed {
		foreign = fmt.Sprintf("the description of %s's tools, which nobody has agreed to", l.Name)
	}
	return agent.Tool{
		Spec: agent.Spec{
			Name: l.ToolName(name), Description: p.Description, Schema: p.Schema, Effect: effect, Foreign: foreign,
			Labels:  LabelsOf(l.Name),
			Policy:  l.policy(name),
			Timeout: l.Timeout + 2*l.all.times.back, // later than the call's own, which says more
		},
		Run:    func(ctx context.Context, in agent.Invocation) (agent.Result, error) { return l.call(ctx, name, in) },
		Card:   func(agent.Invocation) string { return l.card(p) },
		Digest: func(agent.Invocation) string { return p.Digest },
	}
}

// card says whose tool it is, and what that says of it.
func (l *link) card(p pin) string {
	const most = 300
	text := fmt.Sprintf("A tool of the MCP server %s, which says: %s", l.Name, agent.Head(strings.Join(strings.Fields(p.Description), " "), most))
	if p.Claims != "" {
		text += " (It claims that it " + p.Claims + ".)"
	}
	return text
}

// call has the server run a tool.
func (l *link) call(ctx context.Context, name string, in agent.Invocation) (agent.Result, error) {
	session, err := l.await(ctx)
	if err != nil {
		return agent.Result{}, err
	}
	limited, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	answer, err := session.CallTool(limited, &mcp.CallToolParams{Name: name, Arguments: in.Arguments})
	switch {
	case ctx.Err() != nil:
		l.suspect()
		return agent.Result{}, context.Cause(ctx)
	case limited.Err() != nil:
		l.suspect()
		return agent.Result{}, fmt.Errorf("the MCP server %s did not answer within %v; what it has done by then stands", l.Name, l.Timeout)
	case err != nil:
		return agent.Result{}, l.failure(err)
	case len(answer.InputRequests) > 0:
		return agent.Result{}, fmt.Errorf("the MCP server %s asks back, which it cannot here", l.Name)
	}
	return agent.Result{Text: agent.Outside("the MCP server "+l.Name, textOf(answer)), Failed: answer.IsError}, nil
}

// await is the session with the server, which may just be coming back.
func (l *link) await(ctx context.Context) (*mcp.ClientSession, error) {
	timer := time.NewTimer(l.all.times.back)
	defer timer.Stop()
	for {
		l.mu.Lock()
		session, up := l.session, l.up
		l.mu.Unlock()
		if session != nil {
			return session, nil
		}
		select {
		case <-up:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-timer.C:
			return nil, fmt.Errorf("the MCP server %s cannot be reached now; nothing was done", l.Name)
		}
	}
}

// suspect has it found out whether the server still answers.
func (l *link) suspect() {
	select {
	case l.doubt <- struct{}{}:
	default:
	}
}

// failure is the error of a call that has no result, in words for the model. What a server wrote is outside text.
func (l *link) failure(err error) error {
	const most = 2000
	if _, said := errors.AsType[*jsonrpc.Error](err); !said {
		l.suspect()
		return fmt.Errorf("the connection to the MCP server %s broke during the call; whether it was done is not known", l.Name)
	}
	return errors.New(agent.Outside("the MCP server "+l.Name, "The call failed: "+agent.Head(strings.ToValidUTF8(err.Error(), "\ufffd"), most)))
}

// textOf is what a result says, as far as it is text.
func textOf(answer *mcp.CallToolResult) string {
	var parts []string
	for _, content := range answer.Content {
		switch c := content.(type) {
		case *mcp.TextContent:
			parts = append(parts, c.Text)
		case *mcp.ImageContent:
			parts = append(parts, fmt.Sprintf("(a picture, %s, %d bytes, which is not shown)", c.MIMEType, len(c.Data)))
		case *mcp.AudioContent:
			parts = append(parts, fmt.Sprintf("(a sound, %s, %d bytes, which is not played)", c.MIMEType, len(c.Data)))
		case *mcp.ResourceLink:
			parts = append(parts, fmt.Sprintf("(a link: %s %s)", c.Name, c.URI))
		case *mcp.EmbeddedResource:
			parts = append(parts, embedded(c.Resource))
		}
	}
	if len(parts) == 0 && answer.StructuredContent != nil {
		if data, err := json.Marshal(answer.StructuredContent); err == nil {
			parts = append(parts, string(data))
		}
	}
	if text := strings.Join(parts, "\n"); strings.TrimSpace(text) != "" {
		return text
	}
	return "(nothing)"
}

func embedded(r *mcp.ResourceContents) string {
	switch {
	case r == nil:
		return ""
	case r.Text != "":
		return r.Text
	}
	return fmt.Sprintf("(%s, %s, %d bytes, which are not shown)", r.URI, r.MIMEType, len(r.Blob))
}

func (l *link) status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Status{Server: l.Name, Error: l.down}
	for _, name := range l.Tools {
		p, why := l.pins[name], l.withheld(name)
		s.Tools = append(s.Tools, ToolStatus{Name: l.ToolName(name), Offered: why == "", Why: why, Agreed: p.Agreed, Policy: l.policy(name), Says: p.Description, Claims: p.Claims})
	}
	return s
}
