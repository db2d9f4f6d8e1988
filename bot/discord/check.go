package discord

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"nudge/bot"
)

// checkFor is how long Discord may take to say whether it would serve.
const checkFor = 15 * time.Second

// permissions are what the bot does in a server, and nothing else
// (docs.discord.com/developers/topics/permissions#permissions-bitwise-permission-flags).
const permissions = addReactions | viewChannel | sendMessages | attachFiles | readHistory | createThreads | sendInThreads

const (
	administrator = 1 << 3 // may do everything
	addReactions  = 1 << 6
	viewChannel   = 1 << 10
	sendMessages  = 1 << 11
	attachFiles   = 1 << 15
	readHistory   = 1 << 16
	createThreads = 1 << 35
	sendInThreads = 1 << 38
)

// granted are the permissions by their names in Discord, with what is lost without each.
var granted = []struct {
	bit        int64
	name, lost string
}{
	{viewChannel, "View Channels", "it hears nothing"},
	{sendMessages, "Send Messages", "it cannot answer"},
	{sendInThreads, "Send Messages in Threads", "it cannot answer in threads"},
	{createThreads, "Create Public Threads", "it answers in the channel"},
	{readHistory, "Read Message History", "what is said while it does not run is lost"},
	{attachFiles, "Attach Files", "very long answers become many messages"},
	{addReactions, "Add Reactions", "nobody sees that a correction was read"},
}

// lacking says which permissions a server does not grant; "" when none.
func (g guild) lacking() string {
	has, err := strconv.ParseInt(g.Permissions, 10, 64)
	if err != nil || has&administrator != 0 {
		return ""
	}
	var names []string
	for _, p := range granted {
		if has&p.bit == 0 {
			names = append(names, fmt.Sprintf("%s (without it %s)", p.name, p.lost))
		}
	}
	return strings.Join(names, ", ")
}

// invitation is the address at which somebody lets the app into their server.
func invitation(app string) string {
	return "https://discord.com/oauth2/authorize?" + fmt.Sprintf("client_id=%s&scope=bot+applications.commands&permissions=%d", app, permissions)
}

// Check asks Discord whether it takes the token, whether the app may read what is said, and what each server lets it
// do. An error says how to mend what is wrong. It opens no link, so that a process that has one keeps it.
func (d *Discord) Check(ctx context.Context) (say string, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkFor)
	defer cancel()
	app, err := d.api.application(ctx)
	switch {
	case lasting(err):
		return "", fmt.Errorf("ask discord who the bot is, with %s: %w; %s", d.token, err, refusals[4004])
	case err != nil:
		return "", fmt.Errorf("ask discord who the bot is, with %s: %w; check that this machine reaches Discord, and try again", d.token, err)
	case app.Flags&readsContent == 0:
		return "", errors.New(refusals[codeIntents])
	}
	g, err := d.api.gateway(ctx)
	if err != nil {
		return "", fmt.Errorf("ask discord for its gateway, with %s: %w; try again later", d.token, err)
	}
	servers, err := d.servers(ctx, app.ID)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s (app %s); the token is taken, Message Content Intent is on, and %d of %d sessions of today are left; %s; invite it with %s",
		app.Name, app.ID, g.Limits.Remaining, g.Limits.Total, servers, invitation(app.ID)), nil
}

// servers says in which servers the bot is. The error names those that do not let it do what it does.
func (d *Discord) servers(ctx context.Context, app string) (say string, err error) {
	guilds, err := d.api.guilds(ctx)
	if err != nil {
		return "", fmt.Errorf("ask discord for its servers, with %s: %w; try again later", d.token, err)
	}
	var names, faults []string
	for _, g := range guilds {
		name := cut(bot.Visible(g.Name), 100)
		names = append(names, name)
		if lacking := g.lacking(); lacking != "" {
			faults = append(faults, fmt.Sprintf("in %s it lacks %s", name, lacking))
		}
	}
	switch {
	case len(faults) > 0:
		return "", fmt.Errorf("%s; open the invitation anew, which grants them, or give them to its role under Server Settings, Roles: %s", strings.Join(faults, "; "), invitation(app))
	case len(names) == 0:
		return "it is in no server yet, and nobody can write to it before it is", nil
	}
	return fmt.Sprintf("it has its permissions in %s", cut(strings.Join(names, ", "), 300)), nil
}
