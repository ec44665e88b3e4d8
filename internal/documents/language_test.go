package documents

import (
	"regexp"
	"strings"
	"testing"
)

// forbidden are words and turns that readers stumble over, and what to write.
var forbidden = []struct{ pattern, instead string }{
	{`\bsomebody\b`, "name the client, user or session"},
	{`\banew\b`, "again"},
	{`\b(is|are|was|were|be|been) told\b`, "name who reports it"},
	{`\bhas its place\b`, "say what it is for"},
	{`\bgoes? on with\b`, "continues"},
	{`\bin its turn\b`, "say what happens next"},
	{`\bthe (former|latter)\b`, "repeat the noun"},
	{`\bof that\b,`, "name the noun"},
	{`\bnot to be seen\b`, "hidden"},
}

// longest is how many words a sentence of a document may have on average.
const longest = 25.0

var (
	inlineCode = regexp.MustCompile("`+[^`]*`+")
	linkText   = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	listItem   = regexp.MustCompile(`^ *([-*]|\d+\.) `)
	ending     = regexp.MustCompile(`[.!?]["')*]*(\s+|$)`)
)

// sentences are those of a document's paragraphs and lists: no headings, tables and code.
func (d document) sentences() []string {
	var paragraphs []string
	paragraph := ""
	finish := func() {
		if strings.TrimSpace(paragraph) != "" {
			paragraphs = append(paragraphs, paragraph)
		}
		paragraph = ""
	}
	for _, line := range strings.Split(d.prose(), "\n") {
		switch trimmed := strings.TrimSpace(line); {
		case trimmed == "", strings.HasPrefix(trimmed, "#"), strings.HasPrefix(trimmed, "|"):
			finish()
		case listItem.MatchString(line):
			finish()
			paragraph = listItem.ReplaceAllString(line, "")
		default:
			paragraph += " " + trimmed
		}
	}
	finish()
	var sentences []string
	for _, p := range paragraphs {
		p = linkText.ReplaceAllString(inlineCode.ReplaceAllString(p, "code"), "$1")
		for _, s := range ending.Split(p, -1) {
			if s = strings.TrimSpace(s); s != "" {
				sentences = append(sentences, s)
			}
		}
	}
	return sentences
}

// TestLanguage: no document has a word that STYLE forbids, and sentences are short.
func TestLanguage(t *testing.T) {
	for _, d := range documents(t) {
		for _, f := range forbidden {
			prose := inlineCode.ReplaceAllString(d.prose(), "code")
			if found := regexp.MustCompile(`(?i)`+f.pattern).FindAllString(prose, -1); len(found) > 0 {
				t.Errorf("%s: %d times %q: write %s", d.path, len(found), found[0], f.instead)
			}
		}
		sentences, words, most := d.sentences(), 0, ""
		for _, s := range sentences {
			words += len(strings.Fields(s))
			if len(strings.Fields(s)) > len(strings.Fields(most)) {
				most = s
			}
		}
		if average := float64(words) / float64(max(len(sentences), 1)); average > longest {
			t.Errorf("%s: a sentence has %.1f words on average, more than %v; the longest is %q", d.path, average, longest, most)
		}
		if n := len(strings.Fields(most)); n > 3*longest {
			t.Errorf("%s: a sentence has %d words: %q", d.path, n, most)
		}
	}
}
