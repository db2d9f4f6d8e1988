package web

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"nudge/agent"
	"nudge/memory"
)

// Bounds of the list of sessions.
const (
	listedSessions = 50
	titleLength    = 60
	heldTitles     = 1000
)

// listed is a session as the page lists it.
type listed struct {
	Number int       `json:"number"`
	Title  string    `json:"title"`
	Last   time.Time `json:"last"`
}

// titles are the first words of sessions, which never change once there are any.
type titles struct {
	mu sync.Mutex
	of map[string]string
}

// sessions lists the sessions of a conversation, the one used last first.
func (s *Server) sessions(w http.ResponseWriter, r *http.Request) {
	address, ok := s.addressOf(r.URL.Query().Get("c"))
	if !ok {
		refuse(w, http.StatusBadRequest, "a conversation's name has no spaces and no : or ~, and at most 64 characters")
		return
	}
	list, current, err := s.list(r.Context(), address)
	if err != nil {
		s.Log.Error("cannot list sessions", "conversation", address, "error", err)
		refuse(w, http.StatusServiceUnavailable, "the sessions cannot be read just now; nudge's log says why")
		return
	}
	answer(w, http.StatusOK, map[string]any{"current": current, "sessions": list})
}

func (s *Server) list(ctx context.Context, address string) (list []listed, current int, err error) {
	err = s.Store.View(ctx, func(tx memory.Tx) error {
		list = []listed{}
		session, err := agent.SessionOf(tx, address)
		if err != nil {
			return err
		}
		current = sessionNumber(session)
		last := map[int]time.Time{}
		err = tx.Journal().Sessions(address, func(session string, newest memory.Entry) error {
			if !strings.HasPrefix(session, address) {
				return memory.ErrStop
			}
			if session == address || strings.HasPrefix(session, address+"~") {
				last[sessionNumber(session)] = newest.At
			}
			return nil
		})
		if err != nil {
			return err
		}
		for number, at := range last {
			list = append(list, listed{Number: number, Last: at})
		}
		slices.SortFunc(list, func(a, b listed) int { return b.Last.Compare(a.Last) })
		list = list[:min(len(list), listedSessions)]
		for i := range list {
			title, err := s.titles.read(tx, sessionName(address, list[i].Number))
			list[i].Title = s.Secrets.Text(title)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return list, current, err
}

// read is the beginning of the first words of a session; "" while nobody has said anything.
func (t *titles) read(tx memory.Tx, session string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if title, known := t.of[session]; known {
		return title, nil
	}
	lines, err := agent.Transcript(tx, session, 0)
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(lines, func(r agent.Reply) bool { return r.Kind == agent.Said })
	if at < 0 {
		return "", nil
	}
	title := []rune(strings.Join(strings.Fields(lines[at].Text), " "))
	if len(title) > titleLength {
		title = append(title[:titleLength-1], '…')
	}
	if len(t.of) >= heldTitles {
		clear(t.of)
	}
	t.of[session] = string(title)
	return string(title), nil
}

// sessionNumber is the number of a session in its conversation: the first has no suffix.
func sessionNumber(session string) int {
	_, suffix, found := strings.Cut(session, "~")
	if !found {
		return 1
	}
	n, _ := strconv.Atoi(suffix)
	return n
}

func sessionName(address string, number int) string {
	if number == 1 {
		return address
	}
	return address + "~" + strconv.Itoa(number)
}

// placeOf is the line and the column of an offset in a text, both from 1.
func placeOf(text string, offset int) (line, column string) {
	before := text[:min(max(offset-1, 0), len(text))]
	start := strings.LastIndexByte(before, '\n') + 1
	return strconv.Itoa(strings.Count(before, "\n") + 1), strconv.Itoa(len([]rune(before[start:])) + 1)
}
