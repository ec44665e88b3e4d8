package main

import (
	"fmt"
	"regexp"
	"strings"
)

// interrupt is how a document writes Ctrl-C.
const interrupt = "^C"

// docBlock is one fenced block of a document. HTML comments in front of it, which a reader does not see, say more:
//
//	<!-- terminal: NAME -->   it is typed in a terminal of its own, which later blocks name again
//	<!-- file: NAME -->       it is the content of a file, which later commands use
//	<!-- not run: REASON -->  it cannot be run in a test
//	<!-- sample: REASON -->   it is run, and its output may differ from the one in the document
//
// A block within a comment is run like any other; it prepares what the reader has already.
type docBlock struct {
	line           int // of its first line in the document, from 1
	language       string
	lines          []string
	terminal, file string
	notRun, sample string
}

var (
	docFence   = regexp.MustCompile("^ *```([a-z]*)$")
	docComment = regexp.MustCompile(`^ *<!-- (terminal|file|not run|sample): (.+) -->$`)
)

// docBlocks finds the fenced blocks of a document.
func docBlocks(text string) ([]docBlock, error) {
	var blocks []docBlock
	var next docBlock
	open := false
	for i, line := range strings.Split(text, "\n") {
		fence := docFence.FindStringSubmatch(line)
		comment := docComment.FindStringSubmatch(line)
		switch {
		case open && strings.TrimSpace(line) == "```":
			blocks, next, open = append(blocks, next), docBlock{}, false
		case open:
			next.lines = append(next.lines, line)
		case fence != nil && fence[1] == "":
			return nil, fmt.Errorf("line %d: a block without a language", i+1)
		case fence != nil:
			next.language, next.line, open = fence[1], i+2, true
		case comment != nil && comment[1] == "terminal":
			next.terminal = comment[2]
		case comment != nil && comment[1] == "file":
			next.file = comment[2]
		case comment != nil && comment[1] == "not run":
			next.notRun = comment[2]
		case comment != nil && comment[1] == "sample":
			next.sample = comment[2]
		}
	}
	if open {
		return nil, fmt.Errorf("line %d: the block has no end", next.line)
	}
	return blocks, nil
}

// docStep is one input of a transcript and the output that the document shows for it.
type docStep struct {
	line   int
	prompt string // in front of the input; empty for an interrupt
	input  string
	output []string
}

// docPrompt finds what a reader types: behind a shell's, psql's or mariadb's prompt.
var docPrompt = regexp.MustCompile(`^(\$ |[a-z]+[-=][*!]?[#>] |MariaDB \[[a-z()]+\]> )(.*)$`)

// steps takes a console block apart. A line that ends with a backslash goes on in the next one. In a block of shell
// commands each line is a step.
func (b docBlock) steps() ([]docStep, error) {
	var steps []docStep
	for i := 0; i < len(b.lines); i++ {
		line := b.lines[i]
		prompt := docPrompt.FindStringSubmatch(line)
		switch {
		case b.language == "sh" && (line == "" || strings.HasPrefix(line, "#")):
		case b.language == "sh", prompt != nil:
			step := docStep{line: b.line + i, prompt: "$ ", input: line}
			if b.language == "sh" {
				step.output = []string{"..."}
			} else {
				step.prompt, step.input = prompt[1], prompt[2]
			}
			for strings.HasSuffix(step.input, `\`) && i+1 < len(b.lines) {
				i++
				step.input = strings.TrimSuffix(step.input, `\`) + strings.TrimLeft(b.lines[i], " ")
			}
			steps = append(steps, step)
		case line == interrupt:
			steps = append(steps, docStep{line: b.line + i, input: interrupt})
		case len(steps) == 0:
			return nil, fmt.Errorf("line %d: output without an input: %q", b.line+i, line)
		default:
			steps[len(steps)-1].output = append(steps[len(steps)-1].output, line)
		}
	}
	return steps, nil
}

// docSame are the parts of an output that differ from run to run, and what stands for them in a comparison.
var docSame = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`(PostgreSQL|postgres) \d+\.\d+( \([^)]*\))?`), "$1 VERSION"},
	{regexp.MustCompile(`\d+\.\d+\.\d+-MariaDB\S*`), "VERSION"},
	{regexp.MustCompile(`\(\d+,\d+\)/\d+`), "RECORD"},
	{regexp.MustCompile(`backend \d+`), "backend N"},
	{regexp.MustCompile(`[a-z0-9]{6,7}\.\d+\.\d+\b`), "STAMP"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d`), "DATE"},
	{regexp.MustCompile(`\d\d:\d\d:\d\d(\.\d+)?( [AP]M)?`), "TIME"},
	{regexp.MustCompile(`\b\d+(\.\d+)? ?([mnµ]?s|sec)\b`), "DURATION"},
	{regexp.MustCompile(`:\d{4,5}\b`), ":PORT"},
	{regexp.MustCompile(`port(:? |=)\d{4,5}\b`), "port PORT"},
	{regexp.MustCompile(`wirecheck-run-(\w+)-\d+`), "wirecheck-run-$1"},
	{regexp.MustCompile(`[0-9a-f]{24}`), "PASSWORD"},
	{regexp.MustCompile(`-{3,}`), "---"},
	{regexp.MustCompile(`  +`), " "},
	{regexp.MustCompile(`(?m) +$`), ""},
}

// normal makes texts comparable that differ in nothing but times, names of row versions and the like.
func normal(text string) string {
	for _, s := range docSame {
		text = s.pattern.ReplaceAllString(text, s.text)
	}
	return text
}

// matches reports whether a screen shows the output of a step: "..." stands for any text in a line, and alone for any
// lines.
func (s docStep) matches(screen string) bool {
	var want strings.Builder
	want.WriteString("^")
	for _, line := range strings.Split(strings.Trim(strings.Join(s.output, "\n"), "\n"), "\n") {
		if line == "" && len(s.output) == 0 {
			break
		}
		if strings.TrimSpace(line) == "..." {
			want.WriteString(`(.*\n)*?`)
			continue
		}
		parts := strings.Split(line, "...")
		for i, part := range parts {
			parts[i] = regexp.QuoteMeta(normal(part))
		}
		want.WriteString(strings.Join(parts, ".*") + `\n`)
	}
	want.WriteString("$")
	got := strings.Trim(normal(screen), "\n") + "\n"
	return regexp.MustCompile(want.String()).MatchString(strings.TrimPrefix(got, "\n"))
}
