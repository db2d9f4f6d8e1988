package condition

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSelection(t *testing.T) {
	const body = `{"a": {"b": [{"id": 1.50, "n": "x"}, {"id": 2}], "c.d": true, "e": null}, "f": ["g"]}`
	for path, want := range map[string]string{
		"$":                  `{"a":{"b":[{"id":1.50,"n":"x"},{"id":2}],"c.d":true,"e":null},"f":["g"]}`,
		"a.b[0].id":          "1.50",
		"$.a.b[-1].id":       "2",
		"$['a'].b[*].id":     "[1.50,2]",
		`["a"]["c.d"]`:       "true",
		"a.b[0].n":           "x",
		"a.*":                `{"b":[{"id":1.50,"n":"x"},{"id":2}],"c.d":true,"e":null}`,
		"f[0]":               "g",
		"f[1]":               "null",
		"f[-2]":              "null",
		"a.e.whatever":       "null",
		"f.length":           "null",
		"$.nothing.to.find":  "null",
		"a.b[0].id[0].id[*]": "null",
	} {
		s, err := parseSelection(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if got, err := s.from([]byte(body)); err != nil || string(got) != want {
			t.Errorf("%s: %s, error %v, want %s", path, got, err, want)
		}
	}
	for _, path := range []string{".", "a..b", "a.", "a[", "a[x]", "a[0", "a['b]", "a[?(@.x)]", "a b", "$x", strings.Repeat("a.", 40) + "a"} {
		if _, err := parseSelection(path); err == nil {
			t.Errorf("%q was read", path)
		}
	}
}

func TestSelectionNeverPanics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := parseSelection(rapid.StringMatching(`\$?[ab.*'"\[\]0-9-]{0,12}`).Draw(t, "path"))
		if err != nil {
			return
		}
		body := rapid.SampledFrom([]string{`{"a":[{"b":1},[2]],"b":null}`, `[[1],{"a":{}}]`, `"a"`, `1`, `{`}).Draw(t, "body")
		_, _ = s.from([]byte(body))
	})
}
