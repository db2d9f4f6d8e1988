package slack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nudge/agent"
	"nudge/agent/secret"
	"nudge/bot"
	"nudge/bot/bottest/slacktest"
	"nudge/bot/form"
)

// many is a schema with a property of each kind.
const many = `{"type":"object","required":["path","mode","force","count","text","maybe"],"properties":{
	"path":{"type":"string","description":"Where it stands."},
	"mode":{"type":"string","enum":["fast","slow"]},
	"force":{"type":"boolean"},
	"dry":{"type":"boolean"},
	"count":{"type":"integer","minimum":1,"maximum":50},
	"ratio":{"type":"number","minimum":0.5},
	"text":{"type":"string"},
	"maybe":{"anyOf":[{"type":"string"},{"type":"null"}]},
	"level":{"enum":[1,2,3]},
	"tags":{"type":"array","items":{"type":"string"}},
	"big":{"type":"integer"},
	"any":true
},"additionalProperties":{"type":"string"}}`

const manyArguments = `{"big":123456789012345678901234567890,"count":7,"extra":"e","force":false,"maybe":null,"mode":"slow","path":"a <&> b","ratio":0.75,"tags":["x","y"],"text":""}`

func editCard() agent.Reply {
	r := approval(annsDM)
	r.Tool, r.Arguments = "many", json.RawMessage(manyArguments)
	return r
}

// newEdit opens the form for a card of a tool with a schema.
func newEdit(t *testing.T, r agent.Reply, schema string) (*desk, slacktest.View) {
	t.Helper()
	d := newDesk(t, brisk)
	d.in.schemas = map[string]string{r.Tool: schema}
	channel, ts := d.ask(r)
	view, opened := d.click("U0ANN", channel, ts, actionEdit)
	if !opened {
		t.Fatal("no form is open")
	}
	return d, view
}

// TestAFormHasAFieldForEachArgument looks at the kind of each input, and at what it holds first.
func TestAFormHasAFieldForEachArgument(t *testing.T) {
	_, view := newEdit(t, editCard(), many)
	for _, want := range []struct {
		label, typ, initial string
		optional            bool
	}{
		{"path", "plain_text_input", "a <&> b", false},
		{"mode", "static_select", `"slow"`, false},
		{"force", "radio_buttons", "false", false},
		{"dry", "radio_buttons", form.Absent, true},
		{"count", "number_input", "7", false},
		{"ratio", "number_input", "0.75", true},
		{"text", "plain_text_input", "", true}, // it is empty, which Slack does not send otherwise
		{"maybe", "plain_text_input", "", true},
		{"level", "static_select", form.Absent, true},
		{"tags (JSON)", "plain_text_input", "[\n  \"x\",\n  \"y\"\n]", true},
		{"big (JSON)", "plain_text_input", "123456789012345678901234567890", true},
		{"any (JSON)", "plain_text_input", "", true},
		{"extra (JSON)", "plain_text_input", `"e"`, true},
	} {
		b := view.Input(want.label)
		initial := b.Element.Initial
		if b.Element.Selected != nil {
			initial = b.Element.Selected.Value
		}
		if b.Element.Type != want.typ || initial != want.initial || b.Optional != want.optional {
			t.Errorf("%s is a %s with %q, optional %v; want %+v", want.label, b.Element.Type, initial, b.Optional, want)
		}
	}
	if hint := view.Input("path").Hint; hint == nil || hint.Text != "Where it stands." {
		t.Errorf("the hint is %+v", hint)
	}
	if e := view.Input("count").Element; e.Min != "1" || e.Max != "50" || e.Decimal {
		t.Errorf("the count is %+v", e)
	}
	if e := view.Input("ratio").Element; e.Min != "0.5" || e.Max != "" || !e.Decimal {
		t.Errorf("the ratio is %+v", e)
	}
	if !view.Input("tags (JSON)").Element.Multiline || view.Input("path").Element.Multiline {
		t.Error("the lists have one line, or the path has several")
	}
}

// TestAFormBecomesArguments fills in fields and looks at what is decided.
func TestAFormBecomesArguments(t *testing.T) {
	for name, c := range map[string]struct{ entered, want string }{ // by label
		"nothing is touched": {"", manyArguments},
		"all is": {
			`{"path":"c\nd \"e\"","mode":"\"fast\"","force":"true","dry":"false","count":"8","ratio":"1.250","text":"t","maybe":"m","level":"2","tags (JSON)":" [] ","big (JSON)":"98765432109876543210","any (JSON)":"{\"a\": 1}","extra (JSON)":"\"f\""}`,
			`{"path":"c\nd \"e\"","mode":"fast","force":true,"dry":false,"count":8,"ratio":1.250,"text":"t","maybe":"m","level":2,"tags":[],"big":98765432109876543210,"any":{"a": 1},"extra":"f"}`,
		},
		"what need not be there is left out": {
			`{"ratio":"","tags (JSON)":"","big (JSON)":" ","extra (JSON)":"","mode":"\"slow\""}`,
			`{"count":7,"force":false,"maybe":null,"mode":"slow","path":"a <&> b","text":""}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, view := newEdit(t, editCard(), many)
			d.acked(d.server.Submit("U0ANN", view, byLabel(t, view, c.entered)))
			_, decision := d.lastDecision()
			if decision.Verdict != agent.Edit || !equalJSON(t, string(decision.Arguments), c.want) {
				t.Errorf("decided %s\nwant    %s", decision.Arguments, c.want)
			}
		})
	}
}

// byLabel is what is entered into a form, by the labels of its inputs.
func byLabel(t testing.TB, view slacktest.View, entered string) map[string]map[string]string {
	t.Helper()
	values, labels := map[string]map[string]string{}, map[string]string{}
	if entered != "" {
		if err := json.Unmarshal([]byte(entered), &labels); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range labels {
		b := view.Input(name)
		values[b.BlockID] = map[string]string{b.Element.ActionID: value}
	}
	return values
}

// equalJSON compares two objects, every digit of their numbers too.
func equalJSON(t testing.TB, a, b string) bool {
	t.Helper()
	var x, y map[string]json.RawMessage
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	return maps.EqualFunc(x, y, func(v, w json.RawMessage) bool {
		var one, other bytes.Buffer
		return json.Compact(&one, v) == nil && json.Compact(&other, w) == nil && one.String() == other.String()
	})
}

// TestFaultsStandAtTheirFields sends forms that cannot be taken as they are: nothing is decided.
func TestFaultsStandAtTheirFields(t *testing.T) {
	schema, err := agent.CompileSchema(json.RawMessage(many))
	if err != nil {
		t.Fatal(err)
	}
	d, view := newEdit(t, editCard(), many)
	var whole string
	d.in.objects = func(e bot.Event) *agent.Objection {
		if len(e.Click.Arguments) == 0 {
			return nil
		}
		if whole != "" {
			return &agent.Objection{Text: whole}
		}
		_, err := schema.Check(string(e.Click.Arguments))
		if unfit, ok := err.(*agent.UnfitError); ok {
			return &agent.Objection{Text: unfit.Text, Fields: unfit.Fields}
		}
		if err != nil {
			return &agent.Objection{Text: err.Error()}
		}
		return nil
	}
	for _, c := range []struct{ entered, label, want string }{
		{`{"count":"51"}`, "count", "maximum"},
		{`{"count":"five"}`, "count", "not a number"},
		{`{"count":"1e400"}`, "path", "exponent"},
		{`{"count":""}`, "count", "missing"},
		{`{"ratio":"0.1"}`, "ratio", "minimum"},
		{`{"tags (JSON)":"[1]"}`, "tags (JSON)", "string"},
		{`{"tags (JSON)":"[\"a\""}`, "tags (JSON)", "not JSON"},
		{`{"extra (JSON)":"7"}`, "extra (JSON)", "string"},
	} {
		d.acked(d.server.Submit("U0ANN", view, byLabel(t, view, c.entered)))
		now, _ := d.server.View(view.Trigger)
		fault := now.Errors[view.Input(c.label).BlockID]
		if now.Shut || len(now.Errors) != 1 || !strings.Contains(fault, c.want) {
			t.Errorf("%s shows %q", c.entered, now.Errors)
		}
	}
	whole = "This cannot be run: there is no such file"
	d.acked(d.server.Submit("U0ANN", view, nil))
	if now, _ := d.server.View(view.Trigger); now.Errors[view.Input("path").BlockID] != whole {
		t.Errorf("what is about the whole shows %q", now.Errors)
	}
	if n := len(d.in.all()); n != 0 {
		t.Errorf("%d decisions were received", n)
	}
	whole = ""
	d.acked(d.server.Submit("U0ANN", view, byLabel(t, view, `{"count":"50"}`)))
	if _, decision := d.lastDecision(); !strings.Contains(string(decision.Arguments), `"count":50`) {
		t.Errorf("decided %s", decision.Arguments)
	}
}

// TestFormsThatCameTooLate tells in the form what has become of its card.
func TestFormsThatCameTooLate(t *testing.T) {
	for _, action := range []string{actionEdit, actionDeny, actionAlways} {
		for name, change := range map[string]struct {
			do   func(d *desk)
			want string
		}{
			"decided": {func(d *desk) {
				clear(d.in.cards)
				d.in.objects = func(bot.Event) *agent.Objection {
					return &agent.Objection{Text: "It was already approved by Bob.", Final: true}
				}
			}, "already approved by Bob"},
			"another's": {func(d *desk) {
				d.in.objects = func(bot.Event) *agent.Objection {
					return &agent.Objection{Text: "This is not yours to decide: Bob may.", Final: true}
				}
			}, "not yours"},
		} {
			t.Run(action+" "+name, func(t *testing.T) {
				d := newDesk(t, brisk)
				d.in.schemas = map[string]string{"many": many}
				r := editCard()
				until := time.Date(2026, 12, 30, 9, 0, 0, 0, time.UTC)
				r.Always = &until
				channel, ts := d.ask(r)
				view, _ := d.click("U0ANN", channel, ts, action)
				d.in.mu.Lock()
				change.do(d)
				d.in.mu.Unlock()
				d.acked(d.server.Submit("U0ANN", view, nil))
				now, _ := d.server.View(view.Trigger)
				if now.Shut || !now.Updated || now.Submit != "" || !strings.Contains(now.Shown(), change.want) || len(now.Errors) > 0 {
					t.Errorf("the form is %+v", now)
				}
				if n := len(d.in.all()); n != 0 {
					t.Errorf("%d decisions were received", n)
				}
			})
		}
	}
}

// TestAFormOutlivesARestart sends a form to another process, where the tool is as it was, another, or gone.
func TestAFormOutlivesARestart(t *testing.T) {
	for name, c := range map[string]struct{ schema, want string }{
		"as it was": {many, ""},
		"another":   {strings.Replace(many, `"path":{"type":"string"`, `"path":{"type":"integer"`, 1), "has changed since this form was opened"},
		"gone":      {"", "no longer there"},
	} {
		t.Run(name, func(t *testing.T) {
			d, view := newEdit(t, editCard(), many)
			_ = d.stop()
			d.in.schemas["many"] = c.schema
			if c.schema == "" {
				delete(d.in.schemas, "many")
				d.in.objects = func(bot.Event) *agent.Objection {
					return &agent.Objection{Text: "The tool many is no longer there, so this cannot be edited.", Final: true}
				}
			}
			d.slack = newSlack(t, d.server, brisk)
			d.listen()
			d.until("there is a link again", func() bool { return d.server.Links() == 2 && d.server.Linked() == 1 })
			d.acked(d.server.Submit("U0ANN", view, byLabel(t, view, `{"path":"other"}`)))
			now, _ := d.server.View(view.Trigger)
			switch {
			case c.want == "":
				if _, decision := d.lastDecision(); !strings.Contains(string(decision.Arguments), `"path":"other"`) {
					t.Errorf("decided %s", decision.Arguments)
				}
			case !strings.Contains(now.Shown(), c.want) || len(d.in.all()) > 0:
				t.Errorf("the form is %+v, and %d decisions were received", now, len(d.in.all()))
			}
		})
	}
}

// TestWhatDoesNotFitIntoAForm is kept as it is, or becomes a form as before.
func TestWhatDoesNotFitIntoAForm(t *testing.T) {
	long := strings.Repeat("a\\n", 2000)
	r := editCard()
	r.Arguments = json.RawMessage(`{"path":"a","content":"` + long + `"}`)
	const two = `{"properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}`
	d, view := newEdit(t, r, two)
	if !strings.Contains(view.Shown(), "content: 4000 characters, too long for a form. It stays as it is.") || len(view.Blocks) != 2 {
		t.Errorf("the form says %q", view.Shown())
	}
	d.acked(d.server.Submit("U0ANN", view, byLabel(t, view, `{"path":"b"}`)))
	if _, decision := d.lastDecision(); string(decision.Arguments) != `{"path":"b","content":"`+long+`"}` {
		t.Errorf("decided %.100s", decision.Arguments)
	}

	wide := `{"properties":{`
	for i := range mostBlocks {
		wide += fmt.Sprintf(`"p%d":{},`, i)
	}
	r.Arguments = json.RawMessage(`{"path":"a"}`)
	_, view = newEdit(t, r, wide+`"path":{}}}`)
	if view.Blocks[0].BlockID != formBlock || len(view.Blocks) != 1 {
		t.Errorf("the form for very many arguments has %d blocks", len(view.Blocks))
	}
}

// TestARefusedFormBecomesOneOfJSON lets Slack refuse the fields.
func TestARefusedFormBecomesOneOfJSON(t *testing.T) {
	d := newDesk(t, brisk)
	d.in.schemas = map[string]string{"many": many}
	channel, ts := d.ask(editCard())
	d.server.Fail("views.open", slacktest.Fault{Error: "invalid_arguments"})
	view, opened := d.click("U0ANN", channel, ts, actionEdit)
	if !opened || view.Blocks[0].BlockID != formBlock {
		t.Fatalf("the form is %+v", view)
	}
	d.send("U0ANN", view, `{"path":"b"}`)
	if _, decision := d.lastDecision(); string(decision.Arguments) != `{"path":"b"}` {
		t.Errorf("decided %s", decision.Arguments)
	}
}

// TestFormsKeepArguments opens forms for any arguments of any tool and sends them as they are: nothing changes.
func TestFormsKeepArguments(t *testing.T) {
	scalar := rapid.OneOf(
		rapid.Map(rapid.StringN(0, 20, -1), quotedText),
		rapid.SampledFrom([]string{"null", "true", "false", "0", "-1", "1.50", "1e3", "12345678901234567890", "0.1", `""`, `"a\r\nb"`, `" x "`, "[]", "{}", `[1,{"a":null}]`}),
	)
	kind := rapid.SampledFrom([]string{
		`{"type":"string"}`, `{"type":"integer"}`, `{"type":"number","minimum":0.5,"maximum":1e9}`, `{"type":"boolean"}`, `{"type":["string","null"]}`, `{"type":["boolean","null"]}`,
		`{"anyOf":[{"type":"integer"},{"type":"null"}]}`, `{"enum":["a","b",null]}`, `{"enum":[0,-1,true,"a\r\nb"," x "]}`, `{"enum":["a","a"]}`, `true`, `{}`, `{"type":"array"}`, `{"type":"object"}`,
	})
	rapid.Check(t, func(r *rapid.T) {
		var properties, arguments, required []string
		for n := range rapid.IntRange(1, 6).Draw(r, "fields") {
			name := quotedText(fmt.Sprint(rapid.StringN(0, 5, -1).Draw(r, "name"), n))
			if rapid.Bool().Draw(r, "known") {
				properties = append(properties, name+":"+kind.Draw(r, "kind"))
			}
			if rapid.Bool().Draw(r, "required") {
				required = append(required, name)
			}
			if rapid.IntRange(0, 3).Draw(r, "there") > 0 {
				arguments = append(arguments, name+":"+scalar.Draw(r, "value"))
			}
		}
		schema := fmt.Sprintf(`{"properties":{%s},"required":[%s]}`, strings.Join(properties, ","), strings.Join(required, ","))
		compiled, err := agent.CompileSchema(json.RawMessage(schema))
		if err != nil {
			return
		}
		object, err := compiled.Check("{" + strings.Join(arguments, ",") + "}")
		if err != nil {
			return // what a card shows fits
		}
		fields, ok := form.Fields(json.RawMessage(schema), object, formLimits)
		if !ok {
			return
		}
		view, refusal := slacktest.Form(blocksOf(fields))
		if refusal != "" {
			r.Fatalf("slack refuses the form of %s for %s: %s", schema, object, refusal)
		}
		got, faults := form.Arguments(fields, enteredIn(fields, sentBack(r, view)))
		if len(faults) > 0 || !equalJSON(t, string(got), string(object)) {
			r.Fatalf("under %s\n%s\nbecame\n%s %v", schema, object, got, faults)
		}
	})
}

// TestFormsShowNothingHidden opens forms for arguments of which something was hidden, and sends them as they are: neither what was
// hidden nor what stands for it is in any, and exactly those arguments do not come back.
func TestFormsShowNothingHidden(t *testing.T) {
	const word = "plover-1172-of-the-config"
	secrets := secret.New(word)
	kinds := map[string][]string{
		`{"type":"string"}`: {`"a"`, `"a ` + word + `"`, `"` + strings.Repeat("long ", 1000) + word + `"`}, `{"type":"string","enum":["` + word + `","b"]}`: {`"` + word + `"`, `"b"`},
		`{"type":["string","null"]}`: {"null", `"` + word + `"`}, `{"type":"array"}`: {`["` + word + `"]`, `[1]`}, `{"type":"object"}`: {`{"` + word + `":1}`, `{}`}, `true`: {`"` + word + `"`, "7"},
	}
	rapid.Check(t, func(r *rapid.T) {
		var properties, arguments, required, open []string
		for n := range rapid.IntRange(1, 6).Draw(r, "fields") {
			kind := rapid.SampledFrom(slices.Sorted(maps.Keys(kinds))).Draw(r, "kind")
			name, value := fmt.Sprintf(`"n%d"`, n), rapid.SampledFrom(kinds[kind]).Draw(r, "value")
			properties = append(properties, name+":"+kind)
			arguments = append(arguments, name+":"+value)
			if rapid.Bool().Draw(r, "required") {
				required = append(required, name)
			}
			if !strings.Contains(value, word) {
				open = append(open, name+":"+value)
			}
		}
		schema := json.RawMessage(fmt.Sprintf(`{"properties":{%s},"required":[%s]}`, strings.Join(properties, ","), strings.Join(required, ",")))
		card := editCard()
		card.Arguments = secrets.JSON([]byte("{" + strings.Join(arguments, ",") + "}"))
		fields, ok := form.Fields(schema, card.Arguments, formLimits)
		if !ok {
			r.Fatal("there is no form")
		}
		blocks := blocksOf(fields)
		data, err := json.Marshal(append(blocks, (&Slack{}).formFor(agent.Edit, card).Blocks.BlockSet...))
		if err != nil {
			r.Fatal(err)
		}
		if text := string(data); strings.Contains(text, word) && !strings.Contains(string(schema), word) || strings.Contains(text, secret.Mark) {
			r.Fatalf("the form of %s shows %s", arguments, data)
		}
		view, refusal := slacktest.Form(blocks)
		if refusal != "" {
			r.Fatalf("slack refuses %s: %s", data, refusal)
		}
		got, faults := form.Arguments(fields, enteredIn(fields, sentBack(r, view)))
		if want := "{" + strings.Join(open, ",") + "}"; len(faults) > 0 || !equalJSON(t, string(got), want) {
			r.Fatalf("%s came back as %s, want %s (%v)", arguments, got, want, faults)
		}
	})
}

// quotedText is a text as JSON.
func quotedText(text string) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a text can always be encoded
	return strings.TrimSpace(b.String())
}

// sentBack is a form that was sent without being touched.
func sentBack(r *rapid.T, view slacktest.View) (values map[string]map[string]entered) {
	if err := json.Unmarshal(view.State(nil), &values); err != nil {
		r.Fatal(err)
	}
	return values
}
