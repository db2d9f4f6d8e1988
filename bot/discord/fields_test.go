package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nudge/agent"
	"nudge/agent/secret"
	"nudge/bot/bottest/discordtest"
	"nudge/bot/form"
)

const (
	five = `{"type":"object","required":["path","mode","force","count"],"properties":{
		"path":{"type":"string","description":"Where it stands."},"mode":{"enum":["fast","slow"]},"force":{"type":"boolean"},
		"count":{"type":"integer"},"tags":{"type":"array"}}}`
	seven = `{"properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"},"d":{"type":"string"},"e":{"type":"string"},
		"f":{"type":"integer"},"long":{"type":"string"}}}`
)

// editing opens the form for a call.
func (h *hearing) editing(schema, arguments string) (at message, f discordtest.Form) {
	h.Helper()
	h.ear.mu.Lock()
	h.ear.schema, h.ear.arguments = schema, arguments
	h.ear.mu.Unlock()
	at = h.asked(home)
	return at, h.edits(at)
}

func (h *hearing) edits(at message) (f discordtest.Form) {
	h.Helper()
	click := h.clicked(ann, at, actionEdit)
	h.answeredWith(click, answerForm)
	f, _ = h.server.Form(click)
	return f
}

func (h *hearing) decided() string {
	h.Helper()
	h.await("a decision is taken", func() bool { return h.ear.last().Click != nil })
	return string(h.ear.last().Click.Arguments)
}

// TestAFormHasAFieldForEachArgument fills in a form with an input of each kind.
func TestAFormHasAFieldForEachArgument(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	at, f := h.editing(five, `{"path":"a <&> b","mode":"slow","force":false,"count":7,"tags":["x"]}`)
	for label, want := range map[string]string{"path": "a <&> b", "mode": `"slow"`, "force": "false", "count": "7", "tags (JSON)": "[\n  \"x\"\n]"} {
		if got := f.Input(label).Holds(); got != want {
			t.Errorf("%s holds %q, want %q", label, got, want)
		}
	}
	if f.Components[0].Hint != "Where it stands." {
		t.Errorf("the hint is %q", f.Components[0].Hint)
	}
	h.server.Submit(ann, f, at.channel, at.id, map[string]string{
		f.Input("path").ID: "c", f.Input("mode").ID: `"fast"`, f.Input("force").ID: "true", f.Input("tags (JSON)").ID: "",
	})
	if got, want := h.decided(), `{"path":"c","mode":"fast","force":true,"count":7}`; got != want {
		t.Errorf("decided %s, want %s", got, want)
	}
}

// TestAFormHasNoRoomForMore has more arguments than Discord takes inputs, and one that is too long for any.
func TestAFormHasNoRoomForMore(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	long := strings.Repeat("x", 5000)
	arguments := `{"a":"1","b":"2","c":"3","d":"4","e":"5","f":6.0,"long":"` + long + `"}`
	at, f := h.editing(seven, arguments)
	if n := len(f.Inputs()); n != 5 {
		t.Fatalf("there are %d inputs", n)
	}
	rest := f.Input("All others (JSON)")
	if want := "{\n  \"e\": \"5\",\n  \"f\": 6.0\n}"; rest.Value != want || f.Components[4].Hint != "e, f" {
		t.Errorf("the rest is %q (%s), want %q", rest.Value, f.Components[4].Hint, want)
	}
	h.server.Submit(ann, f, at.channel, at.id, nil)
	if got := h.decided(); got != arguments {
		t.Errorf("decided %.100s", got)
	}
	h.server.Submit(ann, f, at.channel, at.id, map[string]string{rest.ID: `{"f": 7, "new": [1]}`, f.Input("a").ID: "9"})
	want := `{"a":"9","b":"2","c":"3","d":"4","f":7,"new":[1],"long":"` + long + `"}`
	h.await("the second is taken", func() bool { c := h.ear.last().Click; return c != nil && string(c.Arguments) == want })
}

// TestWhatWasEnteredIsKept sends forms that cannot be taken: it is told what is wrong with them, and the next form holds what was
// entered, for that person alone.
func TestWhatWasEnteredIsKept(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	at, f := h.editing(five, `{"path":"a","mode":"slow","force":false,"count":7,"tags":["x"]}`)
	told := func(want string) {
		t.Helper()
		var last string
		h.await("it is told that "+want, func() bool {
			said := h.server.ByBot(discordtest.DM(ann))
			last = discordtest.Read(said[len(said)-1].Text)
			return strings.Contains(last, want) && said[len(said)-1].For == ann
		})
	}
	values := map[string]string{f.Input("count").ID: "many", f.Input("mode").ID: `"fast"`, f.Input("tags (JSON)").ID: "[1"}
	h.server.Submit(ann, f, at.channel, at.id, values)
	told("count: This is not a number.\ntags: This is not JSON")
	told("what you entered is still there")
	f = h.edits(at)
	for label, want := range map[string]string{"path": "a", "mode": `"fast"`, "count": "many", "tags (JSON)": "[1"} {
		if got := f.Input(label).Holds(); got != want {
			t.Errorf("%s holds %q, want %q", label, got, want)
		}
	}
	click := h.clicked(bob, at, actionEdit)
	h.answeredWith(click, answerForm)
	if other, _ := h.server.Form(click); other.Input("count").Value != "7" {
		t.Errorf("Bob reads %q", other.Input("count").Value)
	}
	h.ear.mu.Lock()
	h.ear.objects = "count: 51 is above the maximum"
	h.ear.mu.Unlock()
	// Weigh speaks against forms too, so the one that is open is sent.
	h.server.Submit(ann, f, at.channel, at.id, map[string]string{f.Input("count").ID: "51", f.Input("tags (JSON)").ID: "[]"})
	told("above the maximum")
	h.ear.mu.Lock()
	h.ear.objects = ""
	h.ear.mu.Unlock()
	f = h.edits(at)
	h.server.Submit(ann, f, at.channel, at.id, map[string]string{f.Input("count").ID: "50"})
	if got, want := h.decided(), `{"path":"a","mode":"fast","force":false,"count":50,"tags":[]}`; got != want {
		t.Errorf("decided %s, want %s", got, want)
	}
	if f = h.edits(at); f.Input("count").Value != "7" {
		t.Errorf("after that a form holds %q", f.Input("count").Value)
	}
}

// TestAToolThatHasChanged sends a form that was made of another schema.
func TestAToolThatHasChanged(t *testing.T) {
	h := listen(t, discordtest.Options{}, brisk).begin()
	at, f := h.editing(five, `{"path":"a"}`)
	h.ear.mu.Lock()
	h.ear.schema = seven
	h.ear.mu.Unlock()
	h.server.Submit(ann, f, at.channel, at.id, nil)
	h.await("it is told", func() bool {
		said := h.server.ByBot(discordtest.DM(ann))
		return strings.Contains(said[len(said)-1].Text, "has changed since the form was opened")
	})
	if h.ear.last().Click != nil {
		t.Error("something was decided")
	}
}

// TestFormsKeepArguments opens forms for any arguments and sends them as they are: Discord takes each, and nothing changes.
func TestFormsKeepArguments(t *testing.T) {
	kinds := []string{`{"type":"string"}`, `{"type":"integer"}`, `{"type":"boolean"}`, `{"enum":["a","b"]}`, `{}`, `{"type":["string","null"]}`, `{"type":"object"}`}
	fits := []string{`"a\r\nb"`, "7", "true", `"b"`, `{"a":[1.50]}`, "null", `{}`}
	h := listen(t, discordtest.Options{}, brisk)
	rapid.Check(t, func(r *rapid.T) {
		var properties, required, arguments []string
		for n := range rapid.IntRange(1, 9).Draw(r, "fields") {
			kind := rapid.IntRange(0, len(kinds)-1).Draw(r, "kind")
			name := fmt.Sprintf(`"%s%d"`, strings.Repeat("n", rapid.IntRange(0, 60).Draw(r, "name")), n)
			properties = append(properties, name+":"+kinds[kind])
			there := rapid.Bool().Draw(r, "there")
			if there {
				arguments = append(arguments, name+":"+fits[kind])
			}
			if there && rapid.Bool().Draw(r, "required") {
				required = append(required, name)
			}
		}
		schema := fmt.Sprintf(`{"properties":{%s},"required":[%s]}`, strings.Join(properties, ","), strings.Join(required, ","))
		before := "{" + strings.Join(arguments, ",") + "}"
		card := agent.Reply{ID: "card", Tool: "delete", Arguments: json.RawMessage(before)}
		data, err := json.Marshal(h.discord.editForm(card, json.RawMessage(schema), ann))
		if err != nil {
			r.Fatal(err)
		}
		f, ok := discordtest.ReadForm(data)
		if !ok {
			r.Fatalf("discord refuses %s", data)
		}
		values := map[string]string{}
		for _, in := range f.Inputs() {
			values[in.ID] = in.Holds()
		}
		fields, _ := fieldsOf(json.RawMessage(schema), json.RawMessage(before))
		h.ear.schema, h.ear.arguments = schema, before
		decision := agent.Decision{Card: "card", Verdict: agent.Edit}
		fault, err := h.discord.fill(context.Background(), h.ear, &decision, form.Stamp(fields), values)
		if err != nil || fault != "" || string(decision.Arguments) != before {
			r.Fatalf("%s became %s: %s %v", before, decision.Arguments, fault, err)
		}
	})
}

// TestFormsShowNothingHidden opens forms for arguments of which something was hidden, and sends them as they are: neither what was
// hidden nor what stands for it is in any, and exactly those arguments do not come back.
func TestFormsShowNothingHidden(t *testing.T) {
	const word = "plover-1172-of-the-config"
	secrets := secret.New(word)
	kinds := []string{`{"type":"string"}`, `{"type":["string","null"]}`, `{"type":"array"}`, `{}`}
	fits := [][]string{{`"a"`, `"a ` + word + `"`}, {"null", `"` + word + `"`}, {`[1]`, `["` + word + `"]`}, {"7", `{"k":"` + word + `"}`}}
	h := listen(t, discordtest.Options{}, brisk)
	rapid.Check(t, func(r *rapid.T) {
		var properties, required, arguments, open []string
		for n := range rapid.IntRange(1, 9).Draw(r, "fields") {
			kind := rapid.IntRange(0, len(kinds)-1).Draw(r, "kind")
			name, value := fmt.Sprintf(`"n%d"`, n), rapid.SampledFrom(fits[kind]).Draw(r, "value")
			properties = append(properties, name+":"+kinds[kind])
			arguments = append(arguments, name+":"+value)
			if rapid.Bool().Draw(r, "required") {
				required = append(required, name)
			}
			if !strings.Contains(value, word) {
				open = append(open, name+":"+value)
			}
		}
		schema := fmt.Sprintf(`{"properties":{%s},"required":[%s]}`, strings.Join(properties, ","), strings.Join(required, ","))
		card := agent.Reply{ID: "card", Tool: "delete", Arguments: secrets.JSON([]byte("{" + strings.Join(arguments, ",") + "}"))}
		data, err := json.Marshal(h.discord.editForm(card, json.RawMessage(schema), ann))
		if err != nil {
			r.Fatal(err)
		}
		asJSON, err := json.Marshal(h.discord.editForm(card, nil, ann))
		if err != nil {
			r.Fatal(err)
		}
		for _, form := range []string{string(data), string(asJSON)} {
			if strings.Contains(form, word) || strings.Contains(form, secret.Mark) {
				r.Fatalf("the form of %s shows %s", arguments, form)
			}
		}
		f, ok := discordtest.ReadForm(data)
		if !ok {
			r.Fatalf("discord refuses %s", data)
		}
		values := map[string]string{}
		for _, in := range f.Inputs() {
			values[in.ID] = in.Holds()
		}
		fields, _ := fieldsOf(json.RawMessage(schema), card.Arguments)
		h.ear.schema, h.ear.arguments = schema, string(card.Arguments)
		decision := agent.Decision{Card: "card", Verdict: agent.Edit}
		fault, err := h.discord.fill(context.Background(), h.ear, &decision, form.Stamp(fields), values)
		if want := "{" + strings.Join(open, ",") + "}"; err != nil || fault != "" || string(decision.Arguments) != want {
			r.Fatalf("%s became %s, want %s: %s %v", arguments, decision.Arguments, want, fault, err)
		}
	})
}
