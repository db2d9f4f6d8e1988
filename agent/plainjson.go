package agent

import (
	"bytes"
	"encoding/json"
)

// plainJSON encodes without escaping <, > and &, so that raw arguments keep the bytes that their digest was taken of.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
