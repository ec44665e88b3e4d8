package radar

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/statement"
)

// inexact are types whose values a text may not have to the last digit, so that what is computed from them may differ.
var inexact = regexp.MustCompile(`(?i)\b(float|double|real)`)

// load puts rows into the raw database. There, too, expressions compute generated columns: a wrong value of the database must not be copied.
// One that the server does not compute, by an error of the expression, say, stays as the database has it.
func (c *checker) load(ctx context.Context, tables []answer.Table) error {
	if len(tables) == 0 {
		return nil
	}
	if err := c.o.Raw.Load(ctx, tables); err != nil {
		return err
	}
	c.loaded = true
	for _, t := range tables {
		known := c.twin.tables[t.Name]
		if known == nil || slices.ContainsFunc(t.Columns, func(col answer.Column) bool { return inexact.MatchString(col.Type) }) {
			continue
		}
		for n, col := range known.columns {
			again := slices.ContainsFunc(known.columns[n+1:], func(later statement.ColumnDefinition) bool { return strings.EqualFold(later.Name, col.Name) })
			if col.Expression == "" || again {
				continue
			}
			dbms := c.s.DBMS()
			sql := fmt.Sprintf("UPDATE %s SET %s = %s", dbms.Quote(t.Name), dbms.Quote(col.Name), col.Expression)
			if _, err := c.o.Raw.Execute(ctx, 0, sql); err != nil {
				return err
			}
		}
	}
	return nil
}
