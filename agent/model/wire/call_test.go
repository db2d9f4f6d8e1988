package wire

import (
	"encoding/json"
	"reflect"
	"testing"

	"nudge/agent/model"
)

func TestNameCalls(t *testing.T) {
	calls := []model.Call{{ID: "a"}, {ID: ""}, {ID: "a"}, {ID: "call_1"}, {ID: ""}}
	NameCalls(calls)
	want := []model.Call{{ID: "a"}, {ID: "call_2"}, {ID: "call_3"}, {ID: "call_1"}, {ID: "call_4"}}
	if !reflect.DeepEqual(calls, want) {
		t.Errorf("got %+v, want %+v", calls, want)
	}
}

func TestIsObject(t *testing.T) {
	for text, want := range map[string]bool{"{}": true, " {\"a\":1}\n": true, "": false, "[]": false, "{}{}": false, `{"a":`: false, "null": false} {
		if IsObject(text) != want {
			t.Errorf("%q: got %t", text, !want)
		}
	}
}

// TestLenientValues: what stands in the wrong place costs a field, not an answer.
func TestLenientValues(t *testing.T) {
	type all struct {
		Text   Text   `json:"text"`
		Scalar Scalar `json:"scalar"`
		Tokens Tokens `json:"tokens"`
	}
	for raw, want := range map[string]all{
		`{"text":"a","scalar":"b","tokens":3}`:           {"a", "b", 3},
		`{"text":1,"scalar":-1.5,"tokens":5.0}`:          {"", "-1.5", 5},
		`{"text":null,"scalar":{},"tokens":"3"}`:         {"", "", 0},
		`{"text":{"a":[1]},"scalar":null,"tokens":null}`: {"", "", 0},
		`{"tokens":-1}`:    {Tokens: -1},
		`{"tokens":1e300}`: {Tokens: -1},
		`{"tokens":1.5}`:   {Tokens: -1},
		`{"tokens":99999999999999999999999999999999999999999999}`: {Tokens: -1},
	} {
		var got all
		if err := json.Unmarshal([]byte(raw), &got); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", raw, got, err)
		}
	}
}
