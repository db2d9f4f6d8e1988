package slack

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"nudge/agent"
	"nudge/bot"
)

// attached is a file of a message. Of one from another organisation only the id may be told.
// Source: https://docs.slack.dev/reference/objects/file-object
type attached struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	Title        string `json:"title"`
	Type         string `json:"mimetype"`
	Size         int64  `json:"size"`
	Mode         string `json:"mode"`
	External     bool   `json:"is_external"`
	ExternalType string `json:"external_type"`
	Access       string `json:"file_access"`
}

// attachments are the files of a message. One that cannot be read is told of all the same, and keeps nobody from hearing the
// words that it came with.
type attachments []attached

// UnmarshalJSON reads what can be read, and has no error.
func (a *attachments) UnmarshalJSON(data []byte) error {
	var all []json.RawMessage
	if json.Unmarshal(data, &all) != nil {
		return nil
	}
	for _, one := range all {
		var file attached
		if json.Unmarshal(one, &file) != nil {
			file = attached{Access: unreadable}
		}
		*a = append(*a, file)
	}
	return nil
}

// unreadable is the access, none of Slack's, of a file of which Slack tells in a way that is not known.
const unreadable = "unreadable"

// file is what the agent is told of it.
func (a attached) file() agent.File {
	name := cmp.Or(a.Name, a.Title)
	if a.kind() != "" {
		name = cmp.Or(a.Title, a.Name) // a canvas has "-" for a name
	}
	return agent.File{ID: a.ID, Name: name, Type: a.Type, Size: a.Size, Barred: a.barred()}
}

// barred says why a file cannot be read, whatever is tried; "" when it may be.
func (a attached) barred() string {
	switch {
	case a.Mode == "tombstone", a.Access == "file_not_found":
		return "it was deleted in Slack"
	case a.Mode == "hidden_by_limit":
		return "Slack hides it, since it is older or larger than the workspace's plan keeps"
	case a.Access == "access_denied":
		return "Slack does not let the app see it"
	case a.Access == unreadable:
		return "Slack tells of it in a way that is not known here"
	case a.kind() != "":
		return fmt.Sprintf("it is a %s of Slack's, which is no file; it can be read when its content is pasted", a.kind())
	case a.External, a.Mode == "external":
		return fmt.Sprintf("it is kept in %s and only linked in Slack; it can be read when its content is pasted or uploaded", service(a.ExternalType))
	}
	return ""
}

// kind is what of Slack's own a file stands for; "" for real ones.
func (a attached) kind() string {
	switch a.Type {
	case "application/vnd.slack-docs":
		return "canvas"
	case "application/vnd.slack-list":
		return "list"
	}
	return ""
}

// service is where an external file is kept, in words.
func service(externalType string) string {
	switch externalType {
	case "gdrive":
		return "Google Drive"
	case "dropbox":
		return "Dropbox"
	case "onedrive":
		return "OneDrive"
	case "box":
		return "Box"
	}
	return "another service"
}

// The errors of files.info that say that there is no such file any more, or none for this app.
var lostCodes = []string{"file_not_found", "file_deleted", "not_visible", "file_not_visible"}

// What a person can do where Slack does not give a file.
const (
	addScope = "the Slack app may lack the scope files:read; whoever manages it adds that under OAuth & Permissions and installs the app again"
	tryLater = "try again later"
)

var _ bot.Filer = (*Slack)(nil)

// Fetch gets a file that somebody attached. Where it lies is asked anew each time, which also tells of files that were
// deleted, and of those from other organisations all that the message did not. The token is sent to Slack alone, and no
// redirect is followed: what Slack gives an app, it gives at once.
func (s *Slack) Fetch(ctx context.Context, file agent.File, limit int64) (io.ReadCloser, error) {
	ctx, stop := context.WithTimeoutCause(ctx, s.timing.Fetch, fmt.Errorf("slack did not give it within %s; %s", s.timing.Fetch, tryLater))
	body, err := s.fetch(ctx, file.ID, limit)
	if err != nil {
		defer stop()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	body.stop = stop
	return body, nil
}

func (s *Slack) fetch(ctx context.Context, id string, limit int64) (*download, error) {
	info, _, _, err := s.api.GetFileInfoContext(ctx, id, 1, 1)
	if err != nil {
		return nil, s.infoError(id, err)
	}
	now := attached{Type: info.Mimetype, Mode: info.Mode, External: info.IsExternal, ExternalType: info.ExternalType, Access: info.FileAccess}
	if why := now.barred(); why != "" {
		return nil, errors.New(why)
	}
	if int64(info.Size) > limit {
		return nil, bot.TooLarge(int64(info.Size), limit)
	}
	answer, err := s.get(ctx, cmp.Or(info.URLPrivateDownload, info.URLPrivate))
	if err != nil {
		return nil, err
	}
	d := &download{ctx: ctx, answer: answer, from: bufio.NewReader(answer.Body), limit: limit, size: int64(info.Size)}
	d.html = isHTML(info.Mimetype) || info.Filetype == "html"
	d.text = strings.HasPrefix(info.Mimetype, "text/")
	if err := d.check(); err != nil {
		answer.Body.Close()
		if errors.Is(err, errSignIn) {
			s.log.Warn("slack gave a sign-in page instead of a file", "file", id, "lacking", "perhaps the scope files:read")
		}
		return nil, err
	}
	return d, nil
}

// infoError says what is to be done when Slack does not tell of a file.
func (s *Slack) infoError(id string, err error) error {
	switch c := code(err); {
	case c == "missing_scope":
		s.log.Warn("the slack app may not read files: it lacks the scope files:read")
		return errSignIn
	case slices.Contains(lostCodes, c):
		return errors.New("it was deleted in Slack, or the app is no longer where it was shared")
	case limited(err):
		return fmt.Errorf("slack was asked too often; try again in %s", max(retryAfter(err), time.Second))
	case c != "" && fatal(err):
		return fmt.Errorf("slack refuses it: %s", c)
	}
	s.log.Warn("slack did not tell of a file", "file", id, "error", err)
	return fmt.Errorf("slack could not be asked for it; %s", tryLater)
}

// errSignIn is for a page that Slack shows to those who may not have a file, with status 200.
var errSignIn = fmt.Errorf("slack gave a sign-in page instead of it: %s", addScope)

// get asks for a file's bytes.
func (s *Slack) get(ctx context.Context, address string) (*http.Response, error) {
	where, err := url.Parse(address)
	if err != nil || !s.trusts(where) {
		host := ""
		if where != nil {
			host = where.Host
		}
		s.log.Warn("a file is not at slack, so the token is not sent there", "host", host)
		return nil, errors.New("it is not kept at Slack, so it is not fetched; its content can be pasted or uploaded")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where.String(), nil)
	if err != nil {
		return nil, errors.New("slack names no place where it could be got")
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	answer, err := s.files.Do(request)
	if err != nil {
		s.log.Warn("a file could not be got from slack", "error", err)
		return nil, fmt.Errorf("slack could not be reached for it; %s", tryLater)
	}
	return answer, nil
}

// slackDomains are where Slack keeps files.
var slackDomains = []string{"slack.com", "slack-gov.com"}

// trusts reports whether the token may be sent somewhere: to Slack, or to what stands for its API in the config.
func (s *Slack) trusts(where *url.URL) bool {
	if where.User != nil {
		return false
	}
	if where.Scheme == s.apiURL.Scheme && strings.EqualFold(where.Host, s.apiURL.Host) {
		return true
	}
	host := strings.ToLower(where.Hostname())
	return where.Scheme == "https" && (where.Port() == "" || where.Port() == "443") && slices.ContainsFunc(slackDomains, func(domain string) bool {
		return host == domain || strings.HasSuffix(host, "."+domain)
	})
}

// stays keeps a client where it is: what the token opens is not looked for elsewhere.
func stays(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// download is a file that is on its way.
type download struct {
	ctx    context.Context
	stop   func()
	answer *http.Response
	from   *bufio.Reader
	limit  int64
	size   int64 // as Slack announced it; 0 when it did not
	html   bool  // it is a page by what Slack says of it
	text   bool  // it is a text by that, which may begin as a page does
	page   bool  // what comes looks like a page
	read   int64
}

// check looks at how the answer begins.
func (d *download) check() error {
	status, length := d.answer.StatusCode, d.answer.ContentLength
	switch {
	case status >= 300 && status < 400, status == http.StatusUnauthorized, status == http.StatusForbidden:
		return errSignIn // it shows another place to those who may not have the file
	case status == http.StatusNotFound, status == http.StatusGone:
		return errors.New("it was deleted in Slack")
	case status == http.StatusTooManyRequests:
		return fmt.Errorf("slack was asked too often; %s", tryLater)
	case status != http.StatusOK:
		return fmt.Errorf("slack answered with status %d; %s", status, tryLater)
	case length > d.limit:
		return bot.TooLarge(length, d.limit)
	}
	begins, err := d.from.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return d.broken(err)
	}
	d.page = isHTML(d.answer.Header.Get("Content-Type")) || looksLikeHTML(begins)
	if d.page && !d.html && !(d.text && d.size > 0) {
		return errSignIn
	}
	return nil
}

// Read gives the file's bytes. Where they could as well be those of a sign-in page, they must be as many as were announced;
// other files may have been changed meanwhile.
func (d *download) Read(into []byte) (int, error) {
	n, err := d.from.Read(into)
	d.read += int64(n)
	switch {
	case d.read > d.limit:
		return 0, bot.TooLarge(d.read, d.limit)
	case errors.Is(err, io.EOF) && d.page && d.size > 0 && d.read != d.size:
		return 0, errSignIn
	case err != nil && !errors.Is(err, io.EOF):
		return n, d.broken(err)
	}
	return n, err
}

func (d *download) broken(error) error {
	if d.ctx.Err() != nil {
		return context.Cause(d.ctx)
	}
	return errors.New("it came only in part; try again")
}

// Close ends the download.
func (d *download) Close() error {
	defer d.stop()
	return d.answer.Body.Close()
}

func isHTML(contentType string) bool {
	kind, _, _ := mime.ParseMediaType(contentType)
	return kind == "text/html" || kind == "application/xhtml+xml"
}

// looksLikeHTML reports whether bytes begin as a page does, behind white space.
func looksLikeHTML(begins []byte) bool {
	begins = bytes.ToLower(bytes.TrimSpace(bytes.TrimPrefix(begins, []byte("\xef\xbb\xbf"))))
	return bytes.HasPrefix(begins, []byte("<!doctype html")) || bytes.HasPrefix(begins, []byte("<html"))
}
