package radar

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"wirecheck/answer"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
)

// The false alarms of Radar, section 4.6.2, are errors of expressions whose evaluation a plan can do without. The order in which the
// parts of an expression and of a query are evaluated is the server's affair, and so is whether a part is evaluated at all
// (PostgreSQL manual, 4.2.14, "Expression Evaluation Rules"; MySQL manual, 10.2.1, "Optimizing SELECT Statements"). So an error on one
// side only is permitted if it is an error of values, and the side that gave an answer gives that same error, too, when the
// expression is evaluated for all rows.

// valueError reports whether an error depends on the values that an expression meets: PostgreSQL's class 22, data exceptions, and
// 21, cardinality violations (manual, appendix A); of the MySQL family those listed below (MySQL manual, error reference).
func (c *checker) valueError(code string) bool {
	if !c.family {
		return strings.HasPrefix(code, "22") || strings.HasPrefix(code, "21")
	}
	if c.lite { // what has no code of its own: integer overflow, malformed JSON, a pattern that is too complex (sqlite.org/rescode.html#error)
		return code == "SQLITE_ERROR"
	}
	n, err := strconv.Atoi(code)
	if err != nil {
		return false
	}
	return n >= 3140 && n <= 3158 || n >= 3684 && n <= 3700 || n >= 4036 && n <= 4044 || slices.Contains([]int{
		1139, // regular expression
		1242, // subquery returns more than one row
		1264, 1265, 1292, 1365, 1366, 1367, 1406, 1411, 1416, 1425, 1426, 1427, 1525, 1690,
		1976, 3020, 3055, 3064, 3516, 3854,
	}, n)
}

// needs are errors that tell that a query relies on metadata, so that the raw database cannot answer it: columns that depend on a
// group's key, keys and indexes that are named, defaults.
func (c *checker) needs(code string) bool {
	if !c.family {
		return code == "42803" || code == "42P10"
	}
	return slices.Contains([]string{"1055", "1140", "1176", "1191", "1364", "1735", "1748", "3065", "8123"}, code)
}

// errors judges a query that at least one side refused.
func (c *checker) errors(ctx context.Context, st *schedule.Step, f oracle.Finding, got, want *schedule.Step) error {
	a, b := want.Answer.Err, got.Answer.Err
	sql := st.Statement.Text
	if a != nil && c.needs(a.Code) {
		c.v.Note("%s: not compared: the raw database lacks what it needs (%s)", sql, a.Text())
		return nil
	}
	f.Name = oracle.NameError
	f.Difference.Expected, f.Difference.Observed = told(want), told(got)
	refused, other := a, got
	if a == nil {
		refused, other = b, want
	}
	if !c.valueError(refused.Code) || other.Answer.Err != nil && !c.valueError(other.Answer.Err.Code) {
		return c.attribute(ctx, st, got.After, f)
	}
	permit := func(reason string) error {
		known := c.s.DBMS().Cause(product.Unevaluated)
		f.Kind, f.Difference.Reason, f.Difference.Cause, f.Source = oracle.KindPermitted, reason, string(known.ID), known.Source
		return c.report(ctx, f)
	}
	if other.Answer.Err != nil {
		return permit("both sides refuse the query for the values that its expressions meet, and which expression meets them first depends on the plan")
	}
	var stage schedule.Stage = c.stage
	if other == want {
		stage = c.o.Raw
	}
	empty, err := c.empty(ctx, stage, st)
	if err != nil {
		return err
	}
	if empty != "" {
		return permit(fmt.Sprintf("%s has no rows: one side evaluates an expression only for rows, the other one while it plans", empty))
	}
	piece, sure, err := c.evaluate(ctx, stage, &st.Statement, st.Session, refused.Code)
	switch {
	case err != nil:
		return err
	case piece != "":
		return permit(fmt.Sprintf("evaluated for all rows, %s gives error %s on the side with an answer, too: the server may leave out an expression that the answer does not need", piece, refused.Code))
	case !sure:
		c.v.Note("%s: error %s on one side only; which expression it comes from was not found", sql, refused.Code)
	default:
		return c.attribute(ctx, st, got.After, f)
	}
	return nil
}

// empty names a table of a query that has no rows, on the side that has an answer.
func (c *checker) empty(ctx context.Context, stage schedule.Stage, st *schedule.Step) (string, error) {
	for _, u := range st.Statement.Reads() {
		got, err := stage.Execute(ctx, st.Session, "SELECT COUNT(*) FROM "+u.SQL)
		if err != nil {
			return "", err
		}
		if rows := got.Answer.Rows; got.Answer.Err == nil && len(rows) == 1 && string(rows[0][0]) == "0" {
			return u.Name, nil
		}
	}
	return "", nil
}

func told(st *schedule.Step) oracle.Side {
	if e := st.Answer.Err; e != nil {
		return oracle.Side{Text: e.Text()}
	}
	return schedule.SideOf(st.Answer.Columns, st.Answer.Rows, 0)
}

// maxPieces bounds how many parts of a query are tried.
const maxPieces = 200

// evaluate looks for a part of a query that gives the same error if it is evaluated for all rows of the tables, whatever the
// query's conditions. sure is false if the part may have been missed.
func (c *checker) evaluate(ctx context.Context, stage schedule.Stage, st *statement.Statement, session int, code string) (piece string, sure bool, err error) {
	froms := products(st)
	list := pieces(st.Text)
	sure = !st.HasSubquery && !st.Aggregate && !st.SetOperation && !st.Window && len(list) < maxPieces
	for _, p := range list {
		for _, from := range froms {
			refused, err := c.probe(ctx, stage, session, "SELECT ("+p+")"+from)
			if err != nil {
				return "", false, err
			}
			if refused != nil && refused.Code == code {
				return p, sure, nil
			}
		}
	}
	return "", sure, nil
}

// probe executes a query and leaves the session's transaction as it was.
func (c *checker) probe(ctx context.Context, stage schedule.Stage, session int, sql string) (*answer.Error, error) {
	open := false
	if !c.family {
		st, err := stage.Execute(ctx, session, "SAVEPOINT wirecheck_probe") // refused outside of transactions
		if err != nil {
			return nil, err
		}
		open = st.Answer.Err == nil
	}
	st, err := stage.Execute(ctx, session, sql)
	if err != nil {
		return nil, err
	}
	if open {
		_, err = stage.Execute(ctx, session, "ROLLBACK TO SAVEPOINT wirecheck_probe")
	}
	return st.Answer.Err, err
}

// products gives FROM clauses without conditions for the tables of a query: all of them, those of the outermost query, none.
func products(st *statement.Statement) []string {
	var all, main []string
	seen := map[string]bool{}
	for _, u := range st.Tables {
		if u.Kind != statement.SourceTable || seen[u.Ref] {
			continue
		}
		seen[u.Ref] = true
		source := u.SQL
		if u.Alias != "" {
			source += " AS " + u.Ref
		}
		all = append(all, source)
		if u.Place == statement.PlaceMain && u.Depth == 0 {
			main = append(main, source)
		}
	}
	var froms []string
	add := func(from string) {
		if from != "" && !slices.Contains(froms, " FROM "+from) {
			froms = append(froms, " FROM "+from)
		}
	}
	add(strings.Join(main, ", "))
	add(strings.Join(all, ", "))
	for _, one := range all { // names of columns are ambiguous in products
		add(one)
	}
	if st.Clauses.With == "" && !st.HasSubquery {
		add(st.Clauses.From)
	}
	return append(froms, "")
}

// breaks separate expressions from one another.
var breaks = regexp.MustCompile(`(?i)^(select|distinct|all|from|where|group|by|having|order|as|on|join|left|right|full|inner|outer|cross|natural|using|and|or|not|xor|when|then|else|case|end|` +
	`limit|offset|union|intersect|except|asc|desc|between|is|in|like|nulls|first|last|exists|with|recursive|values|similar|ilike|rlike|regexp|escape)$`)

// pieces gives the parts of a statement that may be expressions, shortest first: what stands between keywords and commas, at each
// depth of parentheses.
func pieces(sql string) []string {
	type token struct {
		start, end, depth int
		cut               bool
	}
	var tokens []token
	depth := 0
	for i := 0; i < len(sql); {
		start := i
		switch ch := sql[i]; {
		case ch == '\'' || ch == '"' || ch == '`':
			for i++; i < len(sql); i++ {
				if sql[i] == '\\' && ch != '`' {
					i++
				} else if sql[i] == ch {
					if i+1 >= len(sql) || sql[i+1] != ch {
						break
					}
					i++
				}
			}
			i = min(i+1, len(sql))
			tokens = append(tokens, token{start, i, depth, false})
		case ch == '(' || ch == '[':
			i++
			tokens = append(tokens, token{start, i, depth, false})
			depth++
		case ch == ')' || ch == ']':
			i++
			depth--
			tokens = append(tokens, token{start, i, depth, false})
		case wordByte(ch):
			for i < len(sql) && wordByte(sql[i]) {
				i++
			}
			tokens = append(tokens, token{start, i, depth, breaks.MatchString(sql[start:i])})
		case ch == ' ' || ch == '\n' || ch == '\t' || ch == '\r':
			i++
		default:
			i++
			tokens = append(tokens, token{start, i, depth, ch == ',' || ch == ';'})
		}
	}
	var list []string
	add := func(from, to int) {
		if from >= to || to-from == 1 && !wordByte(sql[tokens[from].start]) {
			return
		}
		if p := sql[tokens[from].start:tokens[to-1].end]; from > 0 && !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	// At each depth: the runs between commas (whole expressions), and those between keywords and comparisons.
	for from := 0; from < len(tokens); from++ {
		if from > 0 && !(tokens[from-1].cut || tokens[from-1].depth < tokens[from].depth || compares(sql[tokens[from-1].start])) {
			continue
		}
		d := tokens[from].depth
		for to := from; to <= len(tokens); to++ {
			if to == len(tokens) || tokens[to].depth < d || tokens[to].depth == d && (tokens[to].cut || sql[tokens[to].start] == ')' && tokens[to].depth < d || compares(sql[tokens[to].start])) {
				add(from, to)
				if to == len(tokens) || tokens[to].depth < d || sql[tokens[to].start] == ',' {
					break
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b string) int { return len(a) - len(b) })
	return list[:min(len(list), maxPieces)]
}

func compares(b byte) bool { return b == '<' || b == '>' || b == '=' || b == '!' }

func wordByte(b byte) bool {
	return b == '_' || b == '.' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}
