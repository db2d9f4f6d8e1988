package agent

import (
	"bytes"
	"encoding/json"
	"sync"
)

// plainJSON encodes without escaping <, > and &, so that raw arguments keep the bytes that their digest was taken of.
func plainJSON(v any) ([]byte, error) {
	p := plainEncoders.Get().(*plainEncoder)
	defer plainEncoders.Put(p)
	p.buffer.Reset()
	if err := p.json.Encode(v); err != nil {
		return nil, err
	}
	data := bytes.Clone(bytes.TrimSuffix(p.buffer.Bytes(), []byte("\n")))
	if p.buffer.Cap() > maxKeptBuffer {
		p.buffer = bytes.Buffer{}
	}
	return data, nil
}

// plainEncoder is used again and again: what is encoded is mostly short, and a buffer for each would grow three times.
type plainEncoder struct {
	buffer bytes.Buffer
	json   *json.Encoder
}

// maxKeptBuffer is how many bytes of a buffer are kept for what is encoded next.
const maxKeptBuffer = 16 << 10

var plainEncoders = sync.Pool{New: func() any {
	p := &plainEncoder{}
	p.json = json.NewEncoder(&p.buffer)
	p.json.SetEscapeHTML(false)
	return p
}}
