package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"nudge/agent/model"
)

// Draft is an answer as far as it has come. It is used by one call, from one goroutine. Began need not be set in the
// errors that it returns.
type Draft interface {
	// Whole takes in an answer that came in one piece: the body, which begins with a brace or a bracket.
	Whole(body []byte) *model.Error
	// Event takes in one event of a stream and says whether it was the last.
	Event(ev Event) (last bool, fault *model.Error)
	// Began says whether some of the answer has come, so that the provider may charge for it.
	Began() bool
	// Finished says whether nothing that matters can be missing any more, even if the line drops now.
	Finished() bool
	// Answer returns the answer. It is called once, after Whole or when the draft is finished.
	Answer() (model.Answer, *model.Error)
}

// readers are those that no body is read with at present.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 8<<10) }}

// read takes in the body of a response. Its first byte says what it is, more surely than its declared type: what
// begins with a brace is one whole answer, what begins with an angle bracket is a page for people, the rest is a stream.
func read(ctx context.Context, body *watched, kind string, limit int64, d Draft) *model.Error {
	in := &io.LimitedReader{R: body, N: limit}
	buf, _ := readers.Get().(*bufio.Reader)
	buf.Reset(in)
	defer func() {
		buf.Reset(nil)
		readers.Put(buf)
	}()
	first, err := skipBlank(buf)
	var fault *model.Error
	switch {
	case err != nil && err != io.EOF:
		return brokeOff(ctx, err)
	case err == io.EOF && kind == "text/event-stream" && in.N < limit:
		return brokeOff(ctx, io.ErrUnexpectedEOF)
	case err == io.EOF:
		return Malformed(errors.New("the body is empty"))
	case first == '<' || kind == "text/html":
		return notAnAPI(buf)
	case first == '{' || first == '[':
		fault = readWhole(ctx, buf, d)
	default:
		fault = readStream(ctx, body, buf, first, d)
	}
	if in.N == 0 && fault != nil {
		return Malformed(fmt.Errorf("the answer has more than %d bytes", limit))
	}
	return fault
}

// skipBlank skips a byte order mark and white space, which some servers send to keep the line open.
func skipBlank(r *bufio.Reader) (byte, error) {
	if mark, _ := r.Peek(1); len(mark) == 1 && mark[0] == 0xEF {
		if mark, _ := r.Peek(3); string(mark) == "\ufeff" {
			_, _ = r.Discard(3)
		}
	}
	for {
		b, err := r.Peek(1)
		if err != nil {
			return 0, err
		}
		if !bytes.ContainsAny(b, " \t\r\n") {
			return b[0], nil
		}
		_, _ = r.Discard(1)
	}
}

func readWhole(ctx context.Context, r io.Reader, d Draft) *model.Error {
	body, err := io.ReadAll(r)
	if err != nil {
		fault := brokeOff(ctx, err)
		fault.Began = true
		return fault
	}
	return d.Whole(body)
}

func readStream(ctx context.Context, body *watched, r *bufio.Reader, first byte, d Draft) *model.Error {
	if !bytes.ContainsRune([]byte(":deir"), rune(first)) { // the first letters of a comment and of the fields
		return notAnAPI(r)
	}
	stream := &events{from: r}
	for {
		ev, err := stream.next()
		if ctx.Err() != nil {
			err = context.Cause(ctx) // what was read ahead counts no more
		}
		switch {
		case err != nil && d.Finished():
			return nil // the answer was whole; only its usage may have been lost
		case err != nil:
			return brokeOff(ctx, err)
		}
		if ev.Data = bytes.TrimSpace(ev.Data); len(ev.Data) == 0 {
			continue
		}
		last, fault := d.Event(ev)
		switch {
		case fault != nil:
			return fault
		case last && !d.Finished():
			return brokeOff(ctx, errors.New("the stream ended without saying why the answer did"))
		case last:
			return nil
		case d.Finished() && body.idle > Grace:
			body.idle = Grace
		}
	}
}

// watched reads a body and calls a function when a single read takes longer than idle. Only waiting counts: the time
// that the reader spends on what it has read does not.
type watched struct {
	from  io.Reader
	idle  time.Duration // 0 waits for as long as the call may last
	timer *time.Timer
}

func watch(from io.Reader, silent func()) *watched {
	timer := time.AfterFunc(time.Hour, silent)
	timer.Stop()
	return &watched{from: from, timer: timer}
}

// Read is of io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	if w.idle > 0 {
		w.timer.Reset(w.idle)
		defer w.timer.Stop()
	}
	return w.from.Read(p)
}

func (w *watched) stop() { w.timer.Stop() }
