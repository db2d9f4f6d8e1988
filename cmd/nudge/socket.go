package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"

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

// control serves commands of other processes.
type control struct {
	program *program
	server  net.Listener
	serving sync.WaitGroup
}

// listen opens the socket. The caller holds the data file, so a socket that is there already was left behind.
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
		if err != nil {
			if ctx.Err() == nil {
				c.program.log.Error("the socket for other commands has failed", "error", err)
			}
			break
		}
		c.serving.Go(func() { c.command(ctx, conn) })
	}
	c.serving.Wait()
}

// command does what one connection asks for.
func (c *control) command(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in := json.NewDecoder(bufio.NewReader(conn))
	var first frame
	if err := in.Decode(&first); err != nil || first.Command == nil || len(first.Command.Args) == 0 {
		return
	}
	out := &frameWriter{encoder: json.NewEncoder(conn)}
	args := first.Command.Args
	if !slices.Contains(remoteCommands, args[0]) {
		out.exit(exitWrong, fmt.Sprintf("%s is not done for other processes", args[0]))
		return
	}
	if args[0] == "chat" {
		defer c.program.host()()
	}
	input, typed := io.Pipe()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	c.serving.Go(func() {
		defer cancel() // the other process is gone
		typed.CloseWithError(pour(in, typed))
	})
	remote := &app{
		in: input, out: out.stream(false), errs: out.stream(true), host: c.program, remote: first.Command,
		attach: c.program.hub.Attach,
	}
	status := remote.run(ctx, args)
	input.Close()
	out.exit(status, "")
}

// pour writes what the frames say was typed.
func pour(frames *json.Decoder, typed *io.PipeWriter) error {
	for {
		var f frame
		if err := frames.Decode(&f); err != nil {
			return err
		}
		if f.End {
			typed.Close()
			continue // the connection stays, so that its end is noticed
		}
		if _, err := typed.Write(f.In); err != nil {
			return err
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

// overSocket has a command done by the process that holds the data file. The error is locked's if that process cannot
// be reached.
func (a *app) overSocket(ctx context.Context, dataDir string, locked error, args []string) error {
	path, release, err := socketPath(dataDir)
	if err != nil {
		return failed(locked)
	}
	defer release()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return failed(locked)
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
			return failed(errors.New("the running nudge has ended; start this again"))
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
