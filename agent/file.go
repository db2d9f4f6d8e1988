package agent

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"nudge/memory"
)

// A file that somebody attaches is said with the message: what is journaled is its name, and its bytes stay where they are
// until the model asks for them (content.go). Only files that were said in a session can be read there.

// FilePrefix begins the path under which read_file finds an attached file; the file's id follows.
const FilePrefix = "file:"

// File is what is known of a file that somebody attached to a message, without its bytes.
type File struct {
	ID   string `json:"id,omitempty"`   // the platform's
	Name string `json:"name,omitempty"` // as its person named it: words for people and models, never a path
	Type string `json:"type,omitempty"` // a MIME type, as the platform tells it; "" when unknown
	Size int64  `json:"size,omitempty"` // bytes, as the platform tells it; 0 when unknown
	// Barred says why the file cannot be read, as a sentence goes on after "it cannot be read: "; "" when it can be tried.
	Barred string `json:"barred,omitempty"`
}

// tableFiles has the files that were said in sessions, by session and id.
const tableFiles memory.Rows[saidFile] = "file"

// The bounds of what is told of files.
const (
	mostFiles    = 20  // of one message
	longestName  = 200 // bytes
	longestWhy   = 300 // bytes
	withoutAName = "a file"
)

// Other ids and types are no platform's. The first is a part of keys and of what models write.
var (
	fileID   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`)
	fileType = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,63}/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,63}$`)
)

// saidFile is a row of the files of a session.
type saidFile struct {
	File
	Address string `json:"address"` // the conversation in which it was said
}

// soundFiles are the files of a message within their bounds.
func soundFiles(files []File) []File {
	var sound []File
	for _, f := range files[:min(len(files), mostFiles)] {
		sound = append(sound, f.sound())
	}
	if more := len(files) - mostFiles; more > 0 {
		sound = append(sound, File{Name: fmt.Sprintf("%d more files", more), Barred: fmt.Sprintf("only %d of a message are taken", mostFiles)})
	}
	return sound
}

func (f File) sound() File {
	f.Name, f.Barred, f.Size = Head(cleaned(f.Name), longestName), Head(printable(f.Barred), longestWhy), max(f.Size, 0)
	if strings.TrimSpace(f.Name) == "" {
		f.Name = withoutAName
	}
	if !fileType.MatchString(f.Type) {
		f.Type = ""
	}
	if !fileID.MatchString(f.ID) {
		f.ID = ""
		if f.Barred == "" {
			f.Barred = "it has no name by which it could be asked for"
		}
	}
	return f
}

// printable is a text of one line in which everything can be seen.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}

// putFiles notes within the transaction that admits a message which files it brings into a session.
func putFiles(tx memory.Tx, session string, m Message) error {
	for _, f := range m.Files {
		if f.Barred != "" {
			continue
		}
		if err := tableFiles.Put(tx, savedKey(session, f.ID), saidFile{f, m.Address}); err != nil {
			return err
		}
	}
	return nil
}

// fileSaid is a file that was said in a session.
func fileSaid(tx memory.Tx, session, id string) (f saidFile, found bool, err error) {
	if !fileID.MatchString(id) {
		return f, false, nil
	}
	return tableFiles.Get(tx, savedKey(session, id))
}

// eraseFiles forgets which files were said in a session.
func eraseFiles(tx memory.Tx, session string) error {
	_, err := memory.RemoveRows(tableFiles.Table(tx), savedKey(session, ""), nil)
	return err
}

// line is a file as a model reads of it after the words that it came with. Its name is quoted, so that it cannot pass for
// anything else.
func (f File) line() string {
	about := strconv.Quote(f.Name)
	if f.Type != "" {
		about += ", " + f.Type
	}
	if f.Size > 0 {
		about += fmt.Sprintf(", %d bytes", f.Size)
	}
	if f.Barred != "" {
		return fmt.Sprintf("[attached: %s; it cannot be read: %s]", about, f.Barred)
	}
	return fmt.Sprintf("[attached: %s%s %s]", FilePrefix, f.ID, about)
}

// says reports whether a person says something with a message: words, or files.
func (m Message) says() bool {
	return m.Provenance == Human && (m.Text != "" || len(m.Files) > 0)
}

// saying is what a letter says: its words, and after them a line for each file.
func (a *actor) saying(l letter) string {
	files := slices.Clone(l.Files)
	for i := range files {
		if files[i].Barred == "" && !a.opensFiles() {
			files[i].Barred = "no tool here reads attached files"
		}
	}
	return withFiles(l.Text, files)
}

// withFiles is a text with a line for each file after it.
func withFiles(text string, files []File) string {
	var parts []string
	if strings.TrimSpace(text) != "" || len(files) == 0 {
		parts = append(parts, text)
	}
	for _, f := range files {
		parts = append(parts, f.line())
	}
	return strings.Join(parts, "\n")
}

// opensFiles reports whether the model has a tool that reads attached files.
func (ag *Agent) opensFiles() bool {
	return ag.Fetch != nil && slices.ContainsFunc(ag.box().order, func(t *Tool) bool { return t.Pages && t.Place != InHeartbeat })
}
