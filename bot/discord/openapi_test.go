package discord

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/bottest/discordtest"
)

// described are the parts of Discord's own description of its API that the bodies of calls have to fit.
var described = map[string]string{
	"message.create":     "/paths/~1channels~1{channel_id}~1messages/post",
	"message.edit":       "/paths/~1channels~1{channel_id}~1messages~1{message_id}/patch",
	"thread.create":      "/paths/~1channels~1{channel_id}~1messages~1{message_id}~1threads/post",
	"dm.open":            "/paths/~1users~1@me~1channels/post",
	"command.create":     "/paths/~1applications~1{application_id}~1commands/post",
	"interaction.answer": "/paths/~1interactions~1{interaction_id}~1{interaction_token}~1callback/post",
	"followup.create":    "/paths/~1webhooks~1{webhook_id}~1{webhook_token}/post",
	"followup.edit":      "/paths/~1webhooks~1{webhook_id}~1{webhook_token}~1messages~1@original/patch",
}

// TestBodiesFitTheDescription holds all that is sent against Discord's description of its API.
func TestBodiesFitTheDescription(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "bodies.json"))
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("discord.json", document); err != nil {
		t.Fatal(err)
	}
	h := listen(t, discordtest.Options{}, brisk).begin()
	sendEverything(h)
	for route, place := range described {
		schema, err := compiler.Compile("discord.json#" + place + "/requestBody/content/application~1json/schema")
		if err != nil {
			t.Fatal(err)
		}
		calls := h.server.Calls(route)
		if len(calls) == 0 {
			t.Errorf("%s was not called", route)
		}
		for _, c := range calls {
			body, err := jsonschema.UnmarshalJSON(bytes.NewReader(c.Body))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(body); err != nil || c.Status >= 400 {
				t.Errorf("%s, answered with %d: %s\n%v", route, c.Status, c.Body, err)
			}
		}
	}
}

// sendEverything sends each kind of body.
func sendEverything(h *hearing) {
	h.Helper()
	thread, _ := h.server.Say(ann, shared, "<@"+discordtest.Bot+"> hi")
	h.hears("hi")
	address := place{guild: discordtest.Guild, channel: shared, thread: thread}.String()
	until := time.Now().Add(time.Hour)
	h.clickedWithout(address)
	h.ear.mu.Lock()
	h.ear.always = &until
	h.ear.mu.Unlock()
	h.said(reply(agent.Final, address, "**done**"))
	h.said(reply(agent.Final, home, "**done**"))
	d := reply(agent.Approval, address, strings.Repeat("a long diff\n", 300))
	d.ID, d.Tool, d.Arguments, d.Always, d.Expires, d.MayDecide = "card", "delete", json.RawMessage(`{"path":"a"}`), &until, &until, []string{"discord:" + ann}
	at, _ := parseMessage(h.said(d))
	for n, choices := range [][]string{{"a", strings.Repeat("b", 200)}, strings.Split(strings.Repeat("x,", 23), ","), strings.Split(strings.Repeat("y,", 60), ",")} {
		d := reply(agent.Ask, home, "which?")
		d.Key, d.ID, d.Choices = string(rune('a'+n)), "ask", choices
		h.said(d)
	}
	notify := reply(agent.Notify, home, "look")
	notify.ID, notify.Heartbeat = "note", "disk"
	h.said(notify)
	progress := bot.Delivery{Reply: agent.Reply{Kind: agent.Progress, Text: "half", Address: home, Turn: "t"}}
	h.said(progress)
	h.await("progress is there", func() bool {
		said := h.server.ByBot(discordtest.DM(ann))
		return strings.HasPrefix(said[len(said)-1].Text, "half")
	})
	progress.Text = "more"
	h.said(progress)
	h.await("progress has changed", func() bool { return len(h.server.Calls("message.edit")) > 0 })
	for _, action := range []string{actionDeny, actionEdit, actionAlways} {
		click := h.clicked(ann, at, action)
		h.await("a form is there", func() bool { typ, _ := h.server.Answered(click); return typ != 0 })
	}
	h.ear.mu.Lock()
	h.ear.open = []agent.Opening{{Name: "env", Within: "of staging, production"}, {Name: strings.Repeat("v", 64), Within: "that matches " + strings.Repeat("x", 1000)}}
	h.ear.mu.Unlock()
	h.answeredWith(h.clicked(ann, at, actionAlways), answerForm)
	form := h.clicked(ann, at, actionEdit)
	h.answeredWith(form, answerForm)
	filled, _ := h.server.Form(form)
	h.ear.mu.Lock()
	h.ear.schema = five
	h.ear.mu.Unlock()
	h.answeredWith(h.clicked(ann, at, actionEdit), answerForm)
	h.server.Submit(ann, filled, at.channel, at.id, map[string]string{formInput: "no object"})
	slash, _ := h.server.Slash(ann, shared, "status")
	h.answeredWith(slash, answerThinking)
	settle := reply(agent.DecidedMark, address, "")
	settle.ID, settle.Decision, settle.By, settle.Earlier = "card", agent.Approve, "discord:"+ann, at.String()
	h.said(settle)
	h.await("all was answered", func() bool {
		return len(h.server.Calls("followup.create")) > 0 && len(h.server.Calls("followup.edit")) > 0
	})
}

// clickedWithout presses a button that the card does not have.
func (h *hearing) clickedWithout(address string) {
	h.Helper()
	d := reply(agent.Approval, address, "why")
	until := time.Now()
	d.Key, d.ID, d.Tool, d.Arguments, d.Always = "without", "card", "delete", json.RawMessage(`{}`), &until
	at, _ := parseMessage(h.said(d))
	h.answeredWith(h.clicked(ann, at, actionAlways), answerTaken)
}
