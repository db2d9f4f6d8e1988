package modeltest

import (
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"nudge/agent/model"
)

// AnswerToAnything asks a provider that streams any bytes, at once and byte by byte: either way there must be the same answer,
// which keeps its promises, or an error that is a [model.Error], which it gives. said is what was said on the way.
func AnswerToAnything(t *testing.T, line []byte, connect func(*http.Client) model.Model) (answer model.Answer, said string, fault *model.Error) {
	t.Helper()
	var answers [2]model.Answer
	var faults [2]*model.Error
	for i, body := range []io.Reader{strings.NewReader(string(line)), iotest.OneByteReader(strings.NewReader(string(line)))} {
		in := Streamed()
		in.Body = body
		var heard strings.Builder
		var err error
		answers[i], err = connect(in.HTTP()).Answer(t.Context(), hello(), func(piece string) {
			if piece == "" {
				t.Error("said nothing, aloud")
			}
			heard.WriteString(piece)
		})
		if err != nil && !errors.As(err, &faults[i]) {
			t.Fatalf("error is %T", err)
		}
		said = heard.String()
		if faults[i] != nil {
			CheckSay(t, faults[i])
			continue
		}
		checkAnswer(t, answers[i], answers[i].Text)
		if text := answers[i].Text; !utf8.ValidString(text) || strings.TrimSpace(text) != text {
			t.Errorf("text is %q", text)
		}
		if u := answers[i].Usage; u.Known != (u.In+u.Out > 0) {
			t.Errorf("usage is %+v", u)
		}
	}
	if (faults[0] == nil) != (faults[1] == nil) || !reflect.DeepEqual(answers[0], answers[1]) {
		t.Errorf("at once %+v, %v; byte by byte %+v, %v", answers[0], faults[0], answers[1], faults[1])
	}
	return answers[0], said, faults[0]
}
