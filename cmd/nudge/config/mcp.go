package config

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"nudge/agent"
	"nudge/agent/tool/mcp"
)

// Servers are the MCP servers as their links take them; those that are programs run in dir. The error is about a token
// that cannot be read.
func (c Config) Servers(dir string) ([]mcp.Server, error) {
	var servers []mcp.Server
	for i, written := range c.MCP {
		server := written.server()
		server.Dir = dir
		if server.Timeout == 0 {
			server.Timeout = c.Limits.ToolTimeout.Std()
		}
		for _, name := range written.Env {
			if value, set := os.LookupEnv(name); set {
				server.Env = append(server.Env, name+"="+value)
			}
		}
		if written.TokenEnv != "" {
			token, err := Secret(written.TokenEnv)
			if err != nil {
				return nil, fmt.Errorf("mcp[%d].token_env: %w", i, err)
			}
			server.Token = token
		}
		servers = append(servers, server)
	}
	return servers, nil
}

func (m MCP) server() mcp.Server {
	return mcp.Server{
		Name: m.Name, Command: m.Command, URL: m.URL, Tools: m.Tools, ReadOnly: m.ReadOnly,
		Policy: agent.Policy(m.Approve), Timeout: m.Timeout.Std(),
	}
}

// bringsTool reports whether a name is that of a tool of an MCP server's.
func (c *Config) bringsTool(name string) bool {
	return slices.ContainsFunc(c.MCP, func(m MCP) bool {
		return slices.ContainsFunc(m.Tools, func(tool string) bool { return m.server().ToolName(tool) == name })
	})
}

func checkMCP(m MCP, at *place, names map[string]*place, f *faults) {
	checkName(m.Name, at, "mcp.name", names, f)
	if m.Name != "" && mcp.CheckName(m.Name) != nil {
		f.add(at.key("name"), "mcp.name", "wants small letters, digits and single _, 30 at most: the names of its tools begin with it")
	}
	switch {
	case len(m.Command) == 0 && m.URL == "":
		f.add(at, "mcp", "needs a command to start, or the url of a server that runs")
	case len(m.Command) > 0 && m.URL != "":
		f.add(at.key("url"), "mcp.url", "stands beside a command; a server is one or the other")
	case len(m.Command) > 0 && strings.TrimSpace(m.Command[0]) == "":
		f.add(at.key("command"), "mcp.command", "names no program")
	case len(m.Command) > 0 && m.TokenEnv != "":
		f.add(at.key("token_env"), "mcp.token_env", "is for a url; a command is given variables by env")
	case m.URL != "" && len(m.Env) > 0:
		f.add(at.key("env"), "mcp.env", "is for a command; a url is asked with token_env")
	}
	checkAddress(m.URL, at, "mcp", "url", f)
	for i, name := range m.Env {
		if !variableName.MatchString(name) {
			f.add(at.key("env").item(i), "mcp.env", "wants names of environment variables; a value doesn't belong here")
		}
	}
	if len(m.Tools) == 0 {
		f.add(at.key("tools"), "mcp.tools", "is needed: the tools of the server that may be used, by the names it gives them")
	}
	for i, tool := range m.ReadOnly {
		if !slices.Contains(m.Tools, tool) {
			f.add(at.key("read_only").item(i), "mcp.read_only", "names a tool that mcp.tools doesn't list")
		}
	}
}
