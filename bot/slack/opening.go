package slack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"nudge/bot/wire"
)

// The reasons that Slack gives when it ends a link.
const (
	reasonCrowded  = "too_many_websockets"
	reasonDisabled = "link_disabled"
)

// opening stands between slack-go and the network. The call that opens a link is allowed about once a minute, so this makes
// it wait after links that did not live. It also keeps when something was last heard.
type opening struct {
	next   http.RoundTripper
	timing Timing

	mu       sync.Mutex
	earliest time.Time // of the next opening
	opened   int       // openings in a row without a link that lived
	crowded  int       // times in a row that there were too many links
	linked   time.Time // when the link was made; zero when there is none
	beat     time.Time // when something was last heard
	why      string    // the reason that Slack gave for the end of the present link
	disabled bool
}

func newOpening(timing Timing, next http.RoundTripper) *opening {
	return &opening{next: next, timing: timing}
}

// RoundTrip sends a request on, when its time has come.
func (o *opening) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/apps.connections.open") {
		return o.next.RoundTrip(r)
	}
	if err := o.await(r.Context()); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	answer, err := o.next.RoundTrip(r)
	if err == nil && answer.StatusCode == http.StatusTooManyRequests {
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		o.mu.Lock()
		o.postpone(time.Duration(seconds) * time.Second)
		o.mu.Unlock()
	}
	return answer, err
}

// await waits for the time of the next opening. What becomes known while it waits can put that off.
func (o *opening) await(ctx context.Context) error {
	o.unlinked()
	for {
		o.mu.Lock()
		wait := time.Until(o.earliest)
		if wait <= 0 {
			step := min(o.opened, len(o.timing.Openings)-1)
			o.earliest = time.Now().Add(o.timing.Openings[step])
			o.opened++
			o.mu.Unlock()
			return ctx.Err()
		}
		o.mu.Unlock()
		if err := wire.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// postpone puts the next opening off. The caller holds mu.
func (o *opening) postpone(wait time.Duration) {
	if at := time.Now().Add(wait); at.After(o.earliest) {
		o.earliest = at
	}
}

// unlinked takes note that there is no link any more. One that lived long makes the next opening the first of a row.
func (o *opening) unlinked() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.linked.IsZero() {
		return
	}
	long := o.timing.Openings[len(o.timing.Openings)-1]
	if o.beat.Sub(o.linked) >= long && o.why != reasonCrowded && o.why != reasonDisabled {
		o.opened, o.crowded = 0, 0
		o.earliest = time.Time{}
	}
	o.linked = time.Time{}
}

// told takes note of the reason that Slack gives for the end of a link, and reports whether it is news.
func (o *opening) told(reason string) (news bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	news = reason != reasonDisabled || !o.disabled
	o.why = reason
	switch reason {
	case reasonCrowded:
		o.postpone(min(o.timing.Crowded<<min(o.crowded, 10), 30*o.timing.Crowded))
		o.crowded++
	case reasonDisabled:
		o.disabled, o.linked = true, time.Time{}
		o.postpone(o.timing.Disabled)
	default:
		o.crowded = 0
	}
	return news
}

// heard takes note of a sign of life: a ping or a message. A link on which something comes is not switched off.
func (o *opening) heard() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.beat = time.Now()
	o.disabled = o.disabled && o.linked.IsZero()
}

// hello takes note that a link was made. Slack says hello before it says that there are too many links or that they are
// switched off, so this forgets nothing.
func (o *opening) hello() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.linked, o.beat, o.why = time.Now(), time.Now(), ""
}

var (
	errNotLinked = errors.New("there has not been a link to slack yet")
	errDisabled  = errors.New("socket mode is switched off in the settings of the slack app; switch it on under api.slack.com/apps, Socket Mode")
)

// stale says why nothing is heard; nil when it is.
func (o *opening) stale(limit time.Duration) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.disabled:
		return errDisabled
	case o.beat.IsZero():
		return errNotLinked
	}
	if age := time.Since(o.beat); age > limit {
		return fmt.Errorf("nothing was heard from slack for %s", age.Round(time.Second))
	}
	return nil
}

// close lets go of idle connections.
func (o *opening) close() {
	if t, ok := o.next.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}
