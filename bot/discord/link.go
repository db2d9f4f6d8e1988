package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"nudge/bot/wire"
)

// What a link is, in order: ask where the gateway is, open a WebSocket, wait for HELLO, say who we are (IDENTIFY) or that we
// were here before (RESUME), and take what comes while a beat is sent at each interval
// (docs.discord.com/developers/events/gateway). Whatever goes wrong ends the WebSocket and nothing else: the next one resumes
// where the last one ended, unless Discord has said that there is nothing to be resumed.
//
// discordgo's own client of the gateway is not used. It waits for HELLO and READY without an end and with its lock held, locks
// itself out for good when a beat's answer or a reconnect comes first after RESUME, resumes at another address than the one that
// Discord gives for it, and goes on for ever after a refusal for good.

const (
	mostFrame = 64 << 20         // bytes of what Discord sends at once; that of a large guild takes some
	sendFor   = 10 * time.Second // for a frame to leave
)

// The operations of the gateway.
const (
	opDispatch  = 0
	opBeat      = 1
	opIdentify  = 2
	opResume    = 6
	opReconnect = 7
	opInvalid   = 9
	opHello     = 10
	opBeatAck   = 11
)

// The intents: what is heard (docs.discord.com/developers/events/gateway#gateway-intents). Without the last one, which has to
// be switched on in the portal, replies in a thread that do not mention the bot come without their words; where it is off,
// Discord closes the link, and the next one does without.
const intents = guilds | guildMessages | directMessages | messageContent

const (
	guilds         = 1 << 0
	guildMessages  = 1 << 9
	directMessages = 1 << 12
	messageContent = 1 << 15
)

// closeResuming is the code with which a WebSocket is ended that is to be resumed. 1000 and 1001 would end the session.
const closeResuming = 4000

// link keeps a link to Discord's gateway. Only run changes the session.
type link struct {
	log    *slog.Logger
	timing Timing
	token  string
	ask    func(ctx context.Context) (gateway, error) // where the gateway is
	alarm  func(text string)

	session    session
	wordless   bool        // Discord does not let the app read what is said where it is not mentioned
	identifies []time.Time // of the last day, oldest first
	spent      bool        // it was told that there have been too many

	mu       sync.Mutex
	linked   bool
	heard    time.Time     // when the last frame came
	interval time.Duration // between two beats
}

// session is what has to be known to resume.
type session struct {
	id      string // "" when there is nothing to be resumed
	address string
	seq     int64 // of the last event that was taken
}

// gateway is what Discord says of its gateway.
type gateway struct {
	URL    string `json:"url"`
	Limits struct {
		Total     int   `json:"total"`
		Remaining int   `json:"remaining"`
		After     int64 `json:"reset_after"` // ms
	} `json:"session_start_limit"`
}

// dispatch is one event.
type dispatch struct {
	Kind string
	Data json.RawMessage
}

// frame is what Discord sends.
type frame struct {
	Op   int             `json:"op"`
	Data json.RawMessage `json:"d"`
	Seq  int64           `json:"s"`
	Kind string          `json:"t"`
}

// The ways in which a WebSocket ends that Discord asks for.
var (
	errReconnect = errors.New("discord asks to reconnect")
	errResumable = errors.New("discord has interrupted the session")
	errInvalid   = errors.New("discord has ended the session")
	errNotLinked = errors.New("there is no link to discord")
)

// run keeps a link until ctx ends or Discord refuses the app for good. hear is called for each event in order, also for those
// that Discord repeats; it must not block.
func (l *link) run(ctx context.Context, hear func(dispatch)) error {
	for tries := 0; ; tries++ {
		if err := wire.Sleep(ctx, l.timing.Openings[min(tries, len(l.timing.Openings)-1)]); err != nil {
			return nil
		}
		began := time.Now()
		err := l.follow(ctx, hear)
		l.down()
		if ctx.Err() != nil {
			return nil
		}
		if closedWith(err, codeIntents) && !l.wordless {
			l.wordless, l.session = true, session{}
			l.alarm(deafToWords)
			continue
		}
		if why := refusal(err); why != "" {
			return fmt.Errorf("keep a link to discord: %w; %s", err, why)
		}
		if time.Since(began) >= l.timing.Openings[len(l.timing.Openings)-1] {
			tries = -1 // a link that lived for long is made anew at once
		}
		if err := l.ended(ctx, err); err != nil {
			return nil
		}
	}
}

// ended obeys why a WebSocket has ended.
func (l *link) ended(ctx context.Context, err error) error {
	var closed *websocket.CloseError
	switch {
	case errors.Is(err, errReconnect):
		l.log.Info("discord asks for a new link, as it does every few hours")
	case errors.Is(err, errInvalid):
		l.log.Warn("discord has ended the session; a new one is begun")
		l.session = session{}
		return wire.Sleep(ctx, l.timing.Invalid+rand.N(4*l.timing.Invalid+1))
	case errors.As(err, &closed) && slices.Contains(sessionCodes, closed.Code):
		l.log.Warn("discord has ended the session; a new one is begun", "error", err)
		l.session = session{}
	default:
		l.log.Warn("the link to discord has ended, and is made anew", "error", err)
	}
	return nil
}

// The codes with which Discord closes a link that cannot be resumed, and those after which none may be made
// (docs.discord.com/developers/topics/opcodes-and-status-codes#gateway-gateway-close-event-codes).
var (
	sessionCodes = []int{4007, 4009}
	refusals     = map[int]string{
		4004:        "the bot token is not valid any more; make a new one in the Discord developer portal under Bot, Reset Token",
		4010:        "this is a fault of nudge; tell its makers",
		4011:        "the bot is in more servers than one link may serve; take it out of some",
		4012:        "this is a fault of nudge; tell its makers",
		4013:        "this is a fault of nudge; tell its makers",
		codeIntents: "the switch Message Content Intent is off; turn it on in the Discord developer portal under Bot, Privileged Gateway Intents, and start nudge again",
	}
)

// codeIntents is the code for an intent that is not switched on.
const codeIntents = 4014

const deafToWords = "In Discord I hear only direct messages, mentions and commands, and not what is said in a thread without a mention: " +
	"the switch Message Content Intent is off. Turn it on in the Discord developer portal under Bot, Privileged Gateway Intents, and start nudge again."

func closedWith(err error, code int) bool {
	var closed *websocket.CloseError
	return errors.As(err, &closed) && closed.Code == code
}

// refusal says what somebody has to do before there can be a link again; "" when nobody has to.
func refusal(err error) string {
	var closed *websocket.CloseError
	if errors.As(err, &closed) {
		return refusals[closed.Code]
	}
	if lasting(err) {
		return refusals[4004]
	}
	return ""
}

// follow opens a WebSocket and takes what comes until it ends. It always returns an error, and after all that it began.
func (l *link) follow(ctx context.Context, hear func(dispatch)) error {
	address, err := l.address(ctx)
	if err != nil {
		return err
	}
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: l.timing.Timeout}
	socket, answer, err := dialer.DialContext(ctx, address, nil)
	if answer != nil && answer.Body != nil {
		_ = answer.Body.Close()
	}
	if err != nil {
		l.session.address = "" // perhaps only that one is gone
		return fmt.Errorf("dial the gateway: %w", err)
	}
	c := &conn{socket: socket}
	beating, stop := context.WithCancel(ctx)
	var serving sync.WaitGroup
	defer serving.Wait()
	defer func() { c.bye(ctx) }()
	defer stop()
	defer context.AfterFunc(ctx, func() { c.bye(ctx) })()
	socket.SetReadLimit(mostFrame)
	interval, err := l.greet(c)
	if err != nil {
		return err
	}
	l.up(interval)
	c.seq.Store(l.session.seq)
	serving.Go(func() { c.beat(beating, interval) })
	if err := l.introduce(c); err != nil {
		return err
	}
	return l.listen(c, interval, hear)
}

// address is where the next WebSocket is opened.
func (l *link) address(ctx context.Context) (string, error) {
	address := l.session.address
	if l.session.id == "" || address == "" {
		g, err := l.ask(ctx)
		if err != nil {
			return "", fmt.Errorf("ask discord for its gateway: %w", err)
		}
		if err := l.budget(ctx, g); err != nil {
			return "", err
		}
		address = g.URL
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("discord gives %q as the address of its gateway", address)
	}
	if u.Path == "" {
		u.Path = "/"
	}
	u.RawQuery = url.Values{"v": {apiVersion}, "encoding": {"json"}}.Encode()
	return u.String(), nil
}

// budget waits until a session may be begun. Discord takes a thousand a day and one each five seconds, and resets the token of
// an app that begins more.
func (l *link) budget(ctx context.Context, g gateway) error {
	if l.session.id != "" {
		return nil
	}
	now := time.Now()
	l.identifies = slices.DeleteFunc(l.identifies, func(at time.Time) bool { return now.Sub(at) >= l.timing.Day })
	wait := time.Duration(0)
	if n := len(l.identifies); n > 0 {
		wait = l.timing.Identify - now.Sub(l.identifies[n-1])
	}
	used := len(l.identifies) >= l.timing.Sessions
	if used {
		wait = max(wait, l.identifies[0].Add(l.timing.Day).Sub(now))
	}
	if g.Limits.Total > 0 && g.Limits.Remaining <= 0 {
		used, wait = true, max(wait, time.Duration(g.Limits.After)*time.Millisecond)
	}
	if used && !l.spent {
		l.alarm(fmt.Sprintf("I hear nothing in Discord for %s: the link broke so often that Discord allows no more sessions today. Does another program use the same bot token?", wait.Round(time.Minute)))
	}
	l.spent = used
	return wire.Sleep(ctx, wait)
}

// greet waits for HELLO, which says how often a beat has to be sent.
func (l *link) greet(c *conn) (interval time.Duration, err error) {
	f, err := c.read(l.timing.Hello)
	if err != nil {
		return 0, fmt.Errorf("wait for hello: %w", err)
	}
	var hello struct {
		Interval int64 `json:"heartbeat_interval"`
	}
	if err := json.Unmarshal(f.Data, &hello); err != nil || f.Op != opHello || hello.Interval <= 0 {
		return 0, fmt.Errorf("discord begins with operation %d instead of a hello", f.Op)
	}
	return time.Duration(hello.Interval) * time.Millisecond, nil
}

// introduce says who we are.
func (l *link) introduce(c *conn) error {
	if l.session.id != "" {
		return c.send(opResume, map[string]any{"token": l.token, "session_id": l.session.id, "seq": l.session.seq})
	}
	l.identifies = append(l.identifies, time.Now())
	wanted := intents
	if l.wordless {
		wanted &^= messageContent
	}
	return c.send(opIdentify, map[string]any{
		"token": l.token, "intents": wanted, "properties": map[string]string{"os": "linux", "browser": "nudge", "device": "nudge"},
	})
}

// listen takes what comes. Discord answers each beat, so that a link on which nothing comes for two intervals is dead, however
// alive it looks.
func (l *link) listen(c *conn, interval time.Duration, hear func(dispatch)) error {
	patience := min(2*interval, l.timing.Hello) // until it is said that the session is there
	for {
		f, err := c.read(patience)
		if err != nil {
			return err
		}
		l.note()
		switch f.Op {
		case opDispatch:
			if f.Kind == "READY" {
				l.ready(f.Data)
			}
			if f.Kind == "READY" || f.Kind == "RESUMED" {
				l.log.Info("linked to discord", "resumed", f.Kind == "RESUMED")
				patience = 2 * interval
			}
			hear(dispatch{f.Kind, f.Data})
			if f.Seq > 0 {
				l.session.seq = f.Seq
			}
			c.seq.Store(l.session.seq)
		case opBeat:
			err = c.send(opBeat, c.last())
		case opReconnect:
			err = errReconnect
		case opInvalid:
			if err = errInvalid; string(f.Data) == "true" {
				err = errResumable
			}
		case opHello, opBeatAck:
		default:
			l.log.Debug("discord sent something of an unknown kind", "op", f.Op)
		}
		if err != nil {
			return err
		}
	}
}

// ready keeps what is needed to resume.
func (l *link) ready(data json.RawMessage) {
	var r struct {
		Session string `json:"session_id"`
		Address string `json:"resume_gateway_url"`
	}
	if err := json.Unmarshal(data, &r); err != nil {
		l.log.Warn("discord began a session that cannot be resumed", "error", err)
		return
	}
	l.session = session{id: r.Session, address: r.Address}
}

// up, note and down say how a link does, for stale.
func (l *link) up(interval time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.linked, l.heard, l.interval = true, time.Now(), interval
}

func (l *link) note() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = time.Now()
}

func (l *link) down() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.linked = false
}

// stale says why nothing is heard; nil when it is. A link that is being made anew is given some time.
func (l *link) stale() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	age := time.Since(l.heard)
	switch {
	case l.heard.IsZero():
		return errNotLinked
	case age > max(2*l.interval, l.timing.Stale):
		return fmt.Errorf("nothing was heard from discord for %s", age.Round(time.Second))
	}
	return nil
}

// conn is one WebSocket.
type conn struct {
	socket *websocket.Conn
	seq    atomic.Int64 // of the last event; 0 before the first
	write  sync.Mutex   // held while a frame is sent
}

// read waits for the next frame, for so long. What is no JSON is left out.
func (c *conn) read(patience time.Duration) (f frame, err error) {
	for {
		if err := c.socket.SetReadDeadline(time.Now().Add(patience)); err != nil {
			return f, err
		}
		_, data, err := c.socket.ReadMessage()
		if err != nil {
			return f, err
		}
		f = frame{Op: -1}
		if json.Unmarshal(data, &f) == nil && f.Op >= 0 {
			return f, nil
		}
	}
}

func (c *conn) send(op int, data any) error {
	c.write.Lock()
	defer c.write.Unlock()
	if err := c.socket.SetWriteDeadline(time.Now().Add(sendFor)); err != nil {
		return err
	}
	return c.socket.WriteJSON(map[string]any{"op": op, "d": data})
}

// beat sends a beat at each interval, the first at a random moment of the first one, so that not all links beat at once after
// Discord was down.
func (c *conn) beat(ctx context.Context, interval time.Duration) {
	timer := time.NewTimer(rand.N(interval))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if err := c.send(opBeat, c.last()); err != nil {
			_ = c.socket.Close() // whoever reads sees that it has ended
			return
		}
		timer.Reset(interval)
	}
}

// last is what a beat says: the number of the last event, or null.
func (c *conn) last() any {
	if seq := c.seq.Load(); seq > 0 {
		return seq
	}
	return nil
}

// bye ends a WebSocket. Only the end of the program ends the session with it.
func (c *conn) bye(ctx context.Context) {
	code := closeResuming
	if ctx.Err() != nil {
		code = websocket.CloseNormalClosure
	}
	_ = c.socket.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second))
	_ = c.socket.Close()
}
