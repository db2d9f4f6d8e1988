package secret

import (
	"regexp"
	"slices"
	"strings"
)

// shape is what secrets of one kind look like. The secret is the pattern's last group, or all of it without one.
type shape struct {
	anchors []string // in small letters; what has none of them is not looked at further, since patterns are slow
	pattern *regexp.Regexp
	mixed   bool // only what has a digit in it: words have none
}

func like(anchor, pattern string) shape {
	return shape{anchors: strings.Split(anchor, "|"), pattern: regexp.MustCompile(pattern)}
}

func mixed(anchor, pattern string) shape {
	s := like(anchor, pattern)
	s.mixed = true
	return s
}

var shapes = []shape{
	mixed("sk-", `\bsk-[A-Za-z0-9_-]{16,}`),                    // OpenAI, Anthropic and those like them
	like("xox", `\bxox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}`), // Slack
	like("xapp-", `\bxapp-[A-Za-z0-9-]{10,}`),
	like("gh", `\bgh[pousr]_[A-Za-z0-9]{20,}`),
	like("github_pat_", `\bgithub_pat_[A-Za-z0-9_]{20,}`),
	mixed("glpat-", `\bglpat-[A-Za-z0-9_-]{16,}`),
	like("akia", `\bAKIA[A-Z0-9]{16}\b`), // AWS
	like("asia", `\bASIA[A-Z0-9]{16}\b`),
	like("aiza", `\bAIza[A-Za-z0-9_-]{30,}`), // Google
	like("k_live_", `\b[rs]k_live_[A-Za-z0-9]{16,}`),
	like("k_test_", `\b[rs]k_test_[A-Za-z0-9]{16,}`),
	like("npm_", `\bnpm_[A-Za-z0-9]{30,}`),
	like("hf_", `\bhf_[A-Za-z0-9]{30,}`),
	mixed(longRun, `\b[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}`), // Discord
	like("eyj", `\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*`),         // JSON web tokens
	mixed("bearer", `(?i)\bbearer\s+([A-Za-z0-9._~+/=-]{12,})`),
	like("basic", `(?i)\bauthorization["']?\s*[:=]\s*["']?basic\s+([A-Za-z0-9+/=_-]{8,})`),
	like("://", `://[^\s/:@"'<>]*:([^\s/@"'<>]{3,})@`), // a password in an address
	mixed("key=|token=|secret=|sig=|signature=|password=|passwd=|credential=", `(?i)[?&;](?:api[_-]?key|key|(?:access|auth|refresh|id)[_-]?token|token|(?:client[_-]?)?secret|sig|signature|passw(?:or)?d|x-amz-(?:signature|credential|security-token))=([^&;\s"'<>#\\]{8,})`),
	like("secret|token|password|passwd|apikey|api_key|access_key|private_key", `\b[A-Z0-9_]*(?:SECRET|TOKEN|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY|PRIVATE_KEY)[A-Z0-9_]*=["']?([^\s"']{8,})`), // as env prints them
	like("private key", `-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)`),
}

// keyEnds are the lines between which a private key stands.
var keyEnds = regexp.MustCompile(`-----(BEGIN|END) [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----`)

// InKey reports whether a text ends within a private key; within says that it began in one. It is for texts that are told in
// parts, since only its first line shows what the rest of a key is.
func InKey(text string, within bool) bool {
	if !strings.Contains(text, "PRIVATE KEY") {
		return within
	}
	for _, end := range keyEnds.FindAllStringSubmatch(text, -1) {
		within = end[1] == "BEGIN"
	}
	return within
}

// LongestCut is how many bytes before and after a cut [Cut] looks at.
const LongestCut = 4 << 10

// Cut is where to cut a text at a place or before it, so that the cut is not within what looks like a secret or between it
// and what shows that it is one. The text has to go on behind the place, as far as LongestCut if it is that long. The cut is at
// most LongestCut before the place: what looks like a secret and begins before that may be cut.
func Cut(text string, at int) int {
	first := max(0, at-LongestCut)
	found := matchesIn(text[first:min(len(text), at+LongestCut)])
	// Those that begin last come first, so that each is seen after all that can have moved the cut into it.
	slices.SortFunc(found, func(a, b match) int { return b.whole.start - a.whole.start })
	for _, m := range found {
		if start := first + m.whole.start; start > 0 && start < at && at < first+m.whole.end {
			at = start
		}
	}
	return at
}

// match is a part of a text that looks like a secret, with what shows that it is one.
type match struct{ whole, secret span }

// shapesIn gives the parts of a text that look like secrets.
func shapesIn(text string) (found []span) {
	for _, m := range matchesIn(text) {
		found = append(found, m.secret)
	}
	return found
}

func matchesIn(text string) (found []match) {
	small := strings.ToLower(text)
	if len(small) != len(text) { // letters that get shorter have no place in an anchor
		small = asciiLower(text)
	}
	long := hasLongRun(text)
	for _, s := range shapes {
		if !slices.ContainsFunc(s.anchors, func(anchor string) bool { return anchor == longRun && long || strings.Contains(small, anchor) }) {
			continue
		}
		for _, at := range s.pattern.FindAllStringSubmatchIndex(text, -1) {
			start, end := at[len(at)-2], at[len(at)-1]
			if !s.mixed || strings.ContainsAny(text[start:end], "0123456789") {
				found = append(found, match{whole: span{at[0], at[1]}, secret: span{start, end}})
			}
		}
	}
	return found
}

// longRun is the anchor of what is known by nothing but being long. No text has it.
const longRun = "\xff"

// hasLongRun reports whether there are 50 letters, digits, dots and dashes without anything between them.
func hasLongRun(text string) bool {
	const enough = 50
	run := 0
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
			if run++; run == enough {
				return true
			}
		default:
			run = 0
		}
	}
	return false
}

func asciiLower(text string) string {
	small := []byte(text)
	for i, c := range small {
		if c >= 'A' && c <= 'Z' {
			small[i] += 'a' - 'A'
		}
	}
	return string(small)
}
