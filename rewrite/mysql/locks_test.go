package mysql

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	innodb "wirecheck/backends/mysql"
	"wirecheck/statement/mysqlsyntax"
)

// footprint is what a statement leaves on the server until its transaction ends, and how the server executes it.
type footprint struct {
	Locks []string // of its transaction, by kind and object
	Scans []string // its plan: the tables in order, how each is read, and by which index
}

// footprintOf executes a statement in a transaction that is rolled back; ok is false if the server refuses it.
func (s *side) footprintOf(t *testing.T, root *side, sql string) (f footprint, ok bool) {
	t.Helper()
	explained := s.conn.query(t, "EXPLAIN "+sql)
	if explained.err != "" {
		return f, false
	}
	for _, r := range explained.rows {
		if string(r[0]) == "1" { // what follows are subqueries, of the client or ours
			f.Scans = append(f.Scans, fmt.Sprintf("%s %s %s", numbered.ReplaceAll(r[2], nil), r[3], r[5]))
		}
	}
	for i, scan := range f.Scans { // the rows are in the primary key
		if table, ok := strings.CutSuffix(scan, " index PRIMARY"); ok {
			f.Scans[i] = table + " ALL "
		}
	}
	s.exec(t, "BEGIN")
	defer s.exec(t, "ROLLBACK")
	if s.conn.query(t, sql).err != "" {
		return f, false
	}
	id := s.texts(t, "SELECT CONNECTION_ID()")[0][0]
	for _, x := range innodb.ParseStatus(root.exec(t, "SHOW ENGINE INNODB STATUS").rows[0][2]).Transactions {
		if fmt.Sprint(x.Connection) != id {
			continue
		}
		for _, l := range x.Locks {
			l.Table = strings.ReplaceAll(l.Table, s.db.Name, "@@")
			f.Locks = append(f.Locks, fmt.Sprintf("%s %s record %t gap %t nogap %t insertion %t rows %d", l.Table, l.Mode, l.Record, l.Gap, l.NoGap, l.Insertion, len(l.Heap)))
		}
	}
	slices.Sort(f.Locks)
	return f, true
}

// numbered are the numbers of subqueries, of which we add some.
var numbered = regexp.MustCompile(`[0-9]+>$`)

// TestLocks: a changed text takes the same locks as the client's own, by kind and object, and the server executes it by the same plan.
func TestLocks(t *testing.T) {
	if flavor() != MariaDB {
		t.Skip("the others do not print all locks in one place")
	}
	p := newPair(t, 0)
	db := p.plain.db
	root := &side{db: db, conn: dial(t, db.As(db.Server.User), 0)}
	root.exec(t, "SET GLOBAL innodb_status_output_locks = ON, innodb_stats_auto_recalc = OFF")
	for _, rel := range p.tables { // plans follow from the same statistics on both sides, and stay
		p.plain.exec(t, "ANALYZE TABLE "+mysqlsyntax.Quote(rel.Name))
		p.wired.exec(t, "ANALYZE TABLE "+mysqlsyntax.Quote(rel.Name))
	}
	p.wired.exec(t, SetToken("T1.1.x"))
	n := 0
	compare := func(list []form) {
		for _, f := range list {
			if strings.Contains(f.sql, "@@db") || strings.Contains(f.sql, "?") {
				continue
			}
			script := p.rewriter.Script(f.sql, p.catalog, p.session)
			if len(script.Plans) != 1 || !script.Changed(f.sql) {
				continue
			}
			want, ok := p.plain.footprintOf(t, root, f.sql)
			if !ok {
				continue
			}
			got, ok := p.wired.footprintOf(t, root, script.SQL)
			if slices.Equal(want.Scans, []string{"  "}) { // DELETE of all rows: the server tells no plan
				want.Scans, got.Scans = nil, nil
			}
			if n++; !ok {
				t.Errorf("%s\nsent %s: refused", f.sql, script.SQL)
			} else if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\nsent %s (-direct +sent)\n%s", f.sql, script.SQL, diff)
			}
		}
	}
	compare(slices.Concat(selects, views, updates, inserts, deletes, joinForms))
	p.plain.exec(t, "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE")
	p.wired.exec(t, "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE")
	p.session.LockingReads = true
	compare(slices.Concat(selects, views))
	if n < 100 {
		t.Errorf("only %d forms are compared", n)
	}
}
