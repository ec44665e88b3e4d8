package rewrite

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

// Catalog is what must be known of the tables of one database. It is immutable once made, so sessions share it.
type Catalog struct {
	Database string // current database (PostgreSQL) or default schema at the time (MySQL family)
	Version  string // the server's version string
	// Relations by schema and name, case as the server compares it.
	Relations map[RelationName]*Relation
	// ByName lists the schemas in which a relation of that name exists, system schemas left out.
	ByName map[string][]*Relation
	// Horizon is the oldest transaction id that was still running when the catalog was first read: versions written by
	// older ones are initial (PostgreSQL's pg_snapshot_xmin; 0 elsewhere).
	Horizon uint64
	// FoldNames says that the server compares names of schemas and tables without regard to case (MySQL family,
	// lower_case_table_names other than 0): Relations and ByName have lower-case keys then.
	FoldNames bool
	// ByOID finds relations by PostgreSQL's object id.
	ByOID map[uint32]*Relation
	// Functions says what must be known of functions, by bare name. The MySQL family lists stored functions only.
	Functions map[string]FunctionKind
	Standby   bool   // PostgreSQL: the server is in recovery
	Encoding  string // PostgreSQL: server_encoding
}

// Instrumented reports whether a table has the hidden columns.
func (c *Catalog) Instrumented() bool {
	for _, rel := range c.Relations {
		if rel.Instrumented {
			return true
		}
	}
	return false
}

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
	Kind         string // "table", "partitioned", "view", "matview", "foreign", "sequence", "other"
	OID          uint32 // PostgreSQL
	Columns      []Attribute
	Key          []string   // primary key columns in order; empty if there is none
	Indexes      [][]string // columns of each secondary index; an expression index has "" for the expression
	Unique       [][]string // columns of each unique index or constraint, the primary key included
	HasTriggers  bool       // row triggers of the user's
	HasRules     bool       // PostgreSQL rewrite rules
	ColumnGrants bool       // there are column privileges, so selecting a further column may be refused
	Instrumented bool       // has the hidden columns
	Readable     bool       // the session's user may SELECT from the whole table
	Engine       string     // MySQL family: InnoDB, MyISAM, ...

	Root        *Relation // PostgreSQL: the partitioned table at the top; nil unless this is a partition
	Inherits    bool      // PostgreSQL: has parents or children by INHERITS
	Unlogged    bool      // PostgreSQL: its changes are not in the write-ahead log
	RowSecurity bool      // PostgreSQL: row security policies apply to the session's user
	Cascades    bool      // foreign keys that refer to it change other tables when its rows change
	Rows        float64   // rows as the server estimates them; negative if it does not
}

// Attribute is a column.
type Attribute struct {
	Name      string
	Type      string // as the server prints it
	Hidden    bool   // INVISIBLE, or one of ours
	Generated bool
	Auto      bool // AUTO_INCREMENT, identity, serial
	Touched   bool // ON UPDATE CURRENT_TIMESTAMP
}
