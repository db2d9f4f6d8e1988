package openai

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"nudge/agent/model"
)

var (
	errOverdue = errors.New("the whole call took too long")
	errSilent  = errors.New("the stream was silent for too long")
)

const (
	maxDetail = 500                  // bytes of an error's detail
	maxRaw    = 4 << 10              // bytes of a body that a detail is made from
	longest   = 366 * 24 * time.Hour // a wait that is longer is as good as this one
)

// timeFault returns the error of a call that one of the timeouts ended, or nil.
func timeFault(ctx context.Context) *model.Error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errSilent):
		return &model.Error{Fault: model.FaultPassing, Say: "the model's provider fell silent in the middle of its answer", Err: cause}
	case errors.Is(cause, errOverdue):
		return &model.Error{Fault: model.FaultPassing, Say: "the model took too long to answer", Err: cause}
	}
	return nil
}

// unreachable is the error of a request that got no response.
func unreachable(ctx context.Context, err error) *model.Error {
	if fault := timeFault(ctx); fault != nil {
		return fault
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // without the address, whose query may hold a key
	}
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &untrusted):
		return &model.Error{Fault: model.FaultRefused, Say: "the certificate of the model's server is not trusted", Err: err}
	case errors.Is(err, http.ErrSchemeMismatch):
		return &model.Error{Fault: model.FaultRefused, Say: "the model's server does not speak https; check base_url", Err: err}
	}
	return &model.Error{Fault: model.FaultPassing, Say: "cannot reach the model's server", Err: err}
}

// malformed is the error of a response that is no answer.
func malformed(err error) *model.Error {
	return &model.Error{
		Fault: model.FaultMalformed, Say: "what came back is not a model's answer; check base_url if this goes on", Err: err,
	}
}

// notAnAPI is the error of a page for people where an answer should be.
func notAnAPI(r *bufio.Reader) *model.Error {
	page, _ := r.Peek(min(maxRaw, max(r.Buffered(), 1)))
	return malformed(fmt.Errorf("the body is neither JSON nor a stream: %s", page))
}

func unreadable(err error, body []byte) error {
	return fmt.Errorf("decode the answer: %w: %s", err, body[:min(len(body), maxRaw)])
}

// wireFault is an error as providers write it.
type wireFault struct {
	Message text   `json:"message"`
	Code    scalar `json:"code"`
	Type    text   `json:"type"`
	Status  scalar `json:"status"`

	raw []byte
}

// fault returns the error that stands in a chunk, if one does. Raw is the chunk as it came.
func (c *chunk) fault(raw []byte) (wireFault, bool) {
	if f, ok := faultIn(c.Error); ok {
		return f, true
	}
	if c.Type == "error" || c.Object == "error" || len(c.Choices) == 0 && c.Message != "" {
		return parseFault(raw), true
	}
	return wireFault{}, false
}

// faultIn reads what stands in a field called error, where null, false and empty things mean that there is none.
func faultIn(raw json.RawMessage) (wireFault, bool) {
	switch string(raw) {
	case "", "null", "false", `""`, "{}", "[]", "0":
		return wireFault{}, false
	}
	return parseFault(raw), true
}

// parseFault reads an error, with or without an object around it, or plain text.
func parseFault(raw []byte) wireFault {
	var around struct {
		Error json.RawMessage `json:"error"`
	}
	inner := raw
	if json.Unmarshal(raw, &around) == nil && len(around.Error) > 0 && string(around.Error) != "null" {
		inner = around.Error
	}
	var f wireFault
	if json.Unmarshal(inner, &f) != nil {
		var s text
		if json.Unmarshal(inner, &s) == nil && s != "" {
			f.Message = s
		} else {
			f.Message = text(raw[:min(len(raw), maxRaw)])
		}
	}
	f.raw = raw[:min(len(raw), maxRaw)]
	return f
}

// inAnswer is the error that came where the answer, or the rest of it, should have been.
func (f wireFault) inAnswer(began bool) *model.Error {
	status, _ := strconv.Atoi(string(f.Code))
	if status < 400 || status > 599 {
		status = 0
	}
	kind := f.classify(status)
	return &model.Error{
		Fault: kind, Status: status, Began: began, Say: f.say(kind, status),
		Err: fmt.Errorf("the provider sent an error instead of the answer: %s", f.detail()),
	}
}

// refusal is the error of a response with another status than success.
func refusal(status int, header http.Header, page []byte) *model.Error {
	f := parseFault(page)
	kind := f.classify(status)
	return &model.Error{
		Fault: kind, Status: status, RetryAfter: retryAfter(header, time.Now()), Say: f.say(kind, status),
		Err: fmt.Errorf("the provider answered HTTP %d: %s", status, f.detail()),
	}
}

func (f wireFault) detail() string {
	if len(f.raw) == 0 {
		return string(f.Message)
	}
	return string(f.raw)
}

var (
	addresses   = regexp.MustCompile(`https?://\S+`)
	tooLong     = regexp.MustCompile(`context.?length|context.?window|maximum context|context.?size|prompt is too long|input is too long|exceeds? the model'?s? (?:max|context)|reduce the length of the (?:messages|prompt|input)|maximum (?:allowed )?(?:input|prompt) (?:length|tokens)`)
	outOfCredit = regexp.MustCompile(`insufficient.?(?:quota|credit|balance|funds)|billing|usage.?limit|exceeded your current quota|out of credits?`)
	throttled   = regexp.MustCompile(`rate.?limit`)
	badKey      = regexp.MustCompile(`authentication|unauthori[sz]ed|invalid.?(?:api.?)?key|incorrect api key|api key not valid|permission`)
	overloaded  = regexp.MustCompile(`overloaded|over capacity|unavailable`)
	refused     = regexp.MustCompile(`invalid.?request|not.?found|unsupported|bad.?request|invalid.?argument|content.?policy`)
)

// words returns everything that the error says, in lower case. Addresses are left out: the page where one buys more
// is named in errors that have nothing to do with money.
func (f wireFault) words() string {
	all := strings.Join([]string{string(f.Code), string(f.Type), string(f.Status), string(f.Message)}, " ")
	return strings.ToLower(addresses.ReplaceAllString(all, ""))
}

// classify says what kind of error it is. Status is 0 when the error has none of its own.
func (f wireFault) classify(status int) model.Fault {
	words := f.words()
	switch status {
	case 0:
		return classifyWords(words)
	case 429:
		if noCredit(words) {
			return model.FaultRefused
		}
		return model.FaultPassing
	case 408, 409, 425:
		return model.FaultPassing
	case 413:
		return model.FaultTooLong
	case 400, 422, 500:
		if tooLong.MatchString(words) {
			return model.FaultTooLong
		}
	}
	if status >= 500 {
		return model.FaultPassing
	}
	return model.FaultRefused
}

// classifyWords judges by the words alone; what says nothing clear may pass.
func classifyWords(words string) model.Fault {
	switch {
	case tooLong.MatchString(words):
		return model.FaultTooLong
	case noCredit(words), badKey.MatchString(words):
		return model.FaultRefused
	case throttled.MatchString(words), overloaded.MatchString(words):
		return model.FaultPassing
	case refused.MatchString(words):
		return model.FaultRefused
	}
	return model.FaultPassing
}

// noCredit tells used-up money from asking too often. Both come as HTTP 429, and the second may mention the first.
func noCredit(words string) bool {
	return outOfCredit.MatchString(words) &&
		(!throttled.MatchString(words) || strings.Contains(words, "insufficient_quota"))
}

// say returns the line for a person. Nothing that the provider wrote is in it.
func (f wireFault) say(kind model.Fault, status int) string {
	line := f.sentence(kind, status)
	if status == 0 {
		return line
	}
	return fmt.Sprintf("%s (HTTP %d)", line, status)
}

func (f wireFault) sentence(kind model.Fault, status int) string {
	words := f.words()
	switch {
	case kind == model.FaultTooLong:
		return "the conversation is too long for the model"
	case kind == model.FaultRefused && (status == 402 || noCredit(words)):
		return "the account with the model's provider has no credit or quota left"
	case status == 401 || status == 403 || kind == model.FaultRefused && (status == 0 || status == 400) && badKey.MatchString(words):
		return "the provider refused the key; check api_key_env"
	case status == 404:
		return "the provider knows no such model or address; check name and base_url"
	case status >= 300 && status < 400:
		return "the provider's address has moved; check base_url"
	case kind == model.FaultRefused:
		return "the provider refused the request"
	case status == 429 || throttled.MatchString(words):
		return "the model's provider is asked too often"
	case status == 503 || status == 529 || overloaded.MatchString(words):
		return "the model's provider is overloaded"
	case status == 408 || status == 504 || status == 524:
		return "the model's provider took too long"
	}
	return "the model's provider has a fault of its own"
}

// retryAfter returns how long the provider asks to wait, rounded up and never negative; 0 when it does not say.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if wait := inUnits(h.Get("Retry-After-Ms"), time.Millisecond); wait > 0 {
		return wait
	}
	value := strings.TrimSpace(h.Get("Retry-After"))
	if at, err := http.ParseTime(value); err == nil {
		return clampWait(math.Ceil(at.Sub(now).Seconds()) * float64(time.Second))
	}
	return inUnits(value, time.Second)
}

// inUnits reads a plain decimal number of units, rounded up to a millisecond.
func inUnits(value string, unit time.Duration) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" || strings.Trim(value, "0123456789.") != "" {
		return 0
	}
	n, err := strconv.ParseFloat(value, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	ms := math.Ceil(n * float64(unit) / float64(time.Millisecond))
	return clampWait(ms * float64(time.Millisecond))
}

func clampWait(ns float64) time.Duration {
	return time.Duration(min(max(ns, 0), float64(longest)))
}

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
func (c *Client) clean(fault *model.Error) *model.Error {
	if fault.Err == nil {
		return fault
	}
	text := fmt.Sprintf("post %s: %v", c.shown, fault.Err)
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text)
	for _, secret := range c.secrets {
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
