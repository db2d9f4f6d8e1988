package bot_test

import (
	"errors"
	"testing"
	"time"

	"nudge/agent"
	"nudge/bot"
)

// TestLedger tells after each kind of try whether the reply may stand there, and what the next try knows of it.
func TestLedger(t *testing.T) {
	doubt := func(t *bot.Try[string]) { t.Doubt() }
	says := func(t *bot.Try[string]) { t.Said["first"] = "1" }
	nothing := func(*bot.Try[string]) {}
	for name, c := range map[string]struct {
		try           func(*bot.Try[string])
		err           *bot.SendError
		unsure, knows bool
	}{
		"said":                      {says, nil, false, false},
		"nothing was said":          {nothing, &bot.SendError{}, false, false},
		"a part was said":           {says, &bot.SendError{}, true, true},
		"the answer was lost":       {doubt, &bot.SendError{}, true, true},
		"a part, but never more":    {says, &bot.SendError{Gone: true}, false, false},
		"nothing can be found out":  {doubt, &bot.SendError{Blind: true}, false, false},
		"this process says no more": {says, &bot.SendError{Closed: true}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			var l bot.Ledger[string]
			d := bot.Delivery{Reply: agent.Reply{Kind: agent.Final}, Key: "k"}
			c.try(l.Of(d))
			if c.err == nil {
				l.Close("k", nil)
			} else {
				l.Close("k", errors.Join(errors.New("at the door"), c.err))
				if c.err.Unsure != c.unsure {
					t.Errorf("unsure is %v", c.err.Unsure)
				}
			}
			next := l.Of(d)
			if knows := len(next.Said) > 0 || !next.Unsure.IsZero(); knows != c.knows {
				t.Errorf("the next try knows %+v", next)
			}
		})
	}
}

// TestDoubtStays keeps the first instant of doubt: what stands there since then has to be looked through.
func TestDoubtStays(t *testing.T) {
	var l bot.Ledger[string]
	since := time.Now().Add(-time.Hour)
	earlier := l.Of(bot.Delivery{Key: "k", Doubtful: since})
	earlier.Doubt()
	if again := l.Of(bot.Delivery{Key: "k"}); !again.Unsure.Equal(since) {
		t.Errorf("it is in doubt since %v", again.Unsure)
	}
	l.Of(bot.Delivery{}).Said["progress"] = "1"
	if fresh := l.Of(bot.Delivery{}); len(fresh.Said) > 0 {
		t.Errorf("progress is remembered: %+v", fresh)
	}
}
