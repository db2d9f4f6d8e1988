package discord

import (
	"context"
	"encoding/json"
	"strings"

	"nudge/bot"
)

// mostCompletions are those that Discord shows (docs.discord.com/developers/interactions/application-commands#autocomplete).
const mostCompletions = 25

type completion struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// complete offers what may come next of a command that is being typed: the commands, and behind them what they are about. Only
// the person who types sees it.
func (d *Discord) complete(ctx context.Context, in bot.Receiver, i interaction) {
	typed := ""
	for _, option := range i.Data.Options {
		if option.Name == "words" {
			_ = json.Unmarshal(option.Value, &typed) // what is no text completes nothing
		}
	}
	offers, err := inTime(ctx, d, func(ctx context.Context) ([]bot.Completion, error) { return in.Complete(ctx, i.person(), typed) })
	if err != nil && ctx.Err() == nil {
		d.log.Debug("cannot complete a command", "error", err)
	}
	shown := []completion{}
	for _, o := range offers {
		words := strings.TrimSpace(o.Words)
		if len([]rune(words)) > optionLimit || len(shown) == mostCompletions {
			continue
		}
		shown = append(shown, completion{cut(bot.Visible(words+" - "+o.About), optionLimit), words})
	}
	if err := d.api.answer(ctx, i, answer{answerCompletions, map[string]any{"choices": shown}}); err != nil && ctx.Err() == nil {
		d.log.Debug("cannot answer while a command is typed", "error", err)
	}
}
