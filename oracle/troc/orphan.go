package troc

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
)

var (
	// childless are the errors by which a server refuses a row that refers to none (MySQL manual, Server Error Message Reference; PostgreSQL manual, appendix A).
	childless = []string{"1216", "1452", "23503"}
	// bare values are the same in quotes, in every type that a key has.
	bare = regexp.MustCompile(`^[\w .:+-]*$`)
)

// orphan judges the tables at the end by themselves: a row that refers to no row breaks its foreign key, whatever the statements were to see. The server
// says so itself: it refuses the row beside the others. Rows that the setup left without one are not judged.
func orphan(ctx context.Context, c *check, start map[string]relation) (*mismatch, error) {
	if c.unchecked() || slices.ContainsFunc(c.s.Steps, func(st schedule.Step) bool { return st.Statement.DDL }) {
		return nil, nil
	}
	final := map[string]answer.Table{}
	for _, t := range c.s.Final {
		if slices.EqualFunc(t.Columns, c.t.columns[t.Name], func(a, b answer.Column) bool { return a.Name == b.Name }) {
			final[t.Name] = t
		}
	}
	if len(final) < len(c.t.names) { // what the others hold is not known
		return nil, nil
	}
	for _, key := range c.keys {
		child, parent := final[key.Child], final[key.Parent]
		from, to := named(child.Columns, key.From), named(parent.Columns, key.Columns)
		if from == nil || to == nil {
			continue
		}
		for n, row := range child.Rows {
			refers := picked(row, from)
			refersTo := func(r []answer.Value) bool { return answer.SameRow(picked(r, to), refers) }
			if slices.ContainsFunc(refers, func(v answer.Value) bool { return v == nil }) || slices.ContainsFunc(parent.Rows, refersTo) ||
				slices.ContainsFunc(start[key.Child], func(t tuple) bool { return answer.SameRow(t.values, row) }) &&
					!slices.ContainsFunc(start[key.Parent], func(t tuple) bool { return refersTo(t.values) }) {
				continue
			}
			why, err := c.t.childless(ctx, final, key.Child, n, c.features.computed[key.Child])
			if err != nil {
				return nil, err
			}
			if why == "" {
				continue
			}
			return &mismatch{
				step: -1, name: oracle.NameFinalState, table: key.Child,
				rule: "the rows that the tables hold at the end keep their foreign keys: put in again beside the others, the server refuses this one with " + why,
				want: oracle.Side{Text: "only rows that refer to rows of " + key.Parent}, got: schedule.SideOf(child.Columns, [][]answer.Value{row}, 0),
			}, nil
		}
	}
	return nil, nil
}

// named gives the places of columns; nil if one is not among them.
func named(columns []answer.Column, names []string) (at []int) {
	for _, name := range names {
		n := slices.IndexFunc(columns, func(c answer.Column) bool { return strings.EqualFold(c.Name, name) })
		if n < 0 {
			return nil
		}
		at = append(at, n)
	}
	return at
}

func picked(row []answer.Value, at []int) (values []answer.Value) {
	for _, n := range at {
		values = append(values, row[n])
	}
	return values
}

// childless puts a row of the final tables in again beside the others, and says by which error the server refuses the row since it refers to none; empty: it does not.
func (t *theater) childless(ctx context.Context, final map[string]answer.Table, table string, row int, computed []string) (why string, err error) {
	var names, values []string
	for n, v := range final[table].Rows[row] {
		switch name := final[table].Columns[n].Name; {
		case slices.Contains(computed, strings.ToLower(name)):
			continue
		case v != nil && !bare.Match(v):
			return "", nil
		case v == nil:
			names, values = append(names, name), append(values, "NULL")
		default:
			names, values = append(names, name), append(values, "'"+string(v)+"'")
		}
	}
	views := map[string]relation{}
	for name, full := range final {
		rel := relation{}
		for n, r := range full.Rows {
			if name != table || n != row {
				rel = append(rel, tuple{n + 1, r})
			}
		}
		views[name] = rel
	}
	if err := t.bare(ctx, false); err != nil { // sessions without settings: a time zone or a search path would make another row of it
		return "", err
	}
	if err := t.load(ctx, views, false); err != nil {
		if err == errNoView { // two rows with one key
			return "", nil
		}
		return "", err
	}
	for n := range names {
		names[n] = quote(t.s.DBMS(), names[n])
	}
	defer clear(t.loaded)
	t.executed++
	got, err := t.stage.Execute(ctx, 0, fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", quote(t.s.DBMS(), table), strings.Join(names, ", "), strings.Join(values, ", ")))
	if err != nil || got.Answer.Err == nil || !slices.Contains(childless, got.Answer.Err.Code) {
		return "", err
	}
	return "error " + got.Answer.Err.Code, nil
}
