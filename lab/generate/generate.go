// Package generate makes random databases, statements, transactions and queries for testing database servers.
//
// What it makes is valid SQL of one dialect, aware of the schema: names exist, types fit, rows of the setup keep the
// constraints. It is small, because the bugs that such tests find need little (WriteCheck, VLDB'25, 3.4: two tables, five rows,
// five transactions of five statements). Each statement is deterministic (WriteCheck 5.1): no clock, no random functions, no
// LIMIT without a total order, no choice that is left to the plan. A write takes its values from its own text or from rows that it
// reads itself, never from what an earlier statement returned (WriteCheck 2.2).
//
// The package has no randomness of its own: all choices come from the function that the caller gives, so that the same numbers make
// the same case. docs/reference/generation.md lists the features that each dialect has.
package generate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Dialect is the SQL of one product.
type Dialect string

// The dialects, named as the engines are.
const (
	Postgres Dialect = "postgres"
	MariaDB  Dialect = "mariadb"
	MySQL    Dialect = "mysql"
	TiDB     Dialect = "tidb"
	SQLite   Dialect = "sqlite"
)

// Dialects lists all.
func Dialects() []Dialect { return []Dialect{Postgres, MariaDB, MySQL, TiDB, SQLite} }

// Generator makes databases and what is executed in them. It belongs to one goroutine.
type Generator struct{ definer }

// chooser makes the random choices, within what the dialect and the limits allow, and marks the features that they give.
type chooser struct {
	dialect  Dialect
	grammar  grammar // of the dialect
	limits   Limits
	intn     func(int) int
	usable   map[string]bool // features of the dialect that are not excluded
	favored  map[string]bool
	coverage *Coverage
	marks    map[string]bool // features of the statement that is being made
	kind     Kind            // of the statement that is being made
	asking   bool            // a long list of queries is being made, in which there is room for what is rarely of use
	names    int             // aliases in the statement that is being made
	hot      []Value         // the row of a table that the transactions of a group are mostly about; nil: none
}

// definer makes databases: tables, their rows, indexes and views.
type definer struct{ chooser }

// New makes a generator. intn gives a uniformly random number in [0, n), as rand.Rand.IntN does. The error says what is wrong
// with the dialect or the limits.
func New(dialect Dialect, limits Limits, intn func(n int) int) (*Generator, error) {
	if !slices.Contains(Dialects(), dialect) {
		return nil, fmt.Errorf("generate: unknown dialect %q: known are %v", dialect, Dialects())
	}
	limits, err := limits.complete()
	if err != nil {
		return nil, fmt.Errorf("generate: %w", err)
	}
	g := &Generator{definer{chooser{dialect: dialect, grammar: grammarOf(dialect), limits: limits, intn: intn, usable: map[string]bool{}, favored: map[string]bool{}, marks: map[string]bool{}}}}
	for _, f := range Features(dialect) {
		included := !f.OptIn || slices.Contains(limits.Include, f.Name) || slices.Contains(limits.Favor, f.Name) || limits.Faults && strings.HasPrefix(f.Name, "fault-")
		g.usable[f.Name] = included && !slices.Contains(limits.Exclude, f.Name)
	}
	for _, f := range limits.Favor {
		for ; f != ""; f = needs(f) {
			g.favored[f] = true
		}
	}
	for _, one := range [][]string{{"insert", "delete"}, {"begin", "start-transaction"}, {"commit", "rollback"}} {
		if !g.usable[one[0]] && !g.usable[one[1]] {
			return nil, fmt.Errorf("generate: the limits exclude both %s and %s; one of them must stay", one[0], one[1])
		}
	}
	return g, nil
}

// Steer makes the generator prefer what the coverage has not seen. nil ends that.
func (g *chooser) Steer(c *Coverage) { g.coverage = c }

// Draw makes the generator take its random numbers from another source from now on.
func (g *chooser) Draw(intn func(n int) int) { g.intn = intn }

// Statement is one SQL statement and what it is made of.
type Statement struct {
	SQL      string
	Kind     Kind
	Tables   []string // that it names, sorted
	Features []string // sorted
}

// Kind says what a statement does, in the words of the coverage.
type Kind string

// The kinds of statements.
const (
	KindSchema   Kind = "schema" // of the setup: CREATE and so on
	KindSelect   Kind = "select"
	KindLock     Kind = "select for update" // any locking read
	KindInsert   Kind = "insert"
	KindUpsert   Kind = "upsert" // INSERT that writes or passes over rows that are there
	KindReplace  Kind = "replace"
	KindUpdate   Kind = "update"
	KindDelete   Kind = "delete"
	KindMerge    Kind = "merge"
	KindBegin    Kind = "begin"
	KindCommit   Kind = "commit"
	KindRollback Kind = "rollback"
	KindPartial  Kind = "savepoint" // SAVEPOINT, ROLLBACK TO, RELEASE
	KindSet      Kind = "set"
)

// Writes reports whether statements of this kind change rows.
func (k Kind) Writes() bool {
	switch k {
	case KindInsert, KindUpsert, KindReplace, KindUpdate, KindDelete, KindMerge:
		return true
	}
	return false
}

// Data reports whether statements of this kind read or change rows.
func (k Kind) Data() bool { return k == KindSelect || k == KindLock || k.Writes() }

// statement makes a statement by calling make, which marks the features that it uses.
func (g *chooser) statement(kind Kind, tables []string, text func() string) Statement {
	g.begin(kind)
	sql := text()
	return g.end(sql, tables)
}

// begin starts a statement: no features, no aliases yet.
func (g *chooser) begin(kind Kind) {
	clear(g.marks)
	g.kind, g.names = kind, 0
}

func (g *chooser) end(sql string, tables []string) Statement {
	st := Statement{SQL: strings.TrimSpace(sql), Kind: g.kind, Features: slices.Sorted(maps.Keys(g.marks))}
	st.Tables = slices.Clone(tables)
	slices.Sort(st.Tables)
	st.Tables = slices.Compact(st.Tables)
	return st
}
