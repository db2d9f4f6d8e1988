package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"

	"nudge/bot"
)

// While one process holds the data file, other commands reach it through a socket in the data directory. Over it go
// frames, a line of JSON each: first the command, then its input one way, its output and its exit status the other.

// frame is one of them.
type frame struct {
	Command *remoteCommand `json:"command,omitempty"`
	In      []byte         `json:"in,omitempty"`
	End     bool           `json:"end,omitempty"` // of the input
	Out     []byte         `json:"out,omitempty"`
	Err     []byte         `json:"err,omitempty"`
	Exit    *int           `json:"exit,omitempty"`
}

// remoteCommand is what another process wants done.
type remoteCommand struct {
	Args     []string `json:"args"`
	Terminal bool     `json:"terminal,omitempty"` // its input and output are one
}

// remoteCommands are those that are done for others. None of them can harm more than the person at this account can.
var remoteCommands = []string{"chat", "trace", "why", "simulate", "sessions", "export", "forget", "audit", "diary", "mcp", "ready", "doctor", "check", "backup"}

const socketName = "nudge.sock"

// longestSocket is how long a socket's path may be on all systems.
const longestSocket = 100

// socketPath is where the socket of a data directory is, in a form that is short enough.
func socketPath(dataDir string) (path string, release func(), err error) {
	path = filepath.Join(dataDir, socketName)
	if len(path) <= longestSocket {
		return path, func() {}, nil
	}
	folder, err := os.Open(dataDir)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), socketName), func() { folder.Close() }, nil
}

// What a process may do that reaches the socket is bounded, though it is one of this account's.
const (
	longestFrame = 256 << 10        // bytes; a piece of input has 64 KiB
	mostWaiting  = 64               // that have not said yet what they want; of more, those that came first are let go of
	askTime      = 10 * time.Second // for saying what is wanted
	takeTime     = 30 * time.Second // for taking what is written
	acceptAgain  = time.Second      // after none could be let in, as when too many files are open
)

// control serves commands of other processes.
type control struct {
	program *program
	server  net.Listener
	serving sync.WaitGroup

	mu      sync.Mutex
	waiting []net.Conn // those that have not said yet what they want, in the order in which they came
}

// listen opens the socket. The caller holds the data file, so whatever is there in its place was left behind, or put there by
// somebody else; it is taken away, and what a link leads to stays as it is.
func (p *program) listen() (*control, error) {
	path, release, err := socketPath(p.dataDir)
	if err != nil {
		return nil, fmt.Errorf("open the socket: %w", err)
	}
	defer release()
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove the socket that was left behind: %w", err)
	}
	server, err := listenPrivately(path)
	if err != nil {
		return nil, fmt.Errorf("open the socket: %w", err)
	}
	return &control{program: p, server: server}, nil
}

// serve serves until ctx ends, and returns when all that it began has ended.
func (c *control) serve(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { c.server.Close() })
	defer stop()
	for {
		conn, err := c.server.Accept()
		switch {
		case err == nil:
			c.serving.Go(func() { c.command(ctx, conn) })
			continue
		case ctx.Err() != nil, errors.Is(err, net.ErrClosed):
			c.serving.Wait()
			return
		}
		c.program.log.Error("the socket for other commands lets nobody in just now", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(acceptAgain):
		}
	}
}

// command does what one connection asks for.
func (c *control) command(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	frames := framesOf(conn)
	first, ok := c.asked(conn, frames)
	if !ok {
		return
	}
	out := &frameWriter{encoder: json.NewEncoder(hasty{conn})}
	if !slices.Contains(remoteCommands, first.Args[0]) {
		out.exit(exitWrong, fmt.Sprintf("%q is not done for other processes", first.Args[0]))
		return
	}
	if first.Args[0] == "chat" {
		defer c.program.host()()
	}
	input, typed := io.Pipe()
	defer input.Close()
	c.serving.Go(func() {
		defer cancel() // the other process is gone
		typed.CloseWithError(pour(frames, typed))
	})
	out.exit(c.run(ctx, first, input, out), "")
}

// run runs a command of another process and returns its exit status. One that panics ends nothing else.
func (c *control) run(ctx context.Context, first *remoteCommand, input io.Reader, out *frameWriter) (status int) {
	defer func() {
		if fault := recover(); fault != nil {
			c.program.log.Error("a command of another process has panicked", "command", first.Args[0], "fault", fault, "stack", string(debug.Stack()))
			status = exitFailed
		}
	}()
	remote := &app{
		in: input, out: out.stream(false), errs: out.stream(true), host: c.program, remote: first,
		attach: c.program.hub.Attach,
	}
	return remote.run(ctx, first.Args)
}

// asked waits until a connection says what it wants, but neither for long nor for more than a few at once. ok is false when it
// says nothing, or nothing that is a command.
func (c *control) asked(conn net.Conn, frames *bufio.Scanner) (first *remoteCommand, ok bool) {
	c.mu.Lock()
	if c.waiting = append(c.waiting, conn); len(c.waiting) > mostWaiting {
		c.waiting[0].Close()
		c.waiting = c.waiting[1:]
	}
	c.mu.Unlock()
	_ = conn.SetReadDeadline(time.Now().Add(askTime)) // a connection that is gone says so when it is read
	f, err := readFrame(frames)
	_ = conn.SetReadDeadline(time.Time{})
	c.mu.Lock()
	c.waiting = slices.DeleteFunc(c.waiting, func(one net.Conn) bool { return one == conn })
	c.mu.Unlock()
	if err != nil || f.Command == nil || len(f.Command.Args) == 0 {
		return nil, false
	}
	return f.Command, true
}

// hasty is a connection whose other side must take what is written within a while: what waits for it, such as the other terminals
// of a conversation, waits no longer.
type hasty struct{ net.Conn }

func (h hasty) Write(p []byte) (int, error) {
	if err := h.SetWriteDeadline(time.Now().Add(takeTime)); err != nil {
		return 0, err
	}
	n, err := h.Conn.Write(p)
	if err != nil {
		h.Close() // part of a frame may have gone out, and no other can follow it
	}
	return n, err
}

// framesOf reads the frames of another process, one at a time.
func framesOf(from io.Reader) *bufio.Scanner {
	frames := bufio.NewScanner(from)
	frames.Buffer(nil, longestFrame)
	return frames
}

// readFrame is the next frame. One that is too long, or none, is an error, and ends all. A process that was killed before it had
// read everything has gone as one that closed its end.
func readFrame(frames *bufio.Scanner) (f frame, err error) {
	if !frames.Scan() {
		if err := frames.Err(); !errors.Is(err, syscall.ECONNRESET) {
			return f, cmp.Or(err, io.EOF)
		}
		return f, io.EOF
	}
	return f, json.Unmarshal(frames.Bytes(), &f)
}

// pour writes what the frames say was typed.
func pour(frames *bufio.Scanner, typed *io.PipeWriter) error {
	for {
		f, err := readFrame(frames)
		switch {
		case err != nil:
			return err
		case f.End:
			typed.Close() // the connection stays, so that its end is noticed
		case len(f.In) > 0:
			if _, err := typed.Write(f.In); err != nil && !errors.Is(err, io.ErrClosedPipe) {
				return err
			}
		}
	}
}

// frameWriter writes frames. Its methods may be called concurrently.
type frameWriter struct {
	mu      sync.Mutex
	encoder *json.Encoder
}

func (w *frameWriter) write(f frame) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.encoder.Encode(f)
}

func (w *frameWriter) exit(status int, text string) {
	if text != "" {
		_ = w.write(frame{Err: []byte("nudge: " + text + "\n")})
	}
	_ = w.write(frame{Exit: &status}) // the other process may be gone
}

// stream is an output as a writer.
func (w *frameWriter) stream(errs bool) io.Writer { return streamWriter{w, errs} }

type streamWriter struct {
	w    *frameWriter
	errs bool
}

func (s streamWriter) Write(p []byte) (int, error) {
	f := frame{Out: p}
	if s.errs {
		f = frame{Err: p}
	}
	if err := s.w.write(f); err != nil {
		return 0, err
	}
	return len(p), nil
}

// exitError is an exit status that was told already.
type exitError struct{ status int }

func (e *exitError) Error() string { return fmt.Sprintf("exit status %d", e.status) }

// starting is how long a process that holds the data file has until it listens, and how often it is looked.
const (
	starting  = time.Second
	lookAgain = 50 * time.Millisecond
)

// dialHolder connects to the process that holds the data file. One that has just begun does not listen yet; the error is
// a [net.OpError] if it goes on like that, and says else what is wrong with its socket.
func dialHolder(ctx context.Context, path, dataDir string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, starting)
	defer cancel()
	for {
		if err := isOwn(path, filepath.Join(dataDir, dataFileName)); err != nil {
			return nil, err
		}
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "unix", path)
		if err == nil {
			return conn, nil
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// overSocket has a command done by the process that holds the data file. The error is locked's if that process cannot
// be reached.
func (a *app) overSocket(ctx context.Context, dataDir string, locked error, args []string) error {
	path, release, err := socketPath(dataDir)
	if err != nil {
		return failed(locked)
	}
	defer release()
	conn, err := dialHolder(ctx, path, dataDir)
	switch unheard := new(net.OpError); {
	case errors.As(err, &unheard):
		return failed(locked)
	case err != nil:
		return failed(fmt.Errorf("%w, and %w", locked, err))
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	out := &frameWriter{encoder: json.NewEncoder(conn)}
	first := remoteCommand{Args: args, Terminal: a.isTerminal(a.in) && a.isTerminal(a.out)}
	if err := out.write(frame{Command: &first}); err != nil {
		return failed(fmt.Errorf("reach the running nudge: %w", err))
	}
	// A read of a terminal cannot be cut short, so it has a goroutine of its own, which the program's end ends.
	go func() {
		piece := make([]byte, 64<<10)
		for {
			n, err := a.in.Read(piece)
			if n > 0 && out.write(frame{In: piece[:n]}) != nil {
				return
			}
			if err != nil {
				_ = out.write(frame{End: true})
				return
			}
		}
	}()
	return a.receive(ctx, json.NewDecoder(bufio.NewReader(conn)))
}

// receive writes what comes back until the exit status comes.
func (a *app) receive(ctx context.Context, frames *json.Decoder) error {
	for {
		var f frame
		if err := frames.Decode(&f); err != nil {
			if ctx.Err() != nil {
				return nil // told to end
			}
			return failed(errors.New("the link to the running nudge has ended; start this again"))
		}
		if f.Exit != nil {
			if *f.Exit != 0 {
				return &exitError{*f.Exit}
			}
			return nil
		}
		if _, err := a.out.Write(f.Out); err != nil {
			return failed(err)
		}
		if _, err := a.errs.Write(f.Err); err != nil {
			return failed(err)
		}
	}
}

// attach lets one more adapter talk through a running hub.
type attach func(ctx context.Context, adapter bot.Adapter) error
