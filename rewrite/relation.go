package rewrite

import "slices"

// Capture is how row versions are seen.
type Capture string

// The ways of capture. Auto is the engine's default: native on PostgreSQL, columns on the MySQL family.
const (
	CaptureAuto    Capture = "auto"
	CaptureColumns Capture = "columns" // the papers' hidden columns wc_row_id and wc_writers
	CaptureNative  Capture = "native"  // what the engine itself keeps: PostgreSQL's tableoid, ctid, xmin
)

// The names of the hidden columns.
const (
	ColumnRowID   = "wc_row_id"
	ColumnWriters = "wc_writers"
)

// FunctionKind is a set of facts about all the functions of one bare name.
type FunctionKind uint8

// The facts about functions.
const (
	FunctionAggregate FunctionKind = 1 << iota // one of them is an aggregate
	FunctionSet                                // one of them returns a set
	FunctionPlain                              // one of them is neither an aggregate nor a window function
	FunctionUser                               // one of them is the user's and not immutable: it may read and write tables
)

// RelationName is a qualified name.
type RelationName struct{ Schema, Name string }

// String gives schema.name.
func (n RelationName) String() string { return n.Schema + "." + n.Name }

// Relation is a table, view or the like.
type Relation struct {
	RelationName
	Kind    string // "table", "partitioned", "view", "matview", "foreign", "sequence", "other"
	OID     uint32 // PostgreSQL
	Columns []Attribute
	Key     []string   // primary key columns in order; empty if there is none
	Indexes [][]string // columns of each secondary index; an expression index has "" for the expression
	Unique  [][]string // columns of each unique index or constraint, the primary key included
	// Excludes says that more than Unique can be in the way of a new row: other unique indexes (of a part of the rows, of expressions, of prefixes) or exclusion
	// constraints; or what makes INSERT IGNORE pass over it (MySQL family: CHECK, foreign keys).
	Excludes     bool
	HasTriggers  bool // row triggers of the user's
	HasRules     bool // PostgreSQL rewrite rules
	ColumnGrants bool // there are column privileges, so selecting a further column may be refused
	Instrumented bool // has the hidden columns
	// Named are the columns of each index, the primary key included, by its name (MySQL family).
	Named    map[string][]string
	Readable bool // the session's user may SELECT from the whole table
	// Shown is set for a view of which each row is one row of each of its tables (PostgreSQL).
	Shown *Shown
	// Definition is the query of a view as the server writes it (MySQL family); empty if the user may not see it.
	Definition string
	Engine     string // MySQL family: InnoDB, MyISAM, ...
	// Partitioned says that the server may see from a condition alone that no partition has such rows (MySQL family).
	Partitioned bool

	Root        *Relation // PostgreSQL: the partitioned table at the top; nil unless this is a partition
	Partitions  []uint32  // PostgreSQL: the object ids of a partitioned table's partitions, on all levels
	Inherits    bool      // PostgreSQL: has parents or children by INHERITS
	Unlogged    bool      // PostgreSQL: its changes are not in the write-ahead log
	Asks        bool      // PostgreSQL: a default may ask for the text of the running statement
	RowSecurity bool      // PostgreSQL: row security policies apply to the session's user
	// PostgreSQL: CascadesDelete says that foreign keys that refer to it change other rows when its rows are deleted, and CascadesUpdate are the columns with
	// which they do so when a statement assigns them.
	CascadesDelete bool
	CascadesUpdate []string
	Referrers      []Referrer // PostgreSQL: what CascadesDelete says in detail
	References     []Reference
	Rows           float64 // rows as the server estimates them; negative if it does not
}

// Referrer is a foreign key of a table whose rows change when the rows to which they refer are deleted.
type Referrer struct {
	RelationName
	Columns, Keys []int  // the numbers of its columns, and of those of the table to which they refer
	Trigger       uint32 // the object id of what changes its rows
	Deletes       bool   // they are deleted, too; else they refer to nothing any more
	Plain         bool   // it is in force, and compares by the server's own equality
}

// Reference is a foreign key of one column: where the column is not NULL, there is a row of the other table whose column has the same value, in all that is
// committed. It is in force for all rows of its table on PostgreSQL, and on the MySQL family for those that were inserted while the server checked it.
type Reference struct {
	Column string
	Table  RelationName
	Key    int    // the number of the other table's column (PostgreSQL)
	Name   string // its name (MySQL family)
}

// Refers reports whether a column has a Reference to a column of another table.
func (r *Relation) Refers(column string, to *Relation, key string) bool {
	at := to.Attribute(key)
	return at != nil && slices.ContainsFunc(r.References, func(f Reference) bool {
		return f.Column == column && f.Table == to.RelationName && f.Key == at.Number && (f.Key > 0 || f.Name == key)
	})
}

// Shown says what a view shows of its tables.
type Shown struct {
	Rule   string // names its definition: that of another one is another
	Tables []ShownTable
}

// ShownTable is a table, or a view, that a view reads.
type ShownTable struct {
	RelationName
	OID     uint32
	Secured bool        // row security is on
	Columns map[int]int // the numbers of the table's columns, by those of the view
}

// Cascades reports whether foreign keys that refer to it may change other rows when its own change.
func (r *Relation) Cascades() bool { return r.CascadesDelete || len(r.CascadesUpdate) > 0 }

// ClientColumns are the names of the columns that a client knows, in their order.
func (r *Relation) ClientColumns() (names []string) {
	for i := range r.Columns {
		if a := &r.Columns[i]; !a.Hidden {
			names = append(names, a.Name)
		}
	}
	return names
}

// Attribute is the column of a name; nil if there is none.
func (r *Relation) Attribute(name string) *Attribute {
	if i := slices.IndexFunc(r.Columns, func(a Attribute) bool { return a.Name == name }); i >= 0 {
		return &r.Columns[i]
	}
	return nil
}

// Number is the column of a number; nil if there is none.
func (r *Relation) Number(n int) *Attribute {
	if i := slices.IndexFunc(r.Columns, func(a Attribute) bool { return a.Number == n }); i >= 0 {
		return &r.Columns[i]
	}
	return nil
}

// AddCascade notes that assigning one of these columns, to which a foreign key refers, changes other rows. A generated column changes with any
// other one; so does a column that is not known.
func (r *Relation) AddCascade(columns []string) {
	for _, name := range columns {
		if a := r.Attribute(name); a == nil || a.Generated {
			columns = nil
			for _, a := range r.Columns {
				columns = append(columns, a.Name)
			}
			break
		}
	}
	for _, name := range columns {
		if !slices.Contains(r.CascadesUpdate, name) {
			r.CascadesUpdate = append(r.CascadesUpdate, name)
		}
	}
	slices.Sort(r.CascadesUpdate)
}

// Attribute is a column.
type Attribute struct {
	Name      string
	Number    int    // PostgreSQL: attnum
	Type      string // as the server prints it
	Hidden    bool   // INVISIBLE, or one of ours
	Generated bool
	Auto      bool   // AUTO_INCREMENT, identity, serial
	Folds     bool   // text whose collation may take different texts for equal
	Sorts     bool   // PostgreSQL: text of a collation of no language, or of English
	Touched   bool   // ON UPDATE CURRENT_TIMESTAMP
	Required  bool   // NOT NULL
	Collation string // MySQL family
	Fixed     bool   // MariaDB, MySQL: the default is a constant, or NULL
	Clock     bool   // MariaDB, MySQL: the default is the time of the statement
}

// Arbiter gives the columns of the only key by which a row can be in the way of a new one, of which some columns are given; none if that is not certain. A
// primary key of one column that is not given is taken for a new one.
func (r *Relation) Arbiter(given func(column string) bool) (key []string) {
	if r.Excludes {
		return nil
	}
	for _, u := range r.Unique {
		if len(u) == 1 && slices.Equal(u, r.Key) && !given(u[0]) {
			continue
		}
		if key != nil {
			return nil
		}
		key = u
	}
	return key
}
