package discordtest

import (
	"slices"
	"testing"
)

// The reader finds what is a link, so that a test that finds none proves something.
func TestLinks(t *testing.T) {
	for content, want := range map[string][]string{
		"see https://a.test/x now":                    {"https://a.test/x"},
		"`https://a.test` and ```\nhttps://b.test```": nil,
		"`https://a.test":                             {"https://a.test"},
		"**`https://a.test/**x`":                      {"https://a.test/"},
		"> `a\nhttps://a.test`":                       {"https://a.test`"},
		"- ```\nhttps://a.test\n```":                  {"https://a.test"},
		"\\`https://a.test`":                          {"https://a.test`"},
		"[words](<https://a.test>)":                   {"[words](<https://a.test>)"},
		"<https://a.test> <a@b.test> <+1 555 123>":    {"<https://a.test>", "<a@b.test>", "<+1 555 123>"},
		"<#12> <@1> <@&2> </do it:3> <id:browse>":     {"<#12>", "<@1>", "<@&2>", "</do it:3>", "<id:browse>"},
		"`discord.gg/abc` discord.com/invite/x":       {"discord.gg/abc", "discord.com/invite/x"},
		"a.test www.a.test @here #channel <t:1:R>":    nil,
		"# `a\nhttps://a.test`":                       {"https://a.test`"},
		"`` ` https://a.test ``":                      nil,
		"STEAM://a diſcord://a xhttp://a http:/a":     {"STEAM://a", "diſcord://a", "http://a"},
	} {
		if got := Links(content); !slices.Equal(got, want) {
			t.Errorf("%q has the links %q, want %q", content, got, want)
		}
	}
}
