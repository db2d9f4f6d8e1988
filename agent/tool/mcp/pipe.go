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

// How fast a server's program is listened to. What it says is kept until it has been dealt with, and one that asks without end
// could fill the memory; a server that works says a few hundred lines for a call at most.
const (
	linesAtOnce    = 5000
	linesPerSecond = 500
	bytesAtOnce    = 2 * maxMessage
	bytesPerSecond = 1 << 20
	readAtOnce     = 4 << 10 // bytes; all of them can be ends of lines
)

// pipe is the talk with a server's program. It holds up one that says too much, and ends with one that leaves unread what it is
// told, for which answers would pile up. One goroutine may read, one write, and any close.
type pipe struct {
	io.ReadWriteCloser
	patience     time.Duration // with what it leaves unread
	lines, bytes *rate.Limiter
	stuck        atomic.Bool
	open         context.Context
	close        context.CancelFunc
}

func newPipe(talk io.ReadWriteCloser, patience time.Duration) *pipe {
	p := &pipe{
		ReadWriteCloser: talk, patience: patience,
		lines: rate.NewLimiter(linesPerSecond, linesAtOnce), bytes: rate.NewLimiter(bytesPerSecond, bytesAtOnce),
	}
	p.open, p.close = context.WithCancel(context.Background())
	return p
}

// Read reads what the program says, as fast as it may.
func (p *pipe) Read(b []byte) (int, error) {
	n, err := p.ReadWriteCloser.Read(b[:min(len(b), readAtOnce)])
	waited := p.bytes.WaitN(p.open, n)
	if waited == nil {
		waited = p.lines.WaitN(p.open, bytes.Count(b[:n], []byte("\n")))
	}
	if waited != nil {
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
