package schedule

import (
	"fmt"
	"slices"
	"time"
)

const (
	alarmAfter   = 3 // failures in a row
	firstBackoff = time.Minute
	maxBackoff   = time.Hour
)

// Zone is what is remembered of a heartbeat for the people of one time zone.
type Zone struct {
	True     bool      `json:"true,omitempty"`    // the condition was true when it last woke, and has not been false since
	Digest   string    `json:"digest,omitempty"`  // the [Finding.State] that was kept
	Episode  string    `json:"episode,omitempty"` // the newest stretch in which the condition was true
	Pending  bool      `json:"pending,omitempty"` // the runs of the episode have not all ended well
	Found    string    `json:"found,omitempty"`   // the [Finding.State] that a pending episode is about
	Done     []string  `json:"done,omitempty"`    // the people whose runs of a pending episode ended well
	LastWake time.Time `json:"last_wake,omitzero"`
	Woke     int       `json:"woke,omitempty"`     // ticks that woke and ended well
	Errors   int       `json:"errors,omitempty"`   // checks that failed in a row
	Failures int       `json:"failures,omitempty"` // woken runs that failed in a row
	Retry    time.Time `json:"retry,omitzero"`     // not to be woken before, after a failed run
	Held     time.Time `json:"held,omitzero"`      // when somebody's snooze ends for which a tick was passed over
	Owed     []string  `json:"owed,omitempty"`     // people held back while others were woken, who have that still to come
	Asked    []string  `json:"asked,omitempty"`    // people who asked for a tick at once
	Alarmed  bool      `json:"alarmed,omitempty"`  // the owners were told of failing checks
	Warned   bool      `json:"warned,omitempty"`   // the owners were told of failing runs
	Claim    time.Time `json:"claim,omitzero"`     // the tick that was begun and has no outcome yet
	Row      string    `json:"row,omitempty"`      // the key of the due row that brings it back if it is cut off; "" where nothing does
	Begun    bool      `json:"begun,omitempty"`    // runs of it may have begun
	Over     bool      `json:"over,omitempty"`     // has no further tick of its own

	// People is what is remembered of each person where the condition is about each by themselves. What is true of the ticks stays
	// above: Woke, Errors, Asked, Alarmed, Warned, Claim, Row and Over.
	People map[string]*Zone `json:"people,omitempty"`
}

// afresh is a zone whose condition was replaced. What is true of the ticks, not of the condition, stays.
func (z *Zone) afresh() *Zone {
	return &Zone{Woke: z.Woke, Claim: z.Claim}
}

// endClaim notes that the claimed tick has an outcome.
func (z *Zone) endClaim() {
	z.Claim, z.Row, z.Begun = time.Time{}, "", false
	for _, own := range z.People {
		own.Begun = false
	}
}

// again is when a tick comes out of its turn: to bring a failed run back, or what a snooze held back. Zero for never.
func (z *Zone) again() time.Time { return z.againAfter(time.Time{}) }

// againAfter is when a tick next comes out of its turn after an instant.
func (z *Zone) againAfter(at time.Time) (next time.Time) {
	for _, again := range []time.Time{z.Retry, z.Held} {
		if again.After(at) {
			next = earlier(next, again)
		}
	}
	for _, own := range z.People {
		next = earlier(next, own.againAfter(at))
	}
	return next
}

func (z *Zone) isDone(person string) bool { return slices.Contains(z.Done, person) }

// slept notes a look that wakes nobody.
func (z *Zone) slept(f Finding) []string {
	said := z.checkWorked()
	if !f.True {
		if f.State != "" {
			z.Digest = f.State
		} else {
			z.Owed = nil
		}
		z.True, z.Failures, z.Warned = false, 0, false
		z.close()
	}
	return said
}

// close ends what was pending.
func (z *Zone) close() {
	z.Pending, z.Found, z.Done, z.Retry = false, "", nil, time.Time{}
}

// checkFailed leaves the state as it is: a check that failed is neither true nor false.
func (z *Zone) checkFailed(reason string) []string {
	z.Errors++
	if z.Errors < alarmAfter || z.Alarmed {
		return nil
	}
	z.Alarmed = true
	return []string{fmt.Sprintf("its check failed %d times in a row: %s", z.Errors, reason)}
}

func (z *Zone) checkWorked() []string {
	z.Errors = 0
	if !z.Alarmed {
		return nil
	}
	z.Alarmed = false
	return []string{"its check works again"}
}

// open chooses the episode: a pending one goes on unless it is about something else.
func (z *Zone) open(spec Spec, f Finding, at time.Time, retry bool) {
	goesOn := z.Pending && z.Found == f.State
	if spec.Always() {
		goesOn = z.Pending && retry
	}
	switch {
	case goesOn:
	case z.True && f.State == "" && !spec.Always():
		z.Done = nil
	default:
		z.Episode, z.Done = at.Format(time.RFC3339Nano), nil
	}
	z.Pending, z.Found = true, f.State
}

// keepEpisode lets the episode that was opened go on, though nobody was woken: what the digest tells of it is not told again.
func (z *Zone) keepEpisode(opened Zone) {
	z.Episode, z.Pending, z.Found = opened.Episode, opened.Pending, opened.Found
}

const runsWorkAgain = "its runs end well again"

// wentWell notes that neither the check nor a run failed.
func (z *Zone) wentWell() []string {
	said := z.checkWorked()
	if z.Warned {
		said = append(said, runsWorkAgain)
	}
	z.Failures, z.Warned = 0, false
	return said
}

func (z *Zone) endedWell(f Finding, owed []string, now time.Time) []string {
	said := z.wentWell()
	z.True, z.Digest = f.State == "", f.State
	z.LastWake = now.UTC()
	z.Woke++
	z.close()
	z.Owed = owed
	return said
}

// heard notes whose runs ended well of those that did not all do so.
func (z *Zone) heard(people []string) {
	z.Done = append(z.Done, people...)
	z.Owed = without(z.Owed, people)
}

func (z *Zone) runFailed(reason string, now time.Time) []string {
	said := z.checkWorked()
	z.Failures++
	z.Retry = now.Add(backoff(z.Failures)).UTC()
	if z.Failures >= alarmAfter && !z.Warned {
		z.Warned = true
		said = append(said, fmt.Sprintf("the runs that it wakes failed %d times in a row: %s", z.Failures, reason))
	}
	return said
}

// refused notes a run that the model refused. It is not for the heartbeat to back off: nobody is woken until that is mended.
func (z *Zone) refused(tell string) []string {
	said := z.checkWorked()
	if tell != "" {
		said = append(said, tell)
	}
	return said
}

// backoff is how long to wait after so many failed runs in a row.
func backoff(failures int) time.Duration {
	wait := firstBackoff
	for range failures - 1 {
		if wait *= 2; wait >= maxBackoff {
			return maxBackoff
		}
	}
	return wait
}

// owe notes people who were held back.
func (z *Zone) owe(people []string) {
	for _, person := range people {
		if !slices.Contains(z.Owed, person) {
			z.Owed = append(z.Owed, person)
		}
	}
}

// caughtUp notes that those who were owed something have heard of it. For the others nothing has changed.
func (z *Zone) caughtUp(people []string) []string {
	said := z.wentWell()
	z.Retry, z.Owed = time.Time{}, without(z.Owed, people)
	return said
}
