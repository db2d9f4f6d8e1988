package bot

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nudge/agent/secret"
)

const hiddenWord = "plover-1172-of-the-config"

// TestWhatIsHiddenStaysWhatItIs edits arguments of which a form shows only what is not hidden. What was not filled in
// runs as it stood on the card, what was is what was written, and all else is as it came back.
func TestWhatIsHiddenStaysWhatItIs(t *testing.T) {
	secrets := secret.New(hiddenWord)
	value := rapid.SampledFrom([]string{`"a"`, `"a <&> ` + hiddenWord + `"`, `["x",{"k":"` + hiddenWord + `"}]`, `{"` + hiddenWord + `":1}`, `""`, "null", "1.50", "12345678901234567890", `"` + secret.Mark + `"`})
	rapid.Check(t, func(r *rapid.T) {
		card, came, want := map[string]json.RawMessage{}, map[string]json.RawMessage{}, map[string]json.RawMessage{}
		keeps := rapid.Bool().Draw(r, "keeps")
		for n := range rapid.IntRange(0, 5).Draw(r, "arguments") {
			name := fmt.Sprint(rapid.SampledFrom([]string{"a", "b<", hiddenWord}).Draw(r, "name"), n)
			card[name] = json.RawMessage(value.Draw(r, "value"))
			shownName, shown := secrets.Text(name), json.RawMessage(secrets.JSON(card[name]))
			hidden := Conceals(shown) || shownName != name
			switch how := rapid.SampledFrom([]string{"left", "as shown", "written"}).Draw(r, "how"); {
			case shownName != name && n > 0: // two of these would have one name
				delete(card, name)
			case how == "written":
				came[name], want[name] = json.RawMessage(`"new"`), json.RawMessage(`"new"`)
				if shownName != name && keeps {
					want[name] = card[name] // as it is not there under the name that was shown
				}
			case how == "as shown":
				came[shownName], want[name] = shown, card[name]
			case hidden && keeps:
				want[name] = card[name]
			}
		}
		raw, edited := objectOf(card), objectOf(came)
		got := refilled(edited, raw, secrets, keeps)
		if string(got) != string(objectOf(want)) {
			r.Fatalf("%s edited as %s runs with %s, want %s (keeps: %v)", raw, edited, got, objectOf(want), keeps)
		}
		shown, about := Editable(json.RawMessage(secrets.JSON(raw)))
		if strings.Contains(shown+about, hiddenWord) || strings.Contains(shown, secret.Mark) {
			r.Fatalf("a form of %s shows %s: %s", raw, shown, about)
		}
		if back := refilled(json.RawMessage(shown), raw, secrets, true); !equalObjects(back, raw) {
			r.Fatalf("the form of %s sent back as it is runs with %s", raw, back)
		}
	})
}

func equalObjects(a, b json.RawMessage) bool {
	var x, y map[string]json.RawMessage
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && slices.Equal(slices.Sorted(maps.Keys(x)), slices.Sorted(maps.Keys(y))) &&
		maps.EqualFunc(x, y, func(v, w json.RawMessage) bool { return alike(v, w) })
}
