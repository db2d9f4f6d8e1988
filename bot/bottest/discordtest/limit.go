package discordtest

import (
	"fmt"
	"net/http"
	"time"
)

// Discord's limits. That of all calls is documented; those of routes come with its answers, and these are what it is seen to say
// (docs.discord.com/developers/topics/rate-limits).
const mostASecond = 50

// allowance is how many calls of a route in one channel are taken in a time.
type allowance struct {
	calls int
	per   time.Duration
}

var allowances = map[string]allowance{
	"message.create": {5, 5 * time.Second}, "message.edit": {5, 5 * time.Second}, "message.delete": {5, time.Second}, "message.list": {5, 5 * time.Second},
	"typing": {5, 5 * time.Second}, "reaction.add": {1, 250 * time.Millisecond}, "reaction.remove": {1, 250 * time.Millisecond}, "thread.create": {10, 10 * time.Second},
}

// window is what is left of an allowance.
type window struct {
	left int
	ends time.Time
}

// limit counts a call against Discord's limits, and says how long it is refused for; 0 when it is not. The caller holds mu.
func (s *Server) limit(header http.Header, route, place string, now time.Time) (wait time.Duration, global bool) {
	if route == "interaction.answer" || route == "followup.create" || route == "followup.edit" {
		return 0, false
	}
	if n := len(s.second); n >= mostASecond {
		if wait = s.second[n-mostASecond].Add(time.Second).Sub(now); wait > 0 {
			return wait, true
		}
		s.second = s.second[n-mostASecond+1:]
	}
	s.second = append(s.second, now)
	a, limited := allowances[route]
	if !limited {
		return 0, false
	}
	w := s.windows[route+" "+place]
	if w == nil || !now.Before(w.ends) {
		w = &window{a.calls, now.Add(a.per)}
		s.windows[route+" "+place] = w
	}
	w.left--
	header.Set("X-RateLimit-Bucket", route)
	header.Set("X-RateLimit-Limit", fmt.Sprint(a.calls))
	header.Set("X-RateLimit-Remaining", fmt.Sprint(max(w.left, 0)))
	header.Set("X-RateLimit-Reset-After", fmt.Sprintf("%.3f", w.ends.Sub(now).Seconds()))
	if w.left < 0 {
		return w.ends.Sub(now), false
	}
	return 0, false
}
