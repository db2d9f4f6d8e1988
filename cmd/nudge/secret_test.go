package main

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"nudge/agent/model"
	"nudge/agent/model/modeltest"
)

// canaryKey is the model's key. White space around it is no part of it.
const canaryKey = "sk-canary-5EcRet&plover/1172-of-the-config"

// leaked finds a piece of the key in a text, as it is or as programs write it.
func leaked(text string) string {
	for _, spelling := range []string{canaryKey, url.QueryEscape(canaryKey), base64.StdEncoding.EncodeToString([]byte(canaryKey)), strings.ReplaceAll(canaryKey, "&", `\u0026`)} {
		for i := range len(spelling) - 11 {
			if strings.Contains(text, spelling[i:i+12]) {
				return spelling[i : i+12]
			}
		}
	}
	return ""
}

// TestNoSecretComesOut has the key read by tools, repeated by the model, refused by its server and asked for everywhere.
func TestNoSecretComesOut(t *testing.T) {
	quoted := strings.ReplaceAll(canaryKey, "&", `\u0026`)
	server := modeltest.NewServer(t, func(n int, req modeltest.ChatRequest) modeltest.Reply {
		words := req.Last().Content
		switch {
		case strings.HasPrefix(words, "look"):
			return modeltest.Reply{Calls: []model.Call{call("c1", "read_file", `{"path":"leak.yaml"}`), call("c2", "run_command", `{"name":"env"}`)}}
		case strings.HasPrefix(words, "write"):
			return modeltest.Reply{Calls: []model.Call{call(fmt.Sprint("w", n), "write_file", `{"path":"old.txt","content":"the key is `+quoted+`"}`)}}
		case strings.HasPrefix(words, "break"):
			return modeltest.Reply{Status: http.StatusUnauthorized, Body: `{"error":{"message":"Incorrect API key provided: ` + quoted + `","code":"invalid_api_key"}}`}
		}
		return modeltest.Reply{Text: "It says: " + words + ". And your key is " + canaryKey}
	})
	p := newPlace(t, server, "api_key_env = \"NUDGE_CANARY\"\n[tools]\napprove = { run_command = \"no\" }\n[[command]]\nname = \"env\"\nrun = [\"cat\", \"/proc/self/environ\", \"leak.yaml\"]\neffect = \"read\"\napprove = \"no\"\n")
	t.Setenv("NUDGE_CANARY", " "+canaryKey+"\n")
	leak := "model: x\nkey: " + canaryKey + "\nbasic: " + base64.StdEncoding.EncodeToString([]byte(canaryKey)) + "\nafter: 1\n"
	for name, text := range map[string]string{"leak.yaml": leak, "old.txt": "old"} {
		if err := os.WriteFile(p.workspace(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k := p.chat("-v")
	k.say("look into leak.yaml")
	final := k.until("final")
	k.until("settled")
	if !strings.Contains(final.Text, "[secret]") || !strings.Contains(final.Text, "after: 1") {
		t.Errorf("the answer is %q", final.Text)
	}
	k.say("write it")
	card := k.until("approval")
	if !strings.Contains(string(card.Arguments), "the key is [secret]") || !strings.Contains(card.Text, "stands for a secret") {
		t.Errorf("the card is %s", card.raw)
	}
	k.until("waiting")
	for _, command := range []string{"/approvals", "/status", "/usage", "/model"} {
		k.say(command)
		k.until("notice")
	}
	k.say("/approve " + card.ID)
	k.until("settled")
	// What ran is what was asked for, whatever the card could show of it.
	if text, err := os.ReadFile(p.workspace("old.txt")); err != nil || string(text) != "the key is "+canaryKey {
		t.Errorf("old.txt holds %q, %v", text, err)
	}
	k.say("break it")
	k.until("settled")
	k.say("/export")
	k.until("notice")
	k.end()
	outputs := map[string]string{"the chat": k.so()}
	for _, args := range [][]string{
		{"trace", card.Turn}, {"trace", "--json", card.Turn}, {"trace", "--format", "spans", card.Turn}, {"export", "terminal:ann"}, {"export", "--format", "text", "terminal:ann"},
		{"sessions"}, {"sessions", "export", final.Session}, {"doctor"}, {"doctor", "-v"}, {"check"},
	} {
		outputs[strings.Join(args, " ")], _ = p.run(args...)
	}
	for name, text := range outputs {
		if piece := leaked(text); piece != "" {
			t.Errorf("%s gives away %q:\n%s", name, piece, text)
		}
	}
	for _, req := range server.Requests() {
		for _, m := range req.Messages {
			if m.Role == "tool" && leaked(m.Content) != "" {
				t.Errorf("the model reads %q", m.Content)
			}
		}
	}
}

// What the checks of a simulation see is shown without secrets.
func TestASimulationHidesSecrets(t *testing.T) {
	server := modeltest.NewServer(t, func(int, modeltest.ChatRequest) modeltest.Reply { return modeltest.Reply{} })
	t.Setenv("NUDGE_CANARY", canaryKey)
	p := newPlace(t, server, "api_key_env = \"NUDGE_CANARY\"\n[[heartbeat]]\nname = \"leak\"\ncron = \"* * * * *\"\nprompt = \"look\"\n"+
		"[heartbeat.condition]\nkind = \"command\"\nrun = [\"echo\", \"the key is "+canaryKey+"\"]\n")
	for _, format := range []string{"json", "text"} {
		out, status := p.run("simulate", "--format", format, "--to", "2m")
		if status != 0 || leaked(out) != "" || !strings.Contains(out, "woke") || format == "json" && !strings.Contains(out, "the key is [secret]") {
			t.Errorf("as %s: %d, %s", format, status, out)
		}
	}
}
