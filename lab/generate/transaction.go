package generate

import (
	"fmt"
	"slices"
)

// Session is a client connection and the transactions that it runs, one after the other.
type Session struct {
	Name         string
	Transactions []*Transaction
}

// Transaction is an explicit transaction, or one autocommit statement (WriteCheck's ACS transaction).
type Transaction struct {
	Explicit bool
	// Template is the name of the template that its statements were made after; empty: none.
	Template   string
	Statements []Statement
}

// writes reports whether one of the statements changes rows.
func (tx *Transaction) writes() bool {
	return slices.ContainsFunc(tx.Statements, func(st Statement) bool { return st.Kind.Writes() })
}

// group is what Transactions makes: the sessions, and the order in which a template wants its steps submitted.
type group struct {
	sessions []*Session
	order    []int // indexes of sessions; nil: no template
}

// Transactions makes a group of transactions on the database (WriteCheck, VLDB'25, 5.2): at least two, at least one of them explicit, at
// least one that writes. Most transactions have a session of their own.
func (g *Generator) Transactions(db *Database) []*Session { return g.group(db).sessions }

func (g *Generator) group(db *Database) group {
	var out group
	add := func(tx *Transaction) {
		out.sessions = append(out.sessions, &Session{Name: fmt.Sprintf("s%d", len(out.sessions)+1), Transactions: []*Transaction{tx}})
	}
	hot := oneOf(g.intn, db.Tables)
	g.hot = nil
	if len(hot.Rows) > 0 {
		g.hot = oneOf(g.intn, hot.Rows)
	}
	defer func() { g.hot = nil }()
	want := g.few(2, g.limits.Transactions)
	if g.chance(g.limits.Templates*10) || g.favoredTemplate() {
		if made, order := g.fromTemplate(db); made != nil {
			for _, tx := range made {
				add(tx)
			}
			out.order = order
			want = max(len(made), min(want, len(made)+1))
		}
	}
	explicit, writes := out.order != nil, out.order != nil
	for len(out.sessions) < want {
		last := len(out.sessions) == want-1
		tx := g.transaction(db, hot, last && !explicit, last && !writes)
		explicit, writes = explicit || tx.Explicit, writes || tx.writes()
		add(tx)
	}
	if n := len(out.sessions); n > 2 && out.order == nil && g.has("several-transactions") && (g.chance(fairly) || g.favored["several-transactions"]) {
		last, before := out.sessions[n-1].Transactions[0], out.sessions[g.intn(n-1)]
		last.Statements[0].Features = withFeature(last.Statements[0].Features, "several-transactions")
		before.Transactions = append(before.Transactions, last)
		out.sessions = out.sessions[:n-1]
	}
	return out
}

func withFeature(features []string, feature string) []string {
	features = append(slices.Clone(features), feature)
	slices.Sort(features)
	return slices.Compact(features)
}

// transaction makes one transaction, most of whose statements are about the table that all have to do with.
func (g *Generator) transaction(db *Database, hot *Table, explicit, write bool) *Transaction {
	table := func() *Table {
		if g.chance(700) {
			return hot
		}
		return oneOf(g.intn, db.Tables)
	}
	if !explicit && g.has("autocommit") && g.chance(250) {
		st := g.data(db, table(), write, true)
		st.Features = withFeature(st.Features, "autocommit")
		return &Transaction{Statements: []Statement{st}}
	}
	if !explicit && !write {
		if st, made := g.ddl(db, table()); made {
			return &Transaction{Statements: []Statement{st}}
		}
	}
	tx := &Transaction{Explicit: true}
	start, readOnly := g.start(write)
	g.begin(KindSet)
	if start[0].Kind == KindBegin && g.use("set-optimizer", fairly) {
		tx.Statements = append(tx.Statements, g.end("SET "+oneOf(g.intn, g.grammar.switches), nil))
	}
	if g.begin(KindSet); start[0].Kind == KindBegin && g.use("set-retry", fairly) {
		tx.Statements = append(tx.Statements, g.end("SET tidb_disable_txn_auto_retry = 0", nil))
	}
	tx.Statements = append(tx.Statements, start...)
	n := g.between(1, g.limits.Statements)
	at := g.intn(n)
	depth := 0 // savepoints that are there
	for i := range n {
		depth = g.partial(tx, depth)
		st := g.data(db, table(), write && i == at, !readOnly)
		if st.Kind != KindSelect && g.has("fault-wait") && g.chance(fairly) { // the lab does it, if the statement waits
			st.SQL, st.Features = st.SQL+" /* wirecheck: killed in a wait */", withFeature(st.Features, "fault-wait")
		}
		tx.Statements = append(tx.Statements, st)
	}
	if depth > 0 && g.has("rollback-to-savepoint") && g.chance(often) {
		tx.Statements = append(tx.Statements, g.statement(KindPartial, nil, func() string {
			g.mark("rollback-to-savepoint")
			return fmt.Sprintf("ROLLBACK TO SAVEPOINT p%d", g.between(1, depth))
		}))
	}
	tx.Statements = append(tx.Statements, g.finish())
	if start[0].SQL == autocommitOff {
		tx.Statements = append(tx.Statements, Statement{SQL: "SET autocommit = 1", Kind: KindSet, Features: start[0].Features})
	}
	return tx
}

// start begins an explicit transaction.
func (g *Generator) start(write bool) (statements []Statement, readOnly bool) {
	levels := []string{"READ COMMITTED", "REPEATABLE READ"}
	if g.grammar.serializable {
		levels = append(levels, "SERIALIZABLE")
	}
	set := func() Statement {
		return g.statement(KindSet, nil, func() string {
			g.mark("set-transaction")
			return "SET TRANSACTION ISOLATION LEVEL " + oneOf(g.intn, levels)
		})
	}
	g.begin(KindSet)
	if g.use("autocommit-off", fairly) {
		return []Statement{g.end(autocommitOff, nil)}, false
	}
	change := g.use("set-transaction", seldom)
	if change && g.grammar.mysql { // the next transaction's; inside of one it is refused (MySQL manual, SET TRANSACTION)
		statements = append(statements, set())
	}
	deferrable := false
	statements = append(statements, g.statement(KindBegin, nil, func() string {
		return g.choose([]option{
			{60, "begin", true, func() string { return "BEGIN" }},
			{15, "start-transaction", true, func() string { return g.grammar.begin }},
			{3, "begin-read-only", !write && g.has("select"), func() string { readOnly = true; return "START TRANSACTION READ ONLY" }},
			{3, "begin-read-write", true, func() string { return "START TRANSACTION READ WRITE" }},
			{1, "begin-deferrable", !write && g.has("select"), func() string {
				readOnly, deferrable = true, true
				return "BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE"
			}},
			{5, "begin-snapshot", true, func() string { return "START TRANSACTION WITH CONSISTENT SNAPSHOT" }},
			{15, "begin-deferred", true, func() string { return "BEGIN DEFERRED" }},
			{20, "begin-immediate", true, func() string { return "BEGIN IMMEDIATE" }},
			{4, "begin-exclusive", true, func() string { return "BEGIN EXCLUSIVE" }},
			{15, "begin-optimistic", true, func() string { return "BEGIN OPTIMISTIC" }},
			{10, "begin-pessimistic", true, func() string { return "BEGIN PESSIMISTIC" }},
		})
	}))
	if change && !g.grammar.mysql && !deferrable { // before the first query (PostgreSQL manual, SET TRANSACTION)
		statements = append(statements, set())
	}
	g.begin(KindSet)
	if g.use("set-constraints", seldom) {
		statements = append(statements, g.end("SET CONSTRAINTS ALL "+oneOf(g.intn, []string{"DEFERRED", "IMMEDIATE"}), nil))
	}
	return statements, readOnly
}

// autocommitOff begins a transaction with the first statement that follows (MySQL manual, "autocommit, Commit, and Rollback").
const autocommitOff = "SET autocommit = 0"

// partial may add a SAVEPOINT or something with one, and gives the number of those that are there.
func (g *Generator) partial(tx *Transaction, depth int) int {
	g.begin(KindPartial)
	if depth < 2 && g.use("savepoint", rarely) {
		depth++
		tx.Statements = append(tx.Statements, g.end(fmt.Sprintf("SAVEPOINT p%d", depth), nil))
		return depth
	}
	if depth == 0 {
		return 0
	}
	n := g.between(1, depth)
	if g.use("rollback-to-savepoint", fairly) {
		tx.Statements = append(tx.Statements, g.end(fmt.Sprintf("ROLLBACK TO SAVEPOINT p%d", n), nil))
		return n
	}
	if g.use("release-savepoint", fairly) {
		tx.Statements = append(tx.Statements, g.end(fmt.Sprintf("RELEASE SAVEPOINT p%d", n), nil))
		return n - 1
	}
	return depth
}

// finish ends an explicit transaction, or its connection: the lab does that in place of statements with such comments.
func (g *Generator) finish() Statement {
	for _, fault := range []struct {
		feature, sql string
		kind         Kind
	}{
		{"fault-killed", "ROLLBACK /* wirecheck: killed */", KindRollback}, {"fault-cut", "ROLLBACK /* wirecheck: cut */", KindRollback},
		{"fault-doubt", "COMMIT /* wirecheck: cut */", KindCommit},
	} {
		if g.begin(fault.kind); g.use(fault.feature, fairly) {
			return g.end(fault.sql, nil)
		}
	}
	rollback := g.has("rollback") && g.chance(fairly) || !g.has("commit") || g.favored["rollback"]
	if rollback {
		return g.statement(KindRollback, nil, func() string { g.mark("rollback"); return "ROLLBACK" })
	}
	return g.statement(KindCommit, nil, func() string { g.mark("commit"); return "COMMIT" })
}

// data makes a statement that reads or changes rows: a write if it must, none if it may not.
func (g *Generator) data(db *Database, t *Table, must, may bool) Statement {
	var st Statement
	write := func(kind Kind) func() string {
		return func() string { st = g.writeInto(db, t, kind); return "" }
	}
	updatable := g.has("update-key") || len(writerOf(&g.definer, db, t).assignable(false)) > 0
	locks := slices.ContainsFunc([]string{"for-update", "for-share", "lock-in-share-mode", "for-no-key-update", "for-key-share"}, g.usableFeature)
	options := []struct {
		kind    Kind
		feature string
		weight  int
		can     bool
		do      func() string
	}{
		{KindSelect, "select", 22, !must, func() string { st = g.read(db, t); return "" }},
		{KindLock, "select", 10, !must && may && locks, func() string { st = g.lock(db, t); return "" }},
		{KindInsert, "insert", 18, may, write(KindInsert)},
		{KindUpsert, "insert", 6, may && g.hasUpsert(), write(KindUpsert)},
		{KindReplace, "replace", 6, may, write(KindReplace)},
		{KindUpdate, "update", 28, may && updatable, write(KindUpdate)},
		{KindDelete, "delete", 12, may, write(KindDelete)},
		{KindMerge, "merge", 2, may, write(KindMerge)},
	}
	var ways []option
	for _, o := range options {
		if g.has(o.feature) {
			ways = append(ways, option{o.weight + g.favor(o.kind), "", o.can, o.do})
		}
	}
	if !g.anyOpen(ways) { // nothing but inserting or deleting is left, of which one is always possible
		if g.has("insert") {
			return g.writeInto(db, t, KindInsert)
		}
		return g.writeInto(db, t, KindDelete)
	}
	g.choose(ways)
	return st
}

func (g *chooser) hasUpsert() bool {
	return slices.ContainsFunc([]string{"insert-ignore", "on-duplicate-key", "on-conflict-nothing", "on-conflict-update"}, g.usableFeature)
}

func (g *chooser) usableFeature(name string) bool { return g.usable[name] }

// favor raises the weight of the kinds of statements that have a favored feature.
func (g *chooser) favor(kind Kind) int {
	more := 0
	for _, f := range g.limits.Favor {
		if slices.Contains(kindsOf(f), kind) {
			more += 60
		}
	}
	return more
}

// read makes a query, mostly of the table that the others have to do with.
func (g *Generator) read(db *Database, t *Table) Statement {
	if g.chance(often) {
		return g.Query(db)
	}
	g.begin(KindSelect)
	r := readerOf(&g.definer, db)
	r.mark("select")
	from, sc := r.readFrom(t)
	sql := "SELECT " + r.projection(sc) + " FROM " + from + r.where(sc, r.limits.Depth) + r.order(sc)
	return g.end(sql, r.tables)
}

// lock makes a locking read.
func (g *Generator) lock(db *Database, t *Table) Statement {
	g.begin(KindLock)
	r := writerOf(&g.definer, db, t)
	sql := r.locking()
	return g.end(sql, r.tables)
}
