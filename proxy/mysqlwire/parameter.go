package mysqlwire

import (
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/rewrite"
	"wirecheck/statement/condition"
)

// bound is the plan of a statement with the values of its parameters.
func bound(p *rewrite.Plan, r request) *rewrite.Plan {
	if len(p.Asks) == 0 || !slices.ContainsFunc(p.Asks, func(a rewrite.Ask) bool { return len(a.Types) > 0 || a.Limit != nil || a.Skip != nil }) {
		return p
	}
	list := r.params()
	of := r.statement()
	q := *p
	q.Asks = make([]rewrite.Ask, len(p.Asks))
	for i, a := range p.Asks {
		converted := false // a text is compared with what is none
		q.Asks[i] = a.Bind(func(n int) (condition.Value, bool) {
			if n < 1 || n > len(list) || of == nil || list[n-1].Unknown {
				return nil, false
			}
			v := list[n-1]
			if v.Null {
				return nil, true
			}
			typ, kind := of.bound[2*(n-1)], condition.Kind(a.Types[n])
			converted = converted || kind != condition.Number && kind != condition.Date && kind != condition.Timestamp && !means(typ, "", kind)
			return &v.Text, means(typ, v.Text, kind)
		})
		q.Asks[i].Pinned = a.Pinned && !converted
	}
	return &q
}

// maxParameter is how many bytes a parameter has at most that is compared with images.
const maxParameter = 4096

// means reports whether a parameter of a type of the protocol certainly compares with a column by its text: the servers convert a text
// that is compared with a number, and a number that is compared with a text, by rules of their own; whole numbers compare alike.
func means(typ byte, text string, kind condition.Kind) bool {
	switch typ {
	case mysql.MYSQL_TYPE_TINY, mysql.MYSQL_TYPE_SHORT, mysql.MYSQL_TYPE_LONG, mysql.MYSQL_TYPE_INT24, mysql.MYSQL_TYPE_LONGLONG, mysql.MYSQL_TYPE_NEWDECIMAL:
		return kind == condition.Number
	case mysql.MYSQL_TYPE_DOUBLE: // as JavaScript has numbers; whole ones compare exactly
		return kind == condition.Number && condition.Whole(text)
	case mysql.MYSQL_TYPE_DATE:
		return kind == condition.Date
	case mysql.MYSQL_TYPE_DATETIME, mysql.MYSQL_TYPE_TIMESTAMP:
		return kind == condition.Timestamp
	case mysql.MYSQL_TYPE_TINY_BLOB, mysql.MYSQL_TYPE_BLOB, mysql.MYSQL_TYPE_MEDIUM_BLOB, mysql.MYSQL_TYPE_LONG_BLOB:
		return kind == condition.Bytes && len(text) <= maxParameter
	case mysql.MYSQL_TYPE_STRING, mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_VARCHAR:
		return (kind != condition.Number || condition.Whole(text)) && len(text) <= maxParameter // as PHP sends all that it is given
	}
	return false
}
