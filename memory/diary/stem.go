package diary

import (
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/spanish"
)

// cyrillicStem is how many runes of a word in Cyrillic letters are its stem: there is no stemmer for Ukrainian.
const cyrillicStem = 5

// stemmers reduce words in Latin letters. Which language a short text is in can't be told, so a word has a stem in each.
var stemmers = []func(*snowballstem.Env) bool{english.Stem, spanish.Stem, german.Stem}

var environments = sync.Pool{New: func() any { return snowballstem.NewEnv("") }}

// stems are a word's stems, without repeats.
func stems(word string, each func(stem string)) {
	first, _ := utf8.DecodeRuneInString(word)
	switch {
	case unicode.Is(unicode.Cyrillic, first):
		runes := []rune(word)
		each(string(runes[:min(len(runes), cyrillicStem)]))
		return
	case !unicode.Is(unicode.Latin, first) || len(word) < 4:
		each(word)
		return
	}
	env := environments.Get().(*snowballstem.Env)
	defer environments.Put(env)
	var had [3]string
	for i, stem := range stemmers {
		env.SetCurrent(word)
		stem(env)
		had[i] = env.Current()
		if i > 0 && had[i] == had[0] || i > 1 && had[i] == had[1] {
			continue
		}
		each(had[i])
	}
}
