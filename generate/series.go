package generate

// Series makes a case of one session that asks many queries of one database, for oracles that ask each query in two ways (Radar,
// VLDB'24, 3.2): to make a database costs as much as many queries. Between them come transactions of the same session, so that
// queries are also asked in other states, and after their own transaction's writes.
func (g *Generator) Series(db *Database, queries int) *Case {
	s := &Session{Name: "s1"}
	left := queries
	ask := func(n int) (list []Statement) {
		for ; n > 0 && left > 0; n-- {
			list = append(list, g.Query(db))
			left--
		}
		return list
	}
	for left > 0 {
		for _, st := range ask(g.between(queries/8+1, queries/3+1)) {
			s.Transactions = append(s.Transactions, &Transaction{Statements: []Statement{st}})
		}
		if left == 0 {
			break
		}
		tx := g.transaction(db, oneOf(g, db.Tables), true, true)
		last := len(tx.Statements) - 1
		tx.Statements = append(append(tx.Statements[:last:last], ask(g.between(1, queries/8+1))...), tx.Statements[last])
		s.Transactions = append(s.Transactions, tx)
	}
	return g.complete(db, group{sessions: []*Session{s}})
}
