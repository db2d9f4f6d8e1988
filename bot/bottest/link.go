package bottest

import (
	"encoding/json"
	"strings"

	"nudge/agent"
)

// Linking are texts that one platform or another makes a link of, or that are written to look as if they were none.
var Linking = []string{
	"https://evil.test/?d=4711", "HTTPS://EVIL.TEST/x", "http://evil.test", "hxxps://evil.test/x", "ftp://evil.test/x", "steam://open/x", "slack://channel?id=C1&team=T1", "discord://-/channels/1/2",
	"evil.com", "evil.test/x?d=4711", "evil.com/x?d=4711", "www.evil.test", "WWW.evil.test/x", "evil.com.", "evil.com./x", "evil.com:8080", "sub.d4711.evil.io", "README.md",
	"xn--e1afmkfd.xn--p1ai", "пример.рф/x", "evil。com", "evil．com/x", "ｅｖｉｌ．ｃｏｍ", "e\u200bvil.com", "evil.\u200bcom/x", "evil\u2060.com", "https:\u200b//evil.test",
	"https://user:pw@evil.test/", "user:pw@evil.com/x", "https://bank.test@evil.test/", "http://3232235521/x", "http://0x7f.1/", "http://[::1]/x", "1.2.3.4/x", "1.2.3.4:80",
	"https://evil.test/\nx?d=4711", "https://evil.test/a\\\nb", "https\\://evil.test/x", "https:\\/\\/evil.test", "evil\\.com", "https&#58;//evil.test",
	"[bank](https://evil.test/x)", "[bank](evil.com)", "[bank](<https://evil.test/x>)", "[https://bank.test](https://evil.test)", "![a](https://evil.test/p.png)", "[a][1]\n\n[1]: https://evil.test/x", "[a](tel:+15551234567)",
	"<https://evil.test|bank>", "<evil.com|bank>", "<https://evil.test>", "<evil.com>", "<mailto:a@evil.com>", "<a@evil.com>", "<+1 555 123 4567>",
	"a@evil.com", "mailto:a@evil.com?body=4711", "tel:+15551234567", "sms:+15551234567", "magnet:?xt=4711", "javascript:alert(1)", "data:text/html,x",
	"#general", "@here", "@channel", "<#123456789012345678>", "<@123456789012345678>", "<@U1>", "<!here>", "<#C1|general>", "</do it:123456789012345678>", "<id:browse>", "<t:1618953630:R>",
	"discord.gg/abc", "discord.com/invite/abc", "https://discord.gg/abc", "discord.new/abc", "discordapp.com/invite/abc",
	"**https://evil.test/?d=4711**x", "**see `https://evil.test/?d=4711**x`", "_https://evil.test/a_b_", "~~evil.com/x~~y", "||https://evil.test||", "`https://evil.test`", "`run https://evil.test/x now`",
	"`a`https://evil.test", "``https://evil.test/x", "```\ncurl https://evil.test\n```", "> https://evil.test", "| a | b |\n|---|---|\n| https://evil.test | evil.com |", "| https://evil.test/x | b |\n|---|---|\n| " + wide + " | " + wide + " |",
	"https://evil.test/" + strings.Repeat("d4711", 500), "evil.com/" + strings.Repeat("d", 3000),
}

var wide = strings.Repeat("long words ", 12)

// Replies are a text in all ways in which a turn with text of strangers in its view can have it said.
func Replies(text string) []agent.Reply {
	arguments := json.RawMessage(`{"path":"notes.md"}`)
	return []agent.Reply{
		{Kind: agent.Final, Text: text, Tainted: true},
		{Kind: agent.Notify, Text: text, Tainted: true, Heartbeat: "disk"},
		{Kind: agent.Notice, Text: text, Tainted: true},
		{Kind: agent.Fault, Text: text, Tainted: true},
		{Kind: agent.Ask, ID: "c1", Text: text, Choices: []string{text, "no"}, Tainted: true},
		{Kind: agent.Approval, ID: "c2", Tool: "wiki__edit", Arguments: arguments, Text: text, Why: text},
		{Kind: agent.DecidedMark, ID: "c3", Tool: "ask_person", Decision: agent.AnswerIt, Text: text, Told: text, Tainted: true},
		{Kind: agent.DecidedMark, ID: "c4", Heartbeat: "disk", Decision: "useful", Text: "thanks", Told: text, Tainted: true},
	}
}
