package diary

import "slices"

// feature is what texts are held against each other by: the hash of a stem, or of a few letters of a word. Its last bit
// tells which.
type feature uint32

const gramBit feature = 1

func (f feature) isGram() bool { return f&gramBit != 0 }

// gramLength is how many runes of a word make one feature, its edges counted as one each.
const gramLength = 4

// term is a feature of a text and how often it has it, 255 at most.
type term struct {
	feature feature
	count   uint8
}

// termsOf are the features of texts, ordered.
func termsOf(texts ...string) []term {
	var features []feature
	for _, text := range texts {
		words(text, func(word string) {
			if empty[word] {
				return
			}
			stems(word, func(stem string) { features = append(features, hash(stem)&^gramBit) })
			grams(word, func(gram string) { features = append(features, hash(gram)|gramBit) })
		})
	}
	slices.Sort(features)
	var terms []term
	for _, f := range features {
		last := len(terms) - 1
		switch {
		case last < 0 || terms[last].feature != f:
			terms = append(terms, term{f, 1})
		case terms[last].count < 255:
			terms[last].count++
		}
	}
	return terms
}

// grams are the runs of letters of a word with its edges marked; a short word is one.
func grams(word string, each func(gram string)) {
	runes := []rune("<" + word + ">")
	for i := 0; i == 0 || i+gramLength <= len(runes); i++ {
		each(string(runes[i:min(i+gramLength, len(runes))]))
	}
}

// hash is FNV-1a of 32 bits: it is written into the data file, so it must never change.
func hash(text string) feature {
	h := uint32(2166136261)
	for i := range len(text) {
		h = (h ^ uint32(text[i])) * 16777619
	}
	return feature(h ^ h>>15)
}
