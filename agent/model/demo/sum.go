package demo

import (
	"errors"
	"math/big"
	"strings"
	"unicode/utf8"
)

var (
	sumLead = expression(`(?i)^(?:what is|what's|whats|how much is|calculate|compute|work out|what does|solve|evaluate)\s+`)
	sumTail = expression(`(?i)\s*(?:=|equal|make|\?)+\s*$`)
	sumOnly = expression(`^[\d\s.+*/()×÷xX−-]+$`)
	sumSign = expression(`\d\s*[)\s]*[+*/×÷xX−-]`)
)

// sumIntent reckons, which needs no fact: numbers with + - * / and brackets.
func sumIntent(_ *reading, c clause) act {
	const longest = 120 // bytes; bounds the brackets inside brackets as well
	text := sumTail.ReplaceAllString(sumLead.ReplaceAllString(c.plain, ""), "")
	text = strings.NewReplacer(" plus ", "+", " minus ", "-", " times ", "*", " divided by ", "/").Replace(text)
	if len(text) > longest || !sumOnly.MatchString(text) || !sumSign.MatchString(text) {
		return nil
	}
	value, err := reckon(text)
	if err != nil {
		return saying("I can't work that out: %v.", err)
	}
	return saying("%s = %s", strings.TrimSpace(text), decimal(value))
}

// decimal writes a number with six places at most.
func decimal(value *big.Rat) string {
	const places = 6
	if value.IsInt() {
		return value.Num().String()
	}
	return strings.TrimRight(value.FloatString(places), "0")
}

// sum is an expression that is being read.
type sum struct {
	text string
	at   int
}

var errSum = errors.New("it does not read like a sum")

// reckon works out an expression.
func reckon(text string) (*big.Rat, error) {
	text = strings.NewReplacer(" ", "", "\t", "", "\n", "", "×", "*", "x", "*", "X", "*", "÷", "/", "−", "-").Replace(text)
	if !utf8.ValidString(text) {
		return nil, errSum
	}
	s := &sum{text: text}
	value, err := s.terms()
	if err == nil && s.at < len(s.text) {
		err = errSum
	}
	return value, err
}

// next takes the next character if it is one of some.
func (s *sum) next(of string) byte {
	if s.at < len(s.text) && strings.IndexByte(of, s.text[s.at]) >= 0 {
		s.at++
		return s.text[s.at-1]
	}
	return 0
}

func (s *sum) terms() (*big.Rat, error) {
	total, err := s.factors()
	for err == nil {
		sign := s.next("+-")
		if sign == 0 {
			break
		}
		var term *big.Rat
		if term, err = s.factors(); err != nil {
			break
		}
		if sign == '-' {
			term.Neg(term)
		}
		total.Add(total, term)
	}
	return total, err
}

func (s *sum) factors() (*big.Rat, error) {
	total, err := s.factor()
	for err == nil {
		sign := s.next("*/")
		if sign == 0 {
			break
		}
		var factor *big.Rat
		if factor, err = s.factor(); err != nil {
			break
		}
		if sign == '*' {
			total.Mul(total, factor)
			continue
		}
		if factor.Sign() == 0 {
			return nil, errors.New("nothing can be divided by zero")
		}
		total.Quo(total, factor)
	}
	return total, err
}

func (s *sum) factor() (*big.Rat, error) {
	if s.next("-") != 0 {
		value, err := s.factor()
		if err != nil {
			return nil, err
		}
		return value.Neg(value), nil
	}
	if s.next("(") != 0 {
		value, err := s.terms()
		if err == nil && s.next(")") == 0 {
			err = errSum
		}
		return value, err
	}
	start := s.at
	for s.next("0123456789.") != 0 {
	}
	value, ok := new(big.Rat).SetString(s.text[start:s.at])
	if !ok {
		return nil, errSum
	}
	return value, nil
}
