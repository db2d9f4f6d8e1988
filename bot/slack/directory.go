package slack

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/slack-go/slack"

	"nudge/agent"
	"nudge/bot"
)

const (
	knownFor = time.Hour              // what is known of a person is asked again after that
	askFor   = 700 * time.Millisecond // a message does not wait longer for its author's name
	restFor  = 10 * time.Second       // nobody is asked for after Slack did not tell in time
	mostKept = 10_000
)

// directory knows people's names, zones and standing, and the channels of their direct messages.
type directory struct {
	api *slack.Client
	me  func() self

	mu     sync.Mutex
	people map[string]profile       // by user
	direct map[string]string        // user → channel
	asked  map[string]chan struct{} // by user; closed when what is being asked is known
	rests  time.Time                // until when nobody is asked for
}

type profile struct {
	name, zone, locale string
	team               string
	standing           bot.Standing
	at                 time.Time
}

// nobody is what is known of a person of whom Slack has told nothing.
var nobody = profile{standing: bot.Unknown}

func newDirectory(api *slack.Client, me func() self) *directory {
	return &directory{api: api, me: me, people: map[string]profile{}, direct: map[string]string{}, asked: map[string]chan struct{}{}}
}

// lookup gives what is known of a person. When Slack does not tell in time, that is what it told before, or [nobody].
func (d *directory) lookup(ctx context.Context, user string) profile {
	known, ok := d.known(user)
	d.mu.Lock()
	if ok && time.Since(known.at) < knownFor || time.Now().Before(d.rests) {
		d.mu.Unlock()
		return known
	}
	answer, isAsked := d.asked[user]
	if !isAsked {
		answer = make(chan struct{})
		d.asked[user] = answer
	}
	d.mu.Unlock()
	if isAsked {
		select {
		case <-answer:
		case <-ctx.Done():
		}
	} else {
		d.ask(ctx, user)
		close(answer)
	}
	known, _ = d.known(user)
	return known
}

// ask asks Slack for a person. Everybody's messages would wait for a Slack that does not tell, so that nobody is asked for
// for a while then.
func (d *directory) ask(ctx context.Context, user string) {
	within, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	u, err := d.api.GetUserInfoContext(within, user)
	if err == nil && ctx.Err() == nil {
		d.learn(*u)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.asked, user)
	switch {
	case ctx.Err() != nil:
	case limited(err):
		d.rests = time.Now().Add(min(retryAfter(err), restFor))
	case err != nil && code(err) == "":
		d.rests = time.Now().Add(restFor)
	}
}

// known gives what is known of a person without asking.
func (d *directory) known(user string) (profile, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, ok := d.people[user]
	if !ok {
		return nobody, false
	}
	return p, true
}

// zoneless reports whether Slack has told who somebody is, and no time zone of theirs.
func (d *directory) zoneless(user string) bool {
	p, ok := d.known(user)
	return ok && !p.at.IsZero() && p.zone == ""
}

// learn keeps what Slack tells of a person.
func (d *directory) learn(u slack.User) profile {
	p := profile{
		name: oneName(u.Profile.DisplayName, u.RealName, u.Profile.RealName, u.Name), zone: u.TZ, locale: u.Locale, team: u.TeamID,
		standing: d.me().standing(u), at: time.Now(),
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.people) >= mostKept {
		clear(d.people)
	}
	d.people[u.ID] = p
	return p
}

// oneName is the first of a person's names in which there is something to be seen, in one line. What turns the direction of
// writing would change how what stands beside the name reads.
func oneName(names ...string) string {
	for _, name := range names {
		name = strings.Map(func(c rune) rune {
			switch {
			case unicode.IsSpace(c):
				return ' '
			case unicode.IsControl(c), unicode.Is(unicode.Cf, c) && c != '\u200d':
				return -1
			}
			return c
		}, name)
		if name = strings.Join(strings.Fields(name), " "); name != "" {
			return name
		}
	}
	return ""
}

// standing is a person's place in the organisation that the bot belongs to. People of a Slack Connect channel have another
// workspace, unless both belong to one Enterprise organisation; is_stranger is only true of those who share no channel with
// the bot (docs.slack.dev/reference/objects/user-object).
func (s self) standing(u slack.User) bot.Standing {
	elsewhere := u.TeamID != "" && u.TeamID != s.team && (s.enterprise == "" || u.Enterprise.EnterpriseID != s.enterprise)
	switch {
	case u.IsBot, u.IsWorkflowBot, u.IsConnectorBot, u.ID == slackbot:
		return bot.Automaton
	case u.IsStranger, elsewhere:
		return bot.Outsider
	case u.IsRestricted, u.IsUltraRestricted:
		return bot.Guest
	}
	return bot.Member
}

// home is a person's workspace, where an event does not tell it: the bot's own but for outsiders.
func (p profile) home(own string) string {
	if p.standing == bot.Outsider {
		return p.team
	}
	return own
}

// slackbot is Slack's own bot, which is not marked as one.
const slackbot = "USLACKBOT"

// name is a person's name if it is known already, and otherwise "".
func (d *directory) name(user string) string {
	p, _ := d.known(user)
	return p.name
}

// person is somebody as far as the directory knows them, and their standing.
func (s *Slack) person(ctx context.Context, team, user string) (agent.Person, bot.Standing) {
	p := s.directory.lookup(ctx, user)
	return p.person(team, user), p.standing
}

func (p profile) person(team, user string) agent.Person {
	return agent.Person{ID: personID(team, user), Name: p.name, Zone: p.zone, Locale: p.locale}
}

// changed is a user_change event: something about a person is not as it was. Slack tells it of everybody in the
// workspace; it is kept of those whom the bot has met.
func (s *Slack) changed(ctx context.Context, in bot.Receiver, e envelope, u slack.User) {
	if known, met := s.directory.known(u.ID); met {
		u.Locale = cmp.Or(u.Locale, known.locale)
		team := cmp.Or(u.TeamID, s.me().team)
		// Most changes are about a status or a picture, and need not be kept.
		if p := s.directory.learn(u).person(team, u.ID); p != known.person(team, u.ID) {
			if err := in.Renew(ctx, p); err != nil {
				s.lost(ctx, err)
				return
			}
		}
	}
	s.acknowledge(ctx, e, nil)
}

// met remembers the channel of a person's direct messages.
func (d *directory) met(user, channel string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.direct) >= mostKept {
		clear(d.direct)
	}
	d.direct[user] = channel
}

// channel gives the channel of a conversation, which for direct messages may have to be opened.
func (d *directory) channel(ctx context.Context, p place) (string, error) {
	if p.user == "" {
		return p.channel, nil
	}
	d.mu.Lock()
	channel := d.direct[p.user]
	d.mu.Unlock()
	if channel != "" {
		return channel, nil
	}
	opened, _, _, err := d.api.OpenConversationContext(ctx, &slack.OpenConversationParameters{Users: []string{p.user}})
	if err != nil {
		return "", fmt.Errorf("open direct messages with %s: %w", p.user, err)
	}
	d.met(p.user, opened.ID)
	return opened.ID, nil
}
