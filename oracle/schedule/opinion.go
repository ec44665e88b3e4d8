package schedule

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"wirecheck/answer"
	"wirecheck/oracle"
	"wirecheck/statement"
)

// Truth is a third opinion where two queries with the same condition disagree: for how many rows the condition is true, false and NULL. The
// server only computes the condition's value, in the select list and for each row; which of the three it is, we decide.
type Truth struct {
	SQL               string
	True, False, Null int
}

// Rows counts the rows that there are.
func (t *Truth) Rows() int { return t.True + t.False + t.Null }

// Opinion says whose opinion it is.
func (t *Truth) Opinion() string {
	return "the condition's values, computed for each row by " + t.SQL + ": true for " + strconv.Itoa(t.True) + ", false for " + strconv.Itoa(t.False) + ", NULL for " + strconv.Itoa(t.Null)
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
	return AskTruth(ctx, q.stage, q.Session, &q.Statement, q.now, q.s.DBMS().ErrorFails)
}

var subquery = regexp.MustCompile(`(?i)\bselect\b`)

// AskTruth asks as Ask does. Of a condition with a subquery of tables there is no third opinion: the index that a wrong answer came by may answer
// the question, too.
func AskTruth(ctx context.Context, stage Stage, session int, st *statement.Statement, now answer.State, fails bool) (*Truth, error) {
	if subquery.MatchString(st.Clauses.Where) && slices.ContainsFunc(st.Tables, func(u statement.TableUse) bool { return u.Place == statement.PlaceSubquery }) {
		return nil, nil
	}
	c := statement.Clauses{With: st.Clauses.With, From: st.Clauses.From}
	t := &Truth{SQL: c.Query("(" + st.Clauses.Where + ")")}
	got, err := Ask(ctx, stage, session, t.SQL, now, fails)
	if err != nil || got.Answer.Err != nil {
		return nil, err
	}
	for _, row := range got.Answer.Rows {
		if len(row) != 1 {
			return nil, nil
		}
		is, sure := True(row[0])
		switch {
		case row[0] == nil:
			t.Null++
		case !sure:
			return nil, nil
		case is:
			t.True++
		default:
			t.False++
		}
	}
	return t, nil
}

// PartOf is a part of a finding: a statement, where it was executed, and what it gave.
func PartOf(sql, database string, got answer.Result) oracle.Part {
	if got.Err != nil {
		return oracle.Part{SQL: sql, Database: database, Answer: oracle.Side{Text: got.Err.Text()}}
	}
	return oracle.Part{SQL: sql, Database: database, Answer: SideOf(got.Columns, got.Rows, 0)}
}
