package diary

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// maxWord is how many runes of a word count.
const maxWord = 32

// words are a text's words in one spelling: lower case, without accents. Where a script puts no spaces between words, each
// two of its characters are one.
func words(text string, each func(word string)) {
	var word []rune
	var last rune // the character before, in a script without spaces
	end := func() {
		if len(word) > 0 {
			each(string(word))
			word = word[:0]
		}
	}
	for _, r := range norm.NFKD.String(strings.ToLower(text)) {
		switch {
		case unicode.Is(unicode.Mn, r): // an accent of the letter before
			continue
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai):
			end()
			if last != 0 {
				each(string([]rune{last, r}))
			} else {
				each(string(r))
			}
			last = r
			continue
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.Is(unicode.So, r):
			if len(word) < maxWord {
				word = append(word, r)
			}
		case r == '\'' || r == '’' || r == 'ʼ': // don't is one word
		default:
			end()
		}
		last = 0
	}
	end()
}

// empty are words that say nothing of what a text is about, in English, Spanish, German and Ukrainian, without accents.
var empty = setOf(`a an the and or but if of at by for with about to from in on off is am are was were be been being do does
did doing have has had having i me my mine we us our you your he him his she her it its they them their this that these those
what which who whom whose when where why how there here not no so than too very can could will would shall should may might
must just any some all each every im ive dont doesnt didnt isnt whats wheres whos user person again please tell know
el la los las un una unos unas y o pero si de del al por para con sobre a en es soy eres son era fue ser estar estoy esta
estan este esto eso ese aquel he ha han haber tengo tiene tienen yo mi mis tu tus su sus nos nuestro le les lo se me te que
quien cual cuando donde como porque cuanto cuantos no ni muy mas ya hay usuario
der die das den dem des ein eine einen einem einer eines und oder aber wenn von vom zu zum zur bei mit fur uber aus nach in im
an am auf ist bin bist sind war waren sein habe hat haben hatte ich mich mir mein meine meinen meinem meiner du dich dir dein er
ihn ihm sie ihr es wir uns unser was welche welcher welches wer wen wem wann wo wie warum nicht kein keine keinen so als auch
sehr kann konnen wird werden soll noch nur schon man nutzer
і и та й або але якщо що шо це цеи ця ці цього того тои то у в на до з зі із від по про за для при як які який яка яке хто
кого кому чии коли де куди чому скільки не ні є був була були бути я мене мені мои моя моє мої моєму моєї ти тебе тобі він
вона воно вони иого іі ми нас нам наш ви вас так там тут дуже ще вже чи бо ж користувач`)

func setOf(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		words(w, func(w string) { set[w] = true })
	}
	return set
}
