package agent

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// An address that a person wrote is one that they want looked at: a tool that goes there tells nobody anything that the
// person has not. Each is known by one form, without what makes no difference, so that the model may write it otherwise.

// mostGiven is how many addresses are kept of a session, the newest.
const mostGiven = 200

// longestAddress is how many bytes an address may have to be kept.
const longestAddress = 2 << 10

// given is an address that somebody wrote.
type given struct {
	By      PersonID `json:"by"`
	Address string   `json:"address"`
}

// written finds what may be an address in words: with a scheme, or a name with a dot in it.
var written = regexp.MustCompile(`(?i)\bhttps?://[^\s<>"` + "`" + `|]+|\b[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9-]+)*\.[a-z]{2,}(?::\d+)?(?:/[^\s<>"` + "`" + `|]*)?`)

// addressesIn are the addresses in words, each in its one form.
func addressesIn(text string) (found []string) {
	if !dotted(text) {
		return nil
	}
	for _, word := range written.FindAllString(text, -1) {
		for _, form := range []string{word, strings.TrimRight(word, ".,;:!?'*_~)]}")} {
			if address := sameAddress(form); address != "" && !slices.Contains(found, address) {
				found = append(found, address)
			}
		}
	}
	return found
}

// dotted reports whether a dot stands between two characters that are no blanks, as in every address. Most of what people
// say has none, and a journal is read fast.
func dotted(text string) bool {
	for i := 1; i < len(text)-1; i++ {
		next := strings.IndexByte(text[i:len(text)-1], '.')
		if next < 0 {
			return false
		}
		if i += next; text[i-1] > ' ' && text[i+1] > ' ' {
			return true
		}
	}
	return false
}

// sameAddress is the one form of an address; "" for what is none.
func sameAddress(text string) string {
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || len(text) > longestAddress || u.Host == "" || u.User != nil || u.Opaque != "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	host, port := strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), u.Port()
	if port != "" && !(u.Scheme == "https" && port == "443") && !(u.Scheme == "http" && port == "80") {
		host += ":" + port
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	return host + path
}

// hears notes the addresses in words of somebody's.
func (s *state) hears(by PersonID, text string) {
	for _, address := range addressesIn(text) {
		if one := (given{by, address}); !slices.Contains(s.given, one) {
			s.given = append(s.given, one)
		}
	}
	s.given = s.given[max(len(s.given)-mostGiven, 0):]
}

// gave gives the function that tells which addresses a person wrote in this session by now.
func (s *state) gave(person PersonID) func(address string) bool {
	had := s.given
	return func(address string) bool {
		same := sameAddress(address)
		return same != "" && slices.Contains(had, given{person, same})
	}
}
