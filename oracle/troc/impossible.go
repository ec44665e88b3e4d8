package troc

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
)

var (
	// nulls, checks and types are the errors by which a server refuses a row for itself, whatever other rows there are: a column that is NOT NULL, a
	// CHECK, a value that a column cannot hold (MySQL manual, Server Error Message Reference; MariaDB manual, Error Codes; PostgreSQL manual, appendix A).
	nulls  = []string{"1048", "23502"}
	checks = []string{"3819", "4025", "23514"}
	types  = []string{"1264", "1406", "22001", "22003"}

	// unchecked finds that rows may be there which break a constraint, by the vendor's rules (PostgreSQL manual, ALTER TABLE: NOT VALID, DISABLE TRIGGER; MariaDB manual,
	// check_constraint_checks; MySQL manual, unique_checks and foreign_key_checks; TiDB documentation, Constraints), or that a table has lost one.
	unchecked = regexp.MustCompile(`(?i)\bnot\s+(valid|enforced)\b|\bcheck_constraint_checks\b|\b(unique|foreign_key)_checks\b|\btidb_enable_foreign_key\b|\bsession_replication_role\b|` +
		`\bdisable\s+trigger\b|\btidb_constraint_check_in_place|\bdrop\s+(primary|foreign|constraint|key|index)\b`)
	// exact are types of which a value's text gives the same value again, if the column can hold it: else a server that is not strict makes another of it.
	exact = regexp.MustCompile(`(?i)^(tiny|small|medium|big|unsigned\s)*int(eger|\d|\b)|^decimal|^numeric|varchar`)
	// approximate are types of which a value's text need not be in the type's range, or give the same value again.
	approximate = regexp.MustCompile(`(?i)float|double|real`)
)

// alone judges an answer that was compared with nothing: a row that no state of its table can hold is wrong, whatever the view. The server says
// so itself: it refuses such a row, or computes another value for a generated column.
func alone(ctx context.Context, c *check, w *world, i int) error {
	st := &c.s.Steps[i]
	kind, _ := c.kind(i)
	if kind.Writes() || st.Answer.Err != nil || c.judged[i] || c.features.late {
		return nil
	}
	r := c.roles(kind, &st.Statement)
	q := &st.Statement
	view, _ := c.p.View(c.txs[c.txOf[i]].Level, kind)
	if !plain(q, r) || view.Read == product.V2 || c.unchecked() {
		return nil
	}
	table := append(slices.Clone(r.locked), r.read...)[0]
	shown, whole := places(st, c.t.columns[table])
	if shown == nil {
		return nil
	}
	tried := 0
	for _, values := range st.Answer.Rows {
		row := completed(w.view(table, initial, moment{}), values, shown, len(c.t.columns[table]), whole)
		if row == nil || w.holds(table, row) {
			continue
		}
		if tried++; tried > mostVariants {
			return nil
		}
		why, err := c.t.refuses(ctx, table, row, c.features.computed[table], whole, c.features.acts)
		if err != nil {
			return err
		}
		if why == "" {
			continue
		}
		c.judged[i] = true
		c.out.Findings = append(c.out.Findings, c.finding(&mismatch{
			step: i, name: oracle.NameResult, rule: "a row that a SELECT returns keeps the definitions of its table, in every state that a statement can see: put into the table again, " + why,
			want: oracle.Side{Text: "only rows that the table can hold"}, got: schedule.SideOf(st.Answer.Columns, [][]answer.Value{values}, len(st.Answer.Rows)-1), trail: w.trail,
		}, nil))
		return nil
	}
	return nil
}

// unchecked reports whether rows may break a constraint of their table.
func (c *frame) unchecked() bool { return c.s.Says(unchecked) }

// places are the columns of a table that the columns of an answer are; nil if they are something else. whole says that they are all.
func places(st *schedule.Step, columns []answer.Column) (list []int, all bool) {
	names := st.Statement.Columns
	if slices.Equal(names, []string{"*"}) {
		all = slices.EqualFunc(columns, st.Answer.Columns, func(a, b answer.Column) bool { return strings.EqualFold(a.Name, b.Name) })
		if !all {
			return nil, false
		}
		for i := range columns {
			list = append(list, i)
		}
		return list, true
	}
	if len(names) != len(st.Answer.Columns) {
		return nil, false
	}
	for _, name := range names {
		at := slices.IndexFunc(columns, func(c answer.Column) bool { return strings.EqualFold(c.Name, name) })
		if at < 0 {
			return nil, false
		}
		list = append(list, at)
	}
	return list, false
}

// completed is a row of a table with the values that an answer shows of it. Of other columns it has those of a row that is known; nil if none is.
func completed(known relation, values []answer.Value, places []int, columns int, whole bool) []answer.Value {
	row := make([]answer.Value, columns)
	if !whole {
		if !slices.ContainsFunc(values, func(v answer.Value) bool { return v == nil }) { // only NOT NULL is about a column alone
			return nil
		}
		if len(known) == 0 {
			return nil
		}
		copy(row, known[0].values)
	}
	for n, at := range places {
		row[at] = values[n]
	}
	return row
}

// holds reports whether a row is known to have been in a table: the server took it.
func (w *world) holds(table string, values []answer.Value) bool {
	return slices.ContainsFunc(w.tables[table], func(r row) bool {
		return slices.ContainsFunc(r.versions, func(v version) bool { return !v.deleted && answer.SameRow(v.values, values) })
	})
}

// refuses says why a table cannot hold a row, in the server's words; empty: it can, or that is not certain. Of a row of which not all columns are
// known, only NOT NULL tells. An action of a foreign key may go past a CHECK (InnoDB executes it below the server).
func (t *theater) refuses(ctx context.Context, table string, values []answer.Value, computed []string, whole, acts bool) (why string, err error) {
	inexact := slices.ContainsFunc(t.columns[table], func(c answer.Column) bool { return approximate.MatchString(c.Type) })
	defer delete(t.loaded, table)
	columns, row := t.columns[table], values
	if !t.plain {
		columns, row = append(slices.Clone(columns), answer.Column{Name: rowID, Type: "bigint"}), append(slices.Clone(values), answer.Value("1"))
	}
	err = t.stage.Load(ctx, []answer.Table{{Name: table, Columns: columns, Rows: [][]answer.Value{row}}})
	var refused *answer.Error
	switch {
	case errors.As(err, &refused):
		clear(t.loaded)
		clear(t.applied)
		if err = t.stage.Reset(ctx); err != nil {
			return "", fmt.Errorf("judge a row: %w", err)
		}
		if slices.Contains(nulls, refused.Code) || whole && !acts && slices.Contains(checks, refused.Code) || whole && !inexact && slices.Contains(types, refused.Code) {
			return "the server refuses it: " + refused.Text(), nil
		}
		return "", nil
	case err != nil || !whole || inexact || acts:
		return "", err
	}
	tables, err := t.stage.Tables(ctx)
	if err != nil {
		return "", fmt.Errorf("judge a row: %w", err)
	}
	for _, read := range tables {
		if read.Name != table || len(read.Rows) != 1 {
			continue
		}
		for n, c := range t.columns[table] {
			at := slices.IndexFunc(read.Columns, func(o answer.Column) bool { return o.Name == c.Name })
			if at < 0 || answer.SameRow(read.Rows[0][at:at+1], values[n:n+1]) {
				continue
			}
			if !slices.Contains(computed, strings.ToLower(c.Name)) && !exact.MatchString(c.Type) {
				return "", nil // its text does not give the value again
			}
			why = "its column " + c.Name + " is " + strings.Trim(answer.RowText(read.Rows[0][at:at+1]), "()")
		}
	}
	return why, nil
}
