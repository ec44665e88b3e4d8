package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/backends/engine"
)

// Invariant is a query that says whether the database is as the application wants it.
type Invariant struct {
	SQL  string
	Same bool // it gives the same rows, in any order, before the first step and behind the last one; else it gives none
}

// samePrefix marks an invariant that compares.
const samePrefix = "same:"

// ParseInvariants reads "SELECT ..." or "same:SELECT ..." of each.
func ParseInvariants(texts []string) (list []Invariant, err error) {
	for _, text := range texts {
		var i Invariant
		i.SQL, i.Same = strings.CutPrefix(strings.TrimSpace(text), samePrefix)
		if i.SQL = strings.TrimSpace(i.SQL); i.SQL == "" {
			return nil, fmt.Errorf("invariant %q: expected a query that must give no rows, or %sSELECT ... for one that must give the same rows before and after", text, samePrefix)
		}
		list = append(list, i)
	}
	return list, nil
}

// String is how the flag has it.
func (i Invariant) String() string {
	if i.Same {
		return samePrefix + i.SQL
	}
	return i.SQL
}

// rows are the rows that a query gave, a text each, sorted.
func (i Invariant) rows(a answer.Answer) ([]string, error) {
	switch {
	case a.Err != nil:
		return nil, fmt.Errorf("invariant %s: the server refuses it: %s", i, a.Err.Message)
	case len(a.Results) != 1 || a.Results[0].Columns == nil:
		return nil, fmt.Errorf("invariant %s: it is not one query that gives rows", i)
	}
	list := []string{}
	for _, row := range a.Results[0].Rows {
		var values []string
		for _, v := range row {
			if v == nil {
				values = append(values, "NULL")
			} else {
				values = append(values, string(v))
			}
		}
		list = append(list, strings.Join(values, "|"))
	}
	slices.Sort(list)
	return list, nil
}

// maxBrokenRows is how many rows are shown.
const maxBrokenRows = 3

// Reading is what an invariant's query gave before the first step and behind the last one.
type Reading struct {
	Invariant
	Before, After answer.Answer
}

// ErrBefore says that an invariant does not hold before the first step: then nothing can break it.
var ErrBefore = errors.New("it does not hold before the first step")

// Broken says how what was executed between the two readings broke the invariant; empty: it did not.
func (r Reading) Broken() (string, error) {
	before, err := r.rows(r.Before)
	if err != nil {
		return "", err
	}
	shown := func(list []string) string {
		if len(list) == 0 {
			return "no rows"
		}
		more := ""
		if len(list) > maxBrokenRows {
			more = fmt.Sprintf(" and %d more", len(list)-maxBrokenRows)
		}
		return strings.Join(list[:min(len(list), maxBrokenRows)], ", ") + more
	}
	if !r.Same && len(before) > 0 {
		return "", fmt.Errorf("invariant %s: %w: it gives %s", r.Invariant, ErrBefore, shown(before))
	}
	after, err := r.rows(r.After)
	switch {
	case err != nil:
		return "", err
	case r.Same && !slices.Equal(before, after):
		return fmt.Sprintf("%s: before: %s; after: %s", r.SQL, shown(before), shown(after)), nil
	case !r.Same && len(after) > 0:
		return fmt.Sprintf("%s: it gives %s", r.SQL, shown(after)), nil
	}
	return "", nil
}

// Broken says which invariants an execution broke, by their numbers, and how. Nothing is said of one that did not come to its end.
func (r *Result) Broken() (map[int]string, error) {
	broken := map[int]string{}
	if r.Trouble != nil || r.Crashed {
		return broken, nil
	}
	for i, reading := range r.Invariants {
		why, err := reading.Broken()
		if err != nil {
			return nil, err
		}
		if why != "" {
			broken[i] = why
		}
	}
	return broken, nil
}

// ReadBefore executes the invariants' queries before the first step.
func ReadBefore(ctx context.Context, c engine.Conn, list []Invariant) (readings []Reading, err error) {
	for _, i := range list {
		a, err := c.Do(ctx, i.SQL)
		if err != nil {
			return nil, fmt.Errorf("invariant %s: %w", i, err)
		}
		readings = append(readings, Reading{Invariant: i, Before: a})
	}
	return readings, nil
}

// ReadAfter executes them again behind the last step.
func ReadAfter(ctx context.Context, c engine.Conn, readings []Reading) (err error) {
	for i := range readings {
		if readings[i].After, err = c.Do(ctx, readings[i].SQL); err != nil {
			return fmt.Errorf("invariant %s: %w", readings[i].Invariant, err)
		}
	}
	return nil
}
