package slack

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"
)

// longestLink is how long a link may be, in characters. A longer one is shown as text, so that it can be cut.
const longestLink = 2000

// destination is the address of a link of Markdown's, without what hides signs from Markdown.
func destination(raw []byte) string {
	return string(util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(raw))))
}

// bracketed gives an address in brackets as text if Slack would read more into it than an address.
func (r *renderer) bracketed(n *ast.AutoLink) (string, bool) {
	label := string(n.Label(r.source))
	if !strings.Contains(label, "|") {
		return "", false
	}
	return "<" + label + ">", true
}

// image shows what an image is said to show, or where it is.
func (r *renderer) image(n *ast.Image) {
	if alt := strings.TrimSpace(r.plain(n)); alt != "" {
		r.write(alt)
		return
	}
	r.hyperlink("", destination(n.Destination), n)
}

// hostLike is a word that reads like a host or an address.
var hostLike = regexp.MustCompile(`(?i)(?:[a-z][a-z0-9+.-]*://)?(?:(?:[\pL\pN-]+\.)+\pL{2,}|\d{1,3}(?:\.\d{1,3}){3})`)

// unlike are signs in a label that are not what they look like, or would end it.
var unlike = strings.NewReplacer("|", "∣", "`", "ˋ", "\n", " ", "。", ".", "．", ".", "․", ".", "｡", ".", "﹒", ".")

// labelled is a label as it may be shown: in one line and without what is not seen.
func labelled(label string) string {
	label = strings.Map(func(c rune) rune {
		if c != '\n' && (unicode.IsControl(c) || unicode.Is(unicode.Cf, c) && c != '\u200d') {
			return -1
		}
		return c
	}, label)
	return strings.TrimSpace(unlike.Replace(label))
}

// hyperlink shows a link. A label that reads like another host is left out, and one that merely has such a word in it is
// followed by the address.
func (r *renderer) hyperlink(label, target string, n ast.Node) {
	label = labelled(label)
	safe, host, ok := safeTarget(target)
	switch {
	case !ok:
		r.write(strings.TrimSpace(label + " (" + target + ")"))
	case label == "":
		r.address(safe, n)
	case !pretends(label, host) && (!web(label) || label == target):
		r.link(safe, label)
	case strings.ContainsAny(label, " \t"):
		r.write(label + " (")
		r.link(safe, "")
		r.write(")")
	default:
		r.address(safe, n)
	}
}

// unseen are signs that are drawn as nothing, or onto the letter before them, so that a word reads the same without them.
var unseen = []*unicode.RangeTable{unicode.M, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point}

// pretends reports whether a label names another host than the one that its link leads to.
func pretends(label, host string) bool {
	label = strings.Map(func(c rune) rune {
		if unicode.In(c, unseen...) {
			return -1
		}
		return c
	}, label)
	for _, word := range hostLike.FindAllString(label, -1) {
		if _, bare, schemed := strings.Cut(word, "://"); schemed {
			word = bare
		}
		if !strings.EqualFold(strings.TrimPrefix(word, "www."), strings.TrimPrefix(host, "www.")) {
			return true
		}
	}
	return false
}

// web reports whether a label is an address of the web itself. Then it is to be the one that the link leads to.
func web(label string) bool {
	scheme, _, ok := strings.Cut(label, "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")) && !strings.ContainsAny(label, " \t")
}

// address shows an address as it is. Slack makes a link of it, and must be told where it ends if something follows.
func (r *renderer) address(target string, n ast.Node) {
	safe, _, ok := safeTarget(target)
	switch {
	case !ok:
		r.write(target)
	case r.followed(n):
		r.link(safe, safe)
	default:
		r.link(safe, "")
	}
}

// followed reports whether a node that is no address to Slack without its brackets is followed by something.
func (r *renderer) followed(n ast.Node) bool {
	if at := n.Pos(); n.Kind() == ast.KindAutoLink && (at < 0 || r.source[at] != '<') {
		return false // it stands in the text as it is
	}
	next, ok := n.NextSibling().(*ast.Text)
	if !ok {
		return n.NextSibling() != nil
	}
	c, _ := utf8.DecodeRune(next.Value(r.source))
	return c != utf8.RuneError && !unicode.IsSpace(c) && !strings.ContainsRune(".,;:!?)", c)
}

// link writes a link, or an address if there is no label.
func (r *renderer) link(target, label string) {
	if r.closed {
		r.out.Whole(apart)
	}
	markup := "<" + escape(target) + "|" + escape(label) + ">"
	switch {
	case length(markup) > longestLink && label != "" && label != target:
		r.write(label + " (" + target + ")")
		return
	case length(markup) > longestLink:
		r.write(target)
		return
	case label == "":
		r.out.Fixed(target)
	default:
		r.out.Whole(markup)
	}
	r.wrote(target)
}

// spelled is a link in words.
func spelled(label, target string) string {
	label = strings.TrimSpace(label)
	if label == "" || label == target {
		return target
	}
	return label + " (" + target + ")"
}

// safeTarget reads an address that may become a link: of the web, or of mail. What Slack would read as the end of the
// address, or as code, is written in another way.
func safeTarget(target string) (safe, host string, ok bool) {
	u, err := url.Parse(target)
	if err != nil || strings.ContainsFunc(target, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return "", "", false
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		ok, host = u.Host != "", u.Hostname()
	case "mailto":
		_, host, ok = strings.Cut(u.Opaque, "@")
	}
	if strings.ContainsAny(host, "<>|`") {
		return "", "", false
	}
	return strings.NewReplacer("<", "%3C", ">", "%3E", "|", "%7C", "`", "%60").Replace(target), host, ok
}
