package slack

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/slack-go/slack"
)

var history = []string{"channels:history", "groups:history", "im:history", "mpim:history"}

// scopesOfCalls are the scopes that the calls of the Web API need, as the page of each method on docs.slack.dev says.
var scopesOfCalls = map[string][]string{
	"AuthTestContext":                            nil,
	"GetUserInfoContext":                         {"users:read"},
	"OpenConversationContext":                    {"im:write"},
	"PostMessageContext":                         {"chat:write"},
	"PostEphemeralContext":                       {"chat:write"},
	"UpdateMessageContext":                       {"chat:write"},
	"DeleteMessageContext":                       {"chat:write"},
	"StartStreamContext":                         {"chat:write"},
	"AppendStreamContext":                        {"chat:write"},
	"StopStreamContext":                          {"chat:write"},
	"SetAssistantThreadsStatusContext":           {"chat:write"},
	"SetAgentSessionStatusContext":               {"chat:write"},
	"SetAssistantThreadsSuggestedPromptsContext": {"assistant:write"},
	"SetAssistantThreadsTitleContext":            {"assistant:write"},
	"OpenViewContext":                            nil,
	"PublishViewContext":                         nil,
	"GetConversationRepliesContext":              append([]string{"metadata.message:read"}, history...),
	"GetConversationHistoryContext":              append([]string{"metadata.message:read"}, history...),
	"AddReactionContext":                         {"reactions:write"},
	"RemoveReactionContext":                      {"reactions:write"},
	"UploadFileContext":                          {"files:write"},
	"GetFileInfoContext":                         {"files:read"},
}

// scopesOfEvents are the scopes that events need, by the type of the event, with the subscriptions that bring it.
var scopesOfEvents = map[string]struct{ subscriptions, scopes []string }{
	"message":               {[]string{"message.channels", "message.groups", "message.im", "message.mpim"}, history},
	"app_mention":           {[]string{"app_mention"}, []string{"app_mentions:read"}},
	"app_home_opened":       {[]string{"app_home_opened"}, nil},
	"agent_session_stopped": {[]string{"agent_session_stopped"}, nil},
	"user_change":           {[]string{"user_change"}, []string{"users:read"}},
	// This one stands around an event, and comes unasked.
	"app_rate_limited": {nil, nil},
	// Only an app with assistant_view, which excludes agent_view, can subscribe to this one.
	"assistant_thread_started": {nil, nil},
}

// used reads from the code of this package which calls of the Web API it makes, and which types of events it looks for.
func used(t *testing.T) (calls, events map[string]bool) {
	t.Helper()
	calls, events = map[string]bool{}, map[string]bool{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(gotoken.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if name := calledOn(n, "api"); name != "" {
					calls[name] = true
				}
			case *ast.BinaryExpr:
				if word := comparedType(n); word != "" && (file == "event.go" || file == "happening.go") {
					events[word] = true
				}
			}
			return true
		})
	}
	return calls, events
}

// calledOn is the method that a call calls on a variable or field of some name; "" when it calls another.
func calledOn(call *ast.CallExpr, on string) string {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	switch x := method.X.(type) {
	case *ast.SelectorExpr:
		if x.Sel.Name == on {
			return method.Sel.Name
		}
	case *ast.Ident:
		if x.Name == on {
			return method.Sel.Name
		}
	}
	return ""
}

// comparedType is the text that an event's field Type is compared with; "" when nothing of that kind is compared.
func comparedType(of *ast.BinaryExpr) string {
	field, isField := of.X.(*ast.SelectorExpr)
	text, isText := of.Y.(*ast.BasicLit)
	if !isField || !isText || field.Sel.Name != "Type" {
		return ""
	}
	word, err := strconv.Unquote(text.Value)
	if err != nil {
		return ""
	}
	return word
}

func TestManifestAsksForExactlyWhatIsUsed(t *testing.T) {
	var m slack.Manifest
	if err := json.Unmarshal([]byte(Manifest()), &m); err != nil {
		t.Fatal(err)
	}
	calls, events := used(t)
	scopes, subscriptions := map[string]bool{"commands": true}, map[string]bool{}
	for call := range calls {
		needs, known := scopesOfCalls[call]
		if !known {
			t.Errorf("which scopes %s needs is not written here", call)
		}
		for _, scope := range needs {
			scopes[scope] = true
		}
	}
	for call := range scopesOfCalls {
		if !calls[call] {
			t.Errorf("%s is not called any more", call)
		}
	}
	for event := range events {
		needs, known := scopesOfEvents[event]
		if !known {
			t.Errorf("what the event %s needs is not written here", event)
		}
		for _, scope := range needs.scopes {
			scopes[scope] = true
		}
		for _, subscription := range needs.subscriptions {
			subscriptions[subscription] = true
		}
	}
	if got, want := slices.Sorted(slices.Values(m.OAuthConfig.Scopes.Bot)), slices.Sorted(maps.Keys(scopes)); !slices.Equal(got, want) {
		t.Errorf("the manifest asks for the scopes\n%q, used are\n%q", got, want)
	}
	if got, want := slices.Sorted(slices.Values(m.Settings.EventSubscriptions.BotEvents)), slices.Sorted(maps.Keys(subscriptions)); !slices.Equal(got, want) {
		t.Errorf("the manifest subscribes to\n%q, used are\n%q", got, want)
	}
	if len(m.OAuthConfig.Scopes.User) != 0 || len(m.Settings.EventSubscriptions.UserEvents) != 0 {
		t.Error("the manifest asks for what is a user's")
	}
}

func TestManifestHasWhatIsShown(t *testing.T) {
	var m slack.Manifest
	if err := json.Unmarshal([]byte(Manifest()), &m); err != nil {
		t.Fatal(err)
	}
	if !m.Settings.SocketModeEnabled || m.Settings.Interactivity == nil || !m.Settings.Interactivity.IsEnabled {
		t.Error("socket mode or interactivity is off")
	}
	f := m.Features
	if !f.AppHome.HomeTabEnabled || !f.AppHome.MessagesTabEnabled || f.AppHome.MessagesTabReadOnlyEnabled || f.AgentView == nil || f.AssistantView != nil {
		t.Errorf("the features are %+v", f)
	}
	if len(f.Shortcuts) != 1 || f.Shortcuts[0].CallbackID != shortcutAsk || f.Shortcuts[0].Type != slack.MessageShortcut || len(f.Shortcuts[0].Name) > 24 {
		t.Errorf("the shortcuts are %+v", f.Shortcuts)
	}
	if len(f.SlashCommands) != 1 || f.SlashCommands[0].Command != "/nudge" {
		t.Errorf("the commands are %+v", f.SlashCommands)
	}
	var suggested []slack.AssistantThreadsPrompt
	for _, p := range f.AgentView.SuggestedPrompts {
		suggested = append(suggested, slack.AssistantThreadsPrompt(p))
	}
	if !slices.Equal(suggested, prompts) {
		t.Errorf("the manifest suggests %+v", suggested)
	}
}
