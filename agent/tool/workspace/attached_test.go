package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"nudge/agent"
)

// newAttachingDesk has one attached file in one session: a text, or nothing that can be read.
func newAttachingDesk(t *testing.T, text io.Reader) desk {
	d := newDesk(t)
	d.use(Config{Dirs: d.dirs, Attached: func(_ context.Context, session, id string) (*agent.Content, error) {
		if session != room || id != "F1" {
			return nil, fmt.Errorf("there is no file %q: %w", id, agent.ErrUnknownFile)
		}
		c := &agent.Content{File: agent.File{ID: "F1", Name: "a.png", Type: "image/png", Size: 6}, Facts: agent.Facts{Size: 6, SHA256: "abc", Kind: "image/png"}, Text: text}
		c.Binary = text == nil
		return c, nil
	}})
	return d
}

func TestAnAttachedFileIsReadByLines(t *testing.T) {
	for _, c := range []struct {
		arguments args
		want      string
	}{
		{args{}, "1\r\n2\n3"},
		{args{"limit": 1}, "1\r\n[lines 1 to 1; go on with offset 2; the file has 6 bytes]\n"},
		{args{"offset": 2}, "2\n3\n[lines 2 to 3, the last]\n"},
	} {
		c.arguments["path"] = "file:F1"
		d := newAttachingDesk(t, strings.NewReader("1\r\n2\n3"))
		if got, err := d.readIn(room, c.arguments); got != c.want || err != nil {
			t.Errorf("%v gave %q, %v; want %q", c.arguments, got, err, c.want)
		}
	}
	d := newAttachingDesk(t, nil)
	if got, err := d.readIn(room, args{"path": "file:F1"}); got != "binary, image/png, 6 bytes, sha256 abc; there is no text in it to read" || err != nil {
		t.Errorf("an image reads %q, %v", got, err)
	}
}

func TestAnAttachedFileThatCannotBeRead(t *testing.T) {
	d := newAttachingDesk(t, iotest.ErrReader(errors.New("read /var/lib/nudge.db: bad page")))
	for _, c := range []struct{ session, path, want string }{
		{room, "file:F1", "cannot be read now; try again"},
		{room, "file:F2", `nobody attached such a file in this conversation; a file of the workspace is read as "./file:F2"`},
		{"slack:T1:C1:2", "file:F1", "nobody attached such a file"},
		{room, "file:", "nobody attached such a file"},
		{room, "file:../F1", "nobody attached such a file"},
		{room, "./file:F1", "there is no file"},
	} {
		if text, err := d.readIn(c.session, args{"path": c.path}); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "/var") {
			t.Errorf("%q in %q gave %q, %v; want %q", c.path, c.session, text, err, c.want)
		}
	}
	d.put("file:F1", "of the workspace")
	if got, err := d.readIn(room, args{"path": "./file:F1"}); got != "of the workspace" || err != nil {
		t.Errorf("the file of that name is %q, %v", got, err)
	}
	d.use(Config{Dirs: d.dirs})
	if text, err := d.readIn(room, args{"path": "file:F1"}); err == nil || !strings.Contains(err.Error(), "cannot be read here") {
		t.Errorf("where none are to be had: %q, %v", text, err)
	}
}

func TestWhatIsAttachedIsOutsideText(t *testing.T) {
	d := newDesk(t)
	for path, want := range map[string]bool{"file:F1": true, "./file:F1": false, "result:" + saved: false, "notes.md": false} {
		in := d.invocation("read_file", ann, args{"path": path})
		if labels := d.tools["read_file"].LabelsOf(in); labels.Outside != want || !labels.Private || labels.WayOut {
			t.Errorf("reading %s has the labels %+v", path, labels)
		}
	}
}
