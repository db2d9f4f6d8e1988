package wire

import (
	"bufio"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// readEvents returns the events of a stream, each as its name and its data.
func readEvents(from io.Reader) (got [][2]string, cut bool, err error) {
	stream := &events{from: bufio.NewReaderSize(from, 16)}
	for {
		ev, err := stream.next()
		if err != nil {
			return got, cut, err
		}
		got, cut = append(got, [2]string{ev.Name, string(ev.Data)}), ev.Cut
	}
}

// TestEventsAnyFraming: the events that were written are read, whatever ends the lines and stands between them.
func TestEventsAnyFraming(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		end := rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(t, "end")
		noise := rapid.SampledFrom([]string{"", ": ping" + end, "id: 7" + end, ":" + end + end, "retry" + end})
		var want [][2]string
		wire := rapid.SampledFrom([]string{"", "\ufeff"}).Draw(t, "mark")
		for range rapid.IntRange(0, 4).Draw(t, "events") {
			ev := [2]string{rapid.SampledFrom([]string{"", "error"}).Draw(t, "name")}
			wire += noise.Draw(t, "noise")
			if ev[0] != "" {
				wire += "event:" + ev[0] + end
			}
			lines := rapid.SliceOfN(rapid.StringMatching(`[a-zé:\{ ]{0,20}`), 1, 3).Draw(t, "lines")
			for _, line := range lines {
				wire += "data: " + line + end + rapid.SampledFrom([]string{"", ": ping" + end}).Draw(t, "inner")
			}
			ev[1] = strings.Join(lines, "\n")
			want = append(want, ev)
			wire += end
		}
		for _, from := range []io.Reader{strings.NewReader(wire), iotest.OneByteReader(strings.NewReader(wire))} {
			if got, cut, err := readEvents(from); err != io.EOF || cut || !reflect.DeepEqual(got, want) {
				t.Fatalf("%q: got %q, cut %t, %v; want %q", wire, got, cut, err, want)
			}
		}
	})
}

func TestEvents(t *testing.T) {
	for wire, want := range map[string]struct {
		events [][2]string
		cut    bool
	}{
		"":                                   {nil, false},
		"data":                               {[][2]string{{"", ""}}, true},
		"data: a":                            {[][2]string{{"", "a"}}, true},
		"data: a\n":                          {[][2]string{{"", "a"}}, true},
		"data:a\ndata:  b\ndata\n\n":         {[][2]string{{"", "a\n b\n"}}, false},
		"event: error\n\ndata: a\n\n":        {[][2]string{{"", "a"}}, false}, // an event without data is none
		"dat: a\ndata : b\n data: c\n\n":     {nil, false},
		"{\"error\":1}\n\n":                  {[][2]string{{"", `{"error":1}`}}, false},
		"data: a\r\r\ndata: b\n\r":           {[][2]string{{"", "a"}, {"", "b"}}, false},
		"\n\n\ndata: a\n\n\n\n":              {[][2]string{{"", "a"}}, false},
		"data: a\n\n\ufeffdata: no mark\n\n": {[][2]string{{"", "a"}}, false},
	} {
		got, cut, err := readEvents(strings.NewReader(wire))
		if err != io.EOF || cut != want.cut || !reflect.DeepEqual(got, want.events) {
			t.Errorf("%q: got %q, cut %t, %v; want %+v", wire, got, cut, err, want)
		}
	}
}

// TestEventIsGivenAtOnce: an event whose last line ended in CR does not wait for what comes next.
func TestEventIsGivenAtOnce(t *testing.T) {
	r, w := io.Pipe()
	defer func() { _ = w.Close() }()
	go func() { _, _ = io.WriteString(w, "data: a\r\r") }()
	ev, err := (&events{from: bufio.NewReader(r)}).next()
	if err != nil || string(ev.Data) != "a" || ev.Cut {
		t.Errorf("got %+v, %v", ev, err)
	}
}

// TestEventsBroken: what is left of an event when the line broke is not given.
func TestEventsBroken(t *testing.T) {
	got, _, err := readEvents(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(io.ErrUnexpectedEOF)))
	if err != io.ErrUnexpectedEOF || !reflect.DeepEqual(got, [][2]string{{"", "a"}}) {
		t.Errorf("got %q, %v", got, err)
	}
}
