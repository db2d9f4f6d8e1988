package wire

import (
	"fmt"
	"strings"
)

// Quirk is a word that a profile of type P is written with: one way in which a server differs from most.
type Quirk[P any] struct {
	Name string
	Set  func(*P)
}

// ParseProfile reads a comma-separated list of quirks, in any order; "" is the zero value. An unknown quirk is an
// error that lists the known ones.
func ParseProfile[P any](list string, known []Quirk[P]) (P, error) {
	var p, none P
	for word := range strings.SplitSeq(list, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		if !set(&p, word, known) {
			names := make([]string, 0, len(known))
			for _, q := range known {
				names = append(names, q.Name)
			}
			return none, fmt.Errorf("read the model's profile: unknown quirk %q; known are %s", word, strings.Join(names, ", "))
		}
	}
	return p, nil
}

func set[P any](p *P, word string, known []Quirk[P]) bool {
	for _, q := range known {
		if q.Name == word {
			q.Set(p)
			return true
		}
	}
	return false
}
