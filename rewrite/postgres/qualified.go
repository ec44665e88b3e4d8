package postgres

import (
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/statement/pgsyntax"
)

// unqualified gives the tree with table.column for each schema.table.column that certainly means the same: no other table, alias or
// function of the statement goes by the table's name, whatever the scopes. The tree itself stays what it is.
func unqualified(n *pg.Node) *pg.Node {
	long := func(m proto.Message) *pg.ColumnRef {
		if r, ok := m.(*pg.ColumnRef); ok && len(r.Fields) == 3 && r.Fields[1].GetString_() != nil {
			return r
		}
		return nil
	}
	schemas, count, any := map[string]string{}, map[string]int{}, false
	pgsyntax.Walk(n, func(m proto.Message) bool {
		switch m := m.(type) {
		case *pg.RangeVar:
			if m.Alias == nil {
				schemas[m.Relname] = m.Schemaname
				count[m.Relname]++
			}
		case *pg.Alias:
			count[m.Aliasname]++
		}
		any = any || long(m) != nil
		return true
	})
	if !any {
		return n
	}
	n = proto.Clone(n).(*pg.Node)
	pgsyntax.Walk(n, func(m proto.Message) bool {
		if r := long(m); r != nil {
			schema, table := r.Fields[0].GetString_().GetSval(), r.Fields[1].GetString_().GetSval()
			if of, known := schemas[table]; known && count[table] == 1 && (of == "" || of == schema) {
				r.Fields = r.Fields[1:]
			}
		}
		return true
	})
	return n
}
