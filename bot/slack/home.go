package slack

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/slack-go/slack"

	"nudge/agent"
	"nudge/bot"
)

// Bounds of what a Home shows. Slack takes 100 blocks; a card has up to six.
const (
	homeCards   = 10
	homeBeats   = 30
	homeText    = 3 * sectionLimit // characters of what is said of all heartbeats
	homePrefix  = "home:"          // begins the id of a card's row of buttons; the card's id and its conversation follow
	methodHome  = "views.publish"
	headerLimit = 150
)

// homes remember which cards were decided in whose Home, so that it can be shown anew when that has had its effect.
type homes struct {
	mu sync.Mutex
	of map[string]asker // by card
}

func (h *homes) note(card string, who asker) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil || len(h.of) >= mostKept {
		h.of = map[string]asker{}
	}
	h.of[card] = who
}

func (h *homes) take(card string) (who asker, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	who, ok = h.of[card]
	delete(h.of, card)
	return who, ok
}

// showHome shows a person their Home: what is theirs, and nothing of anybody else's. It leaves out the card that was decided
// there just now.
func (s *Slack) showHome(ctx context.Context, in bot.Receiver, team, user, decided string) {
	if s.refused.has(methodHome, "") {
		return
	}
	who, standing := s.person(ctx, team, user)
	overview, err := in.Overview(ctx, who, standing)
	if err == nil {
		view := slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: s.homeBlocks(overview, decided)}}
		_, err = s.api.PublishViewContext(ctx, slack.PublishViewContextRequest{UserID: user, View: view})
		s.refused.note(methodHome, "", err)
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("cannot show somebody their Home", "person", who.ID, "error", err)
	}
}

// decidedAtHome shows a Home anew after a button was pressed there, and once more when that has had its effect.
func (s *Slack) decidedAtHome(ctx context.Context, in bot.Receiver, i interaction, card string) {
	who := asker{user: i.User.ID, team: i.team(s.me().team)}
	s.homes.note(card, who)
	s.lanes.Do("home "+who.user, func() { s.showHome(ctx, in, who.team, who.user, card) })
}

// refreshHome shows the Home anew in which a card was decided.
func (s *Slack) refreshHome(ctx context.Context, card string) {
	who, ok := s.homes.take(card)
	s.mu.Lock()
	in := s.receiver
	s.mu.Unlock()
	if ok && in != nil {
		s.showHome(ctx, in, who.team, who.user, "")
	}
}

func (s *Slack) homeBlocks(o bot.Overview, decided string) []slack.Block {
	if !o.Served {
		return []slack.Block{section("You are not on the list of people whom I serve. Whoever runs me can put you there: [access] allow in my config.")}
	}
	blocks := append([]slack.Block{header("Waiting for you")}, s.homeWaiting(o.Cards, decided)...)
	blocks = append(blocks, header("What wakes me for you"))
	blocks = append(blocks, homeHeartbeats(o.Heartbeats)...)
	blocks = append(blocks, header("What I remember of you"), section(cut(o.Diary, sectionLimit)))
	return append(blocks, header("Today"), section(fmt.Sprintf("You have spent $%.4f.", o.Spent.USD())))
}

func header(text string) slack.Block { return slack.NewHeaderBlock(label(cut(text, headerLimit))) }

// homeWaiting are the cards that wait, with their buttons.
func (s *Slack) homeWaiting(cards []agent.Reply, decided string) []slack.Block {
	var blocks []slack.Block
	shown := 0
	for _, card := range cards {
		if card.ID == decided {
			continue
		}
		if shown++; shown <= homeCards {
			blocks = append(blocks, s.homeCard(card)...)
		}
	}
	switch {
	case shown == 0:
		blocks = append(blocks, section(bot.NothingWaits))
	case shown > homeCards:
		blocks = append(blocks, section(fmt.Sprintf("And %d more. Write to me: nudge approvals", shown-homeCards)))
	}
	return blocks
}

// homeCard is one card. One that is too long to be shown whole can only be decided where it stands, since nobody shall
// approve what they have not seen; so can one that stands outside of Slack.
func (s *Slack) homeCard(card agent.Reply) []slack.Block {
	where := remark("asked in " + whereabouts(card.Address))
	_, here := parsePlace(card.Address)
	if text := bot.CardText(card, ""); !here || length(text) > sectionLimit {
		return []slack.Block{section(cut(text, excerptLimit)), section("It can be decided where it stands."), where}
	}
	card.Address = homePrefix + card.ID + " " + card.Address
	return append(s.cardBlocks(card, ""), where)
}

// placeAtHome is the conversation of the card to which a row of buttons in a Home belongs.
func placeAtHome(block string) (place, bool) {
	rest, isHome := strings.CutPrefix(block, homePrefix)
	_, address, _ := strings.Cut(rest, " ")
	p, ok := parsePlace(address)
	return p, ok && isHome
}

// whereabouts is a conversation in Slack's markup. What stands elsewhere is only called so: its address would tell nothing.
func whereabouts(address string) string {
	p, ok := parsePlace(address)
	switch {
	case !ok:
		return "a conversation outside of Slack"
	case p.user != "":
		return "direct messages"
	}
	return "<#" + userID(p.channel) + ">"
}

func homeHeartbeats(beats []bot.Beat) []slack.Block {
	if len(beats) == 0 {
		return []slack.Block{section(bot.NothingWakes)}
	}
	var lines []string
	size := 0
	for _, b := range beats[:min(len(beats), homeBeats)] {
		line := fmt.Sprintf("*%s*: %s, %s", escape(cut(b.Name, 100)), escape(cut(b.Schedule, 200)), escape(cut(b.State, 200)))
		if !b.Next.IsZero() {
			line += "; next " + clock(b.Next)
		}
		if size += length(line) + 1; size > homeText {
			break
		}
		lines = append(lines, line)
	}
	if n := len(beats) - len(lines); n > 0 {
		lines = append(lines, fmt.Sprintf("And %d more. Write to me: nudge heartbeats", n))
	}
	var blocks []slack.Block
	for _, text := range pieces(strings.Join(lines, "\n"), sectionLimit) {
		blocks = append(blocks, paragraph(text))
	}
	return blocks
}
