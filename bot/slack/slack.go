// Package slack is the adapter for Slack, over Socket Mode. Start with [Slack.Listen] and [Slack.Say]; the rest is in files
// named after what they are about:
//
//	the link       link.go, its WebSockets; opening.go, when one may be opened and whether anything is heard
//	what is heard  event.go, messages, and their text in inbound.go; happening.go, all other events; interaction.go, buttons
//	               and slash commands; form.go and fields.go, forms; shortcut.go, a message that somebody points at
//	what is said   say.go; cards in card.go and choice.go, notify cards in feedback.go; home.go, what a person sees of
//	               their own; ledger.go, what stands in Slack of a reply whose fate is not known
//	its markup     mrkdwn.go, phrase.go, hyperlink.go and table.go, out of Markdown; split.go, into messages
//	a turn's sign  progress.go, what is being done; presence.go, Slack's status and Stop button; stream.go, the streamed list
//	Slack's limits limiter.go, calls of a method; pace.go, messages in a channel
//	who and where  directory.go, people; place.go, conversations and messages; file.go, what people attach
//	what fails     trouble.go, what an error means; refusal.go, what this app may not do
//	the app        manifest.go and manifest.json, what it asks for; check.go, whether Slack grants that
//	small things   time.go, the time that tests move
//
// What is heard is given to the receiver and acknowledged only after that. It is made of each envelope in a lane
// ([bot.Lanes]), so that one conversation's things keep their order and wait for nobody else's.
//
// What is said is posted under the reply's key, so that a message whose fate is not known is looked up before it is posted
// again. Nothing in its markup notifies anybody.
//
// While a turn is under way in a thread, Slack itself shows a status, and for an app that is declared as an agent a Stop
// button of its own. Where there is that button, progress is a streamed list of tasks; elsewhere it is one message with a
// button, which is edited. Either is deleted when the turn settles or waits, and the answer is an ordinary message. The
// answer itself is not streamed, for three reasons: it stands under its delivery key, so that it can be looked up after a
// crash, and a stream takes no key before its end; people find it by searching for its text, get it in notifications and can
// quote it, which they can with a message's text; and what a model writes before it is done may be about to be refused or
// corrected. What nobody asked for is never streamed, since in channels a stream is for one person. Threads are what Slack's
// agent sessions, statuses and streams belong to; direct messages outside a thread have none of them, and there progress is
// a message with a button.
//
// Who may talk is decided by the hub, by id. This package tells it the person's standing, as users.info has it and
// user_change corrects it: guests and people of other organisations are let in only when the allow list has their very id,
// bots never.
//
// Conversations are slack:TEAM:CHANNEL:THREAD_TS in channels and slack:TEAM:dm:USER in direct messages, with
// :THREAD_TS behind that for a thread inside one. People are slack:TEAM:USER.
package slack

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slack-go/slack"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/wire"
)

// Config is what a Slack is made of. BotToken and AppToken must be set.
type Config struct {
	BotToken string // xoxb-: for the Web API
	AppToken string // xapp-, with the scope connections:write: for the link
	// BotTokenFrom and AppTokenFrom say where the tokens come from, such as the variables that hold them. They stand in the
	// errors about a token, so they must be no secrets. They may be empty.
	BotTokenFrom, AppTokenFrom string
	APIURL                     string // instead of https://slack.com/api/
	// Alarm, if set, is called when somebody has to mend the app or its tokens before anything is heard or said again,
	// once for each time that this happens. It may be called concurrently.
	Alarm  func(text string)
	Log    *slog.Logger
	Timing Timing
}

// Timing says how long things take. A field that is zero has the value given here.
type Timing struct {
	Ping    time.Duration // a link without a ping from Slack for so long is replaced; 30 s
	Stale   time.Duration // nothing heard for so long: the link is stale; 75 s
	Overlap time.Duration // a link that Slack ends is read for so long when there is a new one; 10 s
	Timeout time.Duration // of one call of the Web API; 20 s
	Fetch   time.Duration // of getting one file; 50 s
	Pace    time.Duration // between two messages in one channel; 1 s
	Minute  time.Duration // in which Slack counts the calls of a method; 1 min
	Edit    time.Duration // between two edits of a progress message; 1.2 s
	Status  time.Duration // between two settings of a status, which Slack takes away after 2 min; 90 s
	// Openings are the shortest times between the openings of links: after the first, the second and so on, the last of
	// them for all that follow. A link that lived for the last of them begins the row anew. 1, 2, 5, 10, 20, 30, 60 s.
	Openings []time.Duration
	// Crowded is the first wait after Slack has said that there are too many links. It doubles up to thirty times itself; 1 s.
	Crowded time.Duration
	// Disabled is the wait after Slack has said that Socket Mode is switched off; 10 min.
	Disabled time.Duration
}

func (t Timing) withDefaults() Timing {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&t.Ping, 30 * time.Second},
		{&t.Stale, 75 * time.Second},
		{&t.Overlap, 10 * time.Second},
		{&t.Timeout, 20 * time.Second},
		{&t.Fetch, 50 * time.Second},
		{&t.Pace, time.Second},
		{&t.Minute, time.Minute},
		{&t.Edit, 1200 * time.Millisecond},
		{&t.Status, 90 * time.Second},
		{&t.Crowded, time.Second},
		{&t.Disabled, 10 * time.Minute},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	if len(t.Openings) == 0 {
		for _, seconds := range []time.Duration{1, 2, 5, 10, 20, 30, 60} {
			t.Openings = append(t.Openings, seconds*time.Second)
		}
	}
	return t
}

// Slack is the adapter. Its methods may be called concurrently; Listen may be called once.
type Slack struct {
	log    *slog.Logger
	alarm  func(text string)
	timing Timing
	time   timeSource

	botToken string        // what errors call it
	token    string        // the bot's
	api      *slack.Client // its calls keep to limiter
	apiURL   *url.URL
	files    *http.Client // for the bytes of files

	// Each of these owns its state and guards it.
	opening   *opening          // when a link may be opened, and when something was last heard
	link      *link             // the WebSockets
	lanes     bot.Lanes         // what is being taken in
	directory *directory        // people, and the channels of their direct messages
	limiter   *limiter          // calls of each method
	pace      *pace             // messages in each channel
	ledger    bot.Ledger[mark]  // replies that are not wholly said
	progress  *progress         // what is shown of turns that are under way
	refused   refusals          // what this app may not do
	shown     *bot.Recent[bool] // clicks and shortcuts for which a form was opened
	sent      *bot.Recent[bool] // forms that were taken
	bare      *bot.Recent[bool] // mentions that were taken without files
	panes     *bot.Recent[bool] // threads of an assistant's pane in which nothing was said yet
	homes     homes             // cards that were decided at home

	mu       sync.Mutex // guards what follows
	self     self
	receiver bot.Receiver // while it listens

	dead atomic.Pointer[error] // why nothing more can be heard or said
}

// self is who the bot is. enterprise is the organisation of several workspaces that it belongs to; "" when there is none.
type self struct{ team, user, bot, enterprise string }

var _ bot.Adapter = (*Slack)(nil)

const defaultAPI = "https://slack.com/api/"

// New returns an adapter that does nothing yet. It refuses tokens that are missing, mixed up or of a person, and an
// address that is none.
func New(c Config) (*Slack, error) {
	botToken, appToken := named("the bot token", c.BotTokenFrom), named("the app token", c.AppTokenFrom)
	if c.BotToken == "" || strings.HasPrefix(c.BotToken, "xapp-") {
		return nil, fmt.Errorf("set up slack: %s is missing, or is the app token; a bot token begins with xoxb-", botToken)
	}
	if strings.HasPrefix(strings.TrimPrefix(c.BotToken, "xoxe."), "xoxp-") {
		return nil, fmt.Errorf("set up slack: %s is a user token, with which Nudge would speak as that person; the bot token, under OAuth & Permissions, begins with xoxb-", botToken)
	}
	if c.AppToken == "" || strings.HasPrefix(c.AppToken, "xox") {
		return nil, fmt.Errorf("set up slack: %s is missing, or is a bot or user token; an app token begins with xapp-", appToken)
	}
	address, err := apiAddress(c.APIURL)
	if err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Alarm == nil {
		c.Alarm = func(string) {}
	}
	timing := c.Timing.withDefaults()
	s := &Slack{
		log: c.Log, alarm: c.Alarm, time: wallTime{}, botToken: botToken, timing: timing, pace: newPace(timing.Pace),
		shown: bot.NewRecent[bool](256), bare: bot.NewRecent[bool](256), sent: bot.NewRecent[bool](256), panes: bot.NewRecent[bool](256),
	}
	s.lanes.Fault = func(lane string, fault any) {
		s.log.Error("something that came from slack could not be taken", "lane", lane, "fault", fault)
	}
	network := waiting(timing.Timeout)
	// No time-outs of the clients: the wait for one's turn would count as part of a call.
	s.limiter = newLimiter(timing, address.String(), network, s.pace)
	s.api = slack.New(c.BotToken, slack.OptionAPIURL(address.String()), slack.OptionHTTPClient(&http.Client{Transport: s.limiter}))
	s.token, s.apiURL = c.BotToken, address
	s.files = &http.Client{Transport: network, CheckRedirect: stays}
	s.opening = newOpening(timing, network)
	opener := slack.New("", slack.OptionAppLevelToken(c.AppToken), slack.OptionAPIURL(address.String()),
		slack.OptionHTTPClient(&http.Client{Transport: s.opening}))
	s.link = &link{log: c.Log, appToken: appToken, timing: timing, opener: opener, opening: s.opening, alarm: c.Alarm}
	s.directory = newDirectory(s.api, s.me)
	s.progress = newProgress(s)
	return s, nil
}

// named is what errors call a token.
func named(token, from string) string {
	if from == "" {
		return token
	}
	return token + " from " + from
}

func apiAddress(address string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSuffix(cmp.Or(address, defaultAPI), "/") + "/")
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("set up slack: %q is not the address of an API", address)
	}
	return u, nil
}

// waiting is a transport that gives up when an answer does not begin in time.
func waiting(timeout time.Duration) http.RoundTripper {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	transport = transport.Clone()
	transport.ResponseHeaderTimeout = timeout
	return transport
}

// Platform is "slack".
func (s *Slack) Platform() string { return "slack" }

// Serves is true for every well-formed address of Slack.
func (s *Slack) Serves(address string) bool {
	_, ok := parsePlace(address)
	return ok
}

// Abilities says what Slack can show.
func (s *Slack) Abilities() bot.Abilities {
	return bot.Abilities{Buttons: true, Edits: true, Threads: true, Reactions: true, Private: true, TextLimit: textLimit, Doubt: bot.FindsOut}
}

// Listen hears what people say until ctx ends. It returns an error when Slack refuses the tokens for good; all else it
// waits out. It returns after everything it began has ended.
func (s *Slack) Listen(ctx context.Context, in bot.Receiver) error {
	ctx, stop := context.WithCancel(ctx)
	s.mu.Lock()
	s.receiver = in
	s.mu.Unlock()
	defer func() {
		stop()
		s.lanes.Wait()
		s.progress.close()
		s.opening.close()
	}()
	if err := s.introduce(ctx); err != nil {
		return s.die(ctx, err)
	}
	err := s.link.run(ctx, func(e envelope) { s.hear(ctx, in, e) })
	return s.die(ctx, err)
}

// die keeps why nothing more can be heard, and gives it back. Whoever called Listen logs it.
func (s *Slack) die(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return nil
	}
	s.lose(err)
	return err
}

// lose keeps why nothing more can be heard or said, and tells it.
func (s *Slack) lose(err error) {
	if s.dead.CompareAndSwap(nil, &err) {
		s.alarm("I cannot go on in Slack until somebody mends the app or its tokens and starts me again: " + err.Error())
	}
}

// introduce learns who the bot is, without which its own words would be heard as somebody's.
func (s *Slack) introduce(ctx context.Context) error {
	for try := 0; ; try++ {
		who, err := s.api.AuthTestContext(ctx)
		if err == nil {
			s.mu.Lock()
			s.self = self{who.TeamID, who.UserID, who.BotID, who.EnterpriseID}
			s.mu.Unlock()
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if fatal(err) {
			return fmt.Errorf("ask slack who the bot is, with %s: %w", s.botToken, err)
		}
		s.log.Warn("cannot ask slack who the bot is; trying again", "error", err)
		if err := wire.Sleep(ctx, max(retryAfter(err), s.timing.Openings[min(try, len(s.timing.Openings)-1)])); err != nil {
			return err
		}
	}
}

func (s *Slack) me() self {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.self
}

// Stale says why nothing is heard from Slack at present; nil when it is. For /readyz.
func (s *Slack) Stale() error {
	if dead := s.dead.Load(); dead != nil {
		return *dead
	}
	return s.opening.stale(s.timing.Stale)
}

func personID(team, user string) agent.PersonID { return agent.PersonID("slack:" + team + ":" + user) }
