package statement

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Statement describes one SQL statement by its text alone: nothing is known of the server, its tables and its functions. What
// the text does not tell, and what depends on the catalog (views, triggers, defaults such as AUTO_INCREMENT or now(), the type
// of a column), is not in it. All clauses are pieces of the text, cut out at byte offsets; no tree is ever printed.
//
// Names are without quotes and as the server keeps them: PostgreSQL's unquoted names are in lower case; the MySQL family's are
// as they were written, and compare without regard to case if they are columns, aliases or common table expressions, or, with
// lower_case_table_names other than 0, tables and schemas.
type Statement struct {
	Text string // this statement alone, without semicolon and without comments around it
	At   int    // byte offset of Text in the script
	Verb string // as history.Event.Verb

	// Unparsed says that the grammar at hand does not have this statement, so that only Text and At are known, and Verb, Control
	// and DDL as far as the leading words tell. Volatile and Variables are set. Why says why.
	Unparsed bool
	Why      string

	Control Control // what it does to the transaction or the session
	Begin   Begin   // of BEGIN and START TRANSACTION, also of PostgreSQL's SET TRANSACTION
	DDL     bool    // it may change the catalog, or removes all rows at once (TRUNCATE)
	Ends    bool    // it commits an open transaction first (MySQL family: BEGIN, DDL, ...); the same as Control.Ends

	Locking Locking    // of the SELECT itself; that of subqueries is in Tables
	Tables  []TableUse // every mention of a table, in the order of the text as far as the grammar keeps it

	Clauses Clauses // SELECT, UPDATE and DELETE

	// Assignments are those of UPDATE ... SET and of the MySQL family's INSERT ... SET, in order. AssignAt is the byte offset in
	// Text just behind the last one, so that ", c = 7" can be put in; 0 if there are none.
	Assignments []Assignment
	AssignAt    int
	Insert      *Insert // INSERT and REPLACE; nil for all others
	Returning   bool    // it has a RETURNING clause
	Ignore      bool    // MySQL family: UPDATE IGNORE, DELETE IGNORE, INSERT IGNORE

	// Predicate says that it chooses rows by more than the values it is given: each SELECT, UPDATE and DELETE of a table, with or
	// without WHERE, INSERT ... SELECT, MERGE, and each statement with a subquery that names a table.
	Predicate bool
	// Of the outermost SELECT:
	Aggregate    bool // it calls an aggregate function, or has GROUP BY or HAVING
	Distinct     bool // DISTINCT, DISTINCT ON
	Window       bool // it calls a window function
	SetOperation bool // UNION, EXCEPT, INTERSECT
	Limit        bool // LIMIT, OFFSET or FETCH, of UPDATE and DELETE too; not that of a subquery
	// Columns are the items of the outermost SELECT's list: a column's name, "*" for all columns, empty for anything else. Nil where there is no such list,
	// and in SQLite's dialect.
	Columns     []string
	HasSubquery bool // there is a query within the statement: in an expression, in FROM, in WITH, or the SELECT of an INSERT

	Parameters int // placeholders: how many ? there are, or the highest $n

	// Volatile says why the same statement on the same database may give another result or leave another state; empty if it
	// cannot. LIMIT without ORDER BY is such a reason, and a function that is not known. Not seen are an ORDER BY that leaves ties
	// (Limit says that there is a LIMIT), an UPDATE that joins a row with several others, columns that are not grouped where the
	// server allows them, and the order of an answer's rows.
	Volatile string
	// Variables says that it depends on what its session did before: user and system variables, LAST_INSERT_ID(), ROW_COUNT(),
	// FOUND_ROWS(), currval, lastval, current_setting, temporary tables where the text tells, EXECUTE, cursors.
	Variables bool

	// Fixed are the columns that the condition of a SELECT from one table equates with constants, in lower case; of an UPDATE or DELETE of the MySQL family, too. True: such a constant may be a
	// number, which the MySQL family also finds equal to different texts.
	Fixed map[string]bool

	Addressing Addressing // what Addressed goes by besides Clauses; the dialects set it
}

// Begin are the options of a transaction besides its level, which is in Control.
type Begin struct {
	ReadOnly    bool // READ ONLY
	ReadWrite   bool // READ WRITE is written out
	Deferrable  bool // PostgreSQL: DEFERRABLE
	Snapshot    bool // MySQL family: WITH CONSISTENT SNAPSHOT
	Optimistic  bool // TiDB: BEGIN OPTIMISTIC
	Pessimistic bool // TiDB: BEGIN PESSIMISTIC
}

// Lock is the strength of a row lock.
type Lock string

// The strengths, weakest first.
const (
	LockNone        Lock = ""
	LockKeyShare    Lock = "key share"     // PostgreSQL: FOR KEY SHARE
	LockShare       Lock = "share"         // FOR SHARE, LOCK IN SHARE MODE
	LockNoKeyUpdate Lock = "no key update" // PostgreSQL: FOR NO KEY UPDATE
	LockUpdate      Lock = "update"        // FOR UPDATE
)

// Stronger reports whether l is stronger than other.
func (l Lock) Stronger(other Lock) bool { return l.rank() > other.rank() }

func (l Lock) rank() int {
	for i, o := range [...]Lock{LockNone, LockKeyShare, LockShare, LockNoKeyUpdate, LockUpdate} {
		if l == o {
			return i
		}
	}
	return -1
}

// Locking is the locking clause of a SELECT. Of several clauses (PostgreSQL) it has the strongest lock, and is NoWait or
// SkipLocked if one of them is.
type Locking struct {
	Lock       Lock
	NoWait     bool
	SkipLocked bool
	Wait       bool     // MariaDB, TiDB: WAIT n, also with n = 0
	Of         []string // FOR UPDATE OF: the names given; nil for all tables
}

// Place says where in a statement a table is mentioned.
type Place string

// The places. A mention within a subquery of a common table expression is in the PlaceCTE: the outermost place counts.
const (
	PlaceMain     Place = ""         // the statement's own target or table references
	PlaceSubquery Place = "subquery" // a subquery in an expression
	PlaceDerived  Place = "derived"  // a subquery in FROM
	PlaceCTE      Place = "cte"      // a common table expression
	PlaceSelect   Place = "select"   // the SELECT of INSERT, CREATE TABLE AS and the like, or an arm of a set operation
)

// Around is what is around a part of a statement.
type Around struct {
	Place Place
	Depth int      // how many queries
	Names []string // of the common table expressions that are visible
}

// Inner is what is around a query within a.
func (a Around) Inner(p Place) Around {
	if a.Place != PlaceMain {
		p = a.Place
	}
	return Around{p, a.Depth + 1, a.Names}
}

// Arm is what is around an arm of a set operation.
func (a Around) Arm() Around {
	if a.Place == PlaceMain {
		a.Place = PlaceSelect
	}
	return a
}

// SourceKind says what a mention means.
type SourceKind string

// The kinds.
const (
	SourceTable    SourceKind = "table"    // a table or a view
	SourceCTE      SourceKind = "cte"      // the name of a common table expression that is visible here
	SourceDerived  SourceKind = "derived"  // a subquery or VALUES in FROM; what it reads has mentions of its own
	SourceFunction SourceKind = "function" // a function in FROM
)

// TableUse is one mention of a table, or of what stands like a table in a list of table references.
type TableUse struct {
	Kind   SourceKind
	Schema string // as written; empty if the name is not qualified
	Name   string // empty for a subquery
	Alias  string // empty if there is none
	SQL    string // the table's name as SQL text, quoted and qualified as in the statement; empty for a subquery
	Ref    string // SQL text that qualifies columns of this mention: the quoted alias, or else the name
	Target bool   // the statement writes it; in UPDATE and DELETE of several tables only what it names to be changed
	Read   bool   // its rows are read: false for the target of INSERT ... VALUES
	Lock   Lock   // the lock that a SELECT's locking clause takes on it
	Place  Place
	Depth  int // how many queries are around the one that names it
}

// Targets lists the mentions that are written.
func (s *Statement) Targets() []TableUse {
	return s.uses(func(u TableUse) bool { return u.Target })
}

// Reads lists the tables whose rows are read.
func (s *Statement) Reads() []TableUse {
	return s.uses(func(u TableUse) bool { return u.Read && u.Kind == SourceTable })
}

// Main lists the tables and their likes in the outermost table references, the target among them.
func (s *Statement) Main() []TableUse {
	return s.uses(func(u TableUse) bool { return u.Place == PlaceMain })
}

func (s *Statement) uses(keep func(TableUse) bool) (list []TableUse) {
	for _, u := range s.Tables {
		if keep(u) {
			list = append(list, u)
		}
	}
	return list
}

// Clauses are the texts of a statement's own clauses. A clause that the statement lacks is empty.
type Clauses struct {
	With string // WITH ..., with the keyword
	// From are the table references without FROM: of an UPDATE or DELETE those that a SELECT of the same rows has (PostgreSQL:
	// the target, a comma, what follows FROM or USING).
	From    string
	Where   string // the condition without WHERE
	GroupBy string // without GROUP BY
	Having  string // without HAVING
	Window  string // without WINDOW
	OrderBy string // without ORDER BY
	Limit   string // LIMIT ..., OFFSET ..., FETCH ..., with the keywords
}

// Query makes a query of the clauses with that select list.
func (c *Clauses) Query(list string) string {
	var b strings.Builder
	part := func(keyword, text string) {
		if text != "" {
			b.WriteString(keyword + text)
		}
	}
	if c.With != "" {
		b.WriteString(c.With + " ")
	}
	b.WriteString("SELECT " + list)
	part(" FROM ", c.From)
	part(" WHERE ", c.Where)
	part(" GROUP BY ", c.GroupBy)
	part(" HAVING ", c.Having)
	part(" WINDOW ", c.Window)
	part(" ORDER BY ", c.OrderBy)
	part(" ", c.Limit)
	return b.String()
}

// Fill puts the clauses of a SELECT, as they stand in a text, in their places.
func (c *Clauses) Fill(t *Text, list []Clause) {
	for _, l := range list {
		rest := t.Between(l.Start+1, l.End)
		switch l.Word {
		case "FROM":
			c.From = rest
		case "WHERE":
			c.Where = rest
		case "GROUP":
			c.GroupBy = t.Between(l.Start+2, l.End)
		case "HAVING":
			c.Having = rest
		case "WINDOW":
			c.Window = rest
		case "ORDER":
			c.OrderBy = t.Between(l.Start+2, l.End)
		case "LIMIT", "FETCH":
			c.Limit = t.Between(l.Start, l.End)
		}
	}
}

// Assignment is one column's new value.
type Assignment struct {
	Column string // the column's name
	Table  string // the qualifier, if it is written (UPDATE of several tables): an alias or a table's name
	Expr   string // the text of the value; DEFAULT is a value
	At     int    // byte offset of Expr in Statement.Text
	// Partial says that Expr is not the column's whole value (PostgreSQL): of (a, b) = (...) it is the whole right side, for
	// each column; of a[1] = ... and a.f = ... it is that of a part of the column.
	Partial bool
}

// Insert are the parts of INSERT and REPLACE. Offsets are in Statement.Text.
type Insert struct {
	Columns  []string // the column list; nil if none is written
	ColumnAt int      // where ", c" is put in behind the last column; 0 if there is no list, or an empty one
	// NewListAt is where a list of columns " (a, b)" is put in if there is none; 0 if there is one, or none can be.
	NewListAt int

	Rows     [][]string // the values of each row of VALUES; of INSERT ... SET one row
	RowAt    []int      // where ", 7" is put in behind the last value of each row; 0 for an empty row. Nil for INSERT ... SET
	Select   string     // the text of the query, where the rows come from one; empty if they do not
	Defaults bool       // PostgreSQL: DEFAULT VALUES
	Set      bool       // MySQL family: INSERT ... SET a = 1; the assignments are in Statement.Assignments

	Conflict bool // ON DUPLICATE KEY UPDATE, ON CONFLICT
	Nothing  bool // ON CONFLICT DO NOTHING
	// Updates are the assignments of ON DUPLICATE KEY UPDATE and ON CONFLICT DO UPDATE; UpdateAt as Statement.AssignAt.
	Updates  []Assignment
	UpdateAt int
}

// Addressing is what a dialect found out about the query that Addressed makes.
type Addressing struct {
	Why     string // why there is none; empty if there is one
	Unorder bool   // the order does not choose rows and cannot be asked for: ORDER BY is left out
}

// Addressed makes a query that gives exprs, a list of expressions, for each row that the statement addresses: those that an
// UPDATE or DELETE changes, or that a SELECT without groups gives, a join's once for each combination. It locks nothing but
// what a subquery of the statement's own asks to lock. Names in exprs mean what they mean in the statement's own condition.
// It is false if there is no such query (groups, set operations, no tables, a part that writes), or none that is certain.
//
// The query evaluates the statement's condition, so a function in it that has effects (see Volatile) has them. Labels in exprs
// must not be names that ORDER BY uses.
func (s *Statement) Addressed(exprs string) (string, bool) {
	if s.Unparsed || s.Addressing.Why != "" || s.Clauses.From == "" {
		return "", false
	}
	c := s.Clauses
	c.GroupBy, c.Having, c.Window = "", "", ""
	if s.Addressing.Unorder {
		c.OrderBy = ""
	}
	return c.Query(exprs), true
}

// Unaddressed says why there is no query that Addressed could make. The first reason counts.
func (s *Statement) Unaddressed(why string) {
	s.Addressing.Why = cmp.Or(s.Addressing.Why, why)
}

// NotParsed makes s a statement of which nothing but the text, and what its leading words tell, is known.
func (s *Statement) NotParsed(why string) {
	s.Unparsed, s.Why, s.Variables, s.Volatile = true, why, true, "a statement that is not understood"
}

// Chooses finds out from the mentions of tables whether s chooses rows (Predicate).
func (s *Statement) Chooses() {
	for _, t := range s.Tables {
		values := s.Insert != nil && t.Place == PlaceMain // the row that is there
		s.Predicate = s.Predicate || t.Read && t.Kind == SourceTable && !values
	}
}

// UnorderedLimit is why a statement is Volatile that has a LIMIT and no ORDER BY.
const UnorderedLimit = "LIMIT without ORDER BY"

// limits are the clauses that cut an answer off after a number of rows and leave none out before them.
var limits = regexp.MustCompile(`(?i)^(?:LIMIT\s+(?:0\s*,\s*)?'?(\d+)'?(?:::\w+)?(?:\s+OFFSET\s+'?0'?(?:::\w+)?)?|FETCH\s+(?:FIRST|NEXT)\s+(\d+)\s+ROWS?\s+ONLY)$`)

// Cut gives the number of rows of a SELECT that varies for one reason only: its LIMIT cuts it off there, without ORDER BY. An answer
// of fewer rows has all rows that there are, so it does not vary.
func (s *Statement) Cut() (rows int, ok bool) {
	if s.Verb != "select" || s.Volatile != UnorderedLimit || s.Variables || s.HasSubquery || s.SetOperation {
		return 0, false
	}
	m := limits.FindStringSubmatch(s.Clauses.Limit)
	if m == nil {
		return 0, false
	}
	rows, err := strconv.Atoi(m[1] + m[2])
	return rows, err == nil
}

// Whole gives a key of which has names all columns: no two rows are alike in them. nil: there is none.
func Whole(keys [][]string, has func(column string) bool) []string {
	for _, key := range keys {
		if len(key) > 0 && !slices.ContainsFunc(key, func(column string) bool { return !has(column) }) {
			return key
		}
	}
	return nil
}

// Fix notes a column in Fixed.
func (s *Statement) Fix(column string, number bool) {
	if s.Fixed == nil {
		s.Fixed = map[string]bool{}
	}
	s.Fixed[strings.ToLower(column)] = number
}

// Reasons joins the reasons why a statement is volatile, each once, in an order that does not depend on that of the walk.
func Reasons(list []string) string {
	slices.Sort(list)
	return strings.Join(slices.Compact(list), "; ")
}
