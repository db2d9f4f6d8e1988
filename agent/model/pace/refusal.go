package pace

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"nudge/agent/model"
)

const (
	// statusOverloaded is what Anthropic answers when it has too much to do; see docs.anthropic.com/en/api/errors.
	statusOverloaded = 529
	// enough answers without a refusal, and nobody waiting, lift the bound.
	enough = 100
	// told is how much later a pause must end to be told again: many calls that are out are refused together.
	told = time.Second
)

// refusalIn returns the error that says that the provider has too much to do, or nil. Other faults say nothing about
// how many calls it bears.
func refusalIn(err error) *model.Error {
	if err == nil {
		return nil
	}
	var fault *model.Error
	if !errors.As(err, &fault) || fault.Fault != model.FaultPassing || fault.RetryAfter <= 0 && !tooMany(fault) {
		return nil
	}
	return fault
}

// tooMany says whether fewer calls should be out at once. A provider that limits how often it is asked and says when
// to come back is not helped by that.
func tooMany(fault *model.Error) bool {
	switch fault.Status {
	case http.StatusServiceUnavailable, statusOverloaded:
		return true
	case http.StatusTooManyRequests:
		return fault.RetryAfter <= 0
	}
	return false
}

// refused takes note of a refusal before it gives the call's place back, so that nobody takes the place unwarned.
func (m *Model) refused(refusal *model.Error, epoch int64) {
	m.mu.Lock()
	m.open.Store(false)
	later, fewer := m.shut(refusal.RetryAfter), tooMany(refusal) && m.shrink(epoch)
	hold := Hold{Refusal: refusal, Pause: max(time.Until(m.gate), 0)}
	if m.bound != noBound {
		hold.AtOnce = int(m.bound)
	}
	m.flying.Add(-1)
	m.letOut()
	m.mu.Unlock()
	if m.held != nil && (later || fewer) {
		m.held(hold)
	}
}

// shut keeps the gate shut for a time from now, and says whether that is news.
func (m *Model) shut(wait time.Duration) bool {
	was, gate := m.gate, time.Now().Add(wait)
	if wait <= 0 || !gate.After(was) {
		return false
	}
	m.gate, m.next = gate, gate.Add(rand.N(maxGap))
	if wait > longest {
		m.turnAway(wait)
	}
	return gate.Sub(was) >= told
}

// shrink halves the bound, and says whether that changed it. Calls that went out before it last shrank say nothing
// about the new one: a hundred that are refused together halve it once.
func (m *Model) shrink(epoch int64) bool {
	if epoch != m.shrunk.Load() {
		return false
	}
	was := m.bound
	m.bound = max(min(m.bound, m.flying.Load())/2, 1)
	m.calm = 0
	m.shrunk.Add(1)
	return m.bound != was
}

// grow raises the bound by one for an answer, and lifts it after enough of them.
func (m *Model) grow(epoch int64) {
	if m.bound == m.most || epoch != m.shrunk.Load() {
		return
	}
	m.bound++
	m.calm++
	if m.calm >= enough && m.queue.Len() == 0 {
		m.bound = m.most
	}
}
