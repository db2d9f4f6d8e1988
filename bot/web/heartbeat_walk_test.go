package web

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"nudge/agent"
	"nudge/memory"
	"nudge/schedule"
)

// ticking lets a clock run beside the program, whose heartbeats always wake.
func (p *program) ticking() {
	p.t.Helper()
	clock := schedule.NewClock(schedule.Config{
		Store: p.store,
		Wake: func(ctx context.Context, w schedule.Waking) (schedule.Ended, error) {
			totals, err := p.agent.Wake(ctx, agent.PersonID(w.Person), agent.Wake{
				Heartbeat: w.Heartbeat, Episode: w.Episode, Prompt: w.Prompt, Tick: w.Tick, Asked: w.Asked,
			})
			return schedule.Ended{OK: err == nil, ModelCalls: totals.Steps}, err
		},
		Conditions: func(schedule.Heartbeat) (schedule.Condition, error) { return so{}, nil },
	})
	p.hub.Rescheduled = clock.Look
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- clock.Run(ctx) }()
	p.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			p.t.Error(err)
		}
	})
	look := time.NewTicker(50 * time.Millisecond) // the tool does not tell this clock of what it saves
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-look.C:
				clock.Look()
			case <-done:
				return
			}
		}
	}()
	p.t.Cleanup(func() { look.Stop(); close(done) })
}

// so is a condition that is always true.
type so struct{}

func (so) Check(context.Context, string) (schedule.Finding, error) {
	return schedule.Finding{True: true}, nil
}

// TestAHeartbeatsLifeInABrowser: it is made by talking, speaks, is snoozed, speaks again, is told less of this, and why tells
// the story. Then it is paused, run, and deleted by its buttons.
func TestAHeartbeatsLifeInABrowser(t *testing.T) {
	t.Parallel()
	browser := chromium(t)
	p := startProgram(t, nil)
	p.ticking()
	page := newPage(t, browser, p.server.URL())
	page.until("document.getElementById('link').classList.contains('live')")

	page.types("remind me every second to stretch")
	page.sees(".card:not(.settled)", "Shall I save this heartbeat?")
	page.sees(".card:not(.settled) .text", "Every second. The next times:")
	page.shoot("30-proposed")
	page.press(".card:not(.settled)", "Save")
	page.sees(".card.settled .outcome", "Saved by you")

	page.sees(".ping", "Time to stretch.")
	page.press(".ping", "Snooze")
	page.press(".ping", "For an hour")
	page.sees(".ping", "Snoozed until")
	sleeps := func(reason string) {
		t.Helper()
		await(t, reason, func() bool { return strings.Contains(p.why(t, "stretch"), "slept   "+reason) })
	}
	sleeps("snoozed until")
	pings := eval[int](page, "document.querySelectorAll('.ping').length")
	page.types("/snooze off")
	page.until("document.querySelectorAll('.ping').length > " + strconv.Itoa(pings))
	page.press(".ping:last-of-type", "Less of this")
	page.sees(".ping", "speaks to you at most every hour")
	sleeps("asked for less of this")

	page.press(".side", "Heartbeats")
	page.sees("#beats li", "every second")
	page.sees("#beats li", "at most every hour")
	page.press("#beats li", "Why")
	page.until("document.querySelector('#beats pre').textContent.includes('asked for less of this')")
	for _, part := range []string{"heartbeat stretch: @every 1s", "woke web:me", "snoozed until", "asked for less once"} {
		page.sees("#beats pre", part)
	}
	page.shoot("31-why")
	pings = eval[int](page, "document.querySelectorAll('.ping').length")
	page.press("#beats li", "Run now")
	page.until("document.querySelectorAll('.ping').length > " + strconv.Itoa(pings))
	page.press("#beats li", "Pause")
	page.sees("#beats li", "paused by web:me")
	page.press("#beats li", "Resume")
	page.until("!document.querySelector('#beats li.paused')")
	page.press("#beats li", "Delete")
	page.press("#beats li", "Delete it?")
	page.sees("#beats li", "Nothing does.")
	page.press("#beats", "✕")
	page.sees(".notice", "stretch is deleted")
	page.shoot("32-deleted")
}

// why is what is told of a heartbeat; "" while it is not there.
func (p *program) why(t *testing.T, name string) (text string) {
	t.Helper()
	err := p.store.View(t.Context(), func(tx memory.Tx) error {
		if report, err := schedule.Why(tx, name, time.Now()); err == nil {
			text = report.String()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// reads gets an address as the page does, signed in or not.
func (p *program) reads(t *testing.T, path string, signedIn bool, into any) (status int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.server.Address()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if signedIn {
		request.AddCookie(&http.Cookie{Name: p.server.cookieName(), Value: p.server.cookieValue()})
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if into != nil {
		if err := json.NewDecoder(response.Body).Decode(into); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	return response.StatusCode
}

// TestHeartbeatsAreListed for the person at the browser alone, and told of to nobody who is not signed in.
func TestHeartbeatsAreListed(t *testing.T) {
	t.Parallel()
	p := startProgram(t, nil)
	err := p.store.Update(t.Context(), func(tx memory.Tx) error {
		for name, person := range map[string]string{"mine": string(me.ID), "his": "terminal:bob"} {
			h := schedule.Heartbeat{Name: name, Cron: "0 9 * * *", For: []string{person}, Prompt: "Look.", Condition: schedule.Spec{Kind: schedule.KindAlways}}
			if err := schedule.Save(tx, h, time.Now()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Heartbeats []beatLine }
	if status := p.reads(t, "/api/heartbeats", true, &list); status != http.StatusOK || len(list.Heartbeats) != 1 {
		t.Fatalf("status %d, %+v", status, list)
	}
	if b := list.Heartbeats[0]; b.Name != "mine" || b.Schedule != "every day at 09:00" || b.About != "Look." || b.Next == nil || b.State != "on" || !b.Governed || b.Made {
		t.Errorf("it is listed as %+v", b)
	}
	var why struct{ Why string }
	if status := p.reads(t, "/api/heartbeats?why=mine", true, &why); status != http.StatusOK || !strings.Contains(why.Why, "no tick yet") {
		t.Errorf("status %d, %q", status, why.Why)
	}
	if status := p.reads(t, "/api/heartbeats?why=none", true, nil); status != http.StatusNotFound {
		t.Errorf("of none: status %d", status)
	}
	for _, path := range []string{"/api/heartbeats", "/api/heartbeats?why=mine"} {
		if status := p.reads(t, path, false, nil); status != http.StatusUnauthorized && status != http.StatusForbidden {
			t.Errorf("%s without a token: status %d", path, status)
		}
	}
}
