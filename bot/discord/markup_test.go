package discord

import (
	"strings"
	"testing"
)

// Discord makes a link of any address that is no code, whatever stands before it. So what is code for that reason stays it, in
// all that is shown as it is.
func TestAddressesStayCode(t *testing.T) {
	for text, want := range map[string]string{
		"go to `https://evil.test/?q=a_b*c`, now":        "go to `https://evil.test/?q=a_b*c`, now",
		"`www.evil.test` and *this*":                     "`www.evil.test` and \\*this\\*",
		"a `word` and ` https://evil.test`":              "a \\`word\\` and \\` https://evil.test\\`",
		"`https://a.test` `https://b.test` [x](y) `http": "`https://a.test` `https://b.test` \\[x](y) \\`http",
		"äö `mailto:a@b.test` @everyone":                 "äö `mailto:a@b.test` \\@everyone",
	} {
		if got := escape(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
		if got := strings.Join(messages(verbatim(text)), "\n"); got != want {
			t.Errorf("%q is said as %q, want %q", text, got, want)
		}
	}
}
