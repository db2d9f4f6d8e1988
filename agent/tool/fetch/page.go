package fetch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"golang.org/x/net/html/charset"

	"nudge/agent"
)

// page is what came of a fetch.
type page struct {
	asked, at target // the addresses that were asked for first and last
	status    int
	title     string // one line; "" when the page has none
	body      string
	cut       bool // the page is longer than what was read
}

// text is the page for the model.
func (p page) text() string {
	var head strings.Builder
	if p.status != http.StatusOK {
		fmt.Fprintf(&head, "The server answered with status %d %s.\n", p.status, http.StatusText(p.status))
	}
	if p.asked.String() != p.at.String() {
		fmt.Fprintf(&head, "The address %s led on to %s.\n", p.asked, p.at)
	}
	if p.cut {
		fmt.Fprintf(&head, "The page is longer than %d MiB; what comes after that was not read.\n", maxBody>>20)
	}
	body := strings.TrimSpace(p.body)
	if body == "" {
		return head.String() + "There is no text on the page."
	}
	if p.title != "" && !strings.HasPrefix(body, "# "+p.title) {
		body = "# " + p.title + "\n\n" + body
	}
	return head.String() + agent.Outside(p.at.String(), body)
}

// readPage reads an answer as far as it is text.
func readPage(asked, at target, answer *http.Response) (page, error) {
	p := page{asked: asked, at: at, status: answer.StatusCode}
	declared := answer.Header.Get("Content-Type")
	kind, _, err := mime.ParseMediaType(declared)
	if err != nil {
		kind = ""
	}
	if kind != "" && !readable(kind) {
		return page{}, notText(kind)
	}
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxBody+1))
	if err != nil {
		return page{}, errors.New("its server ended the connection in the middle of the page")
	}
	if p.cut = len(raw) > maxBody; p.cut {
		raw = raw[:maxBody]
	}
	if kind == "" {
		if kind, _, _ = strings.Cut(http.DetectContentType(raw), ";"); !readable(kind) {
			return page{}, notText(kind)
		}
	}
	text := decoded(raw, declared)
	if agent.Binary(text) {
		return page{}, notText("binary data, whatever its server says,")
	}
	if kind != "text/html" && kind != "application/xhtml+xml" {
		p.body = text
		return p, nil
	}
	p.title, p.body = markdown(text, at)
	return p, nil
}

// readable reports whether a media type is that of text.
func readable(kind string) bool {
	switch kind {
	case "application/json", "application/xml", "application/javascript", "application/yaml", "application/toml", "application/x-ndjson":
		return true
	}
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") && kind != "image/svg+xml"
}

func notText(kind string) error {
	return fmt.Errorf("what is there is %s; only text can be read", kind)
}

// decoded gives the text of a page in UTF-8, by what its server, its first bytes or the page itself say of its encoding.
// Where none of them does and it is UTF-8, it is that.
func decoded(raw []byte, declared string) string {
	encoding, _, certain := charset.DetermineEncoding(raw, declared)
	if !certain && bytes.Equal(bytes.ToValidUTF8(raw, nil), raw) {
		return string(raw)
	}
	text, err := encoding.NewDecoder().Bytes(raw)
	if err != nil {
		return string(raw)
	}
	return strings.TrimPrefix(string(text), "\ufeff")
}
