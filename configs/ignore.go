package configs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// Known is a finding that is known, and does not fail a build. What it says must all hold of a finding; empty says nothing.
type Known struct {
	ID    string `yaml:"id,omitempty"`    // "WC-a75b12"
	Class string `yaml:"class,omitempty"` // formal or everyday name: "G2-item", "write skew"
	Table string `yaml:"table,omitempty"` // "public.coupon", or without the schema
	// Statements are shapes of statements (oracle.Finding.Shapes): a finding has no others.
	Statements []string `yaml:"statements,omitempty"`
	Reason     string   `yaml:"reason"`
	Until      string   `yaml:"until,omitempty"` // the last day on which it is known: "2027-01-31"
}

var id = regexp.MustCompile(`^WC-[0-9a-f]{6}$`)

// check says what is wrong with the entry at a place.
func (k *Known) check(p *problems, at string) {
	if k.ID == "" && k.Class == "" && k.Table == "" && len(k.Statements) == 0 {
		p.add(at, "it says of no finding: give an id, a class, a table or statements")
	}
	if k.ID != "" && !id.MatchString(k.ID) {
		p.add(at+".id", "id %q: it should look like WC-a75b12", k.ID)
	}
	if strings.TrimSpace(k.Reason) == "" {
		p.add(at+".reason", "it has no reason")
	}
	if k.Until != "" {
		if _, err := time.Parse(time.DateOnly, k.Until); err != nil {
			p.add(at+".until", "until %q: it should look like 2027-01-31", k.Until)
		}
	}
}

// Holds reports whether the entry is about a finding, of which shapes are the statements. Days end in UTC.
func (k *Known) Holds(id string, classes, tables, shapes []string, now time.Time) bool {
	if k.Until != "" && now.UTC().Format(time.DateOnly) > k.Until {
		return false
	}
	among := func(want string, list []string, bare bool) bool {
		for _, s := range list {
			if strings.EqualFold(s, want) || bare && strings.EqualFold(s[strings.LastIndexByte(s, '.')+1:], want) {
				return true
			}
		}
		return want == ""
	}
	other := func(shape string) bool { return !slices.Contains(k.Statements, shape) }
	return (k.ID == "" || k.ID == id) && among(k.Class, classes, false) && among(k.Table, tables, true) &&
		(len(k.Statements) == 0 || len(shapes) > 0 && !slices.ContainsFunc(shapes, other))
}

// LoadKnown reads a file of known findings. A file that is not there is an error, unless it is about to be written.
func LoadKnown(path string, written bool) ([]Known, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) && written {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the known findings: %w", err)
	}
	defer f.Close()
	var file struct {
		Ignore []Known `yaml:"ignore"`
	}
	from, p := source{path: path}, &problems{}
	if err := from.read(f, &file); err != nil {
		return nil, fmt.Errorf("known findings:\n%w", err)
	}
	for i := range file.Ignore {
		file.Ignore[i].check(p, fmt.Sprintf("ignore[%d]", i))
	}
	if err := p.err(from.where); err != nil {
		return nil, fmt.Errorf("known findings:\n%w", err)
	}
	return file.Ignore, nil
}

// entries are the lines of findings in a file.
func entries(list []Known) (text string, err error) {
	lines, err := yaml.Marshal(list)
	for line := range strings.Lines(string(lines)) {
		text += "  " + line
	}
	return text, err
}

// KnownText is a file that has these findings alone.
func KnownText(list []Known) string {
	text, err := entries(list)
	if err != nil {
		panic(err) // a list of strings
	}
	return "ignore:\n" + text
}

// AddKnown adds findings to a file, and keeps what it has: its comments, too.
func AddKnown(path string, more []Known) error {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the known findings: %w", err)
	}
	if len(text) == 0 {
		text = []byte("ignore:\n")
	}
	if text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	if len(more) > 0 {
		entries, err := entries(more)
		if err != nil {
			return fmt.Errorf("write the known findings: %w", err)
		}
		text = append(text, entries...)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return fmt.Errorf("write the known findings: %w", err)
	}
	return nil
}
