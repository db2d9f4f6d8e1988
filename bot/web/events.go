package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// longestName is how many characters the name of a conversation has at most.
const longestName = 64

// named reports whether a conversation beside the first, or a person of the API, may have a name. A regular expression with
// that many of a class takes two megabytes.
func named(name string) bool {
	n := utf8.RuneCountInString(name)
	return n > 0 && n <= longestName && utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool {
		return r == ':' || r == '~' || r == ' ' || unicode.Is(unicode.C, r)
	})
}

// addressOf is the conversation of a name: the person's own for none.
func (s *Server) addressOf(name string) (string, bool) {
	home := s.Person.ID.Home()
	if name == "" {
		return home, true
	}
	return home + ":" + name, named(name)
}

// stream is an answer that goes on, as server-sent events.
type stream struct {
	w    http.ResponseWriter
	conn *http.ResponseController
}

// begin begins a stream. The deadline for reading the request must not end it.
func begin(w http.ResponseWriter) (*stream, error) {
	s := &stream{w, http.NewResponseController(w)}
	_ = s.conn.SetReadDeadline(time.Time{}) // some writers of tests have none
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return s, s.send("retry: 1000\n\n")
}

// send writes a piece and sees that it leaves. A reader that takes nothing for too long is an error.
func (s *stream) send(piece string) error {
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeTime))
	if _, err := fmt.Fprint(s.w, piece); err != nil {
		return err
	}
	return s.conn.Flush()
}

// place takes a place for as long as a request lasts, or answers that there is none.
func place(w http.ResponseWriter, places chan struct{}) (leave func(), ok bool) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, true
	default:
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusServiceUnavailable, "too much is open at once; close something, or try again in a moment")
		return nil, false
	}
}

// events streams a conversation to a tab: a snapshot unless the tab was only cut off for a while, then each line. A
// tab that is too slow is cut off, and comes again for a snapshot.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	address, ok := s.addressOf(r.URL.Query().Get("c"))
	if !ok {
		refuse(w, http.StatusBadRequest, "a conversation's name has no spaces and no : or ~, and at most 64 characters")
		return
	}
	leave, ok := place(w, s.tabs)
	if !ok {
		return
	}
	defer leave()
	c, leaveConversation := s.enter(address)
	defer leaveConversation()
	mark := r.Header.Get("Last-Event-ID")
	if mark == "" {
		mark = r.URL.Query().Get("after")
	}
	from, known := c.followFrom(mark)
	first := ""
	if !known {
		var err error
		if from, first, err = s.firstSight(r.Context(), c); err != nil {
			s.Log.Error("cannot show a conversation", "error", err)
			refuse(w, http.StatusServiceUnavailable, "the conversation cannot be read just now; nudge's log says why")
			return
		}
	}
	defer from.stop()
	out, err := begin(w)
	if err == nil && first != "" {
		err = out.send(first)
	}
	if err == nil {
		s.pump(r.Context(), out, from)
	}
}

// firstSight is a snapshot as an event, and a reader of what comes after it.
func (s *Server) firstSight(ctx context.Context, c *conversation) (*reader, string, error) {
	c.gate.Lock()
	defer c.gate.Unlock()
	shot, err := s.snapshot(ctx, c)
	if err != nil {
		return nil, "", err
	}
	for i, l := range shot.Lines {
		shot.Lines[i] = l.visible()
	}
	data, err := json.Marshal(shot)
	if err != nil {
		return nil, "", fmt.Errorf("encode the conversation %s: %w", c.address, err)
	}
	r := c.follow()
	return r, fmt.Sprintf("id: %s\nevent: snapshot\ndata: %s\n\n", c.mark(r.after), data), nil
}

// pump sends lines until the tab, the request or the server ends.
func (s *Server) pump(ctx context.Context, out *stream, from *reader) {
	life := time.NewTicker(beat)
	defer life.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-s.closing:
			return
		case <-life.C:
			err = out.send(": still here\n\n")
		case <-from.wake:
			var lines []held
			lines, err = from.next()
			for _, h := range lines {
				if err == nil {
					err = out.send(fmt.Sprintf("id: %s\ndata: %s\n\n", from.of.mark(h.number), h.data))
				}
			}
		}
		if err != nil {
			return
		}
	}
}
