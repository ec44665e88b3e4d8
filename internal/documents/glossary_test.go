package documents

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// retired are words that were private metaphors, or had several senses. They are neither names in the code nor words of a
// document. Whoever replaces another word adds it here.
var retired = []struct{ word, instead string }{
	{"ear", "tap"},
	{"talk", "decoder"},
	{"lens", "decoder"},
	{"hush", "warnings of MySQL's parser"},
	{"seat", "session"},
	{"keeper", "pacer, executor or store"},
	{"cockroach", "no backend serves CockroachDB"},
}

// TestGlossary: each word is defined once.
func TestGlossary(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/reference/glossary.md"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`\*\*([^*]+)\*\*`).FindAllStringSubmatch(string(text), -1) {
		if word := strings.ToLower(m[1]); seen[word] {
			t.Errorf("docs/reference/glossary.md defines %q twice", m[1])
		} else {
			seen[word] = true
		}
	}
	for _, r := range retired {
		if seen[r.word] {
			t.Errorf("docs/reference/glossary.md defines %q, which is retired: %s", r.word, r.instead)
		}
	}
}

// TestRetiredWords: no document has a retired word, and no name in the code has one as a part. Tests name their own things.
func TestRetiredWords(t *testing.T) {
	words := map[string]string{}
	for _, r := range retired {
		words[r.word] = r.instead
	}
	for _, d := range documents(t) {
		for _, word := range regexp.MustCompile(`[a-z]+`).FindAllString(strings.ToLower(inlineCode.ReplaceAllString(d.prose(), "")), -1) {
			if instead, ok := words[word]; ok {
				t.Errorf("%s: %q is retired: %s", d.path, word, instead)
			}
		}
	}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && entry.Name() != ".." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		named := map[string]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			if name, ok := n.(*ast.Ident); ok && !named[name.Name] {
				named[name.Name] = true
				for _, part := range parts(name.Name) {
					if instead, ok := words[part]; ok {
						t.Errorf("%s: the name %s has the retired word %q: %s", path, name.Name, part, instead)
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// parts splits a Go name into its words: "newPGTalk" is new, pg, talk.
func parts(name string) []string {
	var words []string
	runes := []rune(name)
	start := 0
	for i := 1; i <= len(runes); i++ {
		if i < len(runes) && !unicode.IsUpper(runes[i]) && runes[i] != '_' {
			continue
		}
		// Within initials a new word begins only where a small letter follows.
		if i < len(runes) && unicode.IsUpper(runes[i-1]) && unicode.IsUpper(runes[i]) && (i+1 == len(runes) || !unicode.IsLower(runes[i+1])) {
			continue
		}
		words = append(words, strings.ToLower(strings.Trim(string(runes[start:i]), "_")))
		start = i
	}
	return words
}
