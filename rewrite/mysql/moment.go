package mysql

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/rewrite"
	"wirecheck/statement/condition"
	"wirecheck/statement/mysqlsyntax"
)

// A condition that compares with the server's time, as expires_at > NOW(), has a value that the server alone knows. It is the same in the whole statement (MySQL manual,
// 14.7), which tells it in one more hidden column. An answer without rows tells nothing. So a query in front asks for the same: it stands until the next second begins,
// except for the fractions of seconds.

// clocks are the functions of the time that is the same in a whole statement, with their names here.
var clocks = map[string]struct{ name, typ string }{
	"now": {"NOW", "datetime"}, "current_timestamp": {"NOW", "datetime"}, "localtime": {"NOW", "datetime"}, "localtimestamp": {"NOW", "datetime"},
	"utc_timestamp": {"UTC_TIMESTAMP", "datetime"}, "curdate": {"CURDATE", "date"}, "current_date": {"CURDATE", "date"}, "utc_date": {"UTC_DATE", "date"},
}

// clock gives the text of an expression of the server's time that certainly causes no warning, and its type; empty for others.
func clock(n ast.ExprNode) (text, typ string) {
	f, ok := unwrapped(n).(*ast.FuncCallExpr)
	if !ok || f.Schema.O != "" {
		return "", ""
	}
	of := clocks[f.FnName.L]
	switch {
	case of.name != "" && len(f.Args) == 0:
		return of.name + "()", of.typ
	case of.typ == "datetime" && len(f.Args) == 1:
		if digits := small(f.Args[0]); digits >= 0 && digits <= 6 {
			return fmt.Sprintf("%s(%d)", of.name, digits), of.typ
		}
	case f.FnName.L == "date" && len(f.Args) == 1:
		if text, _ = clock(f.Args[0]); text != "" {
			return "DATE(" + text + ")", "date"
		}
	case (f.FnName.L == "date_add" || f.FnName.L == "date_sub") && len(f.Args) == 3: // + INTERVAL, too
		unit, ok := f.Args[2].(*ast.TimeUnitExpr)
		text, typ = clock(f.Args[0])
		by := small(f.Args[1])
		if !ok || text == "" || by < 0 {
			break
		}
		name := unit.Unit.String()
		switch {
		case slices.Contains([]string{"DAY", "WEEK", "MONTH", "YEAR"}, name):
		case slices.Contains([]string{"SECOND", "MINUTE", "HOUR"}, name):
			typ = "datetime"
		default:
			return "", ""
		}
		return fmt.Sprintf("%s(%s,INTERVAL %d %s)", strings.ToUpper(f.FnName.L), text, by, name), typ
	}
	return "", ""
}

// small gives a number of up to three digits; -1 for something else.
func small(n ast.ExprNode) int64 {
	if v, ok := unwrapped(n).(*mysqlsyntax.Value); ok {
		if i, ok := v.V.(int64); ok && i >= 0 && i < 1000 {
			return i
		}
	}
	return -1
}

// maxClocks is how many such expressions an answer tells.
const maxClocks = 4

// clocked gives what an expression of the server's time is for a comparison with an operand, and the operand as it then compares; nil if that is not certain. The answer
// tells the expression as a date and time, and as a date.
func (a *asker) clocked(n ast.ExprNode, of operand) (operand, condition.Value) {
	text, typ := clock(n)
	if text == "" || a.r.flavor == TiDB {
		return of, nil
	}
	form := 0
	switch {
	case of.reads == condition.Date && typ == "date":
		form = 1
	case of.reads == condition.Date && of.kind == condition.Date: // the date is one of midnight
		of.kind, of.reads = condition.Local, condition.Local
	case of.reads != condition.Timestamp:
		return of, nil
	}
	i := slices.Index(a.clocks, text)
	if i < 0 {
		if i = len(a.clocks); i == maxClocks {
			return of, nil
		}
		a.clocks = append(a.clocks, text)
		a.copies = a.copies || strings.ContainsAny(text, `0123456789'"`)
	}
	return of, condition.Moment(len(scalars(a.planner)) + 2*i + form)
}

// fraction is a function of the time with fractions of seconds.
var fraction = regexp.MustCompile(`\([1-6]\)`)

// tellClocks adds hidden columns with the value of a subquery (scalar.go), and with the server's time.
func tellClocks(s *planner) {
	columns := append(scalars(s), clockColumns(s)...)
	s.copies = s.copies || strings.ContainsAny(strings.Join(scalars(s), ""), `0123456789'"`)
	if !tellBehind(s, columns) {
		return
	}
	s.plan.Moments = len(columns)
	if slices.ContainsFunc(s.plan.Asks, func(a rewrite.Ask) bool { return !a.Single && !a.Exists }) { // the answer may be empty
		askClocks(s)
	}
}

func clockColumns(s *planner) (columns []string) {
	for _, text := range s.clocks {
		columns = append(columns, fmt.Sprintf(`CONCAT('["',CAST(%s AS DATETIME(6)),'","',DATE(%[1]s),'"]')`, text))
	}
	return columns
}

// askClocks lets a query in front of the statement ask for the server's time, if that tells it: a session may cut our answers, too.
func askClocks(s *planner) {
	if len(s.clocks) == 0 || s.session.Cut || len(scalars(s)) > 0 || slices.ContainsFunc(s.clocks, func(text string) bool { return fraction.MatchString(text) }) {
		return
	}
	s.plan.Clock = "SELECT " + strings.Join(clockColumns(s), ",") + ",MICROSECOND(NOW(6))"
}
