// Package product holds what each DBMS is known to do and to promise, as data with the source beside each line: isolation levels and
// their promises, which versions a statement sees, what it locks, what an error does to its transaction, and where a product is
// known to depart from all that. There is one file per product. Oracles, backends and session loops ask here and nowhere else.
//
// A product, level or rule without a row is not known: lookups say so, and callers answer "unknown". They never take another
// product's row.
package product

import (
	"slices"
	"strings"

	"wirecheck/anomaly"
)

// Product is one DBMS.
type Product struct {
	Name    string // as in history.Event.Engine and as ENGINE on the command line: "postgres"
	Title   string // for people: "PostgreSQL"
	Dialect Dialect
	// Levels are the isolation levels that the product offers, weakest first; Default is the SQL name of the one that a new session
	// has.
	Levels  []Level
	Default string
	// Retry is the session variable whose values let the server execute the statements of an optimistic transaction again where its COMMIT
	// meets a conflict; nil: there is none.
	Retry *Setting
	Traits
	Views  []View
	Locks  []Lock
	Causes []Cause
	Errors []ErrorRow
	// Own are the schemas (PostgreSQL: and databases) that belong to the product itself, in small letters. One that ends in * stands for all that begin with
	// what is before it.
	Own []string
	// Client is the program with which people talk to the server.
	Client string
	Tests  TestForm // how the product's own tests of sessions are written; empty: it has none that a case can be written as
	Dump   string   // the command that writes a database as plain SQL, its name to follow; empty: none that replay reads
	// Changed is the query for the settings of the server that differ from their defaults: a name and a value a row. Empty: it does not tell.
	Changed   string
	Exclusion string // the constraint that refuses rows which overlap; empty: there is none
	// CaseCounts says that UNIQUE takes texts for different that differ in case alone, if the column has no other collation than the usual one.
	CaseCounts bool
	Refusals   string // the errors with which the product refuses a transaction that would not fit, for people
}

// TestForm is a form of test files.
type TestForm string

// The forms.
const (
	IsolationTester TestForm = "isolationtester" // PostgreSQL, src/test/isolation/README
	MySQLTest       TestForm = "mysqltest"       // mysql-test/t of MySQL and MariaDB
	TestKit         TestForm = "testkit"         // pkg/testkit of TiDB, in Go
)

// Dialect is the SQL that a product speaks.
type Dialect string

// The dialects. The MySQL family speaks one.
const (
	DialectPostgres Dialect = "postgres"
	DialectMySQL    Dialect = "mysql"
	DialectSQLite   Dialect = "sqlite"
)

// All lists the products in the order in which they are shown.
func All() []*Product { return []*Product{&postgres, &mariadb, &mysql, &tidb, &sqlite} }

// Of finds a product by its name. A name that is not in the list gives a product of which nothing is known: it has no levels, no
// rows and no traits.
func Of(name string) *Product {
	for _, p := range All() {
		if p.Name == name {
			return p
		}
	}
	return &Product{Name: name, Title: name}
}

// OfVersion finds the product of the MySQL family by the version that a server greets its clients with.
func OfVersion(version string) *Product {
	v := strings.ToLower(version)
	for _, p := range []*Product{&mariadb, &tidb} {
		if strings.Contains(v, p.Name) {
			return p
		}
	}
	return &mysql
}

// System reports whether a schema belongs to the product itself. Nothing in it is ever instrumented.
func (p *Product) System(schema string) bool { return oneOf(p.Own, strings.ToLower(schema)) }

// oneOf reports whether a list has a name, or the beginning of it with a * behind.
func oneOf(list []string, name string) bool {
	return slices.ContainsFunc(list, func(s string) bool {
		head, all := strings.CutSuffix(s, "*")
		return s == name || all && strings.HasPrefix(name, head)
	})
}

// Known reports whether anything is known of the product.
func (p *Product) Known() bool { return len(p.Levels) > 0 }

// Level finds a level by its name in histories; nil if the product does not have it.
func (p *Product) Level(name string) *Level {
	for i := range p.Levels {
		if p.Levels[i].History == name {
			return &p.Levels[i]
		}
	}
	return nil
}

// Promises reports whether the product promises to prevent a phenomenon at a level, and where that is written. A product or level
// that is not known promises nothing.
func (p *Product) Promises(level string, ph anomaly.Phenomenon) (promised bool, source string) {
	l := p.Level(level)
	if l == nil {
		return false, ""
	}
	return l.Gives.Prevents(ph), l.Source
}

// Weakest is the weakest level that prevents a phenomenon; empty if none does.
func (p *Product) Weakest(ph anomaly.Phenomenon) string {
	for _, l := range p.Levels {
		if l.Gives.Prevents(ph) {
			return l.History
		}
	}
	return ""
}

// WeakestSnapshot is the weakest level at which the plain reads of a transaction see one snapshot; empty if none is known to.
func (p *Product) WeakestSnapshot() string {
	for _, l := range p.Levels {
		if v, ok := p.View(l.History, Select); ok && v.Read == V4 {
			return l.History
		}
	}
	return ""
}

// LevelTitle spells a level for people: "READ COMMITTED"; for a level that is another one with a setting, what to set.
func (p *Product) LevelTitle(level string) string {
	if l := p.Level(level); l != nil && l.Title != "" {
		return l.Title
	}
	return strings.ToUpper(level)
}

// Quote writes an identifier in the product's quotes.
func (p *Product) Quote(name string) string {
	q := `"`
	if p.Dialect == DialectMySQL {
		q = "`"
	}
	return q + strings.ReplaceAll(name, q, q+q) + q
}

// SameTable reports whether two names mean one table.
func (p *Product) SameTable(a, b string) bool {
	return a == b || p.Dialect != DialectPostgres && strings.EqualFold(a, b)
}

// has reports whether a list of names that is nil (all) or given has one.
func has[T comparable](list []T, x T) bool { return list == nil || slices.Contains(list, x) }
