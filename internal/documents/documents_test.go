// Package documents tests what people read: that links lead somewhere, that the language is plain, and that one word
// stands for one thing.
package documents

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

const root = "../.."

// document is one Markdown file.
type document struct {
	path string // below the root
	text string
}

// documents are all that people read, README first.
func documents(t *testing.T) []document {
	t.Helper()
	paths := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			path, err = filepath.Rel(root, path)
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []document
	for _, path := range paths {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		all = append(all, document{path, string(text)})
	}
	return all
}

var (
	fences   = regexp.MustCompile("(?ms)^ *```.*?^ *```\n?")
	comments = regexp.MustCompile(`(?s)<!--.*?-->`)
	link     = regexp.MustCompile(`\]\(([^)]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

// prose is the text of a document without code and comments.
func (d document) prose() string {
	return comments.ReplaceAllString(fences.ReplaceAllString(d.text, ""), "")
}

// anchors are the names by which links reach the headings, as GitHub makes them.
func (d document) anchors() map[string]bool {
	anchors := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fences.ReplaceAllString(d.text, ""), -1) {
		var b strings.Builder
		for _, r := range strings.ToLower(m[1]) {
			switch {
			case r == ' ':
				b.WriteByte('-')
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				b.WriteRune(r)
			}
		}
		anchors[b.String()] = true
	}
	return anchors
}

// TestLinks: each link within the project leads to a file and a heading that are there, and the index has each page.
func TestLinks(t *testing.T) {
	all := map[string]document{}
	for _, d := range documents(t) {
		all[d.path] = d
	}
	indexed := map[string]bool{"docs/index.md": true}
	for path, d := range all {
		for _, m := range link.FindAllStringSubmatch(fences.ReplaceAllString(d.text, ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", path, m[1])
				continue
			}
			if anchor != "" && !all[target].anchors()[anchor] {
				t.Errorf("%s: %s has no heading #%s", path, target, anchor)
			}
			if path == "docs/index.md" {
				indexed[target] = true
			}
		}
	}
	for path := range all {
		if strings.HasPrefix(path, "docs/") && !indexed[path] {
			t.Errorf("docs/index.md has no link to %s", path)
		}
	}
}

// TestNamedDocuments: a document that the program's source names is there.
func TestNamedDocuments(t *testing.T) {
	named, found := regexp.MustCompile(`docs/[\w/-]+\.md`), 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, name := range named.FindAllString(string(text), -1) {
			found++
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Errorf("%s names %s, which is not there", path, name)
			}
		}
		return err
	})
	if err != nil || found == 0 {
		t.Errorf("%d names: %v", found, err)
	}
}

// TestReadmeFitsAScreen holds README to 120 lines of 120 characters.
func TestReadmeFitsAScreen(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(documents(t)[0].text, "\n"), "\n")
	if len(lines) > 120 {
		t.Errorf("README.md has %d lines", len(lines))
	}
	for i, line := range lines {
		if n := utf8.RuneCountInString(line); n > 120 {
			t.Errorf("README.md:%d has %d characters", i+1, n)
		}
	}
}

// TestShape: a document has one title, and behind it a text that says what it is for.
func TestShape(t *testing.T) {
	title := regexp.MustCompile(`(?m)^# .+$`)
	for _, d := range documents(t) {
		body := fences.ReplaceAllString(d.text, "")
		if n := len(title.FindAllString(body, -1)); n != 1 || !strings.HasPrefix(body, "# ") {
			t.Errorf("%s: %d titles", d.path, n)
			continue
		}
		_, rest, _ := strings.Cut(d.prose(), "\n")
		if rest = strings.TrimSpace(rest); rest == "" || strings.HasPrefix(rest, "#") {
			t.Errorf("%s: nothing stands behind the title", d.path)
		}
	}
}
