package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"nudge/agent"
	"nudge/agent/tool/mcp"
	"nudge/bot"
	"nudge/cmd/nudge/config"
	"nudge/memory"
)

// serverWait is how long a start waits for MCP servers whose tools were never seen.
const serverWait = 5 * time.Second

func (a *app) mcpCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "List the MCP servers and their tools; agree to how tools describe themselves",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			servers, err := a.askServers(cmd.Context())
			if err != nil {
				return err
			}
			_, err = io.WriteString(a.shown(), serversText(servers))
			return failed(err)
		},
	}
	cmd.AddCommand(a.mcpAgreeCommand())
	return cmd
}

// askServers asks all servers of the config for their tools: the program that runs has done so.
func (a *app) askServers(ctx context.Context) ([]mcp.Status, error) {
	if a.host != nil {
		return a.host.servers.Status(), nil
	}
	c, dir, err := a.config()
	if err != nil {
		return nil, err
	}
	store, err := openStore(dir, a.log())
	var locked *memory.LockedError
	switch {
	case errors.As(err, &locked):
		if err := a.overSocket(ctx, dir, locked, []string{"mcp"}); err != nil {
			return nil, err
		}
		return nil, &exitError{0}
	case err != nil:
		return nil, failed(err)
	}
	defer store.Close()
	return a.meetServers(ctx, c, dir, store)
}

// meetServers connects to the servers for once.
func (a *app) meetServers(ctx context.Context, c config.Config, dir string, store memory.Store) ([]mcp.Status, error) {
	listed, err := c.Servers(dir)
	if err != nil {
		return nil, inFile(c, err)
	}
	servers := mcp.New(mcp.Config{Servers: listed, Store: store, Offer: func([]agent.Tool) {}, Tell: func(string) {}, Log: a.log()})
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		servers.Run(ctx)
	}()
	servers.Meet(ctx, serverWait)
	met := servers.Status()
	stop()
	<-ended
	return met, nil
}

func serversText(servers []mcp.Status) string {
	if len(servers) == 0 {
		return "there are no MCP servers in the config\n"
	}
	var b strings.Builder
	for _, s := range servers {
		state := "can be reached"
		if s.Error != "" {
			state = "cannot be reached: " + oneLine(s.Error)
		}
		fmt.Fprintf(&b, "%s  %s\n", s.Server, state)
		for _, t := range s.Tools {
			if t.Offered {
				fmt.Fprintf(&b, "  %s  approve = %q, %s\n", t.Name, t.Policy, agreedOrSeen(t))
			} else {
				fmt.Fprintf(&b, "  %s  not offered: %s\n", t.Name, oneLine(bot.Visible(t.Why)))
			}
			if t.Says != "" {
				fmt.Fprintf(&b, "    says: %s\n", agent.Head(oneLine(bot.Visible(t.Says)), mostSays))
			}
			if t.Claims != "" {
				fmt.Fprintf(&b, "    claims that it %s\n", t.Claims)
			}
		}
	}
	return b.String()
}

// agreedOrSeen says what a tool's description is to Nudge.
func agreedOrSeen(t mcp.ToolStatus) string {
	if t.Agreed {
		return "agreed"
	}
	return "only seen"
}

// mostSays is how much is shown in a list of what a tool says of itself, in bytes.
const mostSays = 200

// mcpFindings asks the servers, unless a program runs that does.
func (a *app) mcpFindings(ctx context.Context, c config.Config, dir string) []finding {
	store, err := openStore(dir, slog.New(slog.DiscardHandler))
	var locked *memory.LockedError
	switch {
	case errors.As(err, &locked):
		return []finding{{"mcp", noted, "`nudge mcp` tells what the running nudge knows of the servers"}}
	case err != nil:
		return nil // which was said already
	}
	defer store.Close()
	return serverFindings(a.meetServers(ctx, c, dir, store))
}

// serverFindings are what the doctor says of the servers.
func serverFindings(servers []mcp.Status, err error) (findings []finding) {
	if err != nil {
		return []finding{{"mcp", wrong, oneLine(err.Error())}}
	}
	for _, s := range servers {
		if s.Error != "" {
			findings = append(findings, finding{"mcp", wrong, fmt.Sprintf("%s cannot be reached: %s; check its command or url in [[mcp]]", s.Server, oneLine(s.Error))})
			continue
		}
		var offered []string
		onlySeen := false
		for _, t := range s.Tools {
			if t.Offered {
				offered = append(offered, fmt.Sprintf("%s (%s, %s)", t.Name, t.Policy, agreedOrSeen(t)))
				onlySeen = onlySeen || !t.Agreed
			} else {
				findings = append(findings, finding{"mcp", noted, fmt.Sprintf("%s is not offered: %s", t.Name, oneLine(bot.Visible(t.Why)))})
			}
		}
		findings = append(findings, finding{"mcp", fine, fmt.Sprintf("%s offers %s", s.Server, strings.Join(offered, ", "))})
		if onlySeen {
			findings = append(findings, finding{"mcp", noted, fmt.Sprintf("nobody has agreed to how tools of %s describe themselves, so that what sends private data out, or lasts, is asked about: "+
				"`nudge mcp agree %s` shows what they say and asks", s.Server, s.Server)})
		}
	}
	return findings
}

func (a *app) mcpAgreeCommand() *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use:   "agree SERVER",
		Short: "Agree to how the tools of a server describe themselves now",
		Long: "Show which tools of a server describe themselves as nobody has agreed to, and offer them as they are now. What they say is read by the\n" +
			"model with every request: read it as you would read an order. Until somebody has agreed it counts as text of strangers.",
		Args: one,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes && !a.canAsk() {
				return errors.New("nobody can be asked here; --yes agrees without asking")
			}
			return a.agree(cmd.Context(), args[0], yes)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (a *app) agree(ctx context.Context, server string, yes bool) error {
	if a.host != nil {
		err := a.agreeIn(ctx, a.host.store, server, yes)
		a.host.servers.Look(ctx)
		return failed(err)
	}
	_, dir, err := a.config()
	if err != nil {
		return err
	}
	store, err := openStore(dir, a.log())
	var locked *memory.LockedError
	switch {
	case errors.As(err, &locked):
		return a.overSocket(ctx, dir, locked, []string{"mcp", "agree", fmt.Sprintf("--yes=%t", yes), server})
	case err != nil:
		return failed(err)
	}
	return failed(errors.Join(a.agreeIn(ctx, store, server, yes), store.Close()))
}

// agreeIn shows what has changed, asks, and keeps that it was agreed to.
func (a *app) agreeIn(ctx context.Context, store memory.Store, server string, yes bool) error {
	var changes []mcp.Change
	err := store.View(ctx, func(tx memory.Tx) (err error) {
		changes, err = mcp.Changes(tx, server)
		return err
	})
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		_, err := fmt.Fprintf(a.out, "all that is known of what the tools of %s say was agreed to\n", server)
		return err
	}
	for _, c := range changes {
		if c.Before == "" {
			fmt.Fprintf(a.shown(), "%s says:\n%s\n\n", c.Tool, bot.Visible(c.After))
			continue
		}
		fmt.Fprintf(a.shown(), "%s said:\n%s\nand says now:\n%s\n\n", c.Tool, bot.Visible(c.Before), bot.Visible(c.After))
	}
	if !yes {
		fmt.Fprint(a.out, "Agree? [y/N] ")
		answer, err := bufio.NewReader(a.in).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read the answer: %w", err)
		}
		if word := strings.ToLower(strings.TrimSpace(answer)); word != "y" && word != "yes" {
			return errors.New("nothing was agreed to")
		}
	}
	agreed := 0
	err = store.Update(ctx, func(tx memory.Tx) (err error) {
		agreed, err = mcp.Agree(tx, server, changes)
		return err
	})
	if err == nil {
		_, err = fmt.Fprintf(a.out, "agreed: %d\n", agreed)
	}
	return err
}
