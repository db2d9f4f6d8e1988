package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"
)

// checkFor is how long Slack may take to say whether it would serve.
const checkFor = 15 * time.Second

// Check asks Slack whether it takes both tokens, and whether the app has the scopes of the manifest. An error says how to
// mend what is wrong. It opens no link, so that a process that has one keeps it.
func (s *Slack) Check(ctx context.Context) (say string, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkFor)
	defer cancel()
	who, err := s.api.AuthTestContext(ctx)
	if err != nil {
		return "", fmt.Errorf("ask slack who the bot is, with %s: %w; %s", s.botToken, err, mend(err, "OAuth & Permissions, Bot User OAuth Token"))
	}
	if missing := missingScopes(who.Header.Get("X-Oauth-Scopes")); len(missing) > 0 {
		return "", fmt.Errorf("the slack app lacks the scopes %s; put what `nudge manifest slack` prints into its App Manifest and install it again",
			strings.Join(missing, ", "))
	}
	if _, _, err := s.link.opener.StartSocketModeContext(ctx); err != nil {
		return "", fmt.Errorf("ask slack for a link, with %s: %w; %s", s.link.appToken, err, mend(err, "Basic Information, App-Level Tokens"))
	}
	return fmt.Sprintf("%s in %s (%s); both tokens are taken, and no scope is missing", who.User, who.Team, who.TeamID), nil
}

// mend says what to do about an error.
func mend(err error, where string) string {
	if fatal(err) {
		return "make a new one under api.slack.com/apps, " + where
	}
	return "check that this machine reaches Slack, and try again"
}

// missingScopes are those of the manifest that are not among the granted ones, as Slack lists them; none when it lists none.
func missingScopes(granted string) (missing []string) {
	if granted == "" {
		return nil
	}
	var has []string
	for _, scope := range strings.Split(granted, ",") {
		has = append(has, strings.TrimSpace(scope))
	}
	var manifest slack.Manifest
	if err := json.Unmarshal([]byte(Manifest()), &manifest); err != nil {
		return nil
	}
	for _, scope := range manifest.OAuthConfig.Scopes.Bot {
		if !slices.Contains(has, scope) {
			missing = append(missing, scope)
		}
	}
	return missing
}
