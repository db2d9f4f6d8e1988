package slacktest

import (
	"encoding/json"
	"fmt"
)

// OpenHome lets a person open the bot: the tab "home", or "messages". It returns the id of the delivery.
func (s *Server) OpenHome(user, tab string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.event(map[string]any{
		"type": "app_home_opened", "user": user, "channel": s.openDM(user).id, "tab": tab, "event_ts": s.nextTS(),
	})
}

// Home is what a person's Home shows at present.
func (s *Server) Home(user string) (View, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, shown := s.homes[user]
	return v, shown
}

func (s *Server) publish(c Call) answer {
	user, _ := c.JSON["user_id"].(string)
	if _, known := s.users[user]; !known {
		return failure("user_not_found")
	}
	raw, _ := json.Marshal(c.JSON["view"])
	var w struct {
		Type     string          `json:"type"`
		Callback string          `json:"callback_id"`
		Private  string          `json:"private_metadata"`
		Blocks   json.RawMessage `json:"blocks"`
	}
	if json.Unmarshal(raw, &w) != nil || w.Type != "home" {
		return failure("invalid_arguments")
	}
	blocks, refusal := readBlocks(string(w.Blocks), mostHome)
	if refusal != "" || len(blocks) == 0 || size(w.Private) > privateText {
		return failure("invalid_arguments")
	}
	v := View{ID: s.number("V"), User: user, Callback: w.Callback, Private: w.Private, Blocks: blocks}
	s.homes[user] = v
	return answer{"view": map[string]any{"id": v.ID, "type": "home"}}
}

// ClickHome lets a person press the button of their Home that has an action and a value. It returns the id of the delivery,
// and of the trigger with which a form can be opened. It panics when there is no such button.
func (s *Server) ClickHome(user, action, value string) (delivery, trigger string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.homes[user]
	for _, b := range v.Blocks {
		for _, e := range b.Elements {
			if e.ActionID != action || e.Value != value {
				continue
			}
			trigger = s.newTrigger()
			return s.send("interactive", map[string]any{
				"type": "block_actions", "team": map[string]any{"id": Team}, "user": s.userJSON(user), "trigger_id": trigger,
				"container": map[string]any{"type": "view", "view_id": v.ID},
				"view":      map[string]any{"id": v.ID, "type": "home", "callback_id": v.Callback, "private_metadata": v.Private},
				"actions": []any{map[string]any{
					"type": "button", "action_id": e.ActionID, "block_id": b.BlockID, "value": e.Value, "action_ts": s.nextTS(),
					"text": map[string]any{"type": "plain_text", "text": e.Label()},
				}},
			}, false), trigger
		}
	}
	panic(fmt.Sprintf("slacktest: the Home of %s has no button %s with %q", user, action, value))
}

// Shortcut lets a person choose a shortcut of the app's on a message. It returns the id of the delivery, and of the trigger
// with which a form can be opened.
func (s *Server) Shortcut(user, channel, ts, callback string) (delivery, trigger string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channel]
	if c == nil || c.find(ts) == nil {
		panic(fmt.Sprintf("slacktest: there is no message %s in %q", ts, channel))
	}
	trigger = s.newTrigger()
	return s.send("interactive", map[string]any{
		"type": "message_action", "callback_id": callback, "team": map[string]any{"id": Team}, "user": s.userJSON(user),
		"channel": map[string]any{"id": channel, "name": "general"}, "message": c.find(ts).json(false), "message_ts": ts,
		"trigger_id": trigger, "action_ts": s.nextTS(), "response_url": s.http.URL + "/gone",
	}, false), trigger
}

// newTrigger gives a new trigger. The caller holds mu.
func (s *Server) newTrigger() string {
	trigger := s.number("trigger")
	s.triggers[trigger] = s.options.Now().Add(s.options.Trigger)
	return trigger
}

// ChangeUser changes what is known of a person, and tells the app. It returns the id of the delivery.
func (s *Server) ChangeUser(u User) string {
	s.AddUser(u)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.event(map[string]any{"type": "user_change", "user": s.users[u.ID].json(), "event_ts": s.nextTS()})
}

// Kick takes the bot out of a channel.
func (s *Server) Kick(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.channels[id].members, BotUser)
}
