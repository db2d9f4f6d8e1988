package compact

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"nudge/agent/model"
)

// shorten makes a message fit a number of tokens, as far as that can be done: what was thought goes, long strings in
// arguments and then the text lose their middle. already are bytes left out of it before.
func shorten(count Counter, m model.Message, tokens, already int) Replaced {
	short := m
	if MessageTokens(count, m) > tokens {
		short.Reasoning = ""
	}
	r := Replaced{Text: m.Text, Thoughtless: m.Reasoning != short.Reasoning}
	if len(m.Calls) > 0 && MessageTokens(count, short) > tokens {
		rest := tokens - perMessage - min(count.Count(m.Text), tokens/3)
		r.Arguments = shortenCalls(count, m.Calls, rest/len(m.Calls))
		short = r.of(m)
	}
	if over := MessageTokens(count, short) - tokens; over > 0 {
		r.Text = cut(count, m.Text, max(count.Count(m.Text)-over, 0), already)
	}
	r.Cut = already + max(size(m)-size(r.of(m)), 0)
	return r
}

// size is the bytes of a message's texts.
func size(m model.Message) int {
	n := len(m.Text) + len(m.Reasoning)
	for _, c := range m.Calls {
		n += len(c.Name) + len(c.Arguments)
	}
	return n
}

// shortenCalls are the arguments of calls, each call made to fit a number of tokens.
func shortenCalls(count Counter, calls []model.Call, tokens int) []string {
	out := make([]string, len(calls))
	for i, c := range calls {
		out[i] = c.Arguments
		if over := callTokens(count, c) - tokens; over > 0 {
			out[i] = cutArguments(count, c.Arguments, count.Count(c.Arguments)-over)
		}
	}
	return out
}

// cut takes a text's middle out and says there how many bytes are gone, those that went before included. A number
// of tokens without room for more leaves only that line; a text shorter than it stays.
func cut(count Counter, text string, tokens, already int) string {
	have := count.Count(text)
	if have <= tokens {
		return text
	}
	kept := marker(len(text) + already)
	if len(kept) >= len(text) {
		return text
	}
	for room := len(text) * tokens / have; room >= 2*utf8.UTFMax; {
		head := runeStart(text, room/2)
		tail := nextRune(text, len(text)-room/2)
		short := text[:head] + marker(tail-head+already) + text[tail:]
		got := count.Count(short)
		if got <= tokens && len(short) < len(text) {
			return short
		}
		room = min(room-room/16, room*tokens/max(got, 1)) - 1
	}
	return strings.TrimSpace(kept)
}

func marker(bytes int) string {
	return fmt.Sprintf("\n[… %s bytes left out here …]\n", grouped(bytes))
}

// cutArguments shortens the strings in a call's arguments, so that what is left is still JSON with the same keys;
// where that cannot be, the arguments are described in an object.
func cutArguments(count Counter, arguments string, tokens int) string {
	decoder := json.NewDecoder(strings.NewReader(arguments))
	decoder.UseNumber()
	var value map[string]any
	if decoder.Decode(&value) == nil && value != nil && !decoder.More() {
		for longest := 4 << 10; longest >= 32; longest /= 2 {
			short, err := plainJSON(cutStrings(value, longest))
			if err == nil && len(short) < len(arguments) && count.Count(short) <= tokens {
				return short
			}
		}
	}
	described := fmt.Sprintf(`{"left_out":"%s bytes of arguments"}`, grouped(len(arguments)))
	if len(described) >= len(arguments) {
		return arguments
	}
	return described
}

// cutStrings copies a JSON value with every string cut to a number of bytes and a marker.
func cutStrings(value any, longest int) any {
	switch v := value.(type) {
	case string:
		if len(v) <= longest+len(marker(len(v))) {
			return v
		}
		head, tail := runeStart(v, longest/2), nextRune(v, len(v)-longest/2)
		return v[:head] + marker(tail-head) + v[tail:]
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = cutStrings(v[i], longest)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key := range v {
			out[key] = cutStrings(v[key], longest)
		}
		return out
	}
	return value
}

// plainJSON encodes without escaping <, > and &, which only costs tokens.
func plainJSON(value any) (string, error) {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "", fmt.Errorf("encode shortened arguments: %w", err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// runeStart moves an index back to the start of the rune that it is in; in what is no UTF-8 it moves little.
func runeStart(text string, at int) int {
	for i := at; i > at-utf8.UTFMax && i > 0; i-- {
		if i == len(text) || utf8.RuneStart(text[i]) {
			return i
		}
	}
	return at
}

// nextRune is runeStart forwards.
func nextRune(text string, at int) int {
	for i := at; i < at+utf8.UTFMax && i < len(text); i++ {
		if utf8.RuneStart(text[i]) {
			return i
		}
	}
	return at
}

// clip is a text on one line of at most so many runes.
func clip(text string, runes int) string {
	line := strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(line) <= runes {
		return line
	}
	return string([]rune(line)[:runes-1]) + "…"
}

// grouped is a number with commas between thousands.
func grouped(n int) string {
	digits := strconv.Itoa(n)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
