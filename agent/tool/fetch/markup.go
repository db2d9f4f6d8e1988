package fetch

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// What reads a page corrects it as browsers do, and that can take without end: some elements are opened anew in each block
// that follows while they are not closed, so that some kilobytes become millions of elements, and what stands in a second
// <html> is merged into the first. So the parser is given markup of which each element is closed, few are open that are
// opened anew, and only what is needed is left. It is all tags, texts and quoted values, so that there is but one way to
// read it.
const (
	maxTokens   = 150_000 // tags and texts of a page
	maxInline   = 8       // open elements that blocks open anew
	maxTitle    = 300     // bytes of each text that may be the title, which is compared with the headings
	maxHeadings = 500     // of the first two levels; what is more becomes one of the third
	maxAddress  = 2000    // bytes of the address of a link
	maxValue    = 300     // bytes of any other value
)

var errLongMarkup = errors.New("take the page apart: it has too many tags")

// inline are the elements that blocks open anew while they are open.
var inline = map[atom.Atom]bool{
	atom.A: true, atom.B: true, atom.Code: true, atom.Em: true, atom.I: true, atom.S: true, atom.Strike: true, atom.Strong: true,
}

// bare are the tags that say nothing of the text in them, or would have the parser read what follows in another way.
var bare = map[atom.Atom]bool{
	atom.Html: true, atom.Head: true, atom.Body: true, atom.Font: true, atom.Big: true, atom.Small: true, atom.Tt: true, atom.U: true, atom.Nobr: true,
	atom.Frameset: true, atom.Frame: true, atom.Applet: true, atom.Marquee: true, atom.Math: true, atom.Plaintext: true, atom.Image: true, atom.Embed: true,
}

// void are the elements that have no end.
var void = map[atom.Atom]bool{
	atom.Area: true, atom.Base: true, atom.Br: true, atom.Col: true, atom.Hr: true, atom.Img: true, atom.Input: true, atom.Link: true,
	atom.Meta: true, atom.Param: true, atom.Source: true, atom.Track: true, atom.Wbr: true,
}

// told are the attributes that tell what of a page is read, and how.
var told = []string{
	"href", "alt", "class", "id", "style", "role", "rel", "itemprop", "property", "name", "content", "hidden", "aria-hidden", "colspan", "rowspan", "start", "dir",
}

// wellFormed writes a page as the parser is to read it.
func wellFormed(text string) (string, error) {
	w := markup{tokens: html.NewTokenizer(strings.NewReader(text)), open: map[string]int{}}
	w.out.WriteString("<!DOCTYPE html>")
	for count := 0; ; count++ {
		if count > maxTokens {
			return "", errLongMarkup
		}
		switch w.tokens.Next() {
		case html.ErrorToken:
			w.closeTo(0)
			return w.out.String(), nil
		case html.StartTagToken, html.SelfClosingTagToken:
			w.start(w.tokens.Token())
		case html.EndTagToken:
			w.end(w.tokens.Token())
		case html.TextToken:
			w.text(string(w.tokens.Text()))
		}
	}
}

// markup is a page that is being written.
type markup struct {
	tokens *html.Tokenizer
	out    strings.Builder
	stack  []string       // the elements that are open
	open   map[string]int // how often each of them is
	inline int            // how many of them are of inline
	heads  int            // headings of the first two levels so far
	within string         // the element that is left out, with all in it; "" for none
	depth  int            // of that within itself
	titled bool           // what comes next is the title
}

// tagName is how the names of elements look.
var tagName = regexp.MustCompile(`^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$`)

func (w *markup) start(tag html.Token) {
	switch name := tag.Data; {
	case w.within == name && tag.Type == html.StartTagToken:
		w.depth++
	case w.within != "":
	case leftOut(tag.DataAtom):
		if tag.Type == html.StartTagToken || tag.DataAtom != atom.Svg { // of no other does the slash at its end mean anything
			w.within, w.depth = name, 1
		}
	case tag.DataAtom == atom.Title:
		w.titled = true
	case bare[tag.DataAtom], !tagName.MatchString(name):
	default:
		w.element(w.renamed(tag))
	}
}

// renamed is a tag as it is written.
func (w *markup) renamed(tag html.Token) html.Token {
	switch tag.DataAtom {
	case atom.Xmp, atom.Listing:
		tag.Data, tag.DataAtom = "pre", atom.Pre
	case atom.H1, atom.H2:
		if w.heads++; w.heads > maxHeadings {
			tag.Data, tag.DataAtom = "h3", atom.H3
		}
	}
	return tag
}

// element begins an element.
func (w *markup) element(tag html.Token) {
	if inline[tag.DataAtom] {
		if w.inline >= maxInline || tag.DataAtom == atom.A && attributeOf(tag, "href") == "" {
			return
		}
		w.inline++
	}
	w.tag(tag)
	if !void[tag.DataAtom] {
		w.stack, w.open[tag.Data] = append(w.stack, tag.Data), w.open[tag.Data]+1
	}
}

// leftOut reports whether an element is left out with all in it.
func leftOut(of atom.Atom) bool { return unread[of] || of == atom.Select || of == atom.Textarea }

// tag writes a start tag. What is opened anew has nothing but its address: the parser keeps no more than three alike.
func (w *markup) tag(tag html.Token) {
	w.out.WriteString("<" + tag.Data)
	var had []string
	for _, a := range tag.Attr {
		if a.Namespace != "" || !slices.Contains(told, a.Key) || slices.Contains(had, a.Key) || inline[tag.DataAtom] && a.Key != "href" {
			continue
		}
		most := maxValue
		if a.Key == "href" {
			most = maxAddress
		}
		if len(a.Val) > most {
			if a.Key == "href" {
				continue // a part of it leads elsewhere
			}
			a.Val = strings.ToValidUTF8(a.Val[:most], "")
		}
		had = append(had, a.Key)
		w.out.WriteString(" " + a.Key + `="` + html.EscapeString(a.Val) + `"`)
	}
	w.out.WriteByte('>')
}

func attributeOf(tag html.Token, name string) string {
	return attribute(&html.Node{Attr: tag.Attr}, name)
}

func (w *markup) end(tag html.Token) {
	name := tag.Data
	switch {
	case tag.DataAtom == atom.Title:
		w.titled = false
		return
	case w.within == name:
		if w.depth--; w.depth == 0 {
			w.within = ""
		}
		return
	case tag.DataAtom == atom.Xmp, tag.DataAtom == atom.Listing:
		name = "pre"
	case w.heads > maxHeadings && w.open[name] == 0 && (tag.DataAtom == atom.H1 || tag.DataAtom == atom.H2):
		name = "h3"
	}
	if w.within == "" && w.open[name] > 0 {
		w.closeTo(len(w.stack) - 1 - indexFromEnd(w.stack, name))
	}
}

// indexFromEnd is how far from the end of a list a word is that is in it.
func indexFromEnd(list []string, word string) int {
	for i := range list {
		if list[len(list)-1-i] == word {
			return i
		}
	}
	return len(list)
}

// closeTo ends all elements but the first n.
func (w *markup) closeTo(n int) {
	for len(w.stack) > n {
		name := w.stack[len(w.stack)-1]
		w.stack, w.open[name] = w.stack[:len(w.stack)-1], w.open[name]-1
		if inline[atom.Lookup([]byte(name))] {
			w.inline--
		}
		w.out.WriteString("</" + name + ">")
	}
}

func (w *markup) text(text string) {
	switch {
	case w.within != "":
	case w.titled:
		w.out.WriteString("<title>" + html.EscapeString(strings.ToValidUTF8(text[:min(len(text), maxTitle)], "")) + "</title>")
		w.titled = false
	default:
		w.out.WriteString(html.EscapeString(text))
	}
}
