package discord

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/wire"
)

// Discord tells nobody's time zone, so each person is asked once: after the first answer in their direct messages. What they say
// is the chat command zone.

const (
	actionZone      = "zone"       // a menu of zones
	actionOtherZone = "zone-other" // a form for those that are not in the menu
	keptZone        = "zone "      // whom was asked
)

// zones are those of the menu, which cover the hours of the day; Discord takes 25.
var zones = []string{
	"Pacific/Honolulu", "America/Anchorage", "America/Los_Angeles", "America/Denver", "America/Chicago", "America/New_York", "America/Halifax",
	"America/Sao_Paulo", "Atlantic/Azores", "UTC", "Europe/London", "Africa/Lagos", "Europe/Berlin", "Europe/Athens", "Africa/Johannesburg", "Europe/Istanbul",
	"Africa/Nairobi", "Asia/Dubai", "Asia/Karachi", "Asia/Kolkata", "Asia/Bangkok", "Asia/Shanghai", "Asia/Tokyo", "Australia/Sydney", "Pacific/Auckland",
}

// answeredDM notes that a person has had an answer in their direct messages, so that they can be asked. It does not block: who
// is not asked now is after their next answer.
func (d *Discord) answeredDM(user string) {
	if d.zoned.Has(user) {
		return
	}
	select {
	case d.zoneless <- user:
	default:
	}
}

// askZones asks those who have had an answer, one after the other, so that nobody waits for it.
func (d *Discord) askZones(ctx context.Context, in bot.Receiver) {
	for {
		select {
		case <-ctx.Done():
			return
		case user := <-d.zoneless:
			if !d.zoned.Put(user, true) {
				continue
			}
			if wire.Sleep(ctx, d.timing.Ask) != nil {
				return
			}
			d.askZone(ctx, in, user)
		}
	}
}

// askZone asks a person which zone they are in, unless they were asked before. It is done as well as it can be.
func (d *Discord) askZone(ctx context.Context, in bot.Receiver, user string) {
	kept, err := in.Kept(ctx, platform)
	name := keptZone + string(personID(user))
	var of bot.Overview
	if err == nil {
		of, err = in.Overview(ctx, agent.Person{ID: personID(user)}, bot.Member)
	}
	if err == nil && (kept[name] != "" || of.Zone != "" || !of.Served) {
		return
	}
	if err == nil {
		err = d.postZone(ctx, user, time.Now())
	}
	if err == nil {
		err = in.Keep(ctx, platform, map[string]string{name: "asked"})
	}
	if err != nil {
		d.zoned.Take(user) // after the next answer
		d.log.Warn("cannot ask somebody for their time zone", "person", personID(user), "error", err)
	}
}

func (d *Discord) postZone(ctx context.Context, user string, now time.Time) error {
	channel, err := d.rooms.channel(ctx, place{user: user})
	if err != nil {
		return err
	}
	menu := discordgo.SelectMenu{CustomID: customID(actionZone, ""), Placeholder: "Where are you?"}
	for _, name := range zones {
		zone, err := time.LoadLocation(name)
		if err != nil {
			continue // this machine does not know it
		}
		menu.Options = append(menu.Options, discordgo.SelectMenuOption{Label: strings.ReplaceAll(name, "_", " "), Value: name, Description: now.In(zone).Format("It is 15:04 there")})
	}
	text := fmt.Sprintf("One question, which I ask once: which time zone are you in? Reminders and quiet hours go by it, and Discord does not tell me. "+
		"Your clock shows <t:%d:t>: choose a place where it is the same.", now.Unix())
	_, err = d.api.post(ctx, channel, nonceOf(keptZone+user, 0, ""), sendingOf(post{text: text, components: []discordgo.MessageComponent{
		row(menu), row(button(actionOtherZone, "", "Another…", discordgo.SecondaryButton)),
	}}, place{user: user}, channel, ""))
	return err
}

// zoneForm asks for a zone that is not in the menu.
func zoneForm() *modal {
	in := input{Type: typeInput, ID: formInput, Style: shortInput, Most: optionLimit, Required: true}
	return &modal{customID(actionOtherZone, ""), "Your time zone", []any{labelled{typeLabel, "Its name", "A region and a large city, such as Europe/Berlin", in}}}
}

// saidZone gives a zone that a person has chosen to the receiver, as the command for it, and takes the question away.
func (d *Discord) saidZone(ctx context.Context, in bot.Receiver, i interaction, zone string) {
	d.answered(ctx, i, answer{Type: answerTaken})
	at := place{user: i.user().ID}
	admission, err := d.take(ctx, in, bot.Event{
		Keys: []string{"discord-interaction:" + i.ID}, From: i.person(), At: saidAt(i.ID), Address: at.String(), Text: "nudge zone " + zone,
	})
	if err != nil || admission == bot.Refused || !isID(i.Message.ID) {
		return
	}
	if err := d.api.remove(ctx, message{i.Channel, i.Message.ID}); err != nil && ctx.Err() == nil {
		d.log.Debug("cannot take a question away", "error", err)
	}
}
