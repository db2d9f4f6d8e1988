package web

import (
	"context"
	"errors"
	"net/http"
	"time"

	"nudge/bot"
	"nudge/memory"
	"nudge/schedule"
)

// beatLine is a heartbeat as the page lists it.
type beatLine struct {
	Name     string     `json:"name"`
	About    string     `json:"about"`
	Schedule string     `json:"schedule"` // in words
	Next     *time.Time `json:"next,omitempty"`
	State    string     `json:"state"`
	Paused   bool       `json:"paused,omitempty"`
	Said     []string   `json:"said,omitempty"`
	Governed bool       `json:"governed,omitempty"` // has the buttons that change it
	Made     bool       `json:"made,omitempty"`     // in a conversation, so that it can be deleted
}

// heartbeats lists what wakes for the person at the browser or, asked for one by its name, tells why it did or did not. What is
// done with one is a command, which the page says.
func (s *Server) heartbeats(w http.ResponseWriter, r *http.Request) {
	if name := r.URL.Query().Get("why"); name != "" {
		s.tellWhy(w, r, name)
		return
	}
	overview, err := s.browser.overview(r.Context())
	if errors.Is(err, errDeaf) {
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "%s", err)
		return
	}
	if err != nil {
		s.Log.Error("cannot list the heartbeats", "error", err)
		refuse(w, http.StatusServiceUnavailable, "the heartbeats cannot be read just now; nudge's log says why")
		return
	}
	list := make([]beatLine, len(overview.Heartbeats))
	for i, b := range overview.Heartbeats {
		list[i] = beatLine{Name: b.Name, About: b.About, Schedule: b.Schedule, State: b.State, Paused: b.Paused, Said: b.Said, Governed: b.Governed, Made: b.Made}
		if !b.Next.IsZero() {
			list[i].Next = &b.Next
		}
	}
	answer(w, http.StatusOK, map[string]any{"heartbeats": list})
}

// tellWhy answers why a heartbeat did or did not wake. Whoever sits at the browser is an owner and may know all of it.
func (s *Server) tellWhy(w http.ResponseWriter, r *http.Request, name string) {
	var report schedule.Report
	err := s.Store.View(r.Context(), func(tx memory.Tx) (err error) {
		report, err = schedule.Why(tx, name, time.Now())
		return err
	})
	switch {
	case errors.Is(err, schedule.ErrNoHeartbeat):
		refuse(w, http.StatusNotFound, "there is no heartbeat of that name any more")
	case err != nil:
		s.Log.Error("cannot tell why a heartbeat did or did not wake", "heartbeat", name, "error", err)
		refuse(w, http.StatusServiceUnavailable, "what became of it cannot be read just now; nudge's log says why")
	default:
		answer(w, http.StatusOK, map[string]string{"why": bot.Visible(report.String())})
	}
}

// overview is what there is of the person at the browser.
func (a *adapter) overview(ctx context.Context) (bot.Overview, error) {
	a.mu.Lock()
	in := a.in
	if in == nil {
		a.mu.Unlock()
		return bot.Overview{}, errDeaf
	}
	a.busy.Add(1)
	a.mu.Unlock()
	defer a.busy.Done()
	return in.Overview(ctx, a.server.Person, bot.Member)
}
