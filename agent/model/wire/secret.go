package wire

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"nudge/agent/model"
)

// maxDetail is how many bytes of an error's detail are kept.
const maxDetail = 500

// detail is what an error says in a log. Where it hides nothing, it still is what it was made from, for errors.Is.
type detail struct {
	text string
	from error
}

// Error is of error.
func (d *detail) Error() string { return d.text }

// Unwrap is for errors.Is.
func (d *detail) Unwrap() error { return d.from }

// clean makes an error fit to leave: its detail names the address, is short, has one line, and has no key in it.
func (e *Endpoint) clean(fault *model.Error) *model.Error {
	if fault.Err == nil {
		return fault
	}
	text := fmt.Sprintf("post %s: %v", e.shown, fault.Err)
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text)
	for _, secret := range e.secrets {
		text = redact(text, secret)
	}
	text = keyLike.ReplaceAllString(text, redacted)
	d := &detail{text: cut(text, maxDetail)}
	if strings.HasSuffix(d.text, fault.Err.Error()) {
		d.from = fault.Err // nothing had to be taken out, so nothing can be found by unwrapping
	}
	fault.Err = d
	return fault
}

const (
	redacted  = "[key]"
	minSecret = 4  // bytes; what is shorter is a placeholder, and would be found in every word
	minPiece  = 12 // bytes of a key that give it away
)

// keyLike finds keys that providers quote, masked or not.
var keyLike = regexp.MustCompile(`\bsk-[\w.*…-]+`)

// secretsOf lists what must not be seen of a key and of the values in an address's query.
func secretsOf(key string, query url.Values) []string {
	all := []string{key}
	for _, values := range query {
		all = append(all, values...)
	}
	var out []string
	for _, s := range all {
		if len(s) >= minSecret {
			out = append(out, s, url.QueryEscape(s), strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(s)), "="))
		}
	}
	return out
}

// redact replaces a secret in text, and every piece of it that is long enough to matter.
func redact(text, secret string) string {
	text = strings.ReplaceAll(text, secret, redacted)
	var out strings.Builder
	for i := 0; i < len(text); {
		n := 0
		for i+minPiece+n <= len(text) && strings.Contains(secret, text[i:i+minPiece+n]) {
			n++
		}
		if n == 0 {
			out.WriteByte(text[i])
			i++
			continue
		}
		out.WriteString(redacted)
		i += minPiece + n - 1
	}
	return out.String()
}

// cut shortens text to at most n bytes without splitting a character.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
