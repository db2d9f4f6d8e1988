package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/bwmarrin/discordgo"
)

const (
	// apiVersion is the version of the API and of the gateway that are spoken
	// (docs.discord.com/developers/reference#api-versioning).
	apiVersion = "10"
	// libraryPath stands in front of all paths of discordgo's, which speaks an older one.
	libraryPath = "/api/v9"
)

// api is Discord's REST API, through discordgo, whose limits and tries are those of [limiter].
type api struct{ session *discordgo.Session }

func newAPI(token string, transport http.RoundTripper) (*api, error) {
	session, err := discordgo.New("Bot " + token)
	if err != nil {
		return nil, fmt.Errorf("set up discordgo: %w", err)
	}
	session.Client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	session.MaxRestRetries, session.ShouldRetryOnRateLimit = 0, false // what failed is tried again by whoever asked, under the same nonce
	return &api{session}, nil
}

// call makes a call, and reads its answer into out if that is not nil.
func (a *api) call(ctx context.Context, method, address string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("encode what is sent to discord: %w", err)
		}
	}
	return a.request(ctx, method, address, "application/json", body, out)
}

// request is call with a body of some type. Each has a bucket of its own, since discordgo's would wait and stay for ever.
func (a *api) request(ctx context.Context, method, address, contentType string, body []byte, out any) error {
	bucket := discordgo.NewRatelimiter().LockBucket("")
	answer, err := a.session.RequestWithLockedBucket(method, address, contentType, body, bucket, 0, discordgo.WithContext(ctx))
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err // without the address, in which there may be a token of an interaction
	}
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("read the answer of discord: %w", err)
	}
	return nil
}

// silence lets nobody be notified by a message, whatever its text holds. It goes with everything that is sent.
func silence() *discordgo.MessageAllowedMentions {
	return &discordgo.MessageAllowedMentions{Parse: []discordgo.AllowedMentionType{}}
}

// sending is a message with a nonce, which discordgo does not know: Discord gives back the message that stands there when the
// same nonce comes again within some minutes (docs.discord.com/developers/resources/message#create-message).
type sending struct {
	*discordgo.MessageSend
	Nonce   string `json:"nonce,omitempty"`
	Enforce bool   `json:"enforce_nonce,omitempty"`
}

// stands is a message as Discord tells of it, as far as it is read.
type stands struct {
	ID         string          `json:"id"`
	Content    string          `json:"content"`
	Nonce      json.RawMessage `json:"nonce"`
	Components json.RawMessage `json:"components"`
	Author     struct {
		ID string `json:"id"`
	} `json:"author"`
}

// post says something in a channel, perhaps with files.
func (a *api) post(ctx context.Context, channel, nonce string, m *discordgo.MessageSend) (id string, err error) {
	m.AllowedMentions = silence()
	m.Flags |= discordgo.MessageFlagsSuppressEmbeds // Discord fetches no page that a text names
	var said stands
	address, with := discordgo.EndpointChannelMessages(channel), sending{m, nonce, nonce != ""}
	if len(m.Files) == 0 {
		err = a.call(ctx, http.MethodPost, address, with, &said)
		return said.ID, err
	}
	contentType, body, err := discordgo.MultipartBodyWithJSON(with, m.Files)
	if err != nil {
		return "", fmt.Errorf("encode a message with a file: %w", err)
	}
	err = a.request(ctx, http.MethodPost, address, contentType, body, &said)
	return said.ID, err
}

// editing is what a message is to be.
type editing struct {
	Content         string                            `json:"content"`
	Components      []discordgo.MessageComponent      `json:"components"`
	AllowedMentions *discordgo.MessageAllowedMentions `json:"allowed_mentions"`
}

// edit changes a message: what it says, and its buttons.
func (a *api) edit(ctx context.Context, at message, text string, components []discordgo.MessageComponent) error {
	if components == nil {
		components = []discordgo.MessageComponent{}
	}
	return a.call(ctx, http.MethodPatch, discordgo.EndpointChannelMessage(at.channel, at.id), editing{text, components, silence()}, nil)
}

// remove deletes a message. One that is gone is deleted.
func (a *api) remove(ctx context.Context, at message) error {
	err := a.call(ctx, http.MethodDelete, discordgo.EndpointChannelMessage(at.channel, at.id), nil, nil)
	if done(err, codeUnknownMessage, codeUnknownChannel) {
		return nil
	}
	return err
}

// page is what was said in a channel after a message, oldest first, a hundred messages at most.
func (a *api) page(ctx context.Context, channel, after string, out any) error {
	address := discordgo.EndpointChannelMessages(channel) + "?" + url.Values{"after": {after}, "limit": {"100"}}.Encode()
	return a.call(ctx, http.MethodGet, address, nil, out)
}

// typing shows for ten seconds that something is being written in a channel.
func (a *api) typing(ctx context.Context, channel string) error {
	return a.call(ctx, http.MethodPost, discordgo.EndpointChannelTyping(channel), nil, nil)
}

// react puts a reaction on a message, or takes it off.
func (a *api) react(ctx context.Context, method string, at message, emoji string) error {
	return a.call(ctx, method, discordgo.EndpointMessageReaction(at.channel, at.id, url.PathEscape(emoji), "@me"), nil, nil)
}

// openDM gives the channel of a person's direct messages.
func (a *api) openDM(ctx context.Context, user string) (channel string, err error) {
	var opened struct {
		ID string `json:"id"`
	}
	err = a.call(ctx, http.MethodPost, discordgo.EndpointUserChannels("@me"), map[string]string{"recipient_id": user}, &opened)
	return opened.ID, err
}

// beginThread begins a thread under a message. Its id is that of the message.
func (a *api) beginThread(ctx context.Context, at message, name string) error {
	begin := map[string]any{"name": name, "auto_archive_duration": 1440}
	return a.call(ctx, http.MethodPost, discordgo.EndpointChannelMessageThread(at.channel, at.id), begin, nil)
}

// room is a channel or a thread, as far as it is read.
type room struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Guild  string `json:"guild_id"`
	Parent string `json:"parent_id"`
	Type   int    `json:"type"`
	User   string `json:"owner_id"`
}

// isThread reports whether a room is a thread (docs.discord.com/developers/resources/channel#channel-object-channel-types).
func (r room) isThread() bool { return r.Type >= 10 && r.Type <= 12 }

// room asks for a channel or a thread.
func (a *api) room(ctx context.Context, id string) (r room, err error) {
	err = a.call(ctx, http.MethodGet, discordgo.EndpointChannel(id), nil, &r)
	return r, err
}

// gateway asks where the gateway is.
func (a *api) gateway(ctx context.Context) (g gateway, err error) {
	err = a.call(ctx, http.MethodGet, discordgo.EndpointGatewayBot, nil, &g)
	return g, err
}

// application is what Discord tells of the app.
type application struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Flags int    `json:"flags"`
}

// The flags of an app that may read what is said: that of a verified one, and that of all others
// (docs.discord.com/developers/resources/application#application-object-application-flags).
const readsContent = 1<<18 | 1<<19

func (a *api) application(ctx context.Context) (app application, err error) {
	err = a.call(ctx, http.MethodGet, discordgo.EndpointApplication("@me"), nil, &app)
	return app, err
}

// guild is a server in which the bot is, with what it may do there by its roles, channels apart.
type guild struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Permissions string `json:"permissions"`
}

// guilds are the first two hundred servers in which the bot is.
func (a *api) guilds(ctx context.Context) (guilds []guild, err error) {
	err = a.call(ctx, http.MethodGet, discordgo.EndpointUserGuilds("@me"), nil, &guilds)
	return guilds, err
}

// register makes the commands known, or brings them up to date.
func (a *api) register(ctx context.Context, app string) error {
	for _, command := range []map[string]any{slashCommand, messageCommand} {
		if err := a.call(ctx, http.MethodPost, discordgo.EndpointApplicationGlobalCommands(app), command, nil); err != nil {
			return fmt.Errorf("register the command %q: %w", command["name"], err)
		}
	}
	return nil
}

// answer answers an interaction, which has to be done within three seconds, and once.
func (a *api) answer(ctx context.Context, i interaction, with any) error {
	return a.call(ctx, http.MethodPost, discordgo.EndpointInteractionResponse(i.ID, i.Token), with, nil)
}

// whispered is a message that only one person sees.
type whispered struct {
	Content         string                            `json:"content"`
	Flags           discordgo.MessageFlags            `json:"flags,omitempty"`
	AllowedMentions *discordgo.MessageAllowedMentions `json:"allowed_mentions"`
}

// whisper tells the person of an interaction something that nobody else sees.
func (a *api) whisper(ctx context.Context, app, token, text string) error {
	return a.call(ctx, http.MethodPost, discordgo.EndpointWebhookToken(app, token),
		whispered{text, discordgo.MessageFlagsEphemeral | discordgo.MessageFlagsSuppressEmbeds, silence()}, nil)
}

// finish says something in place of "is thinking" under a slash command.
func (a *api) finish(ctx context.Context, app, token, text string) error {
	return a.call(ctx, http.MethodPatch, discordgo.EndpointWebhookMessage(app, token, "@original"), whispered{Content: text, AllowedMentions: silence()}, nil)
}
