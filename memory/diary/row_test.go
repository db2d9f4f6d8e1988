package diary

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// What is read back is what was written, and whatever else is read is refused or written back the same.
func TestTraits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dims := rapid.IntRange(1, 8).Draw(t, "dims")
		want := trait{
			scope: rapid.String().Draw(t, "scope"), older: rapid.Bool().Draw(t, "older"), model: rapid.String().Draw(t, "model"),
			terms: termsOf(rapid.String().Draw(t, "text")),
		}
		for range rapid.IntRange(0, 3).Draw(t, "vectors") {
			want.vectors = append(want.vectors, rapid.SliceOfN(rapid.Float32(), dims, dims).Draw(t, "vector"))
		}
		if want.terms == nil {
			want.terms = []term{}
		}
		got, err := decodeTrait(want.encode())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v reads back as %+v, %v", want, got, err)
		}
	})
}

func FuzzTrait(f *testing.F) {
	f.Add(Note{Text: "Likes green tea", Scope: Private}.trait().encode())
	f.Add(trait{scope: Private, model: "m", vectors: [][]float32{{1, 0}, {0, 1}}}.encode())
	f.Add([]byte{traitVersion, 0, 1, 'x', 0xff, 0xff, 0xff, 0xff, 0x07})
	f.Fuzz(func(t *testing.T, row []byte) {
		got, err := decodeTrait(row)
		if err != nil {
			return
		}
		again, err := decodeTrait(got.encode())
		if err != nil || !bytes.Equal(again.encode(), got.encode()) {
			t.Errorf("%x reads back differently: %v", row, err)
		}
	})
}

func FuzzWords(f *testing.F) {
	for _, text := range []string{"Don't café naïve", "漢字かな", "Привіт, їжак", "🏷️ 1\u0301", "\xff\xfe", "ß ﬁ ½", strings.Repeat("a", 100)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "?")
		words(text, func(word string) {
			if word == "" || !utf8.ValidString(word) || utf8.RuneCountInString(word) > maxWord+1 {
				t.Errorf("%q has the word %q", text, word)
			}
			stems(word, func(stem string) {
				if !utf8.ValidString(stem) {
					t.Errorf("%q has the stem %q", word, stem)
				}
			})
			grams(word, func(gram string) {
				if n := utf8.RuneCountInString(gram); n < 3 || n > gramLength {
					t.Errorf("%q has the gram %q", word, gram)
				}
			})
		})
		if again := plain(plain(text)); again != plain(text) {
			t.Errorf("%q is plainly %q, and that %q", text, plain(text), again)
		}
	})
}

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"Don't  STOP-me!": "dont stop me", "Café naïve": "cafe naive", "Їжак у лісі": "іжак у лісі", "漢字です": "漢 漢字 字て てす", "a1 2b": "a1 2b", "…": "",
	} {
		var got []string
		words(text, func(word string) { got = append(got, word) })
		if strings.Join(got, " ") != want {
			t.Errorf("%q has the words %q", text, got)
		}
	}
}
