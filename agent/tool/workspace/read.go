package workspace

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"nudge/agent"
	"nudge/agent/secret"
)

// maxScanned is how many names of a folder are looked at, so that a folder of millions costs no memory.
const maxScanned = 20_000

// list describes one folder.
func list(ctx context.Context, root *os.Root, name string) (string, error) {
	info, err := root.Stat(name)
	if err != nil {
		return "", said(err, "list", name)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%q is a file, not a folder; read_file reads it", name)
	}
	entries, more, err := entriesOf(ctx, root, name)
	if err != nil {
		return "", said(err, "list", name)
	}
	if len(entries) == 0 {
		return "The folder is empty.", nil
	}
	var out strings.Builder
	for _, entry := range entries[:min(len(entries), maxEntries)] {
		out.WriteString(line(entry))
		out.WriteByte('\n')
	}
	switch {
	case more:
		fmt.Fprintf(&out, "[… more than %d entries; %d of them are shown …]\n", maxScanned, maxEntries)
	case len(entries) > maxEntries:
		fmt.Fprintf(&out, "[… %d of %d entries are shown …]\n", maxEntries, len(entries))
	}
	return out.String(), nil
}

// entriesOf reads a folder's entries in order of name, without files being written, and tells whether there are more.
func entriesOf(ctx context.Context, root *os.Root, name string) (entries []fs.DirEntry, more bool, err error) {
	folder, err := root.Open(name)
	if err != nil {
		return nil, false, err
	}
	defer folder.Close()
	for len(entries) < maxScanned {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		some, err := folder.ReadDir(1000)
		for _, entry := range some {
			if !strings.HasPrefix(entry.Name(), tempPrefix) {
				entries = append(entries, entry)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, false, err
		}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, len(entries) >= maxScanned, nil
}

// line describes one entry. A name that could pass for several lines, or for another name, is quoted.
func line(entry fs.DirEntry) string {
	name := entry.Name()
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		name = strconv.Quote(name)
	}
	switch {
	case entry.IsDir():
		return name + "/"
	case entry.Type()&fs.ModeSymlink != 0:
		return name + " (link)"
	case !entry.Type().IsRegular():
		return name + " (not a file)"
	}
	info, err := entry.Info()
	if err != nil { // it was deleted meanwhile, or cannot be looked at
		return name
	}
	return fmt.Sprintf("%s (%d bytes)", name, info.Size())
}

// openRegular opens a file for reading, and nothing else: a device may do something when it is opened, so it is
// looked at before.
func openRegular(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, nil, said(err, "read", name)
	}
	if err := regular(info, name); err != nil {
		return nil, nil, err
	}
	return openAnyway(root, name)
}

// openAnyway opens a file that may have been exchanged for a pipe since it was looked at, and looks again.
func openAnyway(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|openWithoutWaiting, 0)
	if err != nil {
		return nil, nil, said(err, "read", name)
	}
	info, err := file.Stat()
	if err != nil {
		err = said(err, "read", name)
	} else {
		err = regular(info, name)
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

func regular(info fs.FileInfo, name string) error {
	switch {
	case info.IsDir():
		return fmt.Errorf("%q is a folder; list_files shows what is in it", name)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%q is a device, pipe or socket, not a file", name)
	}
	return nil
}

// span is the lines that a call asks for, counted from 1; 0 means from the first and to the last.
type span struct {
	Offset int `json:"offset"`
	Limit  int `json:"limit"`
}

// read gives lines of a file as they are. What it says itself stands in brackets on a line at the end.
func read(ctx context.Context, root *os.Root, name string, lines span) (string, error) {
	file, info, err := openRegular(root, name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	page, err := pageOf(ctx, file, lines)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", said(err, "read", name)
	}
	if page.first == 1 && agent.Binary(page.text.String()) {
		return fmt.Sprintf("binary, %d bytes", info.Size()), nil
	}
	return page.words(name, fmt.Sprintf("the file has %d bytes", info.Size()))
}

// result gives lines of a saved result, as read does of a file.
func (c Config) result(ctx context.Context, session, id string, lines span) (string, error) {
	if c.Saved == nil {
		return "", fmt.Errorf("no results are saved here; a file of that name is read as %.100q", "./"+agent.SavedPrefix+id)
	}
	text, found, err := c.Saved(ctx, session, id)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil: // it may have a path in it
		return "", errors.New("the saved results cannot be read now; try again later")
	case !found:
		return "", fmt.Errorf("this conversation has no saved result %.100q, or no longer: get it anew; a file of that name is read as %.100q", id, "./"+agent.SavedPrefix+id)
	}
	page, err := pageOf(ctx, strings.NewReader(text), lines)
	if err != nil {
		return "", err
	}
	return page.words(agent.SavedPrefix+id, fmt.Sprintf("the result has %d bytes", len(text)))
}

// attached gives lines of an attached file, as read does of a file.
func (c Config) attached(ctx context.Context, session, id string, lines span) (string, error) {
	if c.Attached == nil {
		return "", fmt.Errorf("attached files cannot be read here; a file of that name is read as %.100q", "./"+agent.FilePrefix+id)
	}
	content, err := c.Attached(ctx, session, id)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.Is(err, agent.ErrUnknownFile):
		return "", fmt.Errorf("%w; a file of the workspace is read as %.100q", err, "./"+agent.FilePrefix+id)
	case err != nil:
		return "", err
	case content.Text == nil:
		return content.String(), nil
	}
	page, err := pageOf(ctx, content.Text, lines)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil: // it may have a path in it
		return "", errors.New("the attached file cannot be read now; try again")
	}
	return page.words(agent.FilePrefix+id, "the file has "+content.Length())
}

// maxPage is how many bytes come back at once, so few that the agent leaves nothing of it out: it is less than a result
// may have even after the tenth of it that can be invalid has grown to replacement characters. A longer line counts as
// several, or its rest could not be asked for.
const maxPage = 20 << 10

// page is some lines of a text.
type page struct {
	first, limit int
	text         strings.Builder
	seen         int  // lines so far; the last one collected in the end
	more         bool // something follows
	key          bool // the last line is within a private key
	keySize      int  // bytes of that so far
	cutKey       bool // the page begins within one
}

// pageOf reads until the page is full or the text ends.
func pageOf(ctx context.Context, from io.Reader, lines span) (*page, error) {
	p := &page{first: max(1, lines.Offset), limit: lines.Limit}
	scanner := bufio.NewScanner(from)
	scanner.Split(splitLine)
	for !p.more && scanner.Scan() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p.take(scanner.Bytes())
	}
	return p, scanner.Err()
}

// splitLine is a [bufio.SplitFunc] for lines with their ends. One that is longer than a page is cut where it parts
// nothing that is drawn as one, and no key: a part of one does not look like a key.
func splitLine(data []byte, atEOF bool) (advance int, line []byte, err error) {
	end := bytes.IndexByte(data, '\n') + 1
	switch {
	case end > 0 && end <= maxPage:
	case len(data) >= maxPage+secret.LongestCut, atEOF && len(data) > maxPage:
		text := string(data[:min(len(data), maxPage+secret.LongestCut)])
		head := agent.Head(text[:min(len(text), maxPage+utf8.UTFMax)], maxPage)
		end = secret.Cut(text, betweenWords(head))
	case !atEOF || len(data) == 0:
		return 0, nil, nil
	default:
		end = len(data)
	}
	return end, data[:end], nil
}

// betweenWords is where to cut a text near its end so that no word of it is cut, if it has any: a secret that the operator
// configured may be one.
func betweenWords(text string) int {
	const near = 1 << 10
	start := max(0, len(text)-near)
	if end := strings.LastIndexAny(text[start:], " \t\"',;<>()[]{}"); end >= 0 {
		return start + end + 1
	}
	return len(text)
}

// take adds a line, unless it is before the page or belongs to the next one.
func (p *page) take(line []byte) {
	full := p.limit > 0 && p.seen >= p.first+p.limit-1
	if full || p.text.Len()+len(line) > maxPage {
		p.more = true
		return
	}
	p.seen++
	within := p.inKey(line)
	switch {
	case p.seen < p.first:
	case within && (p.text.Len() == 0 || p.cutKey):
		if !p.cutKey { // for all lines of it
			p.text.WriteString(secret.Mark + "\n")
		}
		p.cutKey = p.key
	default:
		p.text.Write(line)
	}
}

// longestKey is how many bytes a private key may have. What never ends is none.
const longestKey = 32 << 10

// inKey reports whether a line begins within a private key, and notes whether the next one does.
func (p *page) inKey(line []byte) bool {
	within := p.key
	if p.key = secret.InKey(string(line), within); !p.key || !within {
		p.keySize = 0
	}
	if p.keySize += len(line); p.keySize > longestKey {
		p.key = false
	}
	return within
}

// words is the page as the model reads it; whole says how long all of it is.
func (p *page) words(name, whole string) (string, error) {
	text := p.text.String()
	cut := ""
	if !strings.HasSuffix(text, "\n") {
		cut = ", the last of them cut"
	}
	switch {
	case p.seen == 0 && p.first == 1:
		return "The file is empty.", nil
	case p.seen < p.first:
		return "", fmt.Errorf("%q has only %d lines", name, p.seen)
	case agent.Binary(text): // a stretch of it can be, while the whole is not
		text = fmt.Sprintf("binary, %d bytes", len(text))
	}
	if p.first == 1 && !p.more {
		return text, nil
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if p.more {
		return text + fmt.Sprintf("[lines %d to %d%s; go on with offset %d; %s]\n", p.first, p.seen, cut, p.seen+1, whole), nil
	}
	return text + fmt.Sprintf("[lines %d to %d, the last]\n", p.first, p.seen), nil
}
