package bolt

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestNamesKeepTheirOrder(t *testing.T) {
	name := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, 'a', 0xfe, 0xff}), 1, 6), func(b []byte) string { return string(b) })
	rapid.Check(t, func(t *rapid.T) {
		a, b := name.Draw(t, "a"), name.Draw(t, "b")
		ka, kb := appendName(nil, a), appendName(nil, b)
		if strings.Compare(a, b) != bytes.Compare(ka, kb) {
			t.Errorf("%q and %q sort otherwise as keys", a, b)
		}
		if a != b && bytes.HasPrefix(ka, kb) {
			t.Errorf("the key of %q begins with that of %q", a, b)
		}
		got, rest, err := cutName(append(ka, "rest"...))
		if got != a || string(rest) != "rest" || err != nil {
			t.Errorf("%q came back as %q, %q, %v", a, got, rest, err)
		}
	})
}

func TestTimesKeepTheirOrder(t *testing.T) {
	instant := rapid.Custom(func(t *rapid.T) time.Time {
		return time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := instant.Draw(t, "a"), instant.Draw(t, "b")
		ka, kb := appendTime(nil, a), appendTime(nil, b)
		if a.Compare(b) != bytes.Compare(ka, kb) {
			t.Errorf("%v and %v sort otherwise as keys", a, b)
		}
		if got, rest, err := cutTime(append(ka, 7)); got != a || len(rest) != 1 || err != nil {
			t.Errorf("%v came back as %v, %v, %v", a, got, rest, err)
		}
	})
}

// Rows that end too early are errors, whatever they are.
func TestShortRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOf(rapid.Byte()).Draw(t, "row")
		_, _, _ = cutName(b)
		_, _ = cutEntry(b, b)
		_, _ = cutParcel(b, b)
		_, _ = cutDue(b, b)
	})
	if _, err := cutEntry(make([]byte, numberSize), append(make([]byte, timeSize), 200, 1)); err == nil {
		t.Error("a kind longer than its row: no error")
	}
}
