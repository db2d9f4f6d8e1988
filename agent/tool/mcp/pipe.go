package mcp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// How fast a server is listened to. What it says is kept until it has been dealt with, and one that asks without end could fill
// the memory; a server that works says a few hundred lines for a call at most.
const (
	linesAtOnce    = 5000
	linesPerSecond = 500
	bytesAtOnce    = 2 * maxMessage
	bytesPerSecond = 1 << 20
	readAtOnce     = 4 << 10 // bytes; all of them can be ends of lines
)

// pace bounds how fast a server is listened to.
type pace struct{ lines, bytes *rate.Limiter }

func newPace() pace {
	return pace{lines: rate.NewLimiter(linesPerSecond, linesAtOnce), bytes: rate.NewLimiter(bytesPerSecond, bytesAtOnce)}
}

// wait waits until what was read, readAtOnce bytes at most, may be dealt with.
func (p pace) wait(ctx context.Context, read []byte) error {
	if err := p.bytes.WaitN(ctx, len(read)); err != nil {
		return err
	}
	return p.lines.WaitN(ctx, bytes.Count(read, []byte("\n")))
}

// pipe is the talk with a server's program. It holds up one that says too much, and ends with one that leaves unread what it is
// told, for which answers would pile up. One goroutine may read, one write, and any close.
type pipe struct {
	io.ReadWriteCloser
	patience time.Duration // with what it leaves unread
	pace     pace
	stuck    atomic.Bool
	open     context.Context
	close    context.CancelFunc
}

func newPipe(talk io.ReadWriteCloser, patience time.Duration) *pipe {
	p := &pipe{ReadWriteCloser: talk, patience: patience, pace: newPace()}
	p.open, p.close = context.WithCancel(context.Background())
	return p
}

// Read reads what the program says, as fast as it may.
func (p *pipe) Read(b []byte) (int, error) {
	n, err := p.ReadWriteCloser.Read(b[:min(len(b), readAtOnce)])
	if p.pace.wait(p.open, b[:n]) != nil {
		return n, io.ErrClosedPipe
	}
	return n, err
}

// Write tells the program something. When it does not read it in time, it is ended.
func (p *pipe) Write(b []byte) (int, error) {
	late := time.AfterFunc(p.patience, func() {
		p.stuck.Store(true)
		_ = p.Close() // the error is Write's
	})
	defer late.Stop()
	n, err := p.ReadWriteCloser.Write(b)
	if p.stuck.Load() {
		return n, fmt.Errorf("it has not read what it was told for %v", p.patience)
	}
	return n, err
}

// Close ends the program. It may be called more than once.
func (p *pipe) Close() error {
	p.close()
	return p.ReadWriteCloser.Close()
}
