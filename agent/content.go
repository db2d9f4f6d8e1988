package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strings"
	"time"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"nudge/memory"
)

// What an attached file holds is got from its platform when it is read for the first time, and then kept for its session
// as saved results are: it is private to the session, ages, and is erased and exported with it. It is got anew when it
// has aged out. A text is kept in pieces, so that neither getting nor reading a long one needs much memory; of anything
// else, which no model reads, only what it is.

// MaxFile is how many bytes an attached file may have to be read.
const MaxFile = 20 << 20

// The rows of a file, among the saved results of its session: FilePrefix and its id name that which tells about it, and with
// a number behind pieceMark its pieces. The mark sorts before all that an id has, so that a file's rows stand together.
const (
	pieceMark = "!"
	pieceSize = MaxSaved
)

func pieceID(id string, n int) string { return fmt.Sprintf("%s%s%s%04d", FilePrefix, id, pieceMark, n) }

// pieceOf reports whether a row is a piece of the file that another row tells about.
func pieceOf(row, file string) bool {
	return strings.HasPrefix(file, FilePrefix) && strings.HasPrefix(row, file+pieceMark)
}

// Content is what an attached file holds.
type Content struct {
	File File
	Facts
	// Text is all of it, in UTF-8 if it was in UTF-16; bytes that are no text may be among it. It is nil for a file that is
	// none. It reads until the context ends with which the file was opened.
	Text io.Reader
}

// Facts are what is known of a file once all of it was got.
type Facts struct {
	Size   int64  `json:"size"`   // bytes that came
	SHA256 string `json:"sha256"` // of them, in hexadecimal
	Binary bool   `json:"binary,omitempty"`
	Kind   string `json:"kind,omitempty"` // the MIME type that the first bytes show
	Pieces int    `json:"pieces,omitempty"`
}

// String is one line about a file that is no text.
func (c Content) String() string {
	kind := c.File.Type
	if c.Kind != "application/octet-stream" && c.Kind != kind {
		kind = strings.TrimSuffix(c.Kind+", said to be "+kind, ", said to be ")
	}
	if kind == "" {
		kind = "of an unknown kind"
	}
	return fmt.Sprintf("binary, %s, %s, sha256 %s; there is no text in it to read", kind, c.Length(), c.SHA256)
}

// Length is how long the file is, in words. What its platform announced is told where that is not so.
func (c Content) Length() string {
	if c.File.Size > 0 && c.File.Size != c.Size {
		return fmt.Sprintf("%d bytes (%d were announced)", c.Size, c.File.Size)
	}
	return fmt.Sprintf("%d bytes", c.Size)
}

// exportedContent is what an export has in front of a file's pieces.
func exportedContent(row string) string {
	var c Content
	if json.Unmarshal([]byte(row), &c.Facts) != nil || !c.Binary {
		return ""
	}
	return c.String()
}

// ErrUnknownFile is wrapped by the error for a file that nobody attached in the session.
var ErrUnknownFile = errors.New("nobody attached such a file in this conversation")

// OpenFile gives what a file holds that was attached in a session, named by its id as it stands after [FilePrefix]. It is
// got from its platform unless it is kept already. A file of another session is an unknown one. The model may read the
// error: it says what could not be done and why, and holds no address and no secret.
func (ag *Agent) OpenFile(ctx context.Context, session, id string) (*Content, error) {
	release, err := ag.alone(ctx, savedKey(session, id))
	if err != nil {
		return nil, err
	}
	defer release()
	var said saidFile
	var found, kept bool
	var facts Facts
	err = ag.Store.View(ctx, func(tx memory.Tx) error {
		if said, found, err = fileSaid(tx, session, id); err != nil || !found {
			return err
		}
		facts, kept, err = keptFacts(tx, session, id)
		return err
	})
	switch {
	case err != nil:
		return nil, ag.cannotKeep(ctx, session, id, err)
	case !found:
		return nil, fmt.Errorf("there is no file %.100q: %w", id, ErrUnknownFile)
	case !kept:
		if facts, err = ag.getFile(ctx, session, said); err != nil {
			return nil, err
		}
	}
	c := &Content{File: said.File, Facts: facts}
	if !facts.Binary {
		c.Text = &pieces{ctx: ctx, store: ag.Store, session: session, id: id, count: facts.Pieces}
	}
	return c, nil
}

// alone waits until nobody else gets a file. Others wait until release is called.
func (ag *Agent) alone(ctx context.Context, file string) (release func(), err error) {
	for {
		ag.mu.Lock()
		busy := ag.fetching[file]
		if busy == nil {
			mine := make(chan struct{})
			ag.fetching[file] = mine
			ag.mu.Unlock()
			return func() {
				ag.mu.Lock()
				defer ag.mu.Unlock()
				delete(ag.fetching, file)
				close(mine)
			}, nil
		}
		ag.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func keptFacts(tx memory.Tx, session, id string) (facts Facts, kept bool, err error) {
	row, kept, err := getSaved(tx, session, FilePrefix+id)
	if err != nil || !kept {
		return facts, false, err
	}
	return facts, true, json.Unmarshal(row, &facts)
}

// getFile gets a file from its platform and keeps it. What is left of one that did not come whole is removed, or ages out
// after a crash.
func (ag *Agent) getFile(ctx context.Context, session string, said saidFile) (Facts, error) {
	if ag.Fetch == nil {
		return Facts{}, errors.New("attached files cannot be read here")
	}
	body, err := ag.Fetch(ctx, said.Address, said.File, MaxFile)
	if err != nil {
		return Facts{}, notRead(ctx, said.File, err)
	}
	defer body.Close()
	k := keeper{ag: ag, ctx: ctx, session: session, file: said.File, at: now()}
	err = k.keep(body)
	if err == nil {
		return k.facts, nil
	}
	if dropErr := k.drop(); dropErr != nil {
		ag.Log.Warn("what came of an attached file stays until it ages out", "session", session, "file", said.ID, "error", dropErr)
	}
	return Facts{}, err
}

// notRead is the error for a file that its platform did not give.
func notRead(ctx context.Context, f File, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("the attached file %q could not be read: %w", f.Name, err)
}

// cannotKeep is the error for a file when the store fails, whose own words are for the log.
func (ag *Agent) cannotKeep(ctx context.Context, session, id string, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errForgotten):
		return err
	}
	ag.Log.Error("what was attached cannot be kept or read", "session", session, "file", id, "error", err)
	if errors.Is(err, memory.ErrFull) {
		return errors.New("the attached file could not be kept, since my disk is full; try again once there is room")
	}
	return errors.New("the attached file cannot be read now; try again later")
}

var errForgotten = errors.New("this conversation was erased meanwhile")

// keeper keeps one file while it comes.
type keeper struct {
	ag      *Agent
	ctx     context.Context
	session string
	file    File
	at      time.Time // of all rows, so that they age together
	facts   Facts
}

func (k *keeper) keep(body io.Reader) error {
	raw := &measured{from: io.LimitReader(body, MaxFile+1), sum: sha256.New()}
	text := transform.NewReader(raw, unicode.BOMOverride(transform.Nop))
	buffer := make([]byte, pieceSize)
	for first, more := true, true; more; first = false {
		n, err := fill(text, buffer)
		piece := buffer[:n]
		switch {
		case raw.size > MaxFile:
			return notRead(k.ctx, k.file, fmt.Errorf("it is larger than %d MiB", MaxFile>>20))
		case err != nil && !errors.Is(err, io.EOF):
			return notRead(k.ctx, k.file, err)
		case first:
			k.facts.Kind, k.facts.Binary = http.DetectContentType(piece), Binary(string(piece))
		}
		more = err == nil
		if n == 0 || k.facts.Binary {
			continue
		}
		if err := k.put(pieceID(k.file.ID, k.facts.Pieces), piece); err != nil {
			return err
		}
		k.facts.Pieces++
	}
	k.facts.Size, k.facts.SHA256 = raw.size, hex.EncodeToString(raw.sum.Sum(nil))
	row, err := json.Marshal(k.facts)
	if err != nil {
		return err
	}
	return k.put(FilePrefix+k.file.ID, row) // the last, since it says that the file is whole
}

// put keeps a row of the file, unless its session was erased meanwhile.
func (k *keeper) put(id string, row []byte) error {
	err := k.ag.Store.Update(k.ctx, func(tx memory.Tx) error {
		_, there, err := fileSaid(tx, k.session, k.file.ID)
		if err != nil {
			return err
		}
		if !there {
			return errForgotten
		}
		return putSaved(tx, "", k.session, id, string(row), k.at)
	})
	if err != nil {
		return k.ag.cannotKeep(k.ctx, k.session, k.file.ID, err)
	}
	return nil
}

func (k *keeper) drop() error {
	if k.facts.Pieces == 0 {
		return nil
	}
	return k.ag.Store.Update(context.WithoutCancel(k.ctx), func(tx memory.Tx) error {
		for n := range k.facts.Pieces {
			key := savedKey(k.session, pieceID(k.file.ID, n))
			if err := removeSaved(tx, timeRow(key, []byte(k.at.UTC().Format(savedTime)))); err != nil {
				return err
			}
		}
		return nil
	})
}

// fill reads until the buffer is full. Unlike [io.ReadFull] it gives io.EOF at the end of what was whole, and
// io.ErrUnexpectedEOF only where its source does.
func fill(from io.Reader, buffer []byte) (n int, err error) {
	for n < len(buffer) && err == nil {
		var read int
		read, err = from.Read(buffer[n:])
		n += read
	}
	return n, err
}

// measured counts and sums up what is read.
type measured struct {
	from io.Reader
	sum  hash.Hash
	size int64
}

func (m *measured) Read(into []byte) (int, error) {
	n, err := m.from.Read(into)
	m.sum.Write(into[:n])
	m.size += int64(n)
	return n, err
}

// pieces reads a file that is kept, piece by piece.
type pieces struct {
	ctx         context.Context
	store       memory.Store
	session, id string
	next, count int
	rest        []byte
}

func (p *pieces) Read(into []byte) (int, error) {
	for len(p.rest) == 0 {
		if p.next >= p.count {
			return 0, io.EOF
		}
		err := p.store.View(p.ctx, func(tx memory.Tx) error {
			piece, found, err := getSaved(tx, p.session, pieceID(p.id, p.next))
			if err == nil && !found {
				return errors.New("the attached file is no longer kept; read it again")
			}
			p.rest = piece
			return err
		})
		if err != nil {
			return 0, err
		}
		p.next++
	}
	n := copy(into, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}
