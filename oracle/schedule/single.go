package schedule

import (
	"regexp"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/statement"
)

// numeric are the types of MySQL's family that a number is compared with as a number.
var numeric = regexp.MustCompile(`(?i)^(?:tinyint|smallint|mediumint|int|bigint|decimal|float|double|bit|year)\b`)

// Single reports whether a statement fixes a whole unique key of its only table: no other row can stand for the one that it finds. keys are by the
// table's name in lower case (engine.Lab.UniqueKeys).
func Single(keys map[string][][]string, x *statement.Statement, tables []answer.Table) bool {
	if len(x.Tables) != 1 {
		return false
	}
	name := x.Tables[0].Name
	at := slices.IndexFunc(tables, func(t answer.Table) bool { return t.Name == name })
	fixed := func(column string) bool {
		number, ok := x.Fixed[column]
		return ok && (!number || at >= 0 && slices.ContainsFunc(tables[at].Columns, func(c answer.Column) bool { return strings.EqualFold(c.Name, column) && numeric.MatchString(c.Type) }))
	}
	return statement.Whole(keys[strings.ToLower(name)], fixed) != nil
}
