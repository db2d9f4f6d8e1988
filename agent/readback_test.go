package agent

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nudge/agent/compact"
	"nudge/agent/model"
)

// TestReadBack has the state take of every entry what a restart would read, and nothing that it shares with its caller.
func TestReadBack(t *testing.T) {
	t.Run("message", rapid.MakeCheck(func(t *rapid.T) {
		e := messageEntry{
			Turn: rapid.String().Draw(t, "turn"), Provenance: Human, From: rapid.Make[PersonID]().Draw(t, "from"),
			IDs: rapid.SliceOf(anyText()).Draw(t, "ids"), Text: anyText().Draw(t, "text"),
			Files: rapid.SliceOfN(rapid.Make[File](), 0, 1).Draw(t, "files"), Owed: rapid.SliceOfN(rapid.Make[receipt](), 0, 1).Draw(t, "owed"),
			Origin: rapid.Make[compact.Origin]().Draw(t, "origin"),
		}
		if rapid.Bool().Draw(t, "marked") {
			e.Mark = time.Unix(rapid.Int64Range(0, 1e10).Draw(t, "mark"), 5).In(time.FixedZone("", 3600))
		}
		readsBack(t, e)
		if len(e.IDs) > 0 {
			own, _ := readBackOf(t, e)
			e.IDs[0] += "x"
			if own.(*messageEntry).IDs[0] == e.IDs[0] {
				t.Error("the ids are shared with the caller")
			}
		}
	}))
	t.Run("turn", rapid.MakeCheck(func(t *rapid.T) {
		e := turnEntry{Turn: anyText().Draw(t, "turn"), Provenance: Human, Person: rapid.Make[Person]().Draw(t, "person"), Address: anyText().Draw(t, "address")}
		if rapid.Bool().Draw(t, "woken") {
			e.Wake = &Wake{Heartbeat: "h", Tools: []string{}, Tick: time.Unix(5, 0)}
		}
		readsBack(t, e)
	}))
	t.Run("model call", rapid.MakeCheck(func(t *rapid.T) {
		e := rapid.Make[modelCallEntry]().Draw(t, "entry")
		e.Text = anyText().Draw(t, "text")
		e.Calls = rapid.SliceOf(rapid.Make[model.Call]()).Draw(t, "calls")
		e.Foreign = append([]string(nil), e.Foreign...) // none is left out, as nil is
		readsBack(t, e)
	}))
	t.Run("run", flat[runEntry])
	t.Run("model asked", flat[modelAskedEntry])
	t.Run("tool call", flat[toolCallEntry])
	t.Run("tool result", flat[toolResultEntry])
	t.Run("stopped", flat[stoppedEntry])
}

// anyText is text that may be no UTF-8, or look as such text does when it is encoded.
func anyText() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "\xff", "a\xc3", "\ufffd", `\ufffd`, "<&>\u2028"}))
}

func flat[E entry](t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { readsBack(t, rapid.Make[E]().Draw(t, "entry")) })
}

// readBackOf gives what the state takes of an entry, and what a restart reads.
func readBackOf(t *rapid.T, e entry) (taken, read entry) {
	line, err := encode(e, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if taken, err = readBack(e, line); err != nil {
		t.Fatal(err)
	}
	if read, err = decode(line); err != nil {
		t.Fatal(err)
	}
	return taken, read
}

func readsBack(t *rapid.T, e entry) {
	if taken, read := readBackOf(t, e); !reflect.DeepEqual(taken, read) {
		t.Fatalf("the state takes %+v, a restart reads %+v", taken, read)
	}
}
