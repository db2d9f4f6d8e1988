// Package discord is the adapter for Discord, over its gateway and its REST API. Start with [Discord.Listen] and [Discord.Say]; the
// rest is in files named after what they are about:
//
//	the link       link.go, its WebSocket: how it is opened, kept and taken up again
//	what is heard  event.go, messages; bookmark.go, those that were said while there was no link; interaction.go, buttons and the
//	               slash command; complete.go, that command while it is typed; form.go and fields.go, forms; about.go, a
//	               message that somebody points at; zone.go, the question for a person's time zone
//	what is said   say.go; cards in card.go and choice.go, notify cards in feedback.go; progress.go, what is being done; ledger.go,
//	               what stands in Discord of a reply whose fate is not known
//	its markup     markup.go, where a text is cut; table.go, tables
//	calls          api.go, each of them; limiter.go, Discord's limits; trouble.go, what an error means
//	who and where  place.go, conversations and messages; room.go, channels and threads; file.go, what people attach
//	the app        check.go, what it may do
//
// What people say comes over a WebSocket, in order, and is only put into the lane of its channel there ([bot.Lanes]):
// each message is made into an event and given to the receiver until that has taken it, since Discord delivers nothing
// again by itself. What is clicked, entered in a form or given as a command is answered at once, as Discord allows
// three seconds for that, and taken after it. What the agent says goes through discordgo: Markdown is Discord's own, so
// that it is only split into messages, each posted under a nonce made of the reply's key, by which Discord and a look
// into the channel tell whether it stands there. Nothing that is sent can notify anybody.
//
// Where the bot is mentioned in a channel, it answers in a thread under that message, which it begins when it first speaks there.
// While it works it is seen typing, and what is done in a turn that lasts is shown as one message with a Stop button.
//
// Conversations are discord:GUILD:CHANNEL:THREAD in servers, and discord:local:dm:USER in direct messages. People are
// discord:USER.
package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/wire"
)

const (
	platform   = "discord"
	defaultAPI = "https://discord.com/api"
)

// Config is what a Discord is made of. Token must be set.
type Config struct {
	Token string // of the bot, without "Bot " in front
	// TokenFrom says where the token comes from, such as the variable that holds it. It stands in the errors about the token, so
	// it must be no secret. It may be empty.
	TokenFrom string
	APIURL    string // instead of https://discord.com/api
	// People are the ids of those who may write to the bot first, as far as they are known. Discord does not tell of
	// direct messages that were begun while there was no session, so these are looked for.
	People []string
	// Alarm, if set, is called when somebody has to mend the app or its token before anything is heard or said again, once for
	// each time that this happens. It may be called concurrently.
	Alarm  func(text string)
	Log    *slog.Logger
	Timing Timing
}

// Timing says how long things take. A field that is zero has the value given here.
type Timing struct {
	Hello    time.Duration // for Discord to greet, and to say that a session is there; 30 s
	Stale    time.Duration // nothing heard for so long, or for two beats: the link is stale; 100 s
	Timeout  time.Duration // of one call of the API; 20 s
	Identify time.Duration // between two beginnings of a session; 5 s
	Invalid  time.Duration // the least wait after Discord has ended a session, and a quarter of what is added at random; 1 s
	Day      time.Duration // in which Discord counts the beginnings of sessions; 24 h
	Sessions int           // how many may be begun in a Day; 900
	Answer   time.Duration // for what has to be known before an interaction is answered; 1.5 s
	Token    time.Duration // in which an interaction can be answered further; 14 min, as Discord gives 15
	Nonce    time.Duration // in which Discord knows a nonce; 2 min
	Again    time.Duration // the first wait after something could not be kept; it doubles up to thirty times itself; 1 s
	Edit     time.Duration // between two edits of a progress message; 1.2 s
	Typing   time.Duration // between two signs that something is written, which Discord shows for ten seconds; 8 s
	Rest     time.Duration // in which nobody is written to who takes no messages; 1 h
	Ask      time.Duration // after an answer, before its person is asked for their time zone; 2 s
	Meet     time.Duration // between two people in whose direct messages first words are looked for; 1 s
	Keep     time.Duration // between two times at which it is kept how far was heard; 1 s
	// Openings are the waits before links are opened: the first one, the second and so on, the last of them for all that follow.
	// A link that lived for the last of them begins the row anew. 0, 1, 2, 5, 10, 20, 30, 60 s.
	Openings []time.Duration
}

func (t Timing) withDefaults() Timing {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&t.Hello, 30 * time.Second},
		{&t.Stale, 100 * time.Second},
		{&t.Timeout, 20 * time.Second},
		{&t.Identify, 5 * time.Second},
		{&t.Invalid, time.Second},
		{&t.Day, 24 * time.Hour},
		{&t.Answer, 1500 * time.Millisecond},
		{&t.Token, 14 * time.Minute},
		{&t.Nonce, 2 * time.Minute},
		{&t.Again, time.Second},
		{&t.Edit, 1200 * time.Millisecond},
		{&t.Typing, 8 * time.Second},
		{&t.Rest, time.Hour},
		{&t.Ask, 2 * time.Second},
		{&t.Meet, time.Second},
		{&t.Keep, time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	if t.Sessions <= 0 {
		t.Sessions = 900
	}
	if len(t.Openings) == 0 {
		for _, seconds := range []time.Duration{0, 1, 2, 5, 10, 20, 30, 60} {
			t.Openings = append(t.Openings, seconds*time.Second)
		}
	}
	return t
}

// Discord is the adapter. Its methods may be called concurrently; Listen may be called once.
type Discord struct {
	log       *slog.Logger
	alarm     func(text string)
	token     string // what errors call it
	timing    Timing
	api       *api
	link      *link
	rooms     *rooms
	bookmarks *bookmarks
	people    []string
	ledger    bot.Ledger[string] // by nonce
	progress  *progress
	lanes     bot.Lanes
	asides    *bot.Recent[aside]             // the last interaction of a person in a conversation
	drafts    *bot.Recent[map[string]string] // what people have entered in forms that could not be taken
	pointed   *bot.Recent[said]              // messages about which people are asked what to do with them
	stopped   *bot.Recent[bool]              // Stop buttons that were pressed
	zoned     *bot.Recent[bool]              // who was asked for their time zone
	zoneless  chan string                    // who may have to be asked
	deaf      *bot.Recent[time.Time]         // when people were found who take no messages
	heard     *bot.Recent[time.Time]         // when people wrote in their direct conversation last
	blank     blank

	downloads *http.Client // for the bytes of files
	host      string       // where the API is

	mu   sync.Mutex
	self self

	dead atomic.Pointer[error] // why nothing more can be heard or said
}

// self is who the bot is.
type self struct{ user, app string }

var _ bot.Adapter = (*Discord)(nil)

// New returns an adapter that does nothing yet. It refuses a token that is none and an address that is none.
func New(c Config) (*Discord, error) {
	name := "the bot token"
	if c.TokenFrom != "" {
		name += " from " + c.TokenFrom
	}
	token := strings.TrimSpace(strings.TrimPrefix(c.Token, "Bot "))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return nil, fmt.Errorf("set up discord: %s is missing, or is no token; it stands in the Discord developer portal under Bot", name)
	}
	address, err := url.Parse(cmp.Or(c.APIURL, defaultAPI))
	if err != nil || address.Host == "" || address.Scheme != "https" && address.Scheme != "http" {
		return nil, fmt.Errorf("set up discord: %q is not the address of an API", c.APIURL)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Alarm == nil {
		c.Alarm = func(string) {}
	}
	timing := c.Timing.withDefaults()
	d := &Discord{
		log: c.Log, alarm: c.Alarm, token: name, timing: timing, bookmarks: newBookmarks(), people: c.People,
		downloads: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, host: address.Host,
		asides: bot.NewRecent[aside](1000), drafts: bot.NewRecent[map[string]string](200), pointed: bot.NewRecent[said](200), stopped: bot.NewRecent[bool](200),
		deaf: bot.NewRecent[time.Time](1000), heard: bot.NewRecent[time.Time](1000), zoned: bot.NewRecent[bool](5000), zoneless: make(chan string, 100),
	}
	limiter := newLimiter(address, timing.Timeout, http.DefaultTransport)
	limiter.alarm = c.Alarm
	if d.api, err = newAPI(token, limiter); err != nil {
		return nil, err
	}
	d.lanes.Fault = func(lane string, fault any) {
		d.log.Error("something that came from discord could not be taken", "lane", lane, "fault", fault)
	}
	d.rooms = newRooms(d.api)
	d.link = &link{log: c.Log, timing: timing, token: token, ask: d.api.gateway, alarm: c.Alarm}
	d.progress = newProgress(d)
	return d, nil
}

// Platform is "discord".
func (d *Discord) Platform() string { return platform }

// Serves is true for every well-formed address of Discord.
func (d *Discord) Serves(address string) bool {
	_, ok := parsePlace(address)
	return ok
}

// Abilities says what Discord can show.
func (d *Discord) Abilities() bot.Abilities {
	return bot.Abilities{Buttons: true, Edits: true, Threads: true, Reactions: true, Private: true, TextLimit: textLimit, Doubt: bot.FindsOut}
}

// Listen hears what people say until ctx ends. It returns an error when Discord refuses the app for good; all else it waits
// out. It returns after everything it began has ended.
func (d *Discord) Listen(ctx context.Context, in bot.Receiver) error {
	ctx, stop := context.WithCancel(ctx)
	keeping, kept := context.WithCancel(context.WithoutCancel(ctx))
	var keeper sync.WaitGroup
	defer func() {
		stop()
		d.lanes.Wait()
		d.progress.close()
		kept()
		keeper.Wait()
	}()
	if d.recollect(ctx, in) != nil {
		return nil
	}
	keeper.Go(func() { d.bookmarks.keep(keeping, d, in) })
	keeper.Go(func() { d.askZones(ctx, in) })
	err := d.link.run(ctx, func(e dispatch) { d.hear(ctx, in, e) })
	if err == nil || ctx.Err() != nil {
		return nil
	}
	err = fmt.Errorf("with %s: %w", d.token, err)
	d.lose(err)
	return err
}

// lose keeps why nothing more can be heard or said, and tells it.
func (d *Discord) lose(err error) {
	if d.dead.CompareAndSwap(nil, &err) {
		d.alarm("I cannot go on in Discord until somebody mends the app or its token and starts me again: " + err.Error())
	}
}

// Stale says why nothing is heard from Discord at present; nil when it is. For /readyz.
func (d *Discord) Stale() error {
	if dead := d.dead.Load(); dead != nil {
		return *dead
	}
	return d.link.stale()
}

func (d *Discord) me() self {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.self
}

// hear takes an event of the gateway. It does not block.
func (d *Discord) hear(ctx context.Context, in bot.Receiver, e dispatch) {
	switch e.Kind {
	case "READY":
		d.ready(ctx, in, e.Data)
	case "GUILD_CREATE":
		var g struct {
			ID       string `json:"id"`
			Channels []room `json:"channels"`
			Threads  []room `json:"threads"`
		}
		if json.Unmarshal(e.Data, &g) == nil {
			for _, r := range append(g.Channels, g.Threads...) {
				r.Guild = g.ID
				d.rooms.met(r)
			}
		}
	case "CHANNEL_CREATE", "CHANNEL_UPDATE", "THREAD_CREATE", "THREAD_UPDATE":
		var r room
		if json.Unmarshal(e.Data, &r) == nil {
			d.rooms.met(r)
		}
	case "MESSAGE_CREATE":
		var m said
		if json.Unmarshal(e.Data, &m) != nil || !d.spoken(m) {
			return
		}
		d.lanes.Do(m.Channel, func() { d.message(ctx, in, m) })
	case "INTERACTION_CREATE":
		var i interaction
		if err := json.Unmarshal(e.Data, &i); err != nil || !isID(i.ID) || i.Token == "" || !isID(i.user().ID) {
			d.log.Warn("discord sent an interaction that cannot be read", "error", err)
			return
		}
		d.lanes.Do("interaction "+i.ID, func() { d.interaction(ctx, in, i) })
	}
}

// ready learns who the bot is, and looks for what was said while there was no session, or no program.
func (d *Discord) ready(ctx context.Context, in bot.Receiver, data json.RawMessage) {
	var r struct {
		User struct {
			ID string `json:"id"`
		} `json:"user"`
		App struct {
			ID string `json:"id"`
		} `json:"application"`
	}
	if err := json.Unmarshal(data, &r); err != nil || !isID(r.User.ID) {
		d.log.Error("discord does not say who the bot is", "error", err)
		return
	}
	d.mu.Lock()
	first := d.self.user == ""
	d.self = self{r.User.ID, cmp.Or(r.App.ID, r.User.ID)}
	d.mu.Unlock()
	if first {
		d.lanes.Do("register", func() {
			if err := d.api.register(ctx, d.me().app); err != nil && ctx.Err() == nil {
				d.log.Warn("cannot make the commands known to discord", "error", err)
			}
		})
	}
	for _, at := range d.bookmarks.all() {
		d.lanes.Do(at.last.channel, func() { d.catchUp(ctx, in, at) })
	}
	d.lanes.Do("first words", func() { d.meet(ctx, in) })
}

// take gives an event to the receiver until that has taken it: Discord would not deliver it again. The error is that of a
// context that ended.
func (d *Discord) take(ctx context.Context, in bot.Receiver, e bot.Event) (bot.Admission, error) {
	for wait := d.timing.Again; ; wait = min(2*wait, 30*d.timing.Again) {
		admission, err := in.Receive(ctx, e)
		if err == nil || ctx.Err() != nil {
			return admission, err
		}
		d.log.Error("what was said in discord could not be kept; trying again", "error", err)
		if err := wire.Sleep(ctx, wait); err != nil {
			return 0, err
		}
	}
}

// person is somebody as Discord tells of them. Of nobody it tells a zone.
func (u user) person() agent.Person {
	return agent.Person{ID: personID(u.ID), Name: u.called()}
}

var errNobody = errors.New("that is nobody on discord")
