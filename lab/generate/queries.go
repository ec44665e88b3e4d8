package generate

import (
	"fmt"

	"wirecheck/product"
)

// probe asks a table for expressions of mixed types, and for nothing else that could hide what they give: no condition most of the time, no
// join.
func (g *Generator) probe(db *Database) Statement {
	g.begin(KindSelect)
	r := readerOf(&g.definer, db)
	r.mark("select")
	from, sc := r.readFrom(oneOf(g.intn, db.Tables))
	refs := sc.refs(func(c *Column) bool { return c.Class != JSON })
	if fixed := sc.refs(func(c *Column) bool { return c.NotNull && c.Class != JSON }); len(fixed) > 0 && g.chance(600) {
		refs = fixed
	}
	if len(refs) == 0 {
		return g.end("SELECT * FROM "+from, r.tables)
	}
	var items []string
	for range g.between(1, 3) {
		c := oneOf(g.intn, refs)
		item := ""
		if g.intn(3) == 0 {
			r.mark("mixed-types")
			item = "(" + c.sql + " " + oneOf(g.intn, []string{"=", "<>", "<", ">", "<=", ">="}) + " " + r.stray() + ")"
		} else {
			item = r.mixed(c, 2)
		}
		if g.intn(2) == 0 {
			item = "HEX(" + item + ")"
		}
		items = append(items, item)
	}
	where := ""
	if g.has("where") && g.chance(fairly) {
		r.mark("where")
		where = " WHERE " + r.mixedCondition(oneOf(g.intn, refs))
	}
	return g.end("SELECT "+list(items)+" FROM "+from+where, r.tables)
}

// QueriesOn makes a case of one session that only asks the database: n queries, the second half of them in a transaction in front of
// the answers to which it writes, so that they meet its own uncommitted rows. Where an error fails the transaction, a savepoint behind each write keeps what
// comes behind the next one. It is for oracles of single queries (Radar, VLDB'24, 4.2,
// asks hundreds of queries of a database).
func (g *Generator) QueriesOn(db *Database, n int) *Case {
	tx := &Transaction{}
	session := &Session{Name: "s1", Transactions: []*Transaction{tx}}
	add := func(st Statement) { tx.Statements = append(tx.Statements, st) }
	g.asking = true
	defer func() { g.asking = false }()
	control := func(kind Kind, sql string) { add(g.statement(kind, nil, func() string { return sql })) }
	const every = 5 // queries between two writes
	for i := range n {
		if first := i == n/2; first || i > n/2 && i%every == 0 {
			fails := product.Of(string(g.dialect)).ErrorFails
			if first {
				control(KindBegin, "BEGIN")
			} else if fails {
				control(KindPartial, "ROLLBACK TO SAVEPOINT p1")
			}
			if first && fails {
				control(KindPartial, "SAVEPOINT p1")
			}
			add(g.data(db, oneOf(g.intn, db.Tables), true, true))
			if fails {
				control(KindPartial, "SAVEPOINT p1")
			}
		}
		if g.has("mixed-types") && g.chance(often) {
			add(g.probe(db))
			continue
		}
		add(g.Query(db))
	}
	control(KindRollback, "ROLLBACK")
	c := &Case{Database: db, Sessions: []*Session{session}}
	for i, st := range tx.Statements {
		c.Order = append(c.Order, Step{Statement: st, Name: fmt.Sprintf("s1_%d", i+1)})
	}
	return c.complete()
}
