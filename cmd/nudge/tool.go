package main

import (
	"context"
	"path/filepath"

	"nudge/agent"
	"nudge/agent/tool/command"
	notes "nudge/agent/tool/diary"
	"nudge/agent/tool/fetch"
	"nudge/agent/tool/heartbeat"
	"nudge/agent/tool/mcp"
	"nudge/agent/tool/script"
	"nudge/agent/tool/workspace"
	"nudge/cmd/nudge/config"
	"nudge/memory"
)

// tools are those that the model may be offered.
func (p *program) tools() ([]agent.Tool, error) {
	files := p.files()
	tools := workspace.Tools(files)
	if len(p.config.Commands) > 0 {
		run, err := p.runCommand(files)
		if err != nil {
			return nil, err
		}
		tools = append(tools, run)
	}
	page, err := fetch.New(fetch.Config{Hosts: p.config.Fetch.Hosts})
	if err != nil {
		return nil, inFile(p.config, err)
	}
	tools = append(tools, page, p.voice.Tool())
	tools = append(tools, notes.Tools(p.notes())...)
	if self, ok := scriptProcess(); ok {
		tools = append(tools, script.New(self))
	}
	return append(tools, heartbeat.Tools(heartbeat.Config{
		Store: p.store, Budget: p.voice.Budget, Changed: p.rescheduled, Checks: p.checks.told(p.condition),
	})...), nil
}

// files is what the tools of the workspace are made of.
func (p *program) files() workspace.Config {
	return workspace.Config{Dirs: p.dirs(), Saved: p.saved, Attached: p.attached, Store: p.store, Trusts: p.trusts, Gate: p.gate}
}

// place is where prepared commands run for people.
func (p *program) place(files workspace.Config) command.Place {
	return command.Place{
		Dir: files.Dirs.Path, Copied: files.Copied, Hold: files.Hold, Closed: closed(p.config, p.dataDir, files.Dirs),
		Outside: func(person agent.PersonID) bool { return files.Outside(person, "") },
	}
}

// runCommand is the tool of the programs that the config presets.
func (p *program) runCommand(files workspace.Config) (agent.Tool, error) {
	run, err := command.New(p.config.Presets(), p.place(files))
	if err != nil {
		return agent.Tool{}, inFile(p.config, err)
	}
	own := !files.Dirs.Shared // also in a box, which has the folder in it
	run.Labels.Own = own
	labels := run.LabelsOf
	run.LabelsOf = func(in agent.Invocation) agent.Labels {
		of := labels(in)
		of.Own = own
		return of
	}
	return run, nil
}

// notes is what the tools of the diary need.
func (p *program) notes() notes.Config { return notes.Config{Diary: p.diary} }

// links are the connections to the MCP servers, which are not there yet.
func (p *program) links() (*mcp.Servers, error) {
	servers, err := p.config.Servers(p.dataDir)
	if err != nil {
		return nil, inFile(p.config, err)
	}
	return mcp.New(mcp.Config{
		Servers: servers, Store: p.store, Log: p.log,
		Tell: func(text string) { p.tellOwners(context.Background(), "", text) },
		Offer: func(tools []agent.Tool) {
			if err := p.agent.Offer(tools); err != nil {
				p.log.Error("the tools of MCP servers cannot be offered", "error", err)
			}
		},
	}), nil
}

// saved finds the whole of a long result.
func (p *program) saved(ctx context.Context, session, id string) (text string, found bool, err error) {
	err = p.store.View(ctx, func(tx memory.Tx) (err error) {
		text, found, err = agent.Saved(tx, session, id)
		return err
	})
	return text, found, err
}

// attached opens a file that somebody attached.
func (p *program) attached(ctx context.Context, session, id string) (*agent.Content, error) {
	return p.agent.OpenFile(ctx, session, id)
}

// trusts reports whether somebody's words are nobody's outside text.
func (p *program) trusts(id agent.PersonID) bool { return p.agent.Owns(id) }

func (p *program) dirs() workspace.Dirs { return workspaces(p.config, p.dataDir) }

func workspaces(c config.Config, dataDir string) workspace.Dirs {
	return workspace.Dirs{Dir: c.WorkspaceDir(dataDir), Shared: c.Workspace.Scope == "shared"}
}

// closed are the folders and files to which no call of a command leads, but for its person's own workspace: Nudge's
// data, the config and its secrets, and where people have workspaces of their own.
func closed(c config.Config, dataDir string, dirs workspace.Dirs) (paths []string) {
	paths = append(c.Files(), dataDir)
	if !dirs.Shared {
		paths = append(paths, dirs.Dir)
	}
	for i, path := range paths {
		if absolute, err := filepath.Abs(path); err == nil {
			paths[i] = absolute
		}
	}
	return paths
}
