package fetch

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"codeberg.org/readeck/go-readability/v2"
	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// What of a page is taken apart. Finding the article and writing it takes seconds for more than that, and cannot be
// stopped, so of more only the plain text is taken.
const (
	maxArticle  = 1 << 20 // bytes
	maxElements = 50_000
)

// apart has a place for each page that is being taken apart: a model can ask for dozens at once.
var apart = make(chan struct{}, 4)

// markdown gives the title of a page and its main part as Markdown. Where that cannot be found it is the whole page, and
// where the page cannot be taken apart its plain text.
func markdown(text string, at target) (title, body string) {
	apart <- struct{}{}
	defer func() { <-apart }() // it is soon done, whatever the page is: see burden.go
	if len(text) > maxArticle {
		return plain(text)
	}
	title, body, err := article(text, at)
	if err != nil {
		return plain(text)
	}
	return title, body
}

// article is markdown for a page that can be taken apart. A panic of one of the libraries, which read what anybody may
// write, is an error like others.
func article(text string, at target) (title, body string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("take the page apart: %v", p)
		}
	}()
	whole, err := wellFormed(text)
	if err != nil {
		return "", "", err
	}
	document, err := html.Parse(strings.NewReader(whole)) // refuses what is nested too deep
	if err != nil {
		return "", "", err
	}
	strip(document)
	if burdenOf(document, 0).tooMuch() {
		return "", "", errors.New("take the page apart: it would take too much")
	}
	parser := readability.NewParser()
	parser.MaxElemsToParse = maxElements
	found, err := parser.ParseDocument(document, at.url)
	if err != nil {
		return "", "", err
	}
	main := found.Node
	if main == nil || strings.TrimSpace(textOf(main)) == "" {
		main = document
	}
	written, err := newConverter().ConvertNode(main, converter.WithDomain(origin(at.url)))
	return oneLine(found.Title()), string(written), err
}

func newConverter() *converter.Converter {
	return converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal))))
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// unread are the elements that have nothing to read in them.
var unread = map[atom.Atom]bool{
	atom.Script: true, atom.Style: true, atom.Noscript: true, atom.Template: true, atom.Iframe: true, atom.Object: true, atom.Noframes: true, atom.Noembed: true,
	atom.Svg: true, atom.Canvas: true, atom.Video: true, atom.Audio: true,
}

// strip removes from a document what has nothing to read in it, and puts the words for images in their place.
func strip(node *html.Node) {
	for child := node.FirstChild; child != nil; {
		next := child.NextSibling
		switch {
		case child.Type == html.CommentNode, child.Type == html.ElementNode && unread[child.DataAtom]:
			node.RemoveChild(child)
		case child.DataAtom == atom.Img:
			node.InsertBefore(&html.Node{Type: html.TextNode, Data: attribute(child, "alt")}, child)
			node.RemoveChild(child)
		default:
			strip(child)
		}
		child = next
	}
}

func attribute(node *html.Node, name string) string {
	for _, a := range node.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func textOf(node *html.Node) string {
	var text strings.Builder
	for child := range node.Descendants() {
		if child.Type == html.TextNode {
			text.WriteString(child.Data)
		}
	}
	return text.String()
}

// breaks are the elements between which a line ends.
var breaks = regexp.MustCompile(`^(?:p|div|br|hr|li|ul|ol|dl|dt|dd|tr|table|section|article|header|footer|main|nav|aside|h[1-6]|pre|blockquote|title|form|figure)$`)

// plain gives the words of a page of any length and depth, without taking it apart.
func plain(text string) (title, body string) {
	var out, name strings.Builder
	tokens := html.NewTokenizer(strings.NewReader(text))
	within := "" // the element whose text is no text of the page
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			return oneLine(name.String()), tidy(out.String())
		case html.StartTagToken, html.SelfClosingTagToken:
			tag, _ := tokens.TagName()
			if unread[atom.Lookup(tag)] || string(tag) == "title" {
				within = string(tag)
			}
			if breaks.Match(tag) {
				out.WriteByte('\n')
			}
		case html.EndTagToken:
			tag, _ := tokens.TagName()
			if string(tag) == within {
				within = ""
			}
			if breaks.Match(tag) {
				out.WriteByte('\n')
			}
		case html.TextToken:
			switch within {
			case "":
				out.Write(tokens.Text())
			case "title":
				name.Write(tokens.Text())
			}
		}
	}
}

// tidy takes out blank lines and the space around lines.
func tidy(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func oneLine(text string) string {
	const most = 200
	line := []rune(strings.Join(strings.Fields(text), " "))
	return string(line[:min(most, len(line))])
}
