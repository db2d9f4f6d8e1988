package workspace

import (
	"bufio"
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

	"nudge/agent"
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
	first := max(1, lines.Offset)
	page := page{first: first, limit: lines.Limit}
	if err := page.fill(ctx, bufio.NewReader(file)); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", said(err, "read", name)
	}
	text := page.text.String()
	switch {
	case agent.Binary(text):
		return fmt.Sprintf("binary, %d bytes", info.Size()), nil
	case page.seen == 0 && first == 1:
		return "The file is empty.", nil
	case page.seen < first:
		return "", fmt.Errorf("%q has only %d lines", name, page.seen)
	case first == 1 && !page.more:
		return text, nil
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if page.torn {
		return text + fmt.Sprintf("[line %d is too long and is cut here; the file has %d bytes]\n", page.seen, info.Size()), nil
	}
	if page.more {
		return text + fmt.Sprintf("[lines %d to %d; go on with offset %d; the file has %d bytes]\n", first, page.seen, page.seen+1, info.Size()), nil
	}
	return text + fmt.Sprintf("[lines %d to %d, the last]\n", first, page.seen), nil
}

// page collects lines of a file.
type page struct {
	first, limit int
	text         strings.Builder
	seen         int  // lines begun so far; the last one collected in the end
	more         bool // something follows
	torn         bool // the last line is cut because it is too long
}

// fill reads until the page is full or the file ends.
func (p *page) fill(ctx context.Context, from *bufio.Reader) error {
	begun := false
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		piece, err := from.ReadSlice('\n')
		if len(piece) > 0 {
			if full := p.take(piece, begun); full {
				return nil
			}
			begun = piece[len(piece)-1] != '\n'
		}
		switch {
		case err == nil, errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil
		default:
			return err
		}
	}
}

// take adds a piece of a line, unless the page is full without it. begun says that the line's start came before.
func (p *page) take(piece []byte, begun bool) (full bool) {
	if !begun {
		if p.limit > 0 && p.seen >= p.first+p.limit-1 {
			p.more = true
			return true
		}
		p.seen++
	}
	if p.seen < p.first {
		return false
	}
	if room := maxRead - p.text.Len(); len(piece) > room {
		p.more = true
		if !begun && p.text.Len() > 0 { // the line goes to the next page as a whole
			p.seen--
			return true
		}
		p.torn = true
		p.text.Write(piece[:room])
		return true
	}
	p.text.Write(piece)
	return false
}
