package slack

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/slack-go/slack"

	"nudge/bot/bottest/slacktest"
)

func TestCheck(t *testing.T) {
	var manifest slack.Manifest
	if err := json.Unmarshal([]byte(Manifest()), &manifest); err != nil {
		t.Fatal(err)
	}
	scopes := manifest.OAuthConfig.Scopes.Bot
	for _, c := range []struct {
		name, scopes, method, code string
		want                       []string // in the error
	}{
		{name: "all is well", scopes: strings.Join(scopes, ", ")},
		{name: "scopes are not listed"},
		{name: "a scope is missing", scopes: strings.Join(scopes[1:], ",") + ",more:than", want: []string{scopes[0], "nudge manifest slack"}},
		{name: "the bot token is dead", method: "auth.test", code: "token_revoked", want: []string{"the bot token from BOT", "token_revoked", "OAuth & Permissions"}},
		{name: "the app token is dead", method: "apps.connections.open", code: "invalid_auth", want: []string{"the app token from APP", "invalid_auth", "App-Level Tokens"}},
		{name: "Slack is down", method: "auth.test", code: "fatal_error", want: []string{"fatal_error", "reaches Slack"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := slacktest.New(slacktest.Options{Scopes: c.scopes})
			t.Cleanup(server.Close)
			s, err := New(Config{
				BotToken: slacktest.BotToken, AppToken: slacktest.AppToken, BotTokenFrom: "BOT", AppTokenFrom: "APP", APIURL: server.APIURL(), Timing: brisk,
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.opening.close)
			if c.code != "" {
				server.Fail(c.method, slacktest.Fault{Error: c.code})
			}
			say, err := s.Check(t.Context())
			if c.want == nil && (err != nil || !strings.Contains(say, slacktest.Team)) {
				t.Errorf("says %q: %v", say, err)
			}
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("says %q: %v, want %q", say, err, want)
				}
			}
			if n := server.Links(); n > 0 {
				t.Errorf("%d links were made", n)
			}
		})
	}
}
