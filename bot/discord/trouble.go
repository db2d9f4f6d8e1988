package discord

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/bwmarrin/discordgo"

	"nudge/bot"
	"nudge/bot/wire"
)

// The codes of Discord's errors that are told apart (docs.discord.com/developers/topics/opcodes-and-status-codes#json).
const (
	codeUnknownChannel     = 10003
	codeUnknownMessage     = 10008
	codeUnknownUser        = 10013
	codeUnknownWebhook     = 10015
	codeUnknownInteraction = 10062
	codeAnswered           = 40060
	codeTooLarge           = 40005
	codeNoAccess           = 50001
	codeNotInDM            = 50003
	codeNotOwn             = 50005
	codeEmpty              = 50006
	codeCannotTell         = 50007 // the person takes no direct messages from the bot
	codeMissing            = 50013
	codeWrongType          = 50024
	codeExpired            = 50027
	codeInvalidForm        = 50035
	codeArchived           = 50083
	codeNoGuild            = 50278 // the person is in no server with the bot
	codeNoHistory          = 160002
	codeHasThread          = 160004
	codeLocked             = 160005
	codeMostThreads        = 160006
	codeOld                = 30046 // edited too often for its age
	codeOpenTooFast        = 40003
)

// The codes that say that a conversation or its person is not there any more, or that a message can never be said.
var goneCodes = []int{
	codeUnknownChannel, codeUnknownUser, codeNoAccess, codeNotInDM, codeEmpty, codeCannotTell, codeMissing, codeInvalidForm, codeNoGuild,
	codeLocked, codeArchived,
}

// Of these, the codes that say that a person or a conversation is not there any more, or takes nothing from the bot.
var leftCodes = []int{codeUnknownChannel, codeUnknownUser, codeNoAccess, codeNotInDM, codeCannotTell, codeNoGuild}

// code is what Discord said in an answer that was an error; 0 for all other errors.
func code(err error) int {
	var said *discordgo.RESTError
	if errors.As(err, &said) && said.Message != nil {
		return said.Message.Code
	}
	return 0
}

// status is the HTTP status of an answer that was an error; 0 when there was none.
func status(err error) int {
	var said *discordgo.RESTError
	if errors.As(err, &said) && said.Response != nil {
		return said.Response.StatusCode
	}
	return 0
}

// lasting reports whether an error stays until somebody changes the app or its token. The token of an interaction is another.
func lasting(err error) bool {
	return status(err) == http.StatusUnauthorized && !slices.Contains([]int{codeExpired, codeUnknownWebhook}, code(err))
}

// unsure reports whether what was asked for may have been done in spite of the error.
func unsure(err error) bool {
	return err != nil && !limited(err) && status(err) == 0 && !wire.Unsent(err)
}

// sendError says what is known of something that could not be said.
func (d *Discord) sendError(err error) error {
	var known *bot.SendError
	if err == nil || errors.As(err, &known) {
		return err
	}
	if lasting(err) {
		d.lose(fmt.Errorf("say something in discord, with %s: %w; %s", d.token, err, refusals[4004]))
		return &bot.SendError{Closed: true, Err: err}
	}
	return &bot.SendError{
		Gone: slices.Contains(goneCodes, code(err)), Left: slices.Contains(leftCodes, code(err)), RetryAfter: retryAfter(err), Err: err,
	}
}

// done reports whether an error only says that something is so already, or not there any more.
func done(err error, codes ...int) bool {
	return err == nil || slices.Contains(codes, code(err))
}
