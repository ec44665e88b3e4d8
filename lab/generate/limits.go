package generate

import (
	"fmt"
	"slices"
	"strings"
)

// Limits bound what is made. A field that is 0 has its default; a negative one means none where that makes sense.
type Limits struct {
	// Tables, Columns and Rows are the most tables, columns of a table (foreign keys may add one) and rows of a table in the
	// setup. Default 3, 3, 5 (IsoRel, ISSTA'25, 3.1.1; Radar, VLDB'24, 3.2.1 has 30 rows).
	Tables, Columns, Rows int
	// Indexes and ForeignKeys are the most CREATE INDEX statements and foreign keys in a database. Default 5, 3 (Radar 3.2.1).
	// Negative: none.
	Indexes, ForeignKeys int
	// Transactions is the most of a case, at least 2, default 5; Statements the most that access data in an explicit one, BEGIN
	// and its end apart, default 5 (WriteCheck, VLDB'25, 5.2). IsoRel has 10 statements, Troc (ICSE'23, III-D) 2
	// transactions of 10.
	Transactions, Statements int
	// Depth is how deep conditions and subqueries are nested. Default 2.
	Depth int
	// Templates is the share of cases, in percent, that begin with the pattern of a known anomaly on the generated schema
	// (IsoRel 6.2). Default 30. Negative: none.
	Templates int
	// Definitions is the share of databases, in percent, on whose cases transactions of their own change definitions and ask for statistics, if
	// the user of the package asks for ForGroup. Default none. In WriteCheck's study (VLDB'25, 3.3) 25% of the bugs have an ALTER.
	Definitions int
	// Undisturbed leaves out of that share what changes definitions.
	Undisturbed bool
	// Faults lets connections end in the middle of transactions.
	Faults bool
	// Exclude names features that are not to be used, Include features that are only used when asked for (Feature.OptIn), and
	// Favor features that are used whenever they can be; what is favored is included.
	Exclude, Include, Favor []string
}

// DefaultLimits are those of the papers.
func DefaultLimits() Limits {
	return Limits{Tables: 3, Columns: 3, Rows: 5, Indexes: 5, ForeignKeys: 3, Transactions: 5, Statements: 5, Depth: 2, Templates: 30}
}

// Defines reports whether transactions of their own may change definitions while others are open.
func (l Limits) Defines() bool {
	return slices.ContainsFunc(slices.Concat(l.Include, l.Favor), func(name string) bool { return strings.HasPrefix(name, "ddl-") })
}

// definitions are the features of a share of databases: those that change definitions first.
var definitions = []string{
	"ddl-index", "ddl-drop-index", "ddl-rename-index", "ddl-add-column", "ddl-drop-column", "ddl-modify-column", "ddl-rename", "ddl-rebuild", "ddl-truncate",
	"ddl-partition", "admin-analyze", "admin-flush", "set-optimizer", "set-retry", "fault-killed", "fault-cut", "fault-doubt", "fault-wait",
}

// ForGroup gives the limits of the cases on one database of many, by its number: those of Definitions include what changes definitions.
// The others are made as if there were no share.
func (l Limits) ForGroup(n int) Limits {
	if n*l.Definitions/100 < (n+1)*l.Definitions/100 {
		l.Include = slices.Clone(l.Include)
		for _, name := range definitions {
			if defines := strings.HasPrefix(name, "ddl-") || strings.HasPrefix(name, "admin-"); !defines || !l.Undisturbed {
				l.Include = append(l.Include, name)
			}
		}
	}
	return l
}

// complete fills in defaults and checks.
func (l Limits) complete() (Limits, error) {
	d := DefaultLimits()
	for _, f := range []struct {
		name     string
		value    *int
		standard int
		least    int
		most     int
	}{
		{"Tables", &l.Tables, d.Tables, 1, 20},
		{"Columns", &l.Columns, d.Columns, 1, 30},
		{"Rows", &l.Rows, d.Rows, 1, 1000},
		{"Indexes", &l.Indexes, d.Indexes, 0, 50},
		{"ForeignKeys", &l.ForeignKeys, d.ForeignKeys, 0, 50},
		{"Transactions", &l.Transactions, d.Transactions, 2, 50},
		{"Statements", &l.Statements, d.Statements, 1, 200},
		{"Depth", &l.Depth, d.Depth, 0, 5},
		{"Templates", &l.Templates, d.Templates, 0, 100},
	} {
		switch {
		case *f.value == 0:
			*f.value = f.standard
		case *f.value < 0 && f.least == 0:
			*f.value = 0
		}
		if *f.value < f.least || *f.value > f.most {
			return l, fmt.Errorf("limit %s is %d: expected %d to %d", f.name, *f.value, f.least, f.most)
		}
	}
	known := map[string]bool{}
	for _, f := range features() {
		known[f.Name] = true
	}
	for _, list := range [][]string{l.Exclude, l.Include, l.Favor} {
		for _, name := range list {
			if !known[name] {
				return l, fmt.Errorf("limits name the feature %q, which does not exist: docs/reference/generation.md lists them", name)
			}
		}
	}
	return l, nil
}
