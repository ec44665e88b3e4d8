package txcheck

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"wirecheck/answer"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/rewrite"
	"wirecheck/statement"
)

// The columns that each table gets (TxCheck, section 3.2, figure 5: PrimaryKey and VersionKey). ColumnPrevious is ours: an UPDATE
// puts the version there that it overwrites, so that what it overwrote is known from the statement itself and not only from
// the read before it (Assumption 3 is not needed).
const (
	ColumnRow      = rewrite.ColumnRowID
	ColumnVersion  = "wc_version"
	ColumnPrevious = "wc_previous"
)

// hiddenColumn reports whether a column is one of ours.
func hiddenColumn(name string) bool {
	return name == ColumnRow || name == ColumnVersion || name == ColumnPrevious
}

// dbms is the product, with what the instrumentation derives from what is known of it.
type dbms struct {
	*product.Product
	visible bool // the columns cannot be invisible: they are stripped by name from what a statement returns
	dirty   bool // there is a READ UNCOMMITTED that shows what is written without being committed, and takes no locks
	current bool // writes and locking reads see the newest committed versions, whatever the transaction's snapshot
	family  bool // MySQL family: identifiers, and an UPDATE that changes nothing writes nothing
}

// dbmsOf is false for a product of which it is not known what its statements see.
func dbmsOf(p *product.Product) (dbms, bool) {
	dirty, _ := p.View(product.ReadUncommitted, product.Select)
	write, ok := p.View(product.RepeatableRead, product.Update)
	return dbms{p, !p.InvisibleColumns, dirty.Read == product.V2, write.Locked == product.V3, p.Dialect == product.DialectMySQL}, ok
}

// table is a table of the case.
type table struct {
	name, sql string
	columns   []string // its own
}

// tablesOf gives the case's tables; Schedule.Final has them as they were before anything was added.
func tablesOf(p *dbms, final []answer.Table) []table {
	out := make([]table, len(final))
	for i, t := range final {
		parts := strings.SplitN(t.Name, ".", 2)
		for n := range parts {
			parts[n] = p.Quote(parts[n])
		}
		out[i] = table{name: t.Name, sql: strings.Join(parts, ".")}
		for _, c := range t.Columns {
			out[i].columns = append(out[i].columns, c.Name)
		}
	}
	return out
}

// alterations are the statements that add the columns. All rows get a row id, version 0 and no previous version. With defaults,
// rows that are inserted without naming the columns do, too (INSERT ... SELECT).
func alterations(p *dbms, tables []table, defaults bool) (list []string) {
	each := func(format string) {
		var parts []string
		for _, t := range tables {
			parts = append(parts, fmt.Sprintf(format, t.sql))
		}
		if len(parts) > 0 {
			list = append(list, strings.Join(parts, "; "))
		}
	}
	switch {
	case p.Dialect == product.DialectPostgres:
		// A default that is not constant would have the table written anew.
		each("ALTER TABLE %[1]s ADD COLUMN wc_row_id text, ADD COLUMN wc_previous bigint, ADD COLUMN wc_version bigint NOT NULL DEFAULT 0; " +
			"UPDATE %[1]s SET wc_row_id = gen_random_uuid()::text; ALTER TABLE %[1]s ALTER COLUMN wc_row_id SET DEFAULT gen_random_uuid()::text")
		return list
	case !p.OneAddition:
		each("ALTER TABLE %s ADD COLUMN wc_row_id VARCHAR(40)")
		each("ALTER TABLE %s ADD COLUMN wc_previous BIGINT")
		each("ALTER TABLE %s ADD COLUMN wc_version BIGINT NOT NULL DEFAULT 0")
		each("UPDATE %s SET wc_row_id = uuid()")
		return list
	}
	// Columns with constant defaults are added without copying the table, and with the binary log on MySQL refuses others while
	// rows are there (error 1674).
	each("ALTER TABLE %s ADD COLUMN wc_row_id VARCHAR(40) CHARACTER SET ascii INVISIBLE, ADD COLUMN wc_previous BIGINT INVISIBLE, ADD COLUMN wc_version BIGINT NOT NULL DEFAULT 0 INVISIBLE")
	each("UPDATE %s SET wc_row_id = uuid()")
	if defaults || p.DefaultsAdded { // where it costs little, the next case on the same database finds it prepared
		each("ALTER TABLE %s ALTER COLUMN wc_row_id SET DEFAULT (uuid())")
	}
	return list
}

// versionSet is a Version-Set Read: the number, in the list, of the table, the row and the version of all rows. It is one
// statement, so that all tables are seen at one moment.
func versionSet(tables []*table) string {
	parts := make([]string, len(tables))
	for i, t := range tables {
		parts[i] = "SELECT '" + strconv.Itoa(i) + "' AS wc_table, wc_row_id, wc_previous, wc_version FROM " + t.sql
	}
	return strings.Join(parts, " UNION ALL ")
}

// instrumented is a statement with what is added to its own text.
type instrumented struct {
	text   string
	hidden int    // columns added behind those it returns
	why    string // not empty: it cannot be instrumented exactly
}

// instrument lets a write assign the version key (number) to the rows that it updates, and row ids to those that it inserts.
func instrument(p *dbms, st *statement.Statement, t *table, number int) instrumented {
	if why := unfit(p, st); why != "" {
		return instrumented{why: why}
	}
	ref := st.Targets()[0].Ref
	var edits []rewrite.Edit
	splice := func(at int, add string) { edits = append(edits, rewrite.Edit{At: at, Add: add}) }
	assign := func(old string) string {
		return fmt.Sprintf(", wc_previous = %swc_version, wc_version = %d", old, number)
	}
	old := ""
	if !p.family {
		old = ref + "."
	}
	switch st.Verb {
	case "update":
		if st.AssignAt == 0 {
			return instrumented{why: "its assignments could not be found"}
		}
		splice(st.AssignAt, assign(old))
	case "insert", "replace":
		if why := instrumentInsert(p, st, t, number, splice); why != "" {
			return instrumented{why: why}
		}
		if ins := st.Insert; ins.Conflict && !ins.Nothing {
			if ins.UpdateAt == 0 {
				return instrumented{why: "the assignments of its conflict clause could not be found"}
			}
			if p.family && ins.Select != "" {
				old = ref + "."
			}
			splice(ins.UpdateAt, assign(old))
		}
	}
	out := instrumented{}
	if p.WriteReturning {
		word := " RETURNING "
		if st.Returning {
			word = ", "
		}
		out.hidden = 3
		splice(len(st.Text), word+ref+".wc_row_id, "+ref+".wc_previous, "+ref+".wc_version")
	}
	slices.SortStableFunc(edits, func(a, b rewrite.Edit) int { return a.At - b.At })
	out.text = rewrite.Apply(st.Text, edits)
	return out
}

// instrumentInsert gives the rows of an INSERT names of their own. They are the same in each execution, so that a query that sees
// the columns where they cannot be invisible sees the same everywhere.
func instrumentInsert(p *dbms, st *statement.Statement, t *table, number int, splice func(int, string)) string {
	ins := st.Insert
	id := func(row int) string { return fmt.Sprintf("'n%d.%d'", number, row) }
	switch {
	case ins == nil:
		return "its parts could not be found"
	case ins.Select != "" || ins.Defaults:
		if !p.UniqueDefaults {
			return p.Title + " has no default that could name the rows of INSERT ... SELECT"
		}
		return ""
	case ins.Set:
		if st.AssignAt == 0 {
			return "its assignments could not be found"
		}
		splice(st.AssignAt, ", wc_row_id = "+id(0))
		return ""
	case len(ins.Rows) == 0 || len(ins.RowAt) != len(ins.Rows) || slices.Contains(ins.RowAt, 0):
		return "a row without values"
	case ins.Columns != nil && ins.ColumnAt != 0:
		splice(ins.ColumnAt, ", wc_row_id")
	case ins.NewListAt != 0 && len(ins.Rows[0]) <= len(t.columns):
		var names []string
		for _, c := range t.columns[:len(ins.Rows[0])] {
			names = append(names, p.Quote(c))
		}
		splice(ins.NewListAt, " ("+strings.Join(append(names, "wc_row_id"), ", ")+")")
	default:
		return "its list of columns could not be found"
	}
	for n, at := range ins.RowAt {
		splice(at, ", "+id(n))
	}
	return ""
}

// unfit says why a statement cannot be instrumented exactly; empty if nothing speaks against it.
func unfit(p *dbms, st *statement.Statement) string {
	targets := st.Targets()
	switch {
	case st.Volatile != "":
		return st.Volatile
	case st.Variables:
		return "it depends on its session's variables"
	case physical.MatchString(st.Text):
		return "it may name where the server keeps a row"
	case st.Limit, st.Window:
		return "rows that its order leaves equal may come in any order"
	case st.Verb == "update" && len(st.Main()) > 1:
		return "a row may be joined with several others, of which one gives the value"
	case schedule.Skips(st):
		return "SKIP LOCKED depends on who runs at the same time"
	case p.visible && showsColumns(st):
		return "it would show the added columns to itself"
	case st.Verb == "select" && len(targets) > 0:
		return "a SELECT that writes"
	case st.Verb == "select":
		return ""
	case len(targets) != 1:
		return "it writes several tables"
	}
	return ""
}

// physical finds columns and functions that tell where or when the server wrote a row.
var physical = regexp.MustCompile(`(?i)\b(?:ctid|xmin|xmax|cmin|cmax|tableoid|_tidb_rowid|pg_column_size|pg_relation_size)\b`)

var (
	natural = regexp.MustCompile(`(?i)\bNATURAL\b`)
	// star finds a * that stands for columns: behind a comma, a dot or a word that begins a list of columns.
	star = regexp.MustCompile(`(?i)(?:\b(?:SELECT|DISTINCT|ALL|RETURNING)|[,.])\s*\*`)
)

// showsColumns reports whether visible columns of ours would change what the statement means: wherever it names all columns
// but in what it returns, and in whole-row references.
func showsColumns(st *statement.Statement) bool {
	if natural.MatchString(st.Text) {
		return true
	}
	for _, t := range st.Tables {
		name := cmp.Or(t.Alias, t.Name)
		if name == "" {
			continue
		}
		row := regexp.MustCompile(`(?i)(?:[(,]|\bSELECT)\s*"?` + regexp.QuoteMeta(name) + `"?\s*(?:[),:]|\bFROM\b|$)`)
		if row.MatchString(fromless(st)) {
			return true
		}
	}
	if !star.MatchString(st.Text) {
		return false
	}
	return st.Distinct || st.SetOperation || st.HasSubquery || st.Aggregate
}

// fromless is the text up to the table references: there a name of a table alone is a row, behind FROM it is a table.
func fromless(st *statement.Statement) string {
	if st.Clauses.From == "" {
		return ""
	}
	if at := strings.Index(st.Text, st.Clauses.From); at > 0 {
		return st.Text[:at]
	}
	return st.Text
}

// strip takes our columns away from what a statement returned: the hidden last ones, and those that a * brought, by name. added
// are the hidden ones.
func strip(a answer.Result, hidden int) (own answer.Result, added [][]answer.Value) {
	own = a
	if a.Columns == nil {
		return own, nil
	}
	n := max(len(a.Columns)-hidden, 0)
	var keep []int
	own.Columns = nil
	for i, c := range a.Columns[:n] {
		if !hiddenColumn(c.Name) {
			keep = append(keep, i)
			own.Columns = append(own.Columns, c)
		}
	}
	own.Rows = make([][]answer.Value, len(a.Rows))
	for i, row := range a.Rows {
		own.Rows[i] = make([]answer.Value, 0, len(keep))
		for _, k := range keep {
			own.Rows[i] = append(own.Rows[i], row[k])
		}
		added = append(added, row[n:])
	}
	if len(keep) == 0 && hidden > 0 {
		own.Columns, own.Rows = nil, nil
	}
	return own, added
}

// stripTables takes our columns away from tables.
func stripTables(tables []answer.Table) []answer.Table {
	out := make([]answer.Table, len(tables))
	for i, t := range tables {
		a, _ := strip(answer.Result{Columns: t.Columns, Rows: t.Rows}, 0)
		out[i] = answer.Table{Name: t.Name, Columns: a.Columns, Rows: a.Rows}
		slices.SortFunc(out[i].Rows, answer.CompareRows)
	}
	return out
}
