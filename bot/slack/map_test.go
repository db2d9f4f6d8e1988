package slack_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheMapNamesEveryFile keeps the package doc a map: it says of each file what is in it.
func TestTheMapNamesEveryFile(t *testing.T) {
	const home = "slack.go"
	file, err := parser.ParseFile(token.NewFileSet(), home, nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	doc := strings.FieldsFunc(file.Doc.Text(), func(r rune) bool { return strings.ContainsRune(" ,;\n\t", r) })
	on := map[string]bool{}
	for _, word := range doc {
		on[word] = true
	}
	names, err := filepath.Glob("*.go")
	if err != nil || len(names) < 2 {
		t.Fatalf("%d files: %v", len(names), err)
	}
	there := map[string]bool{"manifest.json": true}
	for _, name := range names {
		there[name] = true
		if name != home && !strings.HasSuffix(name, "_test.go") && !on[name] {
			t.Errorf("the package doc says nothing of %s", name)
		}
	}
	for _, word := range doc {
		if (strings.HasSuffix(word, ".go") || strings.HasSuffix(word, ".json")) && !there[word] {
			t.Errorf("the package doc tells of %s, which is not there", word)
		}
	}
}
