package slack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/slack-go/slack"

	"nudge/bot"
	"nudge/bot/wire"
)

// The errors after which no call can succeed until somebody changes the app or its tokens.
var fatalCodes = []string{
	"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "not_allowed_token_type",
	"no_permission", "missing_scope", "org_login_required", "ekm_access_denied", "team_access_not_granted", "access_denied",
	"two_factor_setup_required", "invalid_app_id",
}

// Of the fatal errors, those that are about what was asked for and not about the app as a whole.
var missingCodes = []string{"missing_scope", "no_permission", "access_denied"}

// The errors that say that a conversation or its person is not there any more, or that the message can never be said.
var goneCodes = []string{
	"channel_not_found", "is_archived", "not_in_channel", "user_not_found", "users_not_found", "user_disabled", "user_not_visible",
	"cannot_dm_bot", "cannot_message_user", "messages_tab_disabled", "restricted_action", "restricted_action_read_only_channel",
	"restricted_action_thread_only_channel", "restricted_action_non_threadable_channel", "restricted_action_thread_locked",
	"thread_locked", "thread_not_found", "msg_too_long", "no_text", "invalid_blocks", "msg_blocks_too_long", "invalid_arguments",
	"method_not_supported_for_channel_type", "as_user_not_supported", "team_not_found",
}

// Of these, the errors that say that the person or the conversation is not there any more, or takes nothing from the app.
var leftCodes = []string{
	"channel_not_found", "is_archived", "not_in_channel", "user_not_found", "users_not_found", "user_disabled", "user_not_visible",
	"cannot_dm_bot", "cannot_message_user", "messages_tab_disabled", "restricted_action", "team_not_found",
}

// The errors of Slack's own after which something may have been done all the same.
var unsureCodes = []string{"internal_error", "fatal_error", "service_unavailable", "request_timeout"}

// The errors that say that no file, or none of this kind, may be uploaded there. Words still may be said.
// Source: https://docs.slack.dev/reference/methods/files.getUploadURLExternal and files.completeUploadExternal.
var fileCodes = []string{
	"missing_scope", "no_permission", "file_type_not_allowed", "file_upload_size_restricted", "file_uploads_disabled",
	"file_uploads_except_images_disabled", "storage_limit_reached", "slack_connect_blocked_file_type",
	"slack_connect_file_upload_sharing_blocked",
}

// uploadRefused reports whether Slack takes no file, however often it is tried.
func uploadRefused(err error) bool { return slices.Contains(fileCodes, code(err)) }

// code is what Slack said in an answer that was not ok; "" for all other errors.
func code(err error) string {
	var said slack.SlackErrorResponse
	if errors.As(err, &said) {
		return said.Err
	}
	return ""
}

// fatal reports whether an error stays until somebody changes the app or its tokens.
func fatal(err error) bool {
	if slices.Contains(fatalCodes, code(err)) {
		return true
	}
	var status slack.StatusCodeError
	return errors.As(err, &status) && status.Code == http.StatusNotFound
}

// lasting reports whether an error is fatal for all that could be asked for: a right that is missing for one thing does
// not take away the others.
func lasting(err error) bool { return fatal(err) && !slices.Contains(missingCodes, code(err)) }

// retryAfter is how long Slack asked to wait; 0 when it did not.
func retryAfter(err error) time.Duration {
	var limited *slack.RateLimitedError
	if errors.As(err, &limited) {
		return limited.RetryAfter
	}
	return 0
}

// limited reports whether Slack refused a call because there were too many.
func limited(err error) bool {
	var limited *slack.RateLimitedError
	return errors.As(err, &limited)
}

// unsure reports whether what was asked for may have been done in spite of the error.
func unsure(err error) bool {
	if err == nil || limited(err) || wire.Unsent(err) {
		return false
	}
	if c := code(err); c != "" {
		return slices.Contains(unsureCodes, c)
	}
	var status slack.StatusCodeError
	return !errors.As(err, &status) || status.Code >= http.StatusInternalServerError
}

// sendError says what is known of something that could not be said.
func (s *Slack) sendError(err error) error {
	var known *bot.SendError
	if err == nil || errors.As(err, &known) {
		return err
	}
	if lasting(err) {
		s.lose(fmt.Errorf("say something in slack, with %s: %w", s.botToken, err))
		return &bot.SendError{Closed: true, Err: err}
	}
	return &bot.SendError{
		Gone: slices.Contains(goneCodes, code(err)) || fatal(err), Left: slices.Contains(leftCodes, code(err)), RetryAfter: retryAfter(err), Err: err,
	}
}

// done reports whether an error only says that something is so already.
func done(err error, codes ...string) bool {
	return err == nil || slices.Contains(codes, code(err))
}

// ended reports whether an error comes from a context that ended.
func ended(err error) bool { return errors.Is(err, context.Canceled) }
