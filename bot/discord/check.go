package discord

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// checkFor is how long Discord may take to say whether it would serve.
const checkFor = 15 * time.Second

// permissions are what the bot does in a server, and nothing else
// (docs.discord.com/developers/topics/permissions#permissions-bitwise-permission-flags).
const permissions = addReactions | viewChannel | sendMessages | attachFiles | readHistory | createThreads | sendInThreads

const (
	addReactions  = 1 << 6  // receipts
	viewChannel   = 1 << 10 //
	sendMessages  = 1 << 11 //
	attachFiles   = 1 << 15 // very long answers
	readHistory   = 1 << 16 // what was missed, and what became of a message
	createThreads = 1 << 35 // under a mention
	sendInThreads = 1 << 38 //
)

// invitation is the address at which somebody lets the app into their server.
func invitation(app string) string {
	return "https://discord.com/oauth2/authorize?" + fmt.Sprintf("client_id=%s&scope=bot+applications.commands&permissions=%d", app, permissions)
}

// Check asks Discord whether it takes the token, and whether the app may read what is said. An error says how to mend what is
// wrong. It opens no link, so that a process that has one keeps it.
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
	return fmt.Sprintf("%s (app %s); the token is taken, Message Content Intent is on, and %d of %d sessions of today are left; invite it with %s",
		app.Name, app.ID, g.Limits.Remaining, g.Limits.Total, invitation(app.ID)), nil
}
