package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/history/prose"
	"wirecheck/lab/scenario"
	"wirecheck/statement"
	"wirecheck/trace"
)

// Schema is what a trace's own statements tell of the database that it needs.
type Schema struct {
	Statements []string // that define tables and what belongs to them, in their order
	Lacking    []string // tables that statements use and none of these makes, sorted
}

// InferSchema reads a trace for the statements that define things, whoever executed them and when.
func InferSchema(open Open, c *Config) (_ *Schema, err error) {
	r, err := open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	p := newPreparer(c)
	s := &Schema{}
	used, made := map[string]bool{}, map[string]bool{}
	var rec trace.Record
	for {
		if err := r.Next(&rec); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if rec.Kind != trace.KindStatement || rec.Statement.Error != nil {
			continue
		}
		step := &Step{Statement: rec.Statement}
		if p.prepare(step); step.Skip != "" || step.standIn != "" {
			continue
		}
		if step.defines() {
			made[newDefined(step.SQL).name] = true
			if !temporary.MatchString(step.SQL) {
				s.Statements = append(s.Statements, step.SQL)
			}
			continue
		}
		for _, v := range step.verbs() {
			for _, t := range v.Tables {
				name, schema := strings.ToLower(t.Name), strings.ToLower(t.Schema)
				if t.Kind == statement.SourceTable && !p.system(schema) && (schema != "" || !strings.HasPrefix(name, "pg_")) {
					used[name] = true
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if !made[name] {
			s.Lacking = append(s.Lacking, name)
		}
	}
	return s, nil
}

// defines reports whether a step makes or changes a definition and removes none.
func (s *Step) defines() bool {
	word := strings.ToLower(scenario.FirstWord(s.SQL))
	return (word == "create" || word == "alter") && len(s.verbs()) == 1 && s.verbs()[0].DDL
}

var temporary = regexp.MustCompile(`(?is)^\s*create\s+(?:or\s+replace\s+)?(?:(?:global|local)\s+)?temp(?:orary)?\b`)

// exists are the codes of what is there already: PostgreSQL's tables, schemas, types and columns, then the MySQL family's.
var exists = []string{"42P07", "42P06", "42710", "42701", "42P16", "1050", "1060", "1061", "1304", "1359", "1826", "1068"}

// Define executes a trace's definitions. What is there already is left as it is.
func (s *Snapshot) Define(ctx context.Context, statements []string) error {
	s.name = "the trace's definitions"
	if s.Skipped == nil {
		s.Skipped = map[string]int{}
	}
	for i, sql := range statements {
		var refused *answer.Error
		switch err := s.execute(ctx, sql, i+1); {
		case errors.As(err, &refused) && slices.Contains(exists, refused.Code):
			s.Skipped["definitions of what is there already"]++
		case err != nil:
			return fmt.Errorf("infer the schema: %w (%s)", err, prose.Line(sql, prose.Width))
		}
	}
	return nil
}
