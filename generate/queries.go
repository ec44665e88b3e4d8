package generate

import "fmt"

// QueriesOn makes a case of one session that only asks the database: n queries, the second half of them in a transaction in front of
// the answers to which it writes, so that they meet its own uncommitted rows. It is for oracles of single queries (Radar, VLDB'24, 4.2,
// asks hundreds of queries of a database).
func (g *Generator) QueriesOn(db *Database, n int) *Case {
	tx := &Transaction{}
	session := &Session{Name: "s1", Transactions: []*Transaction{tx}}
	add := func(st Statement) { tx.Statements = append(tx.Statements, st) }
	g.asking = true
	defer func() { g.asking = false }()
	const every = 5 // queries between two writes
	for i := range n {
		switch {
		case i == n/2:
			add(g.statement(KindBegin, nil, func() string { return "BEGIN" }))
			add(g.data(db, oneOf(g, db.Tables), true, true))
		case i > n/2 && i%every == 0:
			add(g.data(db, oneOf(g, db.Tables), true, true))
		}
		add(g.Query(db))
	}
	add(g.statement(KindRollback, nil, func() string { return "ROLLBACK" }))
	c := &Case{Database: db, Sessions: []*Session{session}}
	features := map[string]bool{}
	for i, st := range tx.Statements {
		c.Order = append(c.Order, Step{Statement: st, Name: fmt.Sprintf("s1_%d", i+1)})
	}
	for _, st := range append(db.Setup[:len(db.Setup):len(db.Setup)], tx.Statements...) {
		for _, f := range st.Features {
			features[f] = true
		}
	}
	c.Features = sorted(features)
	c.Spec = c.spec()
	return c
}
