package slack

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/bottest/slacktest"
)

// mostBytes is how many bytes of a file tests want.
const mostBytes = 1 << 20

// fetch reads a file whole.
func (d *desk) fetch(id string) (string, error) {
	body, err := d.slack.Fetch(d.Context(), agent.File{ID: id}, mostBytes)
	if err != nil {
		return "", err
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	return string(content), err
}

// refuses checks that a file cannot be had, and that whoever reads why is told what to do and nothing that is secret.
func (d *desk) refuses(what, id, why string) {
	d.Helper()
	content, err := d.fetch(id)
	if err == nil || !strings.Contains(err.Error(), why) {
		d.Errorf("%s: got %.40q, %v; want %q", what, content, err, why)
		return
	}
	for _, secret := range []string{slacktest.BotToken, "http", "127.0.0.1", "\n"} {
		if strings.Contains(err.Error(), secret) {
			d.Errorf("%s: %q has %q in it", what, err, secret)
		}
	}
}

const lacksScope = "may lack the scope files:read"

func TestFilesAreHeardWithTheirMessage(t *testing.T) {
	d := newDesk(t, brisk)
	csv := d.server.AddFile(slacktest.Attachment{ID: "F1", Name: "report.csv", Type: "text/csv", Content: "a,b\n1,2\n"})
	doc := d.server.AddFile(slacktest.Attachment{ID: "F2", Name: "Plan", Type: "application/vnd.google-apps.document", More: map[string]any{
		"mode": "external", "is_external": true, "external_type": "gdrive", "url_private": "https://docs.google.example/d/1",
	}})
	shy := d.server.AddFile(slacktest.Attachment{ID: "F3", Name: "partner.txt", Type: "text/plain", Content: "theirs", Shy: true})
	gone := d.server.AddFile(slacktest.Attachment{ID: "F4", More: map[string]any{"mode": "tombstone"}})
	old := d.server.AddFile(slacktest.Attachment{ID: "F5", Name: "old.txt", More: map[string]any{"mode": "hidden_by_limit"}})
	top := d.say(slacktest.Said{Channel: shared, Text: "<@U0BOT> look", Files: []string{csv, doc}})
	d.say(slacktest.Said{Channel: shared, Text: "and this", Thread: top, Files: []string{shy}})
	d.say(slacktest.Said{Files: []string{gone, old}})
	d.acked(d.server.Deliver(map[string]any{ // Slack makes a preview of the file
		"type": "message", "subtype": "message_changed", "channel": shared, "channel_type": "channel", "ts": "1.1",
		"message": map[string]any{"type": "message", "subtype": "file_share", "user": "U0ANN", "text": "<@U0BOT> look", "ts": top, "files": []any{map[string]any{"id": "F1"}}},
	}))
	var got []string
	for _, e := range d.in.all() {
		got = append(got, fmt.Sprintf("%s %q %+v", e.Address, e.Text, e.Files))
	}
	const drive = "it is kept in Google Drive and only linked in Slack; it can be read when its content is pasted or uploaded"
	want := []string{
		"slack:T0TEST:C0TEAM:" + top + ` "look" [{ID:F1 Name:report.csv Type:text/csv Size:8 Barred:} ` +
			"{ID:F2 Name:Plan Type:application/vnd.google-apps.document Size:0 Barred:" + drive + "}]",
		"slack:T0TEST:C0TEAM:" + top + ` "and this" [{ID:F3 Name: Type: Size:0 Barred:}]`,
		annsDM + ` "" [{ID:F4 Name: Type: Size:0 Barred:it was deleted in Slack} ` +
			"{ID:F5 Name:old.txt Type: Size:0 Barred:Slack hides it, since it is older or larger than the workspace's plan keeps}]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("heard\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if n := len(d.server.Downloads()) + len(d.server.Calls("files.info")); n != 0 {
		t.Errorf("before anybody asked, %d calls were made for files", n)
	}
	if content, err := d.fetch(shy); content != "theirs" || err != nil {
		t.Errorf("of another organisation's file came %q, %v", content, err)
	}
}

// TestAMentionThatTellsOfNoFiles lets the app_mention, which may not tell of them, come before the message.
func TestAMentionThatTellsOfNoFiles(t *testing.T) {
	d := newDesk(t, brisk)
	id := d.server.AddFile(slacktest.Attachment{Name: "a.txt", Content: "x"})
	for _, said := range []slacktest.Said{
		{MentionFirst: true, BareMention: true}, {MentionFirst: true}, {BareMention: true}, {},
	} {
		before := len(d.in.all())
		said.User, said.Channel, said.Text, said.Files = "U0ANN", shared, "<@U0BOT> look", []string{id}
		_, deliveries := d.server.Say(said)
		d.acked(deliveries...)
		for _, delivery := range deliveries {
			d.acked(d.server.Redeliver(delivery))
		}
		words, files := "", 0
		for _, e := range d.in.all()[before:] {
			words, files = words+e.Text, files+len(e.Files)
		}
		if words != "look" || files != 1 {
			t.Errorf("%+v was heard as %q with %d files", said, words, files)
		}
	}
}

func TestAFileIsGot(t *testing.T) {
	d := newDesk(t, brisk)
	long := strings.Repeat("0123456789", mostBytes/10)
	for _, a := range []slacktest.Attachment{
		{Name: "report.csv", Type: "text/csv", Content: "a,b\n1,2\n"},
		{Name: "long.txt", Type: "text/plain", Content: long},
		{Name: "page.html", Type: "text/html", Content: "<!DOCTYPE html><html>a page of Ann's</html>"},
		{Name: "template.txt", Type: "text/plain", Content: "<!DOCTYPE html><html>{{.}}</html>"},
		{Name: "empty", Type: "text/plain"},
	} {
		id := d.server.AddFile(a)
		if content, err := d.fetch(id); content != a.Content || err != nil {
			t.Errorf("%s has %d bytes, of which came %d: %v", a.Name, len(a.Content), len(content), err)
		}
	}
	for _, download := range d.server.Downloads() {
		if download.Authorization != "Bearer "+slacktest.BotToken {
			t.Errorf("%s was asked for as %q", download.ID, download.Authorization)
		}
	}
}

// TestWhatIsNoFile has what Slack, or something in its place, may answer to one who asks for a file.
func TestWhatIsNoFile(t *testing.T) {
	d := newDesk(t, brisk)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s was asked for elsewhere, as %q", r.URL, r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	png, _ := base64.StdEncoding.DecodeString("iVBORw0KGgo=")
	for _, c := range []struct {
		what   string
		status int
		header map[string]string
		body   string
		want   string // the error; "" when the body is the file
	}{
		{"a page", 200, map[string]string{"Content-Type": "text/html; charset=utf-8"}, "<!DOCTYPE html><html><title>Sign in</title>", lacksScope},
		{"a page that does not say so", 200, map[string]string{"Content-Type": ""}, "  <html>x", lacksScope},
		{"a page that says that it is an image", 200, map[string]string{"Content-Type": "image/png"}, "\n<!doctype HTML><html>", lacksScope},
		{"a redirect to a sign-in page", 302, map[string]string{"Location": "https://login.slack.test/"}, "", lacksScope},
		{"a redirect inside", 302, map[string]string{"Location": "http://169.254.169.254/"}, "", lacksScope},
		{"a redirect to another host", 307, map[string]string{"Location": elsewhere.URL}, "", lacksScope},
		{"forbidden", 403, nil, "", lacksScope},
		{"the beginning of an image", 200, map[string]string{"Content-Type": "image/png"}, string(png), ""},
		{"too many bytes", 200, map[string]string{"Content-Type": "image/png", "Content-Length": "999999999"}, "", "at most 1 MiB are read"},
		{"too many bytes, unannounced", 200, nil, strings.Repeat("x", mostBytes+1), "at most 1 MiB are read"},
		{"fewer bytes than the answer announces", 200, map[string]string{"Content-Length": "100"}, "x", "only in part"},
		{"not there", 404, nil, "", "it was deleted"},
		{"asked too often", 429, nil, "", "asked too often"},
		{"trouble", 503, nil, "", "status 503; try again later"},
	} {
		id := d.server.AddFile(slacktest.Attachment{Name: "a.png", Type: "image/png", Size: 70, Serve: func(w http.ResponseWriter, _ *http.Request) {
			for name, value := range c.header {
				w.Header()[name] = []string{value}
				if value == "" {
					w.Header()[name] = nil
				}
			}
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
			w.(http.Flusher).Flush()
		}})
		if c.want != "" {
			d.refuses(c.what, id, c.want)
		} else if content, err := d.fetch(id); content != c.body || err != nil {
			t.Errorf("%s: %q, %v", c.what, content, err)
		}
	}
	// Where the file itself may be a page, its length tells it from a sign-in page.
	for length, kind := range map[string]string{"50": "text/html", "": "text/plain"} {
		id := d.server.AddFile(slacktest.Attachment{Name: "page", Type: kind, Size: 70, Serve: func(w http.ResponseWriter, _ *http.Request) {
			if length != "" {
				w.Header().Set("Content-Length", length)
			}
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, "<html>"+strings.Repeat("x", 44))
		}})
		d.refuses("a page for a file of the kind "+kind, id, lacksScope)
	}
}

func TestWhatSlackSaysOfAFile(t *testing.T) {
	d := newDesk(t, brisk)
	text := slacktest.Attachment{Name: "a.txt", Type: "text/plain", Content: "x"}
	for _, c := range []struct {
		fault slacktest.Fault
		want  string
	}{
		{slacktest.Fault{Error: "missing_scope"}, lacksScope},
		{slacktest.Fault{Error: "file_deleted"}, "it was deleted"},
		{slacktest.Fault{Error: "file_not_found"}, "it was deleted"},
		{slacktest.Fault{Error: "internal_error"}, "try again later"},
		{slacktest.Fault{Status: 503}, "try again later"},
		{slacktest.Fault{Status: 404}, "try again later"},
		{slacktest.Fault{Error: "token_revoked"}, "token_revoked"},
	} {
		id := d.server.AddFile(text)
		d.server.Fail("files.info", c.fault)
		d.refuses(fmt.Sprintf("%+v", c.fault), id, c.want)
	}
	for what, more := range map[string]map[string]any{
		"it is kept in Dropbox":                {"is_external": true, "external_type": "dropbox"},
		"it is kept in another service":        {"mode": "external", "external_type": "app"},
		"Slack hides it":                       {"mode": "hidden_by_limit"},
		"it is a canvas of Slack's":            {"mimetype": "application/vnd.slack-docs", "filetype": "quip", "mode": "quip"},
		"it is a list of Slack's":              {"mimetype": "application/vnd.slack-list"},
		"Slack does not let the app see it":    {"file_access": "access_denied"},
		"at most 1 MiB are read; a part of it": {"size": mostBytes + 1},
		"it is not kept at Slack":              {"url_private_download": "https://files.slack.com.evil.example/a"},
	} {
		file := text
		file.More = more
		d.refuses(what, d.server.AddFile(file), what)
	}
	d.refuses("a file that is not there", "F0NONE", "it was deleted")
	d.server.Fail("files.info", slacktest.Fault{RetryAfter: 7 * time.Second})
	d.refuses("one too many", d.server.AddFile(text), "try again in 7s")
	if n := len(d.server.Downloads()); n != 0 {
		t.Errorf("%d times the bytes were asked for", n)
	}
}

func TestASlowFileIsGivenUp(t *testing.T) {
	timing := brisk
	timing.Fetch = 50 * time.Millisecond
	d := newDesk(t, timing)
	serve := func(begin string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, begin)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}
	for what, begin := range map[string]string{"at the beginning": "", "in the middle": strings.Repeat("x", 10_000)} {
		id := d.server.AddFile(slacktest.Attachment{Name: "a.txt", Type: "text/plain", Size: 20_000, Serve: serve(begin)})
		began := time.Now()
		d.refuses(what, id, "did not give it within 50ms")
		if took := time.Since(began); took > patience/2 {
			t.Errorf("%s it is given up after %s", what, took)
		}
	}
	d.slack.timing.Fetch = time.Minute
	id := d.server.AddFile(slacktest.Attachment{Name: "a.txt", Type: "text/plain", Size: 20_000, Serve: serve(strings.Repeat("x", 600))})
	ctx, stop := context.WithCancelCause(t.Context())
	body, err := d.slack.Fetch(ctx, agent.File{ID: id}, mostBytes)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	stopped := errors.New("stopped")
	stop(stopped)
	if _, err := io.ReadAll(body); !errors.Is(err, stopped) {
		t.Errorf("after a stop: %v", err)
	}
}

func TestWhereTheTokenGoes(t *testing.T) {
	d := newDesk(t, brisk)
	api := d.server.APIURL()
	for address, want := range map[string]bool{
		"https://files.slack.com/files-pri/T1-F1/a": true, "https://slack.com/a": true, "https://FILES.slack.com:443/a": true,
		"https://files.slack-gov.com/a": true, api + "../files": true,
		"http://files.slack.com/a": false, "https://files.slack.com:8443/a": false, "https://slack.com.evil.example/a": false,
		"https://evilslack.com/a": false, "https://files.slack.com@evil.example/a": false, "https://a:b@files.slack.com/a": false,
		"https://169.254.169.254/a": false, "https" + strings.TrimPrefix(api, "http"): false, "//files.slack.com/a": false, "": false,
		"http://127.0.0.1:1/a": false, "file:///etc/passwd": false,
	} {
		if got := d.slack.trusts(parse(t, address)); got != want {
			t.Errorf("the token may be sent to %s: %v", address, got)
		}
	}
}

func TestLongAnswersWhereNoFileMayBeUploaded(t *testing.T) {
	longer := strings.Repeat("a few words\n", 1500)
	for _, c := range []struct {
		step  string
		fault slacktest.Fault
	}{
		{"files.getUploadURLExternal", slacktest.Fault{Error: "missing_scope"}},
		{"files.getUploadURLExternal", slacktest.Fault{Error: "file_uploads_disabled"}},
		{"files.completeUploadExternal", slacktest.Fault{Error: "slack_connect_file_upload_sharing_blocked"}},
	} {
		d := newDesk(t, brisk)
		d.server.Fail(c.step, c.fault)
		d.tell("k1", agent.Reply{Kind: agent.Final, Text: longer, Address: annsDM})
		joined := ""
		for _, m := range d.server.ByBot(slacktest.DM("U0ANN")) {
			joined += m.Text
		}
		if visible(joined) != visible(longer) {
			t.Errorf("after %s of %s there are %d of %d characters", c.fault.Error, c.step, len(visible(joined)), len(visible(longer)))
		}
		r := approval(annsDM)
		r.ID, r.Arguments = "huge", json.RawMessage(`{"text":"`+strings.Repeat("b", 20_000)+`"}`)
		before := len(d.server.ByBot(slacktest.DM("U0ANN")))
		d.server.Fail(c.step, c.fault)
		channel, ts := d.ask(r)
		above := ""
		for _, m := range d.server.ByBot(slacktest.DM("U0ANN"))[before:] {
			if m.TS < ts {
				above += m.Text
			}
		}
		m, _ := d.server.Message(channel, ts)
		if visible(html.UnescapeString(above)) != visible(bot.CardText(r, "")) || len(m.Buttons()) != 3 || !strings.Contains(m.Shown(), "in the messages above") {
			t.Errorf("after %s of %s a huge card has %d characters above it, and says %q", c.fault.Error, c.step, len(above), m.Shown())
		}
	}
}

// TestAFileIsUploadedOnce lets each of the three steps of an upload fail in a way that passes.
func TestAFileIsUploadedOnce(t *testing.T) {
	longer := strings.Repeat("viele Wörter\n", 1500)
	for _, c := range []struct {
		step  string
		fault slacktest.Fault
	}{
		{"files.getUploadURLExternal", slacktest.Fault{Status: 503}},
		{"files.getUploadURLExternal", slacktest.Fault{RetryAfter: time.Nanosecond}}, // said as 0 seconds
		{"upload", slacktest.Fault{Status: 500}},
		{"upload", slacktest.Fault{Status: 400}},
		{"files.completeUploadExternal", slacktest.Fault{Status: 503}},
		{"files.completeUploadExternal", slacktest.Fault{Status: 502, Done: true}},
		{"files.completeUploadExternal", slacktest.Fault{Error: "internal_error"}},
	} {
		d := newDesk(t, brisk)
		address, thread := d.thread()
		d.server.Fail(c.step, c.fault)
		r := agent.Reply{Kind: agent.Final, Text: longer, Address: address}
		_, err := d.slack.Say(t.Context(), bot.Delivery{Reply: r, Key: "k1"})
		var send *bot.SendError
		if !errors.As(err, &send) || send.Gone || send.Closed {
			t.Errorf("%s with %+v gives %v", c.step, c.fault, err)
		}
		d.tell("k1", r)
		said := d.server.ByBot(shared)
		if len(said) != 2 || len(said[0].Files) != 1 || said[0].Thread != thread || d.server.File(said[0].Files[0].Name) != longer {
			t.Errorf("after %s with %+v there stands %d times something", c.step, c.fault, len(said))
		}
	}
	d := newDesk(t, brisk)
	d.tell("k1", agent.Reply{Kind: agent.Final, Text: longer, Address: annsDM})
	asked, _ := json.Marshal(d.server.Calls("files.getUploadURLExternal")[0].Form["length"])
	if string(asked) != fmt.Sprintf("[%q]", fmt.Sprint(len(longer))) {
		t.Errorf("a file of %d bytes is announced with %s", len(longer), asked)
	}
}

func parse(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
