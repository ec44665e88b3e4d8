package postgres

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/statement/condition"
	"wirecheck/statement/pgsyntax"
)

// A condition that compares with the server's time, as expires_at > now(), has a value that the server alone knows. It is the same in the whole statement (PostgreSQL
// manual, 9.9.5), which tells it in one more hidden column:
//
//	SELECT *, json_build_array(now()::timestamptz, now()::timestamp, now()::date) FROM coupon WHERE expires_at > now()
//
// Which of the three counts is said by what it is compared with. A SELECT that may have no row becomes a side of a left join, see innerjoin.go; a write that changes no
// row tells nothing.

// clocks are the functions of the time that is the same in a whole statement, with the types of their values.
var clocks = map[string]string{"now": "timestamptz", "transaction_timestamp": "timestamptz", "statement_timestamp": "timestamptz"}

// clockWords are those that are words of the syntax.
var clockWords = map[pg.SQLValueFunctionOp]struct{ text, typ string }{
	pg.SQLValueFunctionOp_SVFOP_CURRENT_DATE:        {"CURRENT_DATE", "date"},
	pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP:   {"CURRENT_TIMESTAMP", "timestamptz"},
	pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP_N: {"CURRENT_TIMESTAMP", "timestamptz"},
	pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP:      {"LOCALTIMESTAMP", "timestamp"},
	pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP_N:    {"LOCALTIMESTAMP", "timestamp"},
}

// clock gives the text of an expression of the server's time that certainly finds no error, and its type; literal says that it has literals. It is empty for others.
func clock(x *scene, n *pg.Node) (text, typ string, literal bool) {
	switch e := n.GetNode().(type) {
	case *pg.Node_SqlvalueFunction:
		w := clockWords[e.SqlvalueFunction.Op]
		if strings.HasSuffix(e.SqlvalueFunction.Op.String(), "_N") {
			w.text += "(" + strconv.Itoa(int(e.SqlvalueFunction.Typmod)) + ")"
			literal = true
		}
		return w.text, w.typ, literal
	case *pg.Node_FuncCall:
		f := e.FuncCall
		name := pgsyntax.LastName(f.Funcname)
		if !own(x, f, name) {
			break
		}
		switch {
		case clocks[name] != "" && len(f.Args) == 0:
			return "pg_catalog." + name + "()", clocks[name], false
		case name == "date_trunc" && len(f.Args) == 2 && slices.Contains([]string{"minute", "hour", "day", "week", "month", "year"}, f.Args[0].GetAConst().GetSval().GetSval()):
			if text, typ, _ = clock(x, f.Args[1]); typ == "date" {
				typ = "timestamptz"
			}
			if text == "" {
				break
			}
			return fmt.Sprintf("pg_catalog.date_trunc('%s', %s)", f.Args[0].GetAConst().GetSval().GetSval(), text), typ, true
		case name == "timezone" && len(f.Args) == 2 && strings.EqualFold(f.Args[0].GetAConst().GetSval().GetSval(), "UTC"): // AT TIME ZONE
			if text, typ, _ = clock(x, f.Args[1]); typ != "timestamptz" {
				break
			}
			return "pg_catalog.timezone('UTC', " + text + ")", "timestamp", true
		}
	case *pg.Node_TypeCast:
		to := castTo(e.TypeCast)
		if text, _, literal = clock(x, e.TypeCast.Arg); text == "" || len(e.TypeCast.TypeName.ArrayBounds) > 0 || !slices.Contains([]string{"date", "timestamp", "timestamptz"}, to) {
			break
		}
		return text + "::pg_catalog." + to, to, literal
	case *pg.Node_AExpr:
		return clockMoved(x, e.AExpr)
	}
	return "", "", false
}

// clockMoved is clock for one that an interval or a number of days is added to or subtracted from.
func clockMoved(x *scene, e *pg.A_Expr) (text, typ string, literal bool) {
	op := pgsyntax.LastName(e.Name)
	if e.Kind != pg.A_Expr_Kind_AEXPR_OP || len(e.Name) != 1 || op != "+" && op != "-" || x.catalog.Operators {
		return "", "", false
	}
	text, typ, _ = clock(x, e.Lexpr)
	by := ""
	if days := e.Rexpr.GetAConst().GetIval(); days != nil && typ == "date" && days.Ival >= 0 && days.Ival < 10_000 {
		by = strconv.Itoa(int(days.Ival))
	} else if cast := e.Rexpr.GetTypeCast(); castTo(cast) == "interval" && len(cast.TypeName.ArrayBounds) == 0 && smallInterval(cast.Arg.GetAConst().GetSval().GetSval()) {
		by = "'" + cast.Arg.GetAConst().GetSval().GetSval() + "'::pg_catalog.interval"
		if typ == "date" {
			typ = "timestamp"
		}
	}
	if text == "" || by == "" {
		return "", "", false
	}
	return fmt.Sprintf("(%s OPERATOR(pg_catalog.%s) %s)", text, op, by), typ, true
}

// smallInterval reports whether a text can be an interval that leads from no time of today's to one that PostgreSQL does not have.
func smallInterval(s string) bool { return len(s) < 40 && small3.MatchString(s) }

// small3 are intervals whose numbers have up to three digits.
var small3 = regexp.MustCompile(`(?i)^(-?[0-9]{1,3} (seconds?|secs?|minutes?|mins?|hours?|days?|weeks?|months?|mons?|years?) ?)+$`)

// findClocks notes the expressions of the server's time in some conditions, which the answer is to tell.
func findClocks(x *planner, list []*pg.Node) {
	if !x.native || x.plan.Cursor != nil || x.inWith || len(x.inside) > 0 {
		return
	}
	pgsyntax.WalkAll(list, func(m proto.Message) bool {
		if e, ok := m.(*pg.A_Expr); ok {
			for _, side := range append(slices.Clip(e.Rexpr.GetList().GetItems()), e.Lexpr, e.Rexpr) {
				text, _, literal := clock(x.scene, side)
				if text != "" && !slices.Contains(x.clocks, text) && len(x.clocks) < maxClocks {
					x.clocks, x.literal = append(x.clocks, text), x.literal || literal
				}
			}
		}
		return true
	})
}

// maxClocks is how many such expressions an answer tells.
const maxClocks = 4

// tellClocks gives the hidden columns with them and with the value of a subquery (scalar.go), which stand behind all others.
func tellClocks(x *planner) (columns []string) {
	for i, text := range x.clocks {
		columns = append(columns, fmt.Sprintf("pg_catalog.json_build_array((%s)::pg_catalog.timestamptz, (%[1]s)::pg_catalog.timestamp, (%[1]s)::pg_catalog.date)::pg_catalog.text AS %s",
			text, pgsyntax.Quote(fmt.Sprintf("%snow %d", x.hiddenPrefix(), i))))
	}
	if x.scalar != nil {
		columns = append(columns, x.scalar.expr+" AS "+pgsyntax.Quote(x.hiddenPrefix()+"scalar"))
	}
	x.moments = len(columns)
	return columns
}

// valued gives what an operand is compared with: a constant, a parameter or, if it stands alone, the server's time or the value of a subquery.
func (a *asker) valued(n *pg.Node, of operand, alone bool) (with operand, v condition.Value, ok bool) {
	if v, ok = a.value(n, of.reads(), of.typ); ok || !alone {
		return of, v, ok
	}
	if v, ok = a.scalared(n, of); ok {
		return of, v, true
	}
	return a.clocked(n, of)
}

// clocked gives what an expression of the server's time is for a comparison with an operand, and the operand as it then compares; ok is false if that is not certain.
func (a *asker) clocked(n *pg.Node, of operand) (with operand, v condition.Value, ok bool) {
	const instant, local, date = 0, 1, 2
	text, typ, _ := clock(a.scene, n)
	i := slices.Index(a.clocks, text)
	if i < 0 || text == "" {
		return of, nil, false
	}
	form := instant
	switch {
	case of.day:
		form, ok = date, typ == "date"
	case of.kind == condition.Instant:
		ok = true
	case of.kind == condition.Local && typ != "timestamptz":
		form, ok = local, true
	case of.kind == condition.Date && typ == "date":
		form, ok = date, true
	case of.kind == condition.Date && typ == "timestamp":
		form, of.kind, ok = local, condition.Local, true
	case of.kind == condition.Local, of.kind == condition.Date: // the server takes it for a time of the session's time zone
		of.kind, ok = condition.Instant, a.session.UTC
	}
	return of, condition.Moment(3*i + form), ok
}
