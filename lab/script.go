package lab

import (
	"fmt"
	"regexp"
	"strings"

	"wirecheck/lab/scenario"
	"wirecheck/statement"
)

// Script makes a scenario of an SQL file: a database and queries on it, as people write them by hand or dump them. The statements
// before the first query of a table are the setup; from there on each statement is a step of one session, s1, in the file's order,
// named after its line. A transaction that is open at the first query belongs to the steps. SET statements of the setup hold for
// the session, too.
//
// Errors say what line cannot be executed so: commands of a client program, COPY from its input, a change of the database.
func Script(name, sql string, describe Describe) (*scenario.Spec, error) {
	line := func(at int) int { return strings.Count(sql[:at], "\n") + 1 }
	wrong := func(at int, text string) error {
		return scenario.Problems{{File: name, Pos: scenario.Pos{Line: line(at), Column: 1}, Text: text}}
	}
	if m := clientCommand.FindStringIndex(sql); m != nil {
		return nil, wrong(m[0], fmt.Sprintf("%q is a command of a client program, not SQL: take it out", strings.TrimSpace(sql[m[0]:m[1]])))
	}
	statements, err := describe(sql)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	first, begun := -1, -1
	for i := range statements {
		st := &statements[i]
		switch {
		case fromInput.MatchString(st.Text):
			return nil, wrong(st.At, "COPY reads the client program's input: write INSERT statements (pg_dump --inserts)")
		case st.Control.Verb == statement.ControlDatabase || ofDatabase.MatchString(st.Text):
			return nil, wrong(st.At, "the file is executed in a database of its own: take out what chooses, makes or drops one")
		}
		if first >= 0 {
			continue
		}
		switch st.Control.Verb {
		case statement.ControlBegin:
			begun = i
		case statement.ControlCommit, statement.ControlRollback:
			begun = -1
		}
		if st.Verb == "select" && len(st.Tables) > 0 {
			first = i
		}
	}
	if first < 0 {
		return nil, wrong(0, "no query of a table: expected statements that make a database, then SELECT statements")
	}
	if begun >= 0 {
		first = begun
	}
	spec := &scenario.Spec{Name: name}
	session := &scenario.Session{Name: "s1"}
	var settings []string
	for _, st := range statements[:first] {
		spec.Setup = append(spec.Setup, scenario.Block{SQL: st.Text, Pos: scenario.Pos{Line: line(st.At), Column: 1}})
		if st.Verb == "set" {
			settings = append(settings, st.Text)
		}
	}
	if len(settings) > 0 {
		session.Setup = &scenario.Block{SQL: strings.Join(settings, "; "), Pos: scenario.Pos{Line: 1, Column: 1}}
	}
	p := &scenario.Permutation{}
	names := map[string]int{}
	for i, st := range statements[first:] {
		step := &scenario.Step{Name: fmt.Sprintf("line%d", line(st.At)), SQL: st.Text, Index: i, Pos: scenario.Pos{Line: line(st.At), Column: 1}}
		if names[step.Name]++; names[step.Name] > 1 {
			step.Name = fmt.Sprintf("%s_%d", step.Name, names[step.Name])
		}
		session.Steps = append(session.Steps, step)
		p.Steps = append(p.Steps, scenario.PermutationStep{Step: step})
	}
	spec.Sessions = []*scenario.Session{session}
	spec.Permutations = []*scenario.Permutation{p}
	return spec, nil
}

var (
	clientCommand = regexp.MustCompile(`(?im)^(\\[a-z!?].*|delimiter\s+\S+.*|source\s+\S+.*)$`)
	fromInput     = regexp.MustCompile(`(?is)^copy\s.*\sfrom\s+stdin\b`)
	ofDatabase    = regexp.MustCompile(`(?i)^(create|drop|alter)\s+database\b|^use\s`)
)
