package slacktest

import (
	"time"
)

// The calls of a method that Slack takes in a minute from one app in one workspace: its documented tiers, at the least
// that they promise. What is not here is in the third tier. Of apps.connections.open only the count is kept.
// (docs.slack.dev/apis/web-api/rate-limits)
var tiers = map[string]int{
	"auth.test": 600, "chat.postMessage": 300, "assistant.threads.setStatus": 600, "apps.connections.open": 1000,
	"reactions.remove": 20, "chat.startStream": 20, "chat.stopStream": 20,
	"chat.appendStream": 100, "chat.postEphemeral": 100, "users.info": 100, "views.open": 100, "views.push": 100, "views.update": 100,
	"views.publish": 100, "files.info": 100, "files.getUploadURLExternal": 100, "files.completeUploadExternal": 100,
}

const thirdTier = 50

// burst is how many messages a channel takes at once. After them it is one a second.
const burst = 2

// bucket is how much a channel takes at present.
type bucket struct {
	left float64
	at   time.Time
}

// over says how long a call has to wait for Slack's limits; 0 when it is within them, and then it counts. The caller
// holds mu.
func (s *Server) over(c Call) time.Duration {
	if !s.options.Limits {
		return 0
	}
	now, minute := c.At, s.options.Minute
	calls := s.counted[c.Method]
	for len(calls) > 0 && now.Sub(calls[0]) >= minute {
		calls = calls[1:]
	}
	limit, ok := tiers[c.Method]
	if !ok {
		limit = thirdTier
	}
	if len(calls) >= limit {
		s.counted[c.Method] = calls
		return calls[len(calls)-limit].Add(minute).Sub(now)
	}
	if c.Method == "chat.postMessage" {
		if wait := s.crowds(c.Form.Get("channel"), now); wait > 0 {
			return wait
		}
	}
	s.counted[c.Method] = append(calls, now)
	return 0
}

// crowds says how long a message to a channel has to wait. The caller holds mu.
func (s *Server) crowds(channel string, now time.Time) time.Duration {
	second := s.options.Minute / 60
	b := s.buckets[channel]
	if b == nil {
		b = &bucket{left: burst, at: now}
		s.buckets[channel] = b
	}
	b.left = min(burst, b.left+float64(now.Sub(b.at))/float64(second))
	b.at = now
	if b.left < 1 {
		return time.Duration((1 - b.left) * float64(second))
	}
	b.left--
	return 0
}

// Refused is how many calls were refused because there were too many.
func (s *Server) Refused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// Limit turns the limits on, with minutes of such a length.
func (s *Server) Limit(minute time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.options.Limits, s.options.Minute = true, minute
}
