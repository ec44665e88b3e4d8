package radar

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
)

var (
	// strings and quoted names, which are no part of what the expressions below look for
	quoted = regexp.MustCompile("'(?:[^'\\\\]|''|\\\\.)*'|\"(?:[^\"\\\\]|\"\"|\\\\.)*\"|`[^`]*`")
	// what names the database or needs optional metadata (Radar, section 3.2.2): the raw database's answer is its own
	own = regexp.MustCompile(`(?i)\b(current_database|current_catalog|current_schemas?|database|schema|default|values)\s*\(|` +
		`\b(current_catalog|current_schema|regclass|tableoid|ctid|information_schema|_rowid|_tidb_rowid|against|procedure)\b|\bpg_[a-z_]+|` +
		`\b(use|force|ignore)\s+(index|key)\b|\bpartition\s*\(|\bfor\s+system_time\b|\binto\b|/\*!|/\*M!`)
	limits = regexp.MustCompile(`(?i)\b(limit|fetch|offset)\b`)
	// where the order of rows can show in the answer although there is an ORDER BY: ties
	ties = regexp.MustCompile(`(?i)\bover\b|\bdistinct\s+on\b|\bwithin\s+group\b|\bgroup_concat\b|\b(array|string|json|jsonb|xml)_?(array|object)?agg\b|\b(json|jsonb)_object_?agg\b`)
	// where values of rows are calculated with in the rows' order
	sums = regexp.MustCompile(`(?i)\b(sum|avg|std\w*|var\w*|corr|covar\w*|regr\w*|over|group_concat|\w*agg)\b`)
)

var (
	isNull   = regexp.MustCompile(`(?i)\bnull\b|\bisnull\b`)
	showing  = regexp.MustCompile(`(?i)\b(datestyle|intervalstyle|lc_monetary|bytea_output|extra_float_digits|xmloption|role|authorization|reset)\b`)
	setting  = regexp.MustCompile(`(?i)^(set|reset|discard)\b`)
	deferral = regexp.MustCompile(`(?i)^set\s+constraints\b`)
)

// words are those without which neither own nor limits finds anything, which take a hundred times as long to look.
var words = statement.Names(`current_database current_catalog current_schema current_schemas database schema default values regclass tableoid ctid
information_schema _rowid _tidb_rowid against procedure use force ignore partition for into limit fetch offset`)

// suspect reports whether a text may have to do with metadata, or limits what it gives.
func suspect(text string) bool {
	lower := strings.ToLower(text)
	for word := range strings.FieldsFuncSeq(lower, func(r rune) bool { return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') }) {
		if words[word] || strings.HasPrefix(word, "pg_") {
			return true
		}
	}
	return strings.Contains(lower, "/*!") || strings.Contains(lower, "/*m!")
}

func autoNull(text string) bool { return strings.Contains(strings.ToLower(text), "sql_auto_is_null") }

// why is reason for a step of the schedule.
func (c *checker) why(st *schedule.Step) string {
	why, known := c.whys[st]
	if !known {
		if why = c.reason(&st.Statement); why == "" && c.unchecked[st] {
			why = schedule.NotChecked
		}
		c.whys[st] = why
	}
	return why
}

// reason says why a statement is not compared; empty: it is.
func (c *checker) reason(st *statement.Statement) string {
	why := schedule.Steady(st)
	if st.Verb != "select" {
		return "no query"
	}
	bare := quoted.ReplaceAllString(st.Text, "''")
	switch {
	case why != "":
		return why
	case len(st.Reads()) == 0 && !strings.Contains(strings.ToLower(bare), "from"):
		return "it reads no table"
	}
	if suspect(bare) {
		if m := own.FindString(bare); m != "" {
			return "it has to do with metadata: " + strings.TrimSpace(m)
		}
		outside := bare
		if i := strings.LastIndex(bare, quoted.ReplaceAllString(st.Clauses.Limit, "''")); i >= 0 && st.Clauses.Limit != "" {
			outside = bare[:i]
		}
		if limits.MatchString(outside) {
			return "LIMIT in a part of it, whose order may leave ties"
		}
	}
	if c.twin != nil {
		for _, u := range st.Tables {
			if u.Kind == statement.SourceTable && c.twin.partitions[c.twin.nameOf(u)] != "" {
				return "it names a partition, which the raw database does not have"
			}
		}
	}
	return ""
}

// compare compares the answers that a query has on both databases.
func (c *checker) compare(ctx context.Context, st *schedule.Step, now answer.State) error {
	sql := st.Statement.Text
	want, err := c.raw(ctx, st)
	if err != nil {
		return err
	}
	// The schedule's own answer may say that all is well. If it does not, the query is executed again, beside what the oracle asks then.
	got := *st
	if !c.reusable(st, now) || !alike(&got, &want) {
		if got, err = c.stage.Execute(ctx, st.Session, sql); err != nil {
			return err
		}
	}
	c.failed[st.Session] = got.After == answer.Failed
	for _, side := range []schedule.Step{got, want} {
		switch side.Reason {
		case answer.ReasonLockTimeout, answer.ReasonKilled, answer.ReasonDeadlock, answer.ReasonSerialization, answer.ReasonInternal, answer.ReasonReadOnly:
			c.v.Note("%s: not compared: %s", sql, side.Reason)
			return nil
		}
	}
	c.v.Compared++
	if alike(&got, &want) {
		return nil
	}
	f := oracle.Finding{Kind: oracle.KindViolation, Difference: &oracle.Difference{
		Rule: "Radar, section 3.4: a query answers on the database as on the raw database, which has the same rows and no optional metadata",
		Step: st.Name, Session: c.s.Sessions[st.Session].Name, SQL: sql,
	}}
	for _, u := range st.Statement.Reads() {
		f.Tables = append(f.Tables, c.twin.nameOf(u))
	}
	slices.Sort(f.Tables)
	f.Tables = slices.Compact(f.Tables)
	f.Difference.Parts = []oracle.Part{schedule.PartOf(sql, "", got.Answer), schedule.PartOf(sql, oracle.RawDatabase, want.Answer)}
	if got.Answer.Err != nil || want.Answer.Err != nil {
		return c.errors(ctx, st, f, &got, &want)
	}
	a, b := want.Answer, got.Answer
	d := answer.DiffRows(a.Rows, b.Rows)
	if st.Statement.Limit {
		c.v.Note("%s: answers differ, which an order with ties permits under LIMIT", sql)
		return nil
	}
	why, err := c.open(ctx, st, a, b, d)
	if err != nil {
		return err
	}
	if why != "" {
		c.v.Note("%s: answers differ: %s", sql, why)
		return nil
	}
	if known := c.s.DBMS().Cause(product.ZeroDates); known != nil && c.zeros && isNull.MatchString(sql) {
		f.Kind, f.Source = oracle.KindPermitted, known.Source
		f.Difference.Cause, f.Difference.Reason = string(known.ID), known.Reason
	}
	f.Name = oracle.NameResult
	f.Difference.Expected = schedule.SideOf(a.Columns, d.Missing, len(a.Rows)-len(d.Missing))
	f.Difference.Observed = schedule.SideOf(b.Columns, d.Extra, len(b.Rows)-len(d.Extra))
	if err := c.opinion(ctx, st, got.After, f.Difference, len(b.Rows), len(a.Rows)); err != nil {
		return err
	}
	if err := c.s.Recognise(ctx, c.stage, st.Session, &st.Statement, got.After, &f); err != nil {
		return err
	}
	if err := c.s.Recognise(ctx, c.o.Raw, st.Session, &st.Statement, answer.Idle, &f); err != nil {
		return err
	}
	return c.attribute(ctx, st, got.After, f)
}

// attribute reports a finding with where it comes from.
func (c *checker) attribute(ctx context.Context, st *schedule.Step, now answer.State, f oracle.Finding) error {
	if err := c.origin(ctx, st, now, f.Difference); err != nil {
		return err
	}
	Named(c.s.DBMS(), &f)
	c.s.Permit(&f, st.Statement.Text)
	return c.report(ctx, f)
}

// opinion names the database whose answer has not as many rows as the query's condition is true for. If it is the raw one, the sides change places.
func (c *checker) opinion(ctx context.Context, asked *schedule.Step, now answer.State, d *oracle.Difference, rows, raw int) error {
	st := &asked.Statement
	if rows == raw || now == answer.Failed || st.Clauses.Where == "" || st.Aggregate || st.Distinct || st.SetOperation || st.Window || st.Clauses.GroupBy != "" || st.Clauses.Having != "" {
		return nil
	}
	here, err := c.s.AskTruth(ctx, c.stage, asked.Session, st, now)
	if err != nil || here == nil {
		return err
	}
	there, err := c.s.AskTruth(ctx, c.o.Raw, asked.Session, st, answer.Idle)
	if err != nil || there == nil || there.True != here.True || there.False != here.False || there.Null != here.Null {
		return err
	}
	switch here.True {
	case raw:
		d.Parts[0].Wrong = true
	case rows:
		d.Parts[1].Wrong = true
		d.Expected, d.Observed = d.Observed, d.Expected
	default:
		return nil
	}
	d.Opinion = here.Opinion() + ", on both databases"
	return nil
}

// open says why a query may answer either way; empty: it may not.
func (c *checker) open(ctx context.Context, st *schedule.Step, want, got answer.Result, d answer.Difference) (string, error) {
	bare := quoted.ReplaceAllString(st.Statement.Text, "''")
	if st.Statement.Window || ties.MatchString(bare) {
		return "rows that an order leaves tied may come in any order", nil
	}
	if len(want.Columns) == len(got.Columns) && len(want.Rows) == len(got.Rows) {
		if sums.MatchString(bare) && same(d, want.Columns, summed) {
			return "floating point numbers, added in another order", nil
		}
		if schedule.Represents(bare, d) {
			return "which of several equal values stands for them is not defined", nil
		}
	}
	if c.family && !c.lite && (st.Statement.Aggregate || schedule.Groups(bare)) {
		return c.chooses(ctx, st)
	}
	return "", nil
}

// chooses asks the server whether a query takes a value of any row of a group: with ONLY_FULL_GROUP_BY it is refused then (MySQL
// manual, 14.19.3, "MySQL Handling of GROUP BY"; MariaDB knowledge base, "SQL_MODE").
func (c *checker) chooses(ctx context.Context, st *schedule.Step) (string, error) {
	for _, sql := range []string{"SET @wirecheck_mode = @@sql_mode", "SET SESSION sql_mode = CONCAT(@@sql_mode, ',ONLY_FULL_GROUP_BY')"} {
		if _, err := c.o.Raw.Execute(ctx, st.Session, sql); err != nil {
			return "", err
		}
	}
	strict, err := c.o.Raw.Execute(ctx, st.Session, st.Statement.Text)
	if err != nil {
		return "", err
	}
	if _, err := c.o.Raw.Execute(ctx, st.Session, "SET SESSION sql_mode = @wirecheck_mode"); err != nil {
		return "", err
	}
	if e := strict.Answer.Err; e != nil {
		return fmt.Sprintf("the server may choose any row of a group (with ONLY_FULL_GROUP_BY: error %s)", e.Code), nil
	}
	return "", nil
}

// same reports whether rows differ only in what normal makes equal.
func same(d answer.Difference, columns []answer.Column, normal func(v, kind string) string) bool {
	change := func(rows [][]answer.Value) [][]answer.Value {
		out := make([][]answer.Value, len(rows))
		for i, row := range rows {
			out[i] = make([]answer.Value, len(row))
			for n, v := range row {
				if v != nil {
					out[i][n] = answer.Value(normal(string(v), columns[n].Type))
				}
			}
		}
		return out
	}
	return answer.DiffRows(change(d.Missing), change(d.Extra)).Equal()
}
