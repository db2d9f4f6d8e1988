package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"
)

const (
	mostFrame = 16 << 20         // bytes of what Slack sends at once
	mostAck   = 20 << 10         // Slack drops an acknowledgement of so many bytes without a word
	sendFor   = 10 * time.Second // for a frame to leave
	byeFor    = 2 * time.Second  // for Slack to answer that a link ends
	ackFor    = 3 * time.Second  // after a thing came, Slack waits no longer for its acknowledgement
)

// link keeps a Socket Mode link to Slack (docs.slack.dev/apis/events-api/using-socket-mode). Slack ends each link after some
// hours and says so some seconds before. Then the next one is opened while the old one still serves, so that there is no
// moment without a link: a click in such a moment would be lost, since Slack delivers only events again. slack-go's own
// client of Socket Mode ends the old one first, and does not tell why Slack ends a link.
type link struct {
	log      *slog.Logger
	appToken string // what errors call it
	timing   Timing
	opener   *slack.Client
	opening  *opening
	alarm    func(text string)

	mu    sync.Mutex
	conns []*conn       // those that said hello and have not ended, the newest last
	came  chan struct{} // closed when the next one says hello; nil when nobody waits for it
}

// conn is one WebSocket of a link.
type conn struct {
	socket  *websocket.Conn
	write   sync.Mutex    // held while a frame is sent
	leaves  chan struct{} // closed when another one is needed
	leave   func()        // closes leaves
	greeted bool          // it has said hello; only for who reads it

	mu     sync.Mutex
	ending bool // it is read until a set time, whatever comes
}

// envelope is one thing that came over the link.
type envelope struct {
	ID           string
	Kind         string // events_api, interactive, slash_commands, or one that is not known
	Payload      json.RawMessage
	TakesPayload bool // the acknowledgement may carry something
	acknowledge  func(ctx context.Context, payload any) error
}

// frame is what Slack sends. What is only looked at may be of any type.
type frame struct {
	Type         string          `json:"type"`
	Reason       string          `json:"reason"`
	Envelope     string          `json:"envelope_id"`
	Payload      json.RawMessage `json:"payload"`
	TakesPayload json.RawMessage `json:"accepts_response_payload"`
	Links        json.RawMessage `json:"num_connections"`
}

// run keeps a link until ctx ends or Slack refuses the app for good. hear must not block. It is not called for what has no
// id, since such a thing could not be acknowledged. run returns after all that it began has ended.
func (l *link) run(ctx context.Context, hear func(envelope)) error {
	var serving sync.WaitGroup
	defer serving.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for {
		c, err := l.connect(ctx)
		switch {
		case ctx.Err() != nil:
			if c != nil {
				_ = c.socket.Close()
			}
			return nil
		case fatal(err):
			return fmt.Errorf("open a link to slack, with %s: %w", l.appToken, err)
		case err != nil:
			l.log.Warn("cannot open a link to slack; trying again", "error", err)
			continue
		}
		serving.Go(func() { l.serve(ctx, c, hear) })
		select {
		case <-c.leaves:
		case <-ctx.Done():
			return nil
		}
	}
}

// connect opens a WebSocket, when the time for that has come.
func (l *link) connect(ctx context.Context) (*conn, error) {
	_, address, err := l.opener.StartSocketModeContext(ctx)
	if err != nil {
		return nil, err
	}
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: l.timing.Timeout, WriteBufferSize: 2 * mostAck}
	socket, answer, err := dialer.DialContext(ctx, address, http.Header{"Origin": {"https://api.slack.com"}})
	if answer != nil && answer.Body != nil {
		_ = answer.Body.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("dial the address that slack gave: %w", err)
	}
	c := &conn{socket: socket, leaves: make(chan struct{})}
	c.leave = sync.OnceFunc(func() { close(c.leaves) })
	return c, nil
}

// serve takes what comes over a WebSocket until that ends.
func (l *link) serve(ctx context.Context, c *conn, hear func(envelope)) {
	defer context.AfterFunc(ctx, func() { _ = c.socket.Close() })()
	c.socket.SetReadLimit(mostFrame)
	patience := min(l.timing.Ping, l.timing.Stale)
	c.socket.SetPingHandler(func(data string) error {
		_ = c.socket.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(sendFor)) // a broken link shows when it is read
		if !c.greeted {
			return nil
		}
		l.opening.heard()
		return c.readFor(patience, false)
	})
	err := c.readFor(patience, false)
	for err == nil {
		var data []byte
		if _, data, err = c.socket.ReadMessage(); err == nil {
			err = l.take(c, data, hear)
		}
	}
	_ = c.socket.Close()
	l.gone(c)
	select {
	case <-c.leaves:
		l.log.Debug("a link to slack has ended", "error", err)
	default:
		if ctx.Err() == nil {
			l.log.Warn("the link to slack has broken, and is made anew", "error", err)
		}
	}
	c.leave()
}

// take handles what Slack sends. An error ends the WebSocket.
func (l *link) take(c *conn, data []byte, hear func(envelope)) error {
	var f frame
	if err := json.Unmarshal(data, &f); err != nil {
		l.log.Warn("slack sent something that cannot be read", "bytes", len(data), "error", err)
		return nil
	}
	switch f.Type {
	case "hello":
		l.hello(c, f)
		return nil
	case "disconnect":
		return l.told(c, f.Reason)
	}
	l.opening.heard()
	if f.Envelope == "" {
		l.log.Warn("slack sent something without an id", "type", f.Type)
		return nil
	}
	late := time.Now().Add(ackFor)
	hear(envelope{
		ID: f.Envelope, Kind: f.Type, Payload: f.Payload, TakesPayload: string(f.TakesPayload) == "true",
		acknowledge: func(ctx context.Context, payload any) error { return l.acknowledge(ctx, c, late, f.Envelope, payload) },
	})
	return nil
}

// hello takes note that a WebSocket serves. Those before it have a while for what is still on its way.
func (l *link) hello(c *conn, f frame) {
	if c.greeted {
		return
	}
	c.greeted = true
	l.opening.hello()
	l.mu.Lock()
	for _, old := range l.conns {
		time.AfterFunc(l.timing.Overlap, old.bye)
	}
	l.conns = append(l.conns, c)
	if l.came != nil {
		close(l.came)
		l.came = nil
	}
	here := len(l.conns)
	l.mu.Unlock()
	l.log.Info("linked to slack")
	if all, err := strconv.Atoi(string(f.Links)); err == nil && all > here {
		l.log.Warn("slack has more links of this app than this process, and each hears only a part; does another process use the same app token?",
			"links", all, "of_this_process", here)
	}
}

// gone takes note that a WebSocket has ended.
func (l *link) gone(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, other := range l.conns {
		if other == c {
			l.conns = append(l.conns[:i:i], l.conns[i+1:]...)
			return
		}
	}
}

// told obeys why Slack ends a link, and lets the opening of the next one wait accordingly.
func (l *link) told(c *conn, reason string) error {
	first := l.opening.told(reason)
	c.leave()
	switch reason {
	case reasonDisabled:
		l.log.Error("socket mode was switched off in the settings of the slack app; nothing is heard until it is switched on again",
			"next_look", l.timing.Disabled)
		if first {
			l.alarm("I hear nothing in Slack any more: " + errDisabled.Error() + ". I look again every " + l.timing.Disabled.String() + ".")
		}
		return errDisabled
	case reasonCrowded:
		l.log.Error("slack has too many links of this app; does another process use the same app token?")
		return errors.New(reasonCrowded)
	}
	l.log.Info("slack ends the link, as it does every few hours", "reason", reason)
	return nil
}

// acknowledge tells Slack that a thing was taken: over the WebSocket on which it came, or over the newest when that has
// ended. Where there is none it waits for the next until a time: a click is delivered once, and its person would be told
// that it failed.
func (l *link) acknowledge(ctx context.Context, c *conn, until time.Time, id string, payload any) error {
	data, err := json.Marshal(struct {
		Envelope string `json:"envelope_id"`
		Payload  any    `json:"payload,omitempty"`
	}{id, payload})
	if err != nil {
		return fmt.Errorf("put an acknowledgement together: %w", err)
	}
	if len(data) >= mostAck {
		return fmt.Errorf("an acknowledgement of %d bytes is longer than slack takes", len(data))
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	late := time.NewTimer(time.Until(until))
	defer late.Stop()
	for {
		if err = c.send(data); err == nil {
			return nil
		}
		newest, came := l.newest(c)
		if newest == nil {
			select {
			case <-came:
				continue
			case <-late.C:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		c = newest
	}
}

// newest is the newest link, or else what is closed when there is one. One that has failed is none.
func (l *link) newest(failed *conn) (newest *conn, came <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.conns); n > 0 && l.conns[n-1] != failed {
		return l.conns[n-1], nil
	}
	if l.came == nil {
		l.came = make(chan struct{})
	}
	return nil, l.came
}

func (c *conn) send(data []byte) error {
	c.write.Lock()
	defer c.write.Unlock()
	if err := c.socket.SetWriteDeadline(time.Now().Add(sendFor)); err != nil {
		return err
	}
	return c.socket.WriteMessage(websocket.TextMessage, data)
}

// bye asks Slack to end a WebSocket, and does not wait for that for long. What is still on its way is taken.
func (c *conn) bye() {
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = c.socket.WriteControl(websocket.CloseMessage, bye, time.Now().Add(byeFor)) // it ends below in any case
	_ = c.readFor(byeFor, true)
}

// readFor lets a WebSocket end when nothing is read in time. The time that is the last one stays.
func (c *conn) readFor(d time.Duration, last bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending {
		return nil
	}
	c.ending = last
	return c.socket.NetConn().SetReadDeadline(time.Now().Add(d))
}
