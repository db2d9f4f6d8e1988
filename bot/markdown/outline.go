package markdown

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	mostHeadings  = 20  // that an outline names
	longestTitle  = 100 // characters of a heading in an outline
	longestEnding = 400 // characters of a last paragraph that an outline repeats
)

var (
	heading = regexp.MustCompile(`^ {0,3}(#{1,6})[ \t]+(.+?)(?:[ \t]+#+)?[ \t]*$`)
	fence   = regexp.MustCompile("^ {0,3}(```+|~~~+)")
	// structure is what begins a line that is no prose: of a list, a quote, a table, a heading, indented code.
	structure = regexp.MustCompile(`^(?:\s{4}|\t|\s*(?:[-*+>|#]|\d+[.)]\s))`)
)

// Outline tells in Markdown what a long text holds, without anybody's judgement: its headings as a list, two levels of them
// and at most 20, and its last paragraph, where people sum up, if that is a short one in prose. It is "" for a text that has
// neither. Unlike [Parse] it reads a text of any length, in time that grows with it.
func Outline(text string) string {
	headings, ending := survey(Clean(text))
	var parts []string
	if list := outlined(headings); list != "" {
		parts = append(parts, "What it holds:\n\n"+list)
	}
	if ending != "" {
		parts = append(parts, "It ends: "+ending)
	}
	return strings.Join(parts, "\n\n")
}

// titled is a heading.
type titled struct {
	level int
	title string
}

// survey finds the headings of a text and its last paragraph, "" if that is no short one in prose.
func survey(text string) (headings []titled, ending string) {
	var paragraph []string
	prose, open := true, ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		mark := fence.FindStringSubmatch(line)
		switch {
		case open != "":
			if mark != nil && strings.HasPrefix(mark[1], open) && strings.TrimSpace(line) == mark[1] {
				open = ""
			}
			continue
		case mark != nil:
			open, paragraph, ending, prose = mark[1], nil, "", false
			continue
		case strings.TrimSpace(line) == "":
			if len(paragraph) > 0 {
				ending = strings.Join(paragraph, " ")
			}
			paragraph, prose = nil, true
			continue
		}
		if h := heading.FindStringSubmatch(line); h != nil {
			headings = append(headings, titled{len(h[1]), h[2]})
		}
		if structure.MatchString(line) {
			prose = false
		}
		if ending = ""; prose {
			paragraph = append(paragraph, strings.TrimSpace(line))
		} else {
			paragraph = nil
		}
	}
	if len(paragraph) > 0 {
		ending = strings.Join(paragraph, " ")
	}
	if utf8.RuneCountInString(ending) > longestEnding {
		ending = ""
	}
	return headings, ending
}

// outlined lists headings of the two highest levels there are. A single heading of the highest level is the text's title,
// and says nothing that its beginning does not.
func outlined(headings []titled) string {
	top := highest(headings, 0)
	if of := atLevel(headings, top); len(of) == 1 && of[0] == headings[0] {
		headings, top = headings[1:], highest(headings, top)
	}
	second := highest(headings, top)
	var lines []string
	left := 0
	for _, h := range headings {
		if h.level > second {
			continue
		}
		if len(lines) == mostHeadings {
			left++
			continue
		}
		indent := ""
		if h.level > top {
			indent = "  "
		}
		lines = append(lines, indent+"- "+shortened(h.title))
	}
	if len(lines) < 2 {
		return ""
	}
	if left > 0 {
		lines = append(lines, "- … and more")
	}
	return strings.Join(lines, "\n")
}

// highest is the highest level of headings below another, which is 0 for none; the lowest there can be if there is none.
func highest(headings []titled, below int) int {
	level := 6
	for _, h := range headings {
		if h.level > below {
			level = min(level, h.level)
		}
	}
	return level
}

func atLevel(headings []titled, level int) (of []titled) {
	for _, h := range headings {
		if h.level == level {
			of = append(of, h)
		}
	}
	return of
}

// shortened keeps the beginning of a title that is long.
func shortened(title string) string {
	runes := []rune(title)
	if len(runes) <= longestTitle {
		return title
	}
	return string(runes[:longestTitle-1]) + "…"
}
