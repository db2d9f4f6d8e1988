package demo

import (
	"regexp"
	"sync"
)

// pattern is a regular expression that is compiled when it is first needed. There are over a hundred here, some of them
// large, and a program with another model needs none.
type pattern struct{ compiled func() *regexp.Regexp }

// patterns are all there are, so that a test can compile them.
var patterns []*pattern

// expression makes a pattern of a regular expression.
func expression(text string) *pattern {
	p := &pattern{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })}
	patterns = append(patterns, p)
	return p
}

// phrase makes a pattern that a whole clause must match, whatever its case.
func phrase(text string) *pattern { return expression(`(?is)^(?:` + text + `)$`) }

// The methods are those of [regexp.Regexp].

func (p *pattern) MatchString(s string) bool            { return p.compiled().MatchString(s) }
func (p *pattern) FindString(s string) string           { return p.compiled().FindString(s) }
func (p *pattern) FindStringIndex(s string) []int       { return p.compiled().FindStringIndex(s) }
func (p *pattern) FindStringSubmatch(s string) []string { return p.compiled().FindStringSubmatch(s) }
func (p *pattern) FindStringSubmatchIndex(s string) []int {
	return p.compiled().FindStringSubmatchIndex(s)
}
func (p *pattern) FindAllString(s string, n int) []string { return p.compiled().FindAllString(s, n) }
func (p *pattern) FindAllStringIndex(s string, n int) [][]int {
	return p.compiled().FindAllStringIndex(s, n)
}
func (p *pattern) FindAllStringSubmatch(s string, n int) [][]string {
	return p.compiled().FindAllStringSubmatch(s, n)
}
func (p *pattern) ReplaceAllString(s, by string) string { return p.compiled().ReplaceAllString(s, by) }
func (p *pattern) ReplaceAllStringFunc(s string, by func(string) string) string {
	return p.compiled().ReplaceAllStringFunc(s, by)
}
func (p *pattern) Split(s string, n int) []string { return p.compiled().Split(s, n) }
func (p *pattern) SubexpNames() []string          { return p.compiled().SubexpNames() }
