package wire

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"

	"nudge/agent/model"
)

// eachField calls do with a copy of a struct for each of its fields, in which that field alone has another value.
func eachField[T any](t *testing.T, of T, do func(field string, changed T)) {
	t.Helper()
	kind := reflect.TypeFor[T]()
	for i := range kind.NumField() {
		changed := of
		switch field := reflect.ValueOf(&changed).Elem().Field(i); field.Kind() {
		case reflect.String:
			field.SetString("another")
		case reflect.Slice:
			field.Set(reflect.MakeSlice(field.Type(), 1, 1))
		default:
			t.Fatalf("%s.%s is of a kind that the test cannot change", kind, kind.Field(i).Name)
		}
		do(kind.Field(i).Name, changed)
	}
}

// TestEveryFieldCounts: a conversation or a tool that differs in anything is not taken for the one that was written.
func TestEveryFieldCounts(t *testing.T) {
	call := model.Call{ID: "c1", Name: "f", Arguments: "{}"}
	message := model.Message{Role: model.Assistant, Text: "a", Calls: []model.Call{call}, CallID: "c", Reasoning: "r"}
	if again := message; !sameMessage(&message, &again) {
		t.Error("a message is not the same as itself")
	}
	eachField(t, message, func(field string, changed model.Message) {
		if sameMessage(&message, &changed) {
			t.Errorf("a message with another %s is taken for the same", field)
		}
	})
	eachField(t, call, func(field string, changed model.Call) {
		if other := (model.Message{Role: message.Role, Text: "a", Calls: []model.Call{changed}, CallID: "c", Reasoning: "r"}); sameMessage(&message, &other) {
			t.Errorf("a call with another %s is taken for the same", field)
		}
	})
	tool := model.Tool{Name: "f", Description: "d", Schema: json.RawMessage("{}")}
	eachField(t, tool, func(field string, changed model.Tool) {
		if sameTool(tool, changed) || !sameTool(changed, changed) {
			t.Errorf("a tool with another %s is taken for the same", field)
		}
	})
}

func TestBeginning(t *testing.T) {
	type object map[string]any
	ask, answer := model.Message{Role: model.User, Text: "ask"}, model.Message{Role: model.Assistant, Text: "answer"}
	var b Beginning
	if got := b.Size(); got != 0 {
		t.Errorf("the size of nothing is %d", got)
	}
	write := func(end End, messages ...model.Message) (body string, from int) {
		t.Helper()
		if err := b.Open("s", nil, func() (any, error) { return object{"list": []int{}}, nil }); err != nil {
			t.Fatal(err)
		}
		from = b.Resume(messages)
		for i := from; i < len(messages); i++ {
			begins := i
			if messages[i].Role != model.Assistant {
				begins = 0
			}
			if err := b.Add(object{"text": messages[i].Text}, begins); err != nil {
				t.Fatal(err)
			}
		}
		whole, err := b.Close(end)
		if err != nil {
			t.Fatal(err)
		}
		return string(bytes.Join(whole, nil)), from
	}
	for _, c := range []struct {
		name     string
		end      End
		messages []model.Message
		want     string
		from     int
	}{
		{"nothing", End{Tail: object{}}, nil, `{"list":[]}`, 0},
		{"first", End{Tail: object{"n": 1}, Mark: `,"m":1`, Asks: true}, []model.Message{ask}, `{"list":[{"text":"ask","m":1}],"n":1}`, 0},
		{"answered", End{Tail: object{}, Asks: true}, []model.Message{ask, answer, ask}, `{"list":[{"text":"ask"},{"text":"answer"},{"text":"ask"}]}`, 1},
		{"not answered", End{Tail: object{}}, []model.Message{ask, answer, ask, ask}, `{"list":[{"text":"ask"},{"text":"answer"},{"text":"ask"},{"text":"ask"}]}`, 1},
		{"may change", End{Tail: object{}, Asks: true}, []model.Message{ask, answer, ask, ask, answer}, `{"list":[{"text":"ask"},{"text":"answer"},{"text":"ask"},{"text":"ask"},{"text":"answer"}]}`, 1},
		{"again", End{Tail: object{}, Asks: true}, []model.Message{ask, answer, ask, ask, answer}, `{"list":[{"text":"ask"},{"text":"answer"},{"text":"ask"},{"text":"ask"},{"text":"answer"}]}`, 4},
		{"shorter", End{Tail: object{}}, []model.Message{ask}, `{"list":[{"text":"ask"}]}`, 0},
	} {
		if got, from := write(c.end, c.messages...); got != c.want || from != c.from {
			t.Errorf("%s: got %s, written from %d on; want %s from %d on", c.name, got, from, c.want, c.from)
		}
	}
	if got, least := b.Size(), len(`{"list":[{"text":"ask"}`)+sizeOf[model.Message](); got < least {
		t.Errorf("size is %d, want %d at least", got, least)
	}
}

// TestBeginningAfterFailure: a message that could not be written is not taken for one that was.
func TestBeginningAfterFailure(t *testing.T) {
	messages := []model.Message{{Role: model.User, Text: "ask"}, {Role: model.Assistant, Text: "answer"}, {Role: model.Assistant, Text: "more"}}
	var b Beginning
	if err := b.Open("", nil, func() (any, error) { return map[string]any{"list": []int{}}, nil }); err != nil {
		t.Fatal(err)
	}
	b.Resume(messages[:1])
	if err := b.Add("ask", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Close(End{Tail: struct{}{}, Asks: true}); err != nil {
		t.Fatal(err)
	}
	if from := b.Resume(messages[:2]); from != 1 {
		t.Fatalf("written from %d on", from)
	}
	if err := b.Add(func() {}, 1); err == nil {
		t.Fatal("a function was written")
	}
	if from := b.Resume(messages[:3]); from != 1 {
		t.Errorf("after a failure, written from %d on", from)
	}
}

// TestPieces: a body is sent whole with its length, and can be sent again.
func TestPieces(t *testing.T) {
	p := &provider{body: strings.NewReader("{}")}
	_, _ = p.endpoint(t).Answer(t.Context(), model.Request{}, written([]byte("quest"), nil, []byte("ion")), &plain{})
	again, err := p.got.GetBody()
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []io.Reader{p.got.Body, again} {
		if got, err := io.ReadAll(body); err != nil || string(got) != "question" || p.got.ContentLength != 8 {
			t.Errorf("sent %q of %d bytes: %v", got, p.got.ContentLength, err)
		}
	}
}
