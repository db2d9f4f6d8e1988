package main

import (
	"fmt"
	"strings"

	"nudge/agent"
	"nudge/agent/tool/mcp"
	"nudge/cmd/nudge/config"
)

// triangleFinding tells which of the tools that are offered could carry private data out together, if a text of strangers
// misled the model: those that read the data, those that read such texts, and those that send.
func triangleFinding(c config.Config, dir string) finding {
	const name = "tools"
	made, err := newChecks(c)
	if err != nil {
		return judge(name, "", err)
	}
	p := &program{config: c, dataDir: dir, checks: made}
	tools, err := p.tools()
	if err != nil {
		return judge(name, "", err)
	}
	var private, outside, out []string
	add := func(tool string, l agent.Labels) {
		if !offers(c, tool) {
			return
		}
		for _, side := range []struct {
			is   bool
			list *[]string
		}{{l.Private, &private}, {l.Outside, &outside}, {l.WayOut && !l.ToPerson, &out}} {
			if side.is {
				*side.list = append(*side.list, tool)
			}
		}
	}
	for _, tool := range tools {
		add(tool.Name, tool.Labels)
	}
	for _, server := range c.MCP {
		for _, tool := range server.Tools {
			add(server.Name+"__"+tool, mcp.LabelsOf(server.Name))
		}
	}
	if len(private) == 0 || len(outside) == 0 || len(out) == 0 {
		return finding{name, fine, "none of them could carry private data out on the word of a stranger"}
	}
	return finding{name, fine, fmt.Sprintf("private data is read by %s; text of strangers by %s; and %s may send something out. Once a conversation has both, "+
		"each call that sends asks its person first, whatever [tools] approve says", strings.Join(private, ", "), strings.Join(outside, ", "), strings.Join(out, ", "))}
}
