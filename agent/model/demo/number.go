package demo

import (
	"strconv"
	"strings"
)

// numberWord is the pattern of a number, in digits or as a word.
const numberWord = `(?:\d{1,6}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|forty-five|fifty|sixty|ninety|other|couple of|a couple of|few|a few)`

var numberWords = map[string]int{
	"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
	"ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "forty-five": 45,
	"fifty": 50, "sixty": 60, "ninety": 90, "other": 2, "couple of": 2, "a couple of": 2, "few": 3, "a few": 3,
}

// number reads what numberWord matches; anything else is 0.
func number(text string) int {
	text = strings.ToLower(strings.TrimSpace(text))
	if n, ok := numberWords[text]; ok {
		return n
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}
