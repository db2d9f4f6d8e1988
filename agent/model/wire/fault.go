package wire

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"nudge/agent/model"
)

var (
	errOverdue = errors.New("the whole call took too long")
	errSilent  = errors.New("the stream was silent for too long")
)

// maxRaw is how many bytes of a body a detail is made from.
const maxRaw = 4 << 10

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

// brokeOff is the error of an answer that did not come to its end.
func brokeOff(ctx context.Context, err error) *model.Error {
	if fault := timeFault(ctx); fault != nil {
		return fault
	}
	return &model.Error{Fault: model.FaultPassing, Say: "the model's answer broke off before its end", Err: err}
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

// Malformed is the error of a response that is no answer.
func Malformed(err error) *model.Error {
	return &model.Error{
		Fault: model.FaultMalformed, Say: "what came back is not a model's answer; check base_url if this goes on", Err: err,
	}
}

// notAnAPI is the error of a page for people where an answer should be.
func notAnAPI(r *bufio.Reader) *model.Error {
	page, _ := r.Peek(min(maxRaw, max(r.Buffered(), 1)))
	return Malformed(fmt.Errorf("the body is neither JSON nor a stream: %s", page))
}

// Unreadable says that an answer could not be decoded, and how it begins.
func Unreadable(err error, body []byte) error {
	return fmt.Errorf("decode the answer: %w: %s", err, body[:min(len(body), maxRaw)])
}

// ProviderError is an error as providers write it.
type ProviderError struct {
	Message Text   `json:"message"`
	Code    Scalar `json:"code"`
	Type    Text   `json:"type"`
	Status  Scalar `json:"status"`

	raw []byte
}

// ErrorIn reads what stands in a field called error, where null, false and empty things mean that there is none.
func ErrorIn(raw json.RawMessage) (ProviderError, bool) {
	switch string(raw) {
	case "", "null", "false", `""`, "{}", "[]", "0":
		return ProviderError{}, false
	}
	return ParseError(raw), true
}

// ParseError reads an error, with or without an object around it, or plain text.
func ParseError(raw []byte) ProviderError {
	var around struct {
		Error json.RawMessage `json:"error"`
	}
	inner := raw
	if json.Unmarshal(raw, &around) == nil && len(around.Error) > 0 && string(around.Error) != "null" {
		inner = around.Error
	}
	var f ProviderError
	if json.Unmarshal(inner, &f) != nil {
		var s Text
		if json.Unmarshal(inner, &s) == nil && s != "" {
			f.Message = s
		} else {
			f.Message = Text(raw[:min(len(raw), maxRaw)])
		}
	}
	f.raw = raw[:min(len(raw), maxRaw)]
	return f
}

// InAnswer is the error that came where the answer, or the rest of it, should have been.
func (p ProviderError) InAnswer() *model.Error {
	status, _ := strconv.Atoi(string(p.Code))
	if status < 400 || status > 599 {
		status = 0
	}
	kind := p.classify(status)
	return &model.Error{
		Fault: kind, Status: status, Say: p.say(kind, status),
		Err: fmt.Errorf("the provider sent an error instead of the answer: %s", p.detail()),
	}
}

// refusal is the error of a response with another status than success.
func (p ProviderError) refusal(status int, header http.Header) *model.Error {
	kind := p.classify(status)
	return &model.Error{
		Fault: kind, Status: status, RetryAfter: retryAfter(header, time.Now()), Say: p.say(kind, status),
		Err: fmt.Errorf("the provider answered HTTP %d: %s", status, p.detail()),
	}
}

func (p ProviderError) detail() string {
	if len(p.raw) == 0 {
		return string(p.Message)
	}
	return string(p.raw)
}

var (
	addresses   = regexp.MustCompile(`https?://\S+`)
	tooLong     = regexp.MustCompile(`context.?length|context.?window|maximum context|context.?size|prompt is too long|input is too long|exceed context limit|request.?too.?large|exceeds? the model'?s? (?:max|context)|reduce the length of the (?:messages|prompt|input)|maximum (?:allowed )?(?:input|prompt) (?:length|tokens)`)
	outOfCredit = regexp.MustCompile(`insufficient.?(?:quota|credit|balance|funds)|billing|usage.?limit|exceeded your current quota|out of credits?`)
	throttled   = regexp.MustCompile(`rate.?limit`)
	badKey      = regexp.MustCompile(`authentication|unauthori[sz]ed|invalid.?(?:api.?)?key|incorrect api key|api key not valid|permission`)
	overloaded  = regexp.MustCompile(`overloaded|over capacity|unavailable`)
	refused     = regexp.MustCompile(`invalid.?request|not.?found|unsupported|bad.?request|invalid.?argument|content.?policy`)
)

// words returns everything that the error says, in lower case. Addresses are left out: the page where one buys more
// is named in errors that have nothing to do with money.
func (p ProviderError) words() string {
	all := strings.Join([]string{string(p.Code), string(p.Type), string(p.Status), string(p.Message)}, " ")
	return strings.ToLower(addresses.ReplaceAllString(all, ""))
}

// classify says what kind of error it is. Status is 0 when the error has none of its own.
func (p ProviderError) classify(status int) model.Fault {
	words := p.words()
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
func (p ProviderError) say(kind model.Fault, status int) string {
	line := p.sentence(kind, status)
	if status == 0 {
		return line
	}
	return fmt.Sprintf("%s (HTTP %d)", line, status)
}

func (p ProviderError) sentence(kind model.Fault, status int) string {
	words := p.words()
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
