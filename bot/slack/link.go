package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"
)

// link keeps a Socket Mode link to Slack.
type link struct {
	log      *slog.Logger
	appToken string // what errors call it
	timing   Timing
	opener   *slack.Client
	opening  *opening
}

// envelope is one thing that came over the link.
type envelope struct {
	ID           string
	Kind         string // events_api, interactive, slash_commands, or one that is not known
	Payload      json.RawMessage
	TakesPayload bool // the acknowledgement may carry something
	acknowledge  func(ctx context.Context, payload any) error
}

var errSilent = errors.New("nothing was heard on the link for too long")

// run keeps a link until ctx ends or Slack refuses the app for good. hear must not block. It is not called for what has no
// id, since such a thing could not be acknowledged.
func (l *link) run(ctx context.Context, hear func(envelope)) error {
	for {
		err := l.once(ctx, hear)
		if ctx.Err() != nil {
			return nil
		}
		if fatal(err) {
			return fmt.Errorf("open a link to slack, with %s: %w", l.appToken, err)
		}
		l.log.Warn("the link to slack is made anew", "error", err)
	}
}

// once runs one client of slack-go, which makes links anew by itself, until it gives up or is silent for too long.
func (l *link) once(ctx context.Context, hear func(envelope)) error {
	ctx, stop := context.WithCancel(ctx)
	client := socketmode.New(l.opener, socketmode.OptionPingInterval(l.timing.Ping),
		// slack-go tells nobody why Slack ended a link, nor of pings, but in its log.
		socketmode.OptionDebug(true), socketmode.OptionLog(&journal{l}))
	ended := make(chan error, 1)
	go func() { ended <- client.RunContext(ctx) }()
	watch := time.NewTicker(max(l.timing.Stale/5, time.Millisecond))
	defer watch.Stop()
	defer stop()
	var why error
	for {
		select {
		case e := <-client.Events:
			if err := l.take(client, e, hear); err != nil && why == nil {
				why = err
				stop()
			}
		case <-watch.C:
			if why == nil && l.opening.silent(l.timing.Stale) {
				why = errSilent
				stop()
			}
		case err := <-ended:
			l.opening.unlinked()
			if why != nil {
				return why
			}
			return err
		}
	}
}

// take handles what slack-go tells. An error ends the link.
func (l *link) take(client *socketmode.Client, e socketmode.Event, hear func(envelope)) error {
	switch e.Type {
	case socketmode.EventTypeConnectionError:
		failed, ok := e.Data.(*slack.ConnectionErrorEvent)
		if !ok {
			return nil
		}
		if fatal(failed.ErrorObj) {
			return failed.ErrorObj
		}
		l.log.Warn("cannot open a link to slack; trying again", "error", failed.ErrorObj)
	case socketmode.EventTypeErrorWriteFailed:
		l.log.Warn("an acknowledgement did not reach slack, which will deliver again")
	case socketmode.EventTypeEventsAPI, socketmode.EventTypeInteractive, socketmode.EventTypeSlashCommand:
		if e.Request != nil {
			l.pass(client, *e.Request, hear)
		}
	case socketmode.EventTypeErrorBadMessage:
		// slack-go does not know everything that Slack sends. What has an id must be acknowledged all the same.
		var request socketmode.Request
		if bad, ok := e.Data.(*socketmode.ErrorBadMessage); ok && json.Unmarshal(bad.Message, &request) == nil {
			l.pass(client, request, hear)
		}
	}
	return nil
}

func (l *link) pass(client *socketmode.Client, r socketmode.Request, hear func(envelope)) {
	if r.EnvelopeID == "" {
		l.log.Warn("slack sent something without an id", "type", r.Type)
		return
	}
	hear(envelope{
		ID: r.EnvelopeID, Kind: r.Type, Payload: r.Payload, TakesPayload: r.AcceptsResponsePayload,
		acknowledge: func(ctx context.Context, payload any) error { return client.AckCtx(ctx, r.EnvelopeID, payload) },
	})
}

// told logs why Slack ends a link, and lets the opening of the next one wait accordingly.
func (l *link) told(reason string) {
	l.opening.told(reason)
	switch reason {
	case reasonDisabled:
		l.log.Error("socket mode was switched off in the settings of the slack app; nothing is heard until it is switched on again",
			"next_look", l.timing.Disabled)
	case reasonCrowded:
		l.log.Error("slack has too many links of this app; does another process use the same app token?")
	default:
		l.log.Info("slack ends the link, as it does every few hours", "reason", reason)
	}
}

// journal reads slack-go's log for what it tells nowhere else, or not in order. None of it is written anywhere. A reason that comes right
// behind the hello can be missed, when slack-go sees the end of the link first; the next opening waits all the same, as
// after every short link.
type journal struct{ *link }

// What slack-go writes when a message or a ping comes in.
const (
	wroteMessage = "Received WebSocket message: "
	wrotePing    = "WebSocket ping message received"
)

// Output takes a line of slack-go's log.
func (j *journal) Output(_ int, line string) error {
	text, isMessage := strings.CutPrefix(line, wroteMessage)
	if isMessage || strings.HasPrefix(line, wrotePing) {
		j.opening.heard()
	}
	if !isMessage || !strings.Contains(text, `"type":"hello"`) && !strings.Contains(text, `"type":"disconnect"`) {
		return nil
	}
	var frame struct{ Type, Reason string }
	if json.Unmarshal([]byte(text), &frame) != nil {
		return nil
	}
	switch frame.Type {
	case socketmode.RequestTypeHello:
		j.opening.hello()
		j.log.Info("linked to slack")
	case socketmode.RequestTypeDisconnect:
		j.told(frame.Reason)
	}
	return nil
}
