package discord

import (
	"context"
	"os"
	"strings"
	"testing"

	"nudge/bot/bottest/discordtest"
)

// TestInvitationOfTheReadme holds the address in the README to what the bot does.
func TestInvitationOfTheReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := invitation("APPLICATION_ID"); !strings.Contains(string(readme), want) {
		t.Errorf("the README does not hold %s", want)
	}
}

// TestCheck has what the doctor says of a bot that is well, and of a Discord that is not.
func TestCheck(t *testing.T) {
	server := newServer(t, discordtest.Options{})
	d := newDiscord(t, server, brisk)
	if say, err := d.Check(context.Background()); err != nil || !strings.Contains(say, invitation(discordtest.App)) || !strings.Contains(say, "1000 of 1000 sessions") {
		t.Errorf("it says %q: %v", say, err)
	}
	for name, c := range map[string]struct {
		options discordtest.Options
		say     string
		faults  []string
	}{
		"in a server":    {discordtest.Options{}, "it has its permissions in Test", nil},
		"in none":        {discordtest.Options{Alone: true}, "it is in no server yet", nil},
		"no permissions": {discordtest.Options{Lacks: createThreads | readHistory}, "", []string{"in Test it lacks", "Create Public Threads", "Read Message History", invitation(discordtest.App)}},
	} {
		say, err := newDiscord(t, newServer(t, c.options), brisk).Check(context.Background())
		if !strings.Contains(say, c.say) || (err == nil) != (c.faults == nil) {
			t.Errorf("%s: it says %q: %v", name, say, err)
		}
		for _, fault := range c.faults {
			if err != nil && !strings.Contains(err.Error(), fault) {
				t.Errorf("%s: %v does not say %q", name, err, fault)
			}
		}
		if err != nil && strings.Contains(err.Error(), "Attach Files") {
			t.Errorf("%s: %v names what is there", name, err)
		}
	}
	server.Fail("application", discordtest.Fault{Status: 500})
	if _, err := d.Check(context.Background()); err == nil || !strings.Contains(err.Error(), "reaches Discord") {
		t.Errorf("when Discord is out of order it says %v", err)
	}
	if server.Identifies() > 0 {
		t.Error("it opened a link")
	}
}

// TestNewRefuses has tokens and addresses that are none. No error holds a token.
func TestNewRefuses(t *testing.T) {
	for _, c := range []Config{{}, {Token: "Bot "}, {Token: "a b"}, {Token: "s3cret", APIURL: "discord.com/api"}, {Token: "s3cret", APIURL: "ftp://x"}} {
		c.TokenFrom = "TOKEN"
		if _, err := New(c); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("of %+v it says %v", c, err)
		}
	}
}
