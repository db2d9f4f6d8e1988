package slacktest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// responseURL is where clicks say that they can be answered. It lives for half an hour, so here it never does.
const responseURL = "/gone"

// answer is what a method answers, besides ok.
type answer map[string]any

// failure is an answer that is not ok.
func failure(code string) answer { return answer{"error": code} }

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, "/api/"):
		s.call(w, r, strings.TrimPrefix(r.URL.Path, "/api/"))
	case r.URL.Path == "/link":
		s.link(w, r)
	case strings.HasPrefix(r.URL.Path, "/upload/"):
		s.upload(w, r, strings.TrimPrefix(r.URL.Path, "/upload/"))
	case strings.HasPrefix(r.URL.Path, filesPath):
		s.download(w, r, strings.TrimPrefix(r.URL.Path, filesPath))
	case r.URL.Path == responseURL:
		s.mu.Lock()
		s.calls = append(s.calls, Call{Method: "response_url", At: time.Now(), Error: "expired_url"})
		s.mu.Unlock()
		http.NotFound(w, r)
	default:
		http.NotFound(w, r)
	}
}

// call serves one call of the Web API.
func (s *Server) call(w http.ResponseWriter, r *http.Request, method string) {
	c, token := readCall(r, method)
	s.mu.Lock()
	fault := s.Spoil(method, len(s.calls))
	var out answer
	if wait := s.over(c); fault == nil && wait > 0 {
		fault = &Fault{RetryAfter: max(wait, time.Second)}
	}
	if fault != nil && fault.RetryAfter > 0 {
		c.Error = "ratelimited"
		s.refused++
	}
	switch {
	case fault != nil && fault.Error != "":
		out = failure(fault.Error)
	case fault != nil && !fault.Done && (fault.Hang || fault.Status > 0 || fault.RetryAfter > 0):
	case method == "apps.connections.open" && token == "Bearer "+BotToken, method != "apps.connections.open" && strings.TrimPrefix(token, "Bearer ") == AppToken:
		out = failure("not_allowed_token_type")
	case method == "apps.connections.open" && token != "Bearer "+AppToken, method != "apps.connections.open" && token != BotToken && token != "Bearer "+BotToken:
		out = failure("invalid_auth")
	default:
		out = s.do(c)
	}
	if e, ok := out["error"].(string); ok {
		c.Error = e
	}
	s.calls = append(s.calls, c)
	s.Happened()
	s.mu.Unlock()
	if fault != nil && spoiled(w, r, *fault) {
		return
	}
	_, failed := out["error"]
	body := map[string]any{"ok": !failed}
	for k, v := range out {
		body[k] = v
	}
	w.Header().Set("Content-Type", "application/json")
	if s.options.Scopes != "" {
		w.Header().Set("X-OAuth-Scopes", s.options.Scopes)
	}
	_ = json.NewEncoder(w).Encode(body)
}

// spoiled lets a call go wrong, and reports whether that was all of its answer.
func spoiled(w http.ResponseWriter, r *http.Request, f Fault) bool {
	if f.Hang {
		<-r.Context().Done()
		return true
	}
	if f.Delay > 0 {
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return true
		}
	}
	switch {
	case f.RetryAfter > 0:
		w.Header().Set("Retry-After", fmt.Sprint(int((f.RetryAfter+time.Second-time.Microsecond)/time.Second)))
		w.WriteHeader(http.StatusTooManyRequests)
	case f.Status > 0:
		w.WriteHeader(f.Status)
	default:
		return false
	}
	return true
}

// readCall reads what was asked for, and with which token: as a form field, or as a header.
func readCall(r *http.Request, method string) (Call, string) {
	c := Call{Method: method, At: time.Now()}
	token := r.Header.Get("Authorization")
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		_ = json.NewDecoder(r.Body).Decode(&c.JSON)
		return c, token
	}
	_ = r.ParseForm()
	c.Form = r.PostForm
	if c.Form == nil {
		c.Form = url.Values{}
	}
	if token == "" {
		token = c.Form.Get("token")
	}
	c.Form.Del("token")
	return c, token
}

// do does what a call asks for. The caller holds mu.
func (s *Server) do(c Call) answer {
	switch c.Method {
	case "apps.connections.open":
		s.opens++
		ticket := s.number("ticket")
		s.tickets[ticket] = true
		return answer{"url": strings.Replace(s.http.URL, "http://", "ws://", 1) + "/link?ticket=" + ticket}
	case "auth.test":
		return answer{"team_id": Team, "user_id": BotUser, "bot_id": BotID, "user": "nudge", "team": "Test"}
	case "users.info":
		return s.usersInfo(c.Form.Get("user"))
	case "conversations.open":
		user := c.Form.Get("users")
		if _, ok := s.users[user]; !ok {
			return failure("user_not_found")
		}
		return answer{"channel": map[string]any{"id": s.openDM(user).id}}
	case "conversations.history", "conversations.replies":
		return s.read(c)
	case "chat.postMessage", "chat.postEphemeral":
		return s.postMessage(c)
	case "chat.update":
		return s.update(c)
	case "chat.delete":
		return s.remove(c)
	case "reactions.add", "reactions.remove":
		return s.react(c)
	case "views.open":
		return s.openView(c)
	case "views.publish":
		return s.publish(c)
	case "assistant.threads.setStatus":
		return s.setStatus(c)
	case "assistant.threads.setSuggestedPrompts":
		return s.suggest(c)
	case "assistant.threads.setTitle":
		return s.setTitle(c)
	case "agents.sessions.setStatus":
		return s.setSession(c)
	case "chat.startStream":
		return s.startStream(c)
	case "chat.appendStream":
		return s.appendStream(c)
	case "chat.stopStream":
		return s.stopStream(c)
	case "files.info":
		return s.filesInfo(c.Form.Get("file"))
	case "files.getUploadURLExternal":
		return s.getUploadURL(c)
	case "files.completeUploadExternal":
		return s.completeUpload(c)
	}
	return failure("unknown_method")
}

func (s *Server) usersInfo(id string) answer {
	u, ok := s.users[id]
	if !ok {
		return failure("user_not_found")
	}
	return answer{"user": u.json()}
}

// json is a person as Slack tells of them.
func (u User) json() map[string]any {
	return map[string]any{
		"id": u.ID, "team_id": u.Team, "name": strings.ToLower(u.Name), "real_name": u.Name, "tz": u.Zone, "locale": cmp.Or(u.Locale, "en-US"),
		"is_bot": u.Bot, "is_restricted": u.Guest, "is_stranger": u.Stranger,
		"enterprise_user": map[string]any{"enterprise_id": u.Enterprise},
		"profile":         map[string]any{"display_name": u.Name, "real_name": u.Name},
	}
}

// place finds the channel of a call. A person's id stands for their direct messages.
func (s *Server) place(c Call) (*channel, string) {
	id := c.Form.Get("channel")
	if _, isUser := s.users[id]; isUser {
		return s.openDM(id), ""
	}
	ch := s.channels[id]
	switch {
	case ch == nil:
		return nil, "channel_not_found"
	case ch.archived:
		return nil, "is_archived"
	case !ch.members[BotUser]:
		return nil, "not_in_channel"
	}
	return ch, ""
}

func (s *Server) read(c Call) answer {
	ch, refusal := s.place(c)
	if refusal != "" {
		return failure(refusal)
	}
	thread, oldest, latest := c.Form.Get("ts"), c.Form.Get("oldest"), c.Form.Get("latest")
	meta := c.Form.Get("include_all_metadata") == "true" || c.Form.Get("include_all_metadata") == "1"
	var out []map[string]any
	for _, m := range ch.messages {
		inThread := thread != "" && (m.TS == thread || m.Thread == thread)
		atTop := thread == "" && (m.Thread == "" || m.Thread == m.TS)
		if m.For == "" && (inThread || atTop) && m.TS >= oldest && (latest == "" || m.TS <= latest) {
			out = append(out, m.json(meta))
		}
	}
	if thread == "" {
		slices.Reverse(out)
	}
	return answer{"messages": out, "has_more": false}
}

func (s *Server) postMessage(c Call) answer {
	ch, refusal := s.place(c)
	if refusal != "" {
		return failure(refusal)
	}
	text, only := c.Form.Get("text"), c.Form.Get("user")
	blocks, refusal := readBlocks(c.Form.Get("blocks"), mostBlocks)
	switch {
	case refusal != "":
		return failure(refusal)
	case text == "" && len(blocks) == 0:
		return failure("no_text")
	case size(text) > mostText:
		return failure("msg_too_long")
	case ch.unknownThread(c.Form.Get("thread_ts")):
		return failure("thread_not_found")
	case c.Method == "chat.postEphemeral" && !ch.members[only]:
		return failure("user_not_in_channel")
	}
	var metadata map[string]any
	if raw := c.Form.Get("metadata"); raw != "" && json.Unmarshal([]byte(raw), &metadata) != nil {
		return failure("invalid_metadata_format")
	}
	texts := []string{text}
	if len(blocks) == 0 && size(text) > splitText {
		texts = chop(text)
	}
	ts := ""
	for _, t := range texts {
		m := &Message{Channel: ch.id, TS: s.nextTS(), Thread: c.Form.Get("thread_ts"), User: BotUser, Text: t, Blocks: blocks, First: blocks, Metadata: metadata, Parse: c.Form.Get("parse")}
		if c.Method == "chat.postEphemeral" {
			m.For, m.Metadata = only, nil
		}
		ch.messages = append(ch.messages, m)
		ts = m.TS
	}
	if only == "" {
		delete(s.statuses, spot{ch.id, c.Form.Get("thread_ts")})
	}
	return answer{"channel": ch.id, "ts": ts, "message_ts": ts}
}

// chop splits a text as Slack does: every so many characters.
func chop(text string) []string {
	var out []string
	for runes := []rune(text); len(runes) > 0; {
		n := min(len(runes), updateText)
		out, runes = append(out, string(runes[:n])), runes[n:]
	}
	return out
}

func (s *Server) update(c Call) answer {
	ch, refusal := s.place(c)
	if refusal != "" {
		return failure(refusal)
	}
	m := ch.find(c.Form.Get("ts"))
	text := c.Form.Get("text")
	_, withBlocks := c.Form["blocks"]
	blocks, refusal := readBlocks(c.Form.Get("blocks"), mostBlocks)
	switch {
	case m == nil:
		return failure("message_not_found")
	case m.User != BotUser:
		return failure("cant_update_message")
	case m.Streaming:
		return failure("streaming_state_conflict")
	case refusal != "":
		return failure(refusal)
	case size(text) > updateText:
		return failure("msg_too_long")
	case text == "" && len(blocks) == 0:
		return failure("no_text")
	}
	m.Text, m.Edited, m.Parse = text, true, c.Form.Get("parse")
	if withBlocks || text != "" {
		m.Blocks = blocks
	}
	return answer{"channel": ch.id, "ts": m.TS, "text": text}
}

func (s *Server) remove(c Call) answer {
	ch, refusal := s.place(c)
	if refusal != "" {
		return failure(refusal)
	}
	m := ch.find(c.Form.Get("ts"))
	switch {
	case m == nil:
		return failure("message_not_found")
	case m.User != BotUser:
		return failure("cant_delete_message")
	case m.Streaming:
		return failure("streaming_state_conflict")
	}
	ch.messages = slices.DeleteFunc(ch.messages, func(other *Message) bool { return other == m })
	return answer{"channel": ch.id, "ts": m.TS}
}

func (s *Server) react(c Call) answer {
	ch, refusal := s.place(c)
	if refusal != "" {
		return failure(refusal)
	}
	m, name := ch.find(c.Form.Get("timestamp")), c.Form.Get("name")
	if m == nil {
		return failure("message_not_found")
	}
	at := slices.Index(m.Reactions, name)
	switch {
	case c.Method == "reactions.add" && at >= 0:
		return failure("already_reacted")
	case c.Method == "reactions.add":
		m.Reactions = append(m.Reactions, name)
	case at < 0:
		return failure("no_reaction")
	default:
		m.Reactions = slices.Delete(m.Reactions, at, at+1)
	}
	return answer{}
}

func (s *Server) openView(c Call) answer {
	trigger, _ := c.JSON["trigger_id"].(string)
	until, known := s.triggers[trigger]
	switch {
	case !known:
		return failure("invalid_trigger_id")
	case until.IsZero():
		return failure("exchanged_trigger_id")
	case s.options.Now().After(until):
		return failure("expired_trigger_id")
	}
	raw, _ := json.Marshal(c.JSON["view"])
	v, refusal := readView(raw)
	if refusal != "" {
		return failure(refusal)
	}
	s.triggers[trigger] = time.Time{}
	v.ID, v.Trigger = s.number("V"), trigger
	s.views = append(s.views, v)
	return answer{"view": map[string]any{"id": v.ID, "type": "modal"}}
}
