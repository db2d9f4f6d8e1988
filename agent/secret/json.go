package secret

import (
	"bytes"
	"encoding/json"
)

// JSON is a JSON document with Mark in the place of each secret in its texts, names included. All else stays as it was
// written, and the document is still one. What is no JSON is taken for a text.
func (r *Redactor) JSON(document []byte) []byte {
	if r == nil {
		return document
	}
	if !json.Valid(document) {
		return []byte(r.Text(string(document)))
	}
	var out bytes.Buffer
	for len(document) > 0 {
		start := bytes.IndexByte(document, '"')
		if start < 0 {
			break
		}
		end := start + quotedLength(document[start:])
		out.Write(document[:start])
		out.Write(r.quoted(document[start:end]))
		document = document[end:]
	}
	out.Write(document)
	return out.Bytes()
}

// quotedLength is how long the text is that begins a piece of valid JSON, with its quotes.
func quotedLength(document []byte) int {
	for i := 1; i < len(document); i++ {
		switch document[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(document)
}

func (r *Redactor) quoted(text []byte) []byte {
	var plain string
	if json.Unmarshal(text, &plain) != nil {
		return text
	}
	hidden := r.Text(plain)
	if hidden == plain {
		return text
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(hidden) != nil {
		return []byte(`"` + Mark + `"`)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
