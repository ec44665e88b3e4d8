package schedule

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"wirecheck/answer"
	"wirecheck/oracle"
	"wirecheck/product"
	"wirecheck/statement"
)

// Truth is a third opinion where two queries with the same condition disagree: for how many rows the condition is true, false and NULL. The
// server only computes the condition's value, in the select list and for each row; which of the three it is, we decide.
type Truth struct {
	SQL               string
	True, False, Null int
	Keyed             bool // each row was counted once, by its primary key, however often it was returned
}

// Rows counts the rows that there are.
func (t *Truth) Rows() int { return t.True + t.False + t.Null }

// Counted stands between the query of an opinion and what it found.
const Counted = ": true for "

// Opinion says whose opinion it is.
func (t *Truth) Opinion() string {
	each := "each row"
	if t.Keyed {
		each = "each value of the primary key"
	}
	return "the condition's values, computed for " + each + " by " + t.SQL + Counted + strconv.Itoa(t.True) + ", false for " + strconv.Itoa(t.False) + ", NULL for " + strconv.Itoa(t.Null)
}

// True reports whether a condition with this value is true; sure is false if the value does not tell.
func True(v answer.Value) (is, sure bool) {
	switch text := strings.ToLower(string(v)); {
	case text == "t" || text == "true":
		return true, true
	case text == "f" || text == "false":
		return false, true
	case text != "" && number.MatchString(text):
		f, err := strconv.ParseFloat(text, 64)
		return f != 0, err == nil
	}
	return false, false
}

// Truth asks for the third opinion on the query's condition; nil: there is none, since the server refuses the question or a value does
// not tell.
func (q *Query) Truth(ctx context.Context) (*Truth, error) {
	return q.s.AskTruth(ctx, q.stage, q.Session, &q.Statement, q.now)
}

var subquery = regexp.MustCompile(`(?i)\bselect\b`)

// Nested reports whether a condition has a subquery of tables. Of such a one there is no third opinion: the index that a wrong answer came by may answer the
// question, too.
func Nested(st *statement.Statement) bool {
	return subquery.MatchString(st.Clauses.Where) && slices.ContainsFunc(st.Tables, func(u statement.TableUse) bool { return u.Place == statement.PlaceSubquery })
}

// AskTruth asks as Ask does, for the rows' primary keys, too: a row that is returned twice is one. There is no opinion on conditions that are Nested.
func (s *Schedule) AskTruth(ctx context.Context, stage Stage, session int, st *statement.Statement, now answer.State) (*Truth, error) {
	fails := s.DBMS().ErrorFails
	if Nested(st) {
		return nil, nil
	}
	c := statement.Clauses{With: st.Clauses.With, From: st.Clauses.From}
	keys, err := s.keys(ctx, stage, session, st, now)
	if err != nil {
		return nil, err
	}
	t := &Truth{SQL: c.Query(strings.Join(append(keys, "("+st.Clauses.Where+")"), ", ")), Keyed: keys != nil}
	got, err := Ask(ctx, stage, session, t.SQL, now, fails)
	if err != nil || got.Answer.Err != nil {
		return nil, err
	}
	seen := map[string]answer.Value{}
	for _, row := range got.Answer.Rows {
		if len(row) != len(keys)+1 {
			return nil, nil
		}
		value := row[len(keys)]
		if key := answer.RowText(row[:len(keys)]); t.Keyed {
			if other, again := seen[key]; again && answer.SameRow([]answer.Value{other}, []answer.Value{value}) {
				continue
			} else if again {
				return nil, nil // one row, and two values
			}
			seen[key] = value
		}
		is, sure := True(value)
		switch {
		case value == nil:
			t.Null++
		case !sure:
			return nil, nil
		case is:
			t.True++
		default:
			t.False++
		}
	}
	if against, err := s.Contradicted(ctx, stage, session, st, now, t.True); err != nil || against {
		return nil, err
	}
	return t, nil
}

// exactNumber are types whose values are numbers that a text of the query can have; fewRows is how many rows Contradicted puts into one.
var exactNumber = regexp.MustCompile(`(?i)^(?:tinyint|smallint|mediumint|int|integer|bigint|decimal|numeric|year)\b`)

const fewRows = 50

// Contradicted reports whether a query's condition is true for another number of rows where numbers stand in the place of the table's: the server computes it
// wrongly for one of the two, and no opinion rests on that. It tells of conditions on one table that name integers and decimals alone.
func (s *Schedule) Contradicted(ctx context.Context, stage Stage, session int, st *statement.Statement, now answer.State, want int) (bool, error) {
	main := st.Main()
	if len(main) != 1 || len(st.Tables) != 1 || main[0].Kind != statement.SourceTable || main[0].Schema != "" || st.Clauses.With != "" {
		return false, nil
	}
	p := s.DBMS()
	all, err := Ask(ctx, stage, session, "SELECT * FROM "+p.Quote(main[0].Name), now, p.ErrorFails)
	if err != nil || all.Answer.Err != nil || len(all.Answer.Rows) == 0 || len(all.Answer.Rows) > fewRows {
		return false, err
	}
	var named []int
	for i, c := range all.Answer.Columns {
		if !regexp.MustCompile(`(?i)(?:^|\W)` + regexp.QuoteMeta(c.Name) + `(?:\W|$)`).MatchString(st.Clauses.Where) {
			continue
		}
		if named = append(named, i); !exactNumber.MatchString(c.Type) {
			return false, nil
		}
	}
	if len(named) == 0 {
		return false, nil
	}
	var rows []string
	for _, row := range all.Answer.Rows {
		var values []string
		for _, i := range named {
			text := "NULL"
			if row[i] != nil {
				text = string(row[i])
			}
			values = append(values, text+" AS "+p.Quote(all.Answer.Columns[i].Name))
		}
		rows = append(rows, "SELECT "+strings.Join(values, ", "))
	}
	got, err := Ask(ctx, stage, session, "SELECT ("+st.Clauses.Where+") FROM ("+strings.Join(rows, " UNION ALL ")+") AS "+main[0].Ref, now, p.ErrorFails)
	if err != nil || got.Answer.Err != nil {
		return false, err
	}
	for _, row := range got.Answer.Rows {
		if is, _ := True(row[0]); is {
			want--
		}
	}
	return want != 0, nil
}

// Recognise gives a finding about a query its cause where the server shows the same bug in questions of wirecheck's own about the tables that the query reads.
func (s *Schedule) Recognise(ctx context.Context, stage Stage, session int, st *statement.Statement, now answer.State, f *oracle.Finding) error {
	if err := s.twice(ctx, stage, session, st, now, f); err != nil {
		return err
	}
	return s.jsonTruth(ctx, stage, session, st, now, f)
}

// twice gives a finding about a query its cause where a table that it reads gives a row twice by its primary key, whether the server goes by that key or not.
// Its transaction runs alone, so that no other one has deleted one of the two.
func (s *Schedule) twice(ctx context.Context, stage Stage, session int, st *statement.Statement, now answer.State, f *oracle.Finding) error {
	cause := s.DBMS().Cause(product.LockedKey)
	if cause == nil || now != answer.Open || f.Difference.Cause != "" {
		return nil
	}
	for _, u := range st.Reads() {
		keys, err := s.primaryKey(ctx, stage, session, &u, now)
		if err != nil {
			return err
		}
		for _, by := range []string{"", s.DBMS().ByPrimary} {
			if keys == nil || f.Difference.Cause != "" {
				break
			}
			got, err := Ask(ctx, stage, session, "SELECT "+strings.Join(keys, ", ")+" FROM "+s.DBMS().Quote(u.Name)+by, now, s.DBMS().ErrorFails)
			if err != nil {
				return err
			}
			if rows := got.Answer.Rows; len(answer.DistinctRows(rows)) < len(rows) {
				f.Because(cause)
			}
		}
	}
	return nil
}

// jsonColumns asks for the JSON columns of a table; %s is the table's name as a text.
const jsonColumns = "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = %s AND DATA_TYPE = 'json'"

// condition finds a column that is a condition by itself; %s is its name.
const condition = "(?i)\\b(WHERE|NOT|AND|OR|XOR|ON|HAVING|WHEN)\\b[\\s(]*(\\w+\\.)?`?%s`?[\\s)]*($|;|\\b(AND|OR|XOR|THEN|IS|GROUP|ORDER|LIMIT|FOR|UNION)\\b)"

// jsonTruth gives a finding about a query its cause where each row of a table is not in one, and one only, of the answers to "the column", "NOT the column" and "the
// column is NULL", for a JSON column that is a condition of the query.
func (s *Schedule) jsonTruth(ctx context.Context, stage Stage, session int, st *statement.Statement, now answer.State, f *oracle.Finding) error {
	p := s.DBMS()
	cause := p.Cause(product.JSONTruth)
	if cause == nil || f.Difference.Cause != "" {
		return nil
	}
	for _, u := range st.Reads() {
		columns, err := Ask(ctx, stage, session, fmt.Sprintf(jsonColumns, "'"+strings.ReplaceAll(u.Name, "'", "''")+"'"), now, p.ErrorFails)
		if err != nil {
			return err
		}
		for _, row := range columns.Answer.Rows {
			if len(row) != 1 || !regexp.MustCompile(fmt.Sprintf(condition, regexp.QuoteMeta(string(row[0])))).MatchString(st.Text) {
				continue
			}
			c, t := p.Quote(string(row[0])), p.Quote(u.Name)
			count := func(where string) string { return "(SELECT COUNT(*) FROM " + t + where + ")" }
			got, err := Ask(ctx, stage, session, "SELECT "+count(" WHERE "+c)+" + "+count(" WHERE NOT "+c)+" + "+count(" WHERE "+c+" IS NULL")+" = "+count(""), now, p.ErrorFails)
			if err != nil {
				return err
			}
			if rows := got.Answer.Rows; len(rows) == 1 && len(rows[0]) == 1 && string(rows[0][0]) == "0" {
				f.Because(cause)
				return nil
			}
		}
	}
	return nil
}

// primarySQL asks for the columns of a table's primary key and their types, by dialect; %s is the table's name as a text.
var primarySQL = map[product.Dialect]string{
	product.DialectPostgres: "SELECT a.attname, format_type(a.atttypid, NULL) FROM pg_catalog.pg_index i JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey) " +
		"WHERE i.indisprimary AND i.indimmediate AND i.indrelid = to_regclass(%s)",
	product.DialectMySQL: "SELECT c.COLUMN_NAME, c.DATA_TYPE FROM information_schema.KEY_COLUMN_USAGE k JOIN information_schema.COLUMNS c ON c.TABLE_SCHEMA = k.TABLE_SCHEMA AND c.TABLE_NAME = k.TABLE_NAME AND c.COLUMN_NAME = k.COLUMN_NAME " +
		"WHERE k.CONSTRAINT_NAME = 'PRIMARY' AND k.TABLE_SCHEMA = DATABASE() AND k.TABLE_NAME = %s",
	product.DialectSQLite: "SELECT name, type FROM pragma_table_info(%s) WHERE pk > 0",
}

// inexact are types of which two values may have the same text. Servers write a double with as many digits as tell it from all others.
var inexact = regexp.MustCompile(`(?i)float|real`)

// keys are the columns that name the rows which a statement's table references give: those of the primary key of each table. Nil if a table
// has none, or the reference is no table.
func (s *Schedule) keys(ctx context.Context, stage Stage, session int, st *statement.Statement, now answer.State) (list []string, err error) {
	for _, u := range st.Main() {
		columns, err := s.primaryKey(ctx, stage, session, &u, now)
		if err != nil || columns == nil {
			return nil, err
		}
		for _, column := range columns {
			list = append(list, u.Ref+"."+column)
		}
	}
	return list, nil
}

// primaryKey gives the columns of a table's primary key, in quotes. Nil if there is none or two of its values may have one text, or if it is no table.
func (s *Schedule) primaryKey(ctx context.Context, stage Stage, session int, u *statement.TableUse, now answer.State) (columns []string, err error) {
	p := s.DBMS()
	question, known := primarySQL[p.Dialect]
	if !known || u.Kind != statement.SourceTable || u.Schema != "" {
		return nil, nil
	}
	name := u.Name
	if p.Dialect == product.DialectPostgres {
		name = p.Quote(name)
	}
	got, err := Ask(ctx, stage, session, fmt.Sprintf(question, "'"+strings.ReplaceAll(name, "'", "''")+"'"), now, p.ErrorFails)
	if err != nil || got.Answer.Err != nil {
		return nil, err
	}
	for _, r := range got.Answer.Rows {
		if len(r) != 2 || inexact.MatchString(string(r[1])) || r[1] == nil || len(r[1]) == 0 {
			return nil, nil
		}
		columns = append(columns, p.Quote(string(r[0])))
	}
	return columns, nil
}

// PartOf is a part of a finding: a statement, where it was executed, and what it gave.
func PartOf(sql, database string, got answer.Result) oracle.Part {
	if got.Err != nil {
		return oracle.Part{SQL: sql, Database: database, Answer: oracle.Side{Text: got.Err.Text()}}
	}
	return oracle.Part{SQL: sql, Database: database, Answer: SideOf(got.Columns, got.Rows, 0)}
}
