package mysql

import (
	"cmp"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/statement"
	"wirecheck/statement/mysqlsyntax"
)

// uses collects the mentions of tables.
type uses struct {
	list []statement.TableUse
	sub  bool // there is a query within the statement
}

// mention is one table source.
func (u *uses) mention(n *ast.TableName, alias string, c statement.Around, m statement.TableUse) {
	m.Kind, m.Schema, m.Name, m.Alias, m.Place, m.Depth = statement.SourceTable, n.Schema.O, n.Name.O, alias, c.Place, c.Depth
	if !m.Target && m.Schema == "" && mysqlsyntax.ContainsName(c.Names, m.Name) {
		m.Kind, m.Lock = statement.SourceCTE, statement.LockNone
	}
	m.SQL = mysqlsyntax.Quote(m.Name)
	if m.Schema != "" {
		m.SQL = mysqlsyntax.Quote(m.Schema) + "." + m.SQL
	}
	m.Ref = m.SQL
	if alias != "" {
		m.Ref = mysqlsyntax.Quote(alias)
	}
	u.list = append(u.list, m)
}

// top is for the statement itself.
func (u *uses) top(n ast.StmtNode) {
	switch n := n.(type) {
	case *ast.SelectStmt, *ast.SetOprStmt:
		u.query(n, statement.Around{})
	case *ast.InsertStmt:
		u.insert(n)
	case *ast.UpdateStmt:
		c := u.with(n.With, statement.Around{})
		u.from(n.TableRefs, c, nil)
		u.targets(assignedTables(n))
		for _, a := range n.List {
			u.expr(a.Expr, c)
		}
		u.rest(c, n.Where, n.Order, n.Limit)
	case *ast.DeleteStmt:
		c := u.with(n.With, statement.Around{})
		u.from(n.TableRefs, c, nil)
		if n.IsMultiTable && n.Tables != nil {
			u.targets(deletedTables(n))
		} else {
			u.targets(nil)
		}
		u.rest(c, n.Where, n.Order, n.Limit)
	default:
		u.visit(n, statement.Around{}, true)
	}
}

func (u *uses) insert(n *ast.InsertStmt) {
	c := statement.Around{}
	reads := n.IsReplace || len(n.OnDuplicate) > 0 // the row that is there
	if t := soleTable(n.Table); t != nil {
		u.mention(t, "", c, statement.TableUse{Target: true, Read: reads})
	}
	if n.Select != nil {
		u.sub = true
		u.query(n.Select, c.Inner(statement.PlaceSelect))
	}
	for _, row := range n.Lists {
		for _, e := range row {
			u.expr(e, c)
		}
	}
	for _, a := range n.OnDuplicate {
		u.expr(a.Expr, c)
	}
}

// soleTable is the table of an INSERT.
func soleTable(refs *ast.TableRefsClause) *ast.TableName {
	if refs == nil || refs.TableRefs == nil || refs.TableRefs.Right != nil {
		return nil
	}
	if src, ok := refs.TableRefs.Left.(*ast.TableSource); ok {
		t, _ := src.Source.(*ast.TableName)
		return t
	}
	return nil
}

// named is a name that a statement of several tables changes: an alias or a table.
type named struct{ schema, name string }

// assignedTables are the tables that an UPDATE of several names in its assignments; none if it may be any of them.
func assignedTables(n *ast.UpdateStmt) (list []named) {
	for _, a := range n.List {
		if a.Column.Table.O == "" {
			return nil
		}
		list = append(list, named{a.Column.Schema.O, a.Column.Table.O})
	}
	return list
}

func deletedTables(n *ast.DeleteStmt) (list []named) {
	for _, t := range n.Tables.Tables {
		list = append(list, named{t.Schema.O, t.Name.O})
	}
	return list
}

// targets marks the tables that are changed; all of the statement's own if no names are given.
func (u *uses) targets(names []named) {
	for i := range u.list {
		m := &u.list[i]
		if m.Place != statement.PlaceMain || m.Kind != statement.SourceTable {
			continue
		}
		m.Target = names == nil
		for _, n := range names {
			alias := m.Alias
			if alias == "" {
				alias = m.Name
			}
			if strings.EqualFold(n.name, alias) && (n.schema == "" || m.Schema == "" || strings.EqualFold(n.schema, m.Schema)) {
				m.Target = true
			}
		}
	}
}

// with goes through the common table expressions. Without RECURSIVE each sees only those before it (MySQL manual, WITH).
func (u *uses) with(w *ast.WithClause, c statement.Around) statement.Around {
	if w == nil {
		return c
	}
	c.Names = append([]string(nil), c.Names...)
	if w.IsRecursive {
		for _, e := range w.CTEs {
			c.Names = append(c.Names, e.Name.L)
		}
	}
	for _, e := range w.CTEs {
		u.sub = true
		if e.Query != nil && e.Query.Query != nil {
			u.query(e.Query.Query, c.Inner(statement.PlaceCTE))
		}
		c.Names = append(c.Names, e.Name.L)
	}
	return c
}

func (u *uses) query(n ast.Node, c statement.Around) {
	switch n := n.(type) {
	case *ast.SubqueryExpr:
		u.query(n.Query, c)
	case *ast.SetOprStmt:
		c = u.with(n.With, c)
		u.arms(n.SelectList, c)
		u.rest(c, nil, n.OrderBy, n.Limit)
	case *ast.SelectStmt:
		c = u.with(n.With, c)
		u.from(n.From, c, n.LockInfo)
		if n.Fields != nil {
			u.visit(n.Fields, c, false)
		}
		u.rest(c, n.Where, n.OrderBy, n.Limit)
		if n.GroupBy != nil {
			u.visit(n.GroupBy, c, false)
		}
		if n.Having != nil {
			u.visit(n.Having, c, false)
		}
		for i := range n.WindowSpecs {
			u.visit(&n.WindowSpecs[i], c, false)
		}
		for _, row := range n.Lists {
			u.visit(row, c, false)
		}
	}
}

// arms are the queries of a set operation.
func (u *uses) arms(n *ast.SetOprSelectList, c statement.Around) {
	if n == nil {
		return
	}
	c = u.with(n.With, c)
	c = c.Arm()
	for _, arm := range n.Selects {
		if list, ok := arm.(*ast.SetOprSelectList); ok {
			u.arms(list, c)
			continue
		}
		u.query(arm, c)
	}
	u.rest(c, nil, n.OrderBy, n.Limit)
}

func (u *uses) rest(c statement.Around, where ast.ExprNode, order *ast.OrderByClause, limit *ast.Limit) {
	u.expr(where, c)
	if order != nil {
		u.visit(order, c, false)
	}
	if limit != nil {
		u.visit(limit, c, false)
	}
}

func (u *uses) expr(e ast.ExprNode, c statement.Around) {
	if e != nil {
		u.visit(e, c, false)
	}
}

// visit finds the queries within expressions, and the names within other statements. target says that names are those of tables that a definition is about.
func (u *uses) visit(n ast.Node, c statement.Around, target bool) {
	mysqlsyntax.Visit(n, func(n ast.Node) (over bool) {
		switch n := n.(type) {
		case *ast.SubqueryExpr:
			u.sub = true
			u.query(n.Query, c.Inner(statement.PlaceSubquery))
			return true
		case *ast.SelectStmt, *ast.SetOprStmt: // of a definition
			u.sub = true
			u.query(n, c.Inner(statement.PlaceSelect))
			return true
		case *ast.ColumnOption: // its reference is not walked through
			if n.Refer != nil && n.Refer.Table != nil {
				u.mention(n.Refer.Table, "", c, statement.TableUse{})
			}
		case *ast.ReferenceDef:
			if n.Table != nil {
				u.mention(n.Table, "", c, statement.TableUse{})
			}
			return true
		case *ast.LockTablesStmt:
			for _, t := range n.TableLocks {
				u.mention(t.Table, "", c, statement.TableUse{})
			}
			return true
		case *ast.TableName:
			u.mention(n, "", c, statement.TableUse{Target: target})
			return true
		}
		return false
	})
}

// from goes through table references. A lock is not on what subqueries read (MySQL manual, "Locking Reads").
func (u *uses) from(refs *ast.TableRefsClause, c statement.Around, lock *ast.SelectLockInfo) {
	if refs != nil && refs.TableRefs != nil {
		u.source(refs.TableRefs, c, lock)
	}
}

func (u *uses) source(n ast.ResultSetNode, c statement.Around, lock *ast.SelectLockInfo) {
	switch n := n.(type) {
	case *ast.Join:
		u.source(n.Left, c, lock)
		if n.Right != nil {
			u.source(n.Right, c, lock)
		}
		if n.On != nil {
			u.visit(n.On, c, false)
		}
	case *ast.TableName:
		u.mention(n, "", c, statement.TableUse{Read: true, Lock: lockOn(lock, n.Name.O)})
	case *ast.TableSource:
		switch src := n.Source.(type) {
		case *ast.TableName:
			ref := cmp.Or(n.AsName.O, src.Name.O)
			u.mention(src, n.AsName.O, c, statement.TableUse{Read: true, Lock: lockOn(lock, ref)})
		case *ast.Join:
			u.source(src, c, lock)
		default:
			u.sub = true
			m := statement.TableUse{Kind: statement.SourceDerived, Alias: n.AsName.O, Read: true, Place: c.Place, Depth: c.Depth}
			if m.Alias != "" {
				m.Ref = mysqlsyntax.Quote(m.Alias)
			}
			u.list = append(u.list, m)
			u.query(src, c.Inner(statement.PlaceDerived))
		}
	}
}

// lockOn is the lock that a locking clause takes on the table of that name or alias.
func lockOn(l *ast.SelectLockInfo, ref string) statement.Lock {
	if l == nil {
		return statement.LockNone
	}
	on := len(l.Tables) == 0
	for _, t := range l.Tables {
		on = on || strings.EqualFold(t.Name.O, ref)
	}
	if !on {
		return statement.LockNone
	}
	return strength(l.LockType)
}

func strength(t ast.SelectLockType) statement.Lock {
	switch t {
	case ast.SelectLockNone:
		return statement.LockNone
	case ast.SelectLockForShare, ast.SelectLockForShareNoWait, ast.SelectLockForShareSkipLocked:
		return statement.LockShare
	}
	return statement.LockUpdate
}
