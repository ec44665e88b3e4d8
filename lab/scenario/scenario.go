// Package scenario is the language in which concurrent scenarios are written: what it reads, prints and enumerates.
//
// It is PostgreSQL's isolation spec format (src/test/isolation/README, specscanner.l and specparse.y, versions 15 to 18),
// read as PostgreSQL's own isolationtester reads it, so that any existing spec file works unchanged on any engine. What
// that format has no words for stands in comment lines that begin with #wirecheck: (engine, level, expectations, what
// counts as an anomaly). docs/reference/scenario-format.md describes both.
//
// The package executes nothing. It parses and prints specs, says in which orders their steps can be submitted, leaving out
// orders that cannot differ, and decides from the results of a run which of the file's outcomes was observed.
package scenario

import (
	"fmt"
	"strings"
)

// Spec is one scenario file.
type Spec struct {
	Name string // of the file, for messages
	// Header is the comment at the top of the file, a line each, without "# ".
	Header []string
	// Setup blocks are executed one after the other before each permutation, each as one string.
	Setup    []Block
	Teardown *Block // nil: none
	Sessions []*Session
	// Permutations are the listed ones. None means that every interleaving is run.
	Permutations []*Permutation
	Directives   []Directive // of the whole file, in the order of their lines
	Warnings     []Problem   // what isolationtester tells and goes on, and suspicious lines
}

// Block is an SQL block: everything between its braces, blanks at both ends trimmed, newlines kept.
type Block struct {
	SQL string
	Pos Pos
}

// Session is a connection and its steps.
type Session struct {
	Name            string
	Setup, Teardown *Block // nil: none
	Steps           []*Step
	Pos             Pos
}

// Step is what a session submits as one string.
type Step struct {
	Name    string
	SQL     string
	Session int // index in Spec.Sessions
	Index   int // index in Session.Steps
	Pos     Pos
}

// Permutation is an order in which steps are submitted. Steps that block shift at run time.
type Permutation struct {
	Steps      []PermutationStep
	Directives []Directive // those right before it
	Pos        Pos         // of the word permutation; zero if generated
}

// PermutationStep is a step at its place in a permutation, with the conditions under which it counts as done.
type PermutationStep struct {
	Step    *Step
	Markers []Marker
	Pos     Pos
}

// MarkerKind says what a marker waits for.
type MarkerKind int

// The kinds of markers (README, "Support for blocking commands").
const (
	MarkOnce    MarkerKind = iota // *: reported as waiting once, even if it is done at once
	MarkStep                      // name: not reported as done while that step is
	MarkNotices                   // name notices N: not reported as done until that session got N more notices
)

// Marker is a condition in the parentheses after a step in a permutation.
type Marker struct {
	Kind    MarkerKind
	Step    *Step // nil for MarkOnce
	Notices int
	Pos     Pos
}

// Step gives the step of that name, or nil.
func (s *Spec) Step(name string) *Step {
	for _, session := range s.Sessions {
		for _, st := range session.Steps {
			if st.Name == name {
				return st
			}
		}
	}
	return nil
}

// String gives the names of the permutation's steps with their markers, as a spec file has them.
func (p *Permutation) String() string {
	words := make([]string, len(p.Steps))
	for i, ps := range p.Steps {
		words[i] = quoteName(ps.Step.Name) + markersText(ps.Markers)
	}
	return strings.Join(words, " ")
}

// Pos is a place in a file; both count from 1, columns in characters.
type Pos struct{ Line, Column int }

// Problem is something wrong at a place in a file.
type Problem struct {
	File string
	Pos  Pos
	Text string
}

func (p Problem) String() string {
	if p.Pos == (Pos{}) {
		return fmt.Sprintf("%s: %s", p.File, p.Text)
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Pos.Line, p.Pos.Column, p.Text)
}

// Problems are all that is wrong with a file, in the order of their places. It is the error of Parse.
type Problems []Problem

// shown is how many problems an error names: a file of another kind has one in every word.
const shown = 10

func (ps Problems) Error() string {
	var lines []string
	for _, p := range ps[:min(len(ps), shown)] {
		lines = append(lines, p.String())
	}
	if more := len(ps) - shown; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}
