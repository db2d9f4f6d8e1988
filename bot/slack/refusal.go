package slack

import (
	"slices"
	"sync"
)

// The errors of methods that an app may lack which are about one channel, and those which are about one call. All others
// that Slack gives for them are about the app, such as that it is not declared as an agent.
var (
	channelCodes = []string{
		"channel_not_found", "not_in_channel", "is_archived", "channel_type_not_supported", "method_not_supported_for_channel_type",
		"restricted_action", "missing_recipient_user_id", "missing_recipient_team_id",
	}
	callCodes = []string{
		"thread_not_found", "invalid_thread_ts", "thread_locked", "user_not_in_channel", "user_not_found", "invalid_arguments",
		"invalid_chunks", "no_text", "msg_too_long", "message_not_found", "message_not_in_streaming_state", "ratelimited",
		"invalid_blocks", "view_too_large", "hash_conflict", "duplicate_external_id",
	}
)

// refusals remember what Slack does not let this app do, so that it is not asked for at every turn. They last as long as the
// process. The zero value works.
type refusals struct {
	mu sync.Mutex
	of map[string]bool
}

// note remembers a refusal of a method, everywhere or in one channel. An error that may pass is not remembered.
func (r *refusals) note(method, channel string, err error) {
	c := code(err)
	if c == "" || limited(err) || unsure(err) || slices.Contains(callCodes, c) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil || len(r.of) >= mostKept {
		r.of = map[string]bool{}
	}
	if slices.Contains(channelCodes, c) {
		method += " " + channel
	}
	r.of[method] = true
}

// has reports whether Slack has refused a method, everywhere or in a channel.
func (r *refusals) has(method, channel string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[method] || r.of[method+" "+channel]
}
