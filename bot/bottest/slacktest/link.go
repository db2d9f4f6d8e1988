package slacktest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// conn is one link.
type conn struct {
	socket  *websocket.Conn
	write   sync.Mutex
	ended   bool // guarded by the server's mu
	leaves  bool // it was told that it ends; guarded by the server's mu
	retired bool // nothing more is sent; guarded by the server's mu
}

// delivery is one envelope that was sent, or waits for a link.
type delivery struct {
	id      string
	body    map[string]any
	link    *conn // over which it was sent last; nil while it waits for one
	acked   int   // times
	payload json.RawMessage
	sent    time.Time // first
	took    time.Duration
}

// again reports whether Slack sends a delivery again that was not acknowledged. It does so only with events: of a click or
// a command it says to the person that the app did not answer.
func (d *delivery) again() bool { return d.body["type"] == "events_api" }

var upgrader = websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}

// link serves one link: hello, what waits, and pings, until it ends.
func (s *Server) link(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	ticket := r.URL.Query().Get("ticket")
	good := s.tickets[ticket]
	delete(s.tickets, ticket)
	select {
	case <-s.closing:
		good = false
	default:
	}
	if good {
		s.links.Add(1)
	}
	s.mu.Unlock()
	if !good {
		http.Error(w, "no such ticket", http.StatusForbidden)
		return
	}
	defer s.links.Done()
	socket, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	c := &conn{socket: socket}
	defer c.close()
	c.send(map[string]any{
		"type": "hello", "num_connections": s.Linked() + 1, "connection_info": map[string]any{"app_id": "A0TEST"},
		"debug_info": map[string]any{"host": "slacktest", "approximate_connection_time": 3600},
	})
	if reason := s.unwanted(); reason != "" {
		c.send(map[string]any{"type": "disconnect", "reason": reason})
		return
	}
	s.attach(c)
	stop := make(chan struct{})
	pinged := make(chan struct{})
	go func() { defer close(pinged); s.ping(c, stop) }()
	s.listen(c)
	close(stop)
	<-pinged
}

// unwanted is why this link is cut right after its hello; "" when it is not.
func (s *Server) unwanted() (reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.storm == 0 {
		return ""
	}
	s.storm--
	s.Happened()
	return s.stormy
}

// attach makes a link the one that deliveries take, and sends what waits. Links that were told that they end do so a little
// later.
func (s *Server) attach(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, old := range s.conns {
		if old.leaves && !old.ended {
			time.AfterFunc(s.options.Notice, func() { s.retire(old) })
		}
	}
	s.conns = append(s.conns, c)
	s.resend()
	s.Happened()
}

// retire sends nothing more over a link and ends it, which the app answers by closing it.
func (s *Server) retire(c *conn) {
	s.mu.Lock()
	c.retired = true
	s.mu.Unlock()
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = c.socket.WriteControl(websocket.CloseMessage, bye, time.Now().Add(time.Second))
}

// resend sends over the newest link what waits for one, and what was sent over a link that has ended and was not
// acknowledged. The caller holds mu.
func (s *Server) resend() {
	c := s.newest()
	if c == nil {
		return
	}
	for _, d := range s.delivered {
		if d.acked > 0 || d.link != nil && (!d.link.ended || !d.again()) {
			continue
		}
		if d.link != nil {
			d.retry()
		}
		d.over(c)
	}
}

// over sends a delivery over a link.
func (d *delivery) over(c *conn) {
	d.link = c
	if d.sent.IsZero() {
		d.sent = time.Now()
	}
	c.send(d.body)
}

// retry marks a delivery as one that is sent again.
func (d *delivery) retry() {
	attempt, _ := d.body["retry_attempt"].(int)
	d.body["retry_attempt"], d.body["retry_reason"] = attempt+1, "timeout"
}

func (s *Server) ping(c *conn, stop chan struct{}) {
	ticker := time.NewTicker(s.options.Ping)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-stop:
			return
		case <-s.closing:
			return
		}
		s.mu.Lock()
		silent := s.silent
		s.mu.Unlock()
		if silent {
			continue
		}
		_ = c.socket.WriteControl(websocket.PingMessage, []byte("ping"), time.Now().Add(time.Second))
		s.mu.Lock()
		s.Happened()
		s.mu.Unlock()
	}
}

// listen takes acknowledgements until the link ends.
func (s *Server) listen(c *conn) {
	for {
		var ack struct {
			Envelope string          `json:"envelope_id"`
			Payload  json.RawMessage `json:"payload"`
		}
		if c.socket.ReadJSON(&ack) != nil {
			break
		}
		s.mu.Lock()
		s.acks[ack.Envelope]++
		for _, d := range s.delivered {
			if d.id == ack.Envelope {
				if d.acked++; d.acked == 1 {
					d.took = time.Since(d.sent)
				}
				d.payload = ack.Payload
				s.answered(d)
			}
		}
		s.Happened()
		s.mu.Unlock()
	}
	s.mu.Lock()
	c.ended = true
	s.resend()
	s.Happened()
	s.mu.Unlock()
}

// answered shows what the acknowledgement of a form says about it. The caller holds mu.
func (s *Server) answered(d *delivery) {
	payload, _ := d.body["payload"].(map[string]any)
	view, _ := payload["view"].(map[string]any)
	if payload["type"] != "view_submission" {
		return
	}
	var said struct {
		Action string            `json:"response_action"`
		Errors map[string]string `json:"errors"`
		View   json.RawMessage   `json:"view"`
	}
	_ = json.Unmarshal(d.payload, &said)
	for i, v := range s.views {
		if v.ID != view["id"] {
			continue
		}
		s.views[i].Errors, s.views[i].Shut = said.Errors, said.Action != "errors" && said.Action != "update"
		for block := range said.Errors {
			if _, ok := v.input(block); !ok {
				s.views[i].Errors = map[string]string{"": "slack shows an error of its own: the form has no input " + block}
			}
		}
		if said.Action != "update" {
			continue
		}
		next, refusal := readView(said.View)
		if refusal != "" {
			s.views[i].Errors = map[string]string{"": "slack shows an error of its own: " + refusal}
			continue
		}
		next.ID, next.Trigger, next.User, next.Updated = v.ID, v.Trigger, v.User, true
		s.views[i] = next
	}
}

func (c *conn) send(v any) {
	c.write.Lock()
	defer c.write.Unlock()
	_ = c.socket.SetWriteDeadline(time.Now().Add(5 * time.Second))
	_ = c.socket.WriteJSON(v)
}

func (c *conn) close() { _ = c.socket.Close() }

// Linked is how many links there are.
func (s *Server) Linked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.conns {
		if !c.ended {
			n++
		}
	}
	return n
}

// Links is how many links there have been, those of a storm not counted.
func (s *Server) Links() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Opens is how often apps.connections.open was answered with an address.
func (s *Server) Opens() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opens
}

// newest is the newest link that has not ended; nil if there is none. The caller holds mu.
func (s *Server) newest() *conn {
	for i := len(s.conns) - 1; i >= 0; i-- {
		if c := s.conns[i]; !c.ended && !c.retired {
			return c
		}
	}
	return nil
}

// Disconnect tells the newest link that it ends, as Slack does with the reasons warning, refresh_requested, link_disabled
// and too_many_websockets. It goes on until the app closes it, or until a while after there is another.
func (s *Server) Disconnect(reason string) {
	s.mu.Lock()
	c := s.newest()
	if c != nil {
		c.leaves = true
	}
	s.mu.Unlock()
	if c != nil {
		c.send(map[string]any{"type": "disconnect", "reason": reason, "debug_info": map[string]any{"host": "slacktest"}})
	}
}

// Drop cuts all links, without a word. It returns when they have ended; there may be a new one then.
func (s *Server) Drop() {
	s.mu.Lock()
	conns := slices.Clone(s.conns)
	s.mu.Unlock()
	for _, c := range conns {
		c.close()
	}
	s.Await(10*time.Second, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !slices.ContainsFunc(conns, func(c *conn) bool { return !c.ended })
	})
}

// Silence ends the pings, or lets them go on.
func (s *Server) Silence(silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = silent
}

// Storm lets each of the next n links be one too many: after its hello it is told so, and cut.
func (s *Server) Storm(n int) { s.Unwanted("too_many_websockets", n) }

// Unwanted lets each of the next n links be told a reason after its hello, and be cut.
func (s *Server) Unwanted(reason string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.storm, s.stormy = n, reason
}

// Stormed reports whether the storm is over, or no link is unwanted any more.
func (s *Server) Stormed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.storm == 0
}

// Deliver sends an event of the Events API, or lets it wait for a link, and returns the id of the delivery.
func (s *Server) Deliver(event map[string]any) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.event(event)
}

// event is Deliver. The caller holds mu.
func (s *Server) event(event map[string]any) string {
	return s.send("events_api", map[string]any{
		"type": "event_callback", "team_id": Team, "api_app_id": "A0TEST", "event_id": s.number("Ev"), "event": event,
		"event_time": time.Now().Unix(),
	}, false)
}

// Send sends an envelope of any type with any payload, and returns its id.
func (s *Server) Send(typ string, payload any) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.send(typ, payload, typ != "events_api")
}

// send sends an envelope with a copy of the payload. The caller holds mu.
func (s *Server) send(typ string, payload any, takesPayload bool) string {
	id := s.number("envelope-")
	raw, err := json.Marshal(payload)
	if err == nil {
		payload = nil
		err = json.Unmarshal(raw, &payload)
	}
	if err != nil {
		panic(fmt.Sprintf("slacktest: send a payload: %v", err))
	}
	s.dispatch(&delivery{id: id, body: map[string]any{
		"type": typ, "envelope_id": id, "payload": payload, "accepts_response_payload": takesPayload,
		"retry_attempt": 0, "retry_reason": "",
	}})
	return id
}

// dispatch sends a delivery over the newest link. The caller holds mu.
func (s *Server) dispatch(d *delivery) {
	s.delivered = append(s.delivered, d)
	if c := s.anyLink(); c != nil {
		d.over(c)
	}
	s.Happened()
}

// anyLink is the link that the next delivery takes; nil if there is none. The caller holds mu.
func (s *Server) anyLink() *conn {
	if !s.scatters {
		return s.newest()
	}
	var live []*conn
	for _, c := range s.conns {
		if !c.ended && !c.retired {
			live = append(live, c)
		}
	}
	if len(live) == 0 {
		return nil
	}
	s.serial++
	return live[s.serial%len(live)]
}

// Scatter lets deliveries take any of the links that there are, as Slack does, and not the newest.
func (s *Server) Scatter(scatters bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scatters = scatters
}

// SendRaw sends a frame as it is over the newest link.
func (s *Server) SendRaw(frame string) {
	s.mu.Lock()
	c := s.newest()
	s.mu.Unlock()
	if c == nil {
		return
	}
	c.write.Lock()
	defer c.write.Unlock()
	_ = c.socket.WriteMessage(websocket.TextMessage, []byte(frame))
}

// Retry sends a payload of the Events API that the app has perhaps never seen, as a retry, and returns the id of the
// delivery.
func (s *Server) Retry(payload map[string]any, attempt int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &delivery{id: s.number("envelope-"), body: map[string]any{
		"type": "events_api", "payload": payload, "accepts_response_payload": false, "retry_attempt": attempt, "retry_reason": "timeout",
	}}
	d.body["envelope_id"] = d.id
	s.dispatch(d)
	return d.id
}

// Redeliver sends a delivery again, in a new envelope and as a retry, and returns the id of that.
func (s *Server) Redeliver(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.delivered {
		if d.id == id {
			again := &delivery{id: s.number("envelope-"), body: maps.Clone(d.body)}
			again.body["envelope_id"] = again.id
			again.retry()
			s.dispatch(again)
			return again.id
		}
	}
	panic("slacktest: there was no delivery " + id)
}

// Acked reports how often a delivery, or a frame with that envelope id, was acknowledged, and a delivery with what.
func (s *Server) Acked(id string) (times int, payload json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.delivered {
		if d.id == id {
			return d.acked, d.payload
		}
	}
	return s.acks[id], nil
}

// Unacknowledged are the deliveries that were not acknowledged so far.
func (s *Server) Unacknowledged() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.delivered {
		if d.acked == 0 {
			ids = append(ids, d.id)
		}
	}
	return ids
}

// Slowest is the longest time that a delivery took from when it was first sent until it was acknowledged.
func (s *Server) Slowest() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var slowest time.Duration
	for _, d := range s.delivered {
		slowest = max(slowest, d.took)
	}
	return slowest
}

// Click lets a person press a button of a message by its action id, as the message stands or stood first. It returns the
// id of the delivery, and of the trigger with which a form can be opened. It panics when there is no such button.
func (s *Server) Click(user, channel, ts, action string) (delivery, trigger string) {
	return s.act(user, channel, ts, action, func(e Element) map[string]any {
		return map[string]any{"type": "button", "value": e.Value, "text": map[string]any{"type": "plain_text", "text": e.Label()}}
	})
}

// Choose lets a person choose an entry of a menu, like [Server.Click]. It panics when there is no such entry.
func (s *Server) Choose(user, channel, ts, action, entry string) (delivery string) {
	delivery, _ = s.act(user, channel, ts, action, func(e Element) map[string]any {
		for _, o := range e.Options {
			if o.Text.Text == entry {
				return map[string]any{"type": e.Type, "selected_option": o}
			}
		}
		panic(fmt.Sprintf("slacktest: the menu %s has no entry %q", action, entry))
	})
	return delivery
}

// act delivers what was done with an element of a message.
func (s *Server) act(user, channel, ts, action string, done func(Element) map[string]any) (delivery, trigger string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channel]
	if c == nil || c.find(ts) == nil {
		panic(fmt.Sprintf("slacktest: there is no message %s in %q", ts, channel))
	}
	m := c.find(ts)
	for _, b := range m.First {
		for _, e := range b.Elements {
			if e.ActionID != action {
				continue
			}
			trigger = s.newTrigger()
			container := map[string]any{"type": "message", "message_ts": ts, "channel_id": channel, "is_ephemeral": false}
			if m.Thread != "" {
				container["thread_ts"] = m.Thread
			}
			deed := done(e)
			deed["action_id"], deed["block_id"], deed["action_ts"] = e.ActionID, b.BlockID, s.nextTS()
			return s.send("interactive", map[string]any{
				"type": "block_actions", "team": map[string]any{"id": Team}, "user": s.userJSON(user),
				"channel": map[string]any{"id": channel}, "container": container, "message": m.json(true), "trigger_id": trigger,
				"response_url": s.http.URL + responseURL, "actions": []any{deed},
			}, false), trigger
		}
	}
	panic(fmt.Sprintf("slacktest: the message %s has no button %s", ts, action))
}

func (s *Server) userJSON(user string) map[string]any {
	u := s.users[user]
	return map[string]any{"id": user, "username": strings.ToLower(u.Name), "name": u.Name, "team_id": cmp.Or(u.Team, Team)}
}

// View is the form that was opened with a trigger.
func (s *Server) View(trigger string) (View, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.views {
		if v.Trigger == trigger {
			return v, true
		}
	}
	return View{}, false
}

// Submit lets a person send a form with what they entered, by block and action, and returns the id of the delivery. What is
// entered in a menu or with radio buttons is the value of an option, and with checkboxes the values of some, on a line each. Inputs
// that are not named hold what they held first.
func (s *Server) Submit(user string, v View, values map[string]map[string]string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.send("interactive", map[string]any{
		"type": "view_submission", "team": map[string]any{"id": Team}, "user": s.userJSON(user),
		"view": map[string]any{
			"id": v.ID, "type": "modal", "callback_id": v.Callback, "private_metadata": v.Private, "state": map[string]any{"values": v.State(values)},
		},
	}, true)
}

// State is what a form sends of its inputs: those that are not named in values hold what they held first.
func (v View) State(values map[string]map[string]string) json.RawMessage {
	state := map[string]any{}
	for _, b := range v.Blocks {
		if b.Type == "input" {
			state[b.BlockID] = map[string]any{b.Element.ActionID: b.Element.state(values[b.BlockID])}
		}
	}
	raw, err := json.Marshal(state)
	if err != nil {
		panic(fmt.Sprintf("slacktest: encode what a form holds: %v", err))
	}
	return raw
}

// state is an input as the form sends it, with the values that were entered by action.
func (e Element) state(entered map[string]string) map[string]any {
	value, changed := entered[e.ActionID]
	if e.Options == nil {
		if !changed {
			value = e.Initial
		}
		if value == "" {
			return map[string]any{"type": e.Type, "value": nil}
		}
		return map[string]any{"type": e.Type, "value": value}
	}
	if e.Type == "checkboxes" {
		several := append([]Option{}, e.Several...)
		if changed {
			several = slices.DeleteFunc(slices.Clone(e.Options), func(o Option) bool { return !slices.Contains(strings.Split(value, "\n"), o.Value) })
		}
		return map[string]any{"type": e.Type, "selected_options": several}
	}
	selected := e.Selected
	for i, o := range e.Options {
		if changed && o.Value == value {
			selected = &e.Options[i]
		}
	}
	return map[string]any{"type": e.Type, "selected_option": selected}
}

// Slash lets a person give a slash command, and returns the id of the delivery.
func (s *Server) Slash(user, channel, command, text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.send("slash_commands", map[string]any{
		"command": command, "text": text, "user_id": user, "team_id": Team, "channel_id": channel, "trigger_id": s.number("trigger"),
	}, true)
}
