package wire

import (
	"encoding/json"
	"math"
	"strconv"
)

// Text is a string, or empty if something else stood in its place.
type Text string

// UnmarshalJSON takes anything.
func (t *Text) UnmarshalJSON(raw []byte) error {
	*t = ""
	if len(raw) > 0 && raw[0] == '"' {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
		*t = Text(s)
	}
	return nil
}

// Scalar is a string, or a number as text, or empty.
type Scalar string

// UnmarshalJSON takes anything.
func (s *Scalar) UnmarshalJSON(raw []byte) error {
	var t Text
	if err := t.UnmarshalJSON(raw); err != nil {
		return err
	}
	*s = Scalar(t)
	if len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') {
		*s = Scalar(raw)
	}
	return nil
}

// Tokens is a count. One that no model can have used is negative.
type Tokens int

// maxTokenCount is far above what any window holds.
const maxTokenCount = 100_000_000

// UnmarshalJSON takes any number; anything else counts as none.
func (t *Tokens) UnmarshalJSON(raw []byte) error {
	*t = 0
	var n Scalar
	if err := n.UnmarshalJSON(raw); err != nil || len(raw) == 0 || raw[0] == '"' || n == "" {
		return err
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil || f < 0 || f > maxTokenCount || f != math.Trunc(f) {
		*t = -1
		return nil
	}
	*t = Tokens(f)
	return nil
}
