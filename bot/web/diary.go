package web

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	notes "nudge/agent/tool/diary"
	"nudge/memory"
	"nudge/memory/diary"
)

// mostFound is how many notes a search in the diary gives.
const mostFound = 50

// shownNote is a note as the page shows it.
type shownNote struct {
	diary.Note
	Age   string `json:"age"`
	Stale bool   `json:"stale,omitempty"`
}

// ownDiary is the diary of whoever sits at the browser.
func (s *Server) ownDiary(ctx context.Context) (v diary.View, err error) {
	err = s.Store.View(ctx, func(tx memory.Tx) (err error) {
		v, err = notes.ViewOf(tx, s.Person.ID, s.Person.ID.Home())
		return err
	})
	return v, err
}

// diary gives the person's notes: those that fit ?q=, or all, the newest first. With ?download they are a file.
func (s *Server) diary(w http.ResponseWriter, r *http.Request) {
	found, err := s.notes(r.Context(), strings.TrimSpace(r.URL.Query().Get("q")))
	if err != nil {
		s.diaryFault(w, err)
		return
	}
	if r.URL.Query().Has("download") {
		w.Header().Set("Content-Disposition", `attachment; filename="diary.json"`)
	}
	shown := make([]shownNote, len(found))
	for i, n := range found {
		n.Text = s.Secrets.Text(n.Text)
		for at := range n.Aliases {
			n.Aliases[at] = s.Secrets.Text(n.Aliases[at])
		}
		shown[i] = shownNote{n, n.Age(time.Now()), n.Stale(time.Now())}
	}
	answer(w, http.StatusOK, map[string]any{"notes": shown})
}

func (s *Server) notes(ctx context.Context, query string) (found []diary.Note, err error) {
	if s.Diary == nil {
		return nil, errNoDiary
	}
	v, err := s.ownDiary(ctx)
	if err != nil {
		return nil, err
	}
	if query == "" {
		err = s.Store.View(ctx, func(tx memory.Tx) (err error) {
			found, err = diary.List(tx, v)
			return err
		})
		return found, err
	}
	hits, err := s.Diary.Search(ctx, v, query, mostFound)
	for _, h := range hits {
		found = append(found, h.Note)
	}
	return found, err
}

// errNoDiary says that the program keeps none.
var errNoDiary = errors.New("there is no diary here")

// changeNote takes the buttons of a note: another text, or none, which deletes it. A note that is gone already counts as
// deleted.
func (s *Server) changeNote(w http.ResponseWriter, r *http.Request) {
	var body struct {
		act
		Note string  `json:"note"`
		Text *string `json:"text"`
	}
	if !readBody(w, r, &body) {
		return
	}
	if _, ok := s.event(w, body.act); !ok {
		return
	}
	if s.Diary == nil {
		s.diaryFault(w, errNoDiary)
		return
	}
	v, err := s.ownDiary(r.Context())
	switch {
	case err != nil:
	case body.Text != nil:
		_, err = s.Diary.Edit(r.Context(), v, body.Note, *body.Text)
	default:
		err = s.Store.Update(r.Context(), func(tx memory.Tx) error {
			_, err := s.Diary.Delete(tx, v, body.Note)
			return err
		})
		if errors.Is(err, diary.ErrUnknownNote) {
			err = nil
		}
	}
	if err != nil {
		s.diaryFault(w, err)
		return
	}
	answer(w, http.StatusOK, map[string]bool{"done": true})
}

// diaryFault answers why the diary could not be read or changed.
func (s *Server) diaryFault(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, errNoDiary):
		refuse(w, http.StatusNotFound, "%s", err)
	case errors.Is(err, diary.ErrUnknownNote):
		refuse(w, http.StatusNotFound, "this note is not there any more")
	case errors.Is(err, diary.ErrBlank), errors.Is(err, diary.ErrLong), errors.Is(err, diary.ErrFull):
		refuse(w, http.StatusBadRequest, "%s", err)
	default:
		s.Log.Error("the diary could not be read or changed", "error", err)
		refuse(w, http.StatusServiceUnavailable, "the diary can't be read just now; nudge's log says why")
	}
}
