package schedule

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/product"
	"wirecheck/statement"
)

// Reference is a foreign key.
type Reference struct {
	Child, Parent string // tables, as in Schedule.Final
	// Acts says that a change of a row of Parent may change rows of Child: CASCADE, SET NULL or SET DEFAULT, ON DELETE or ON UPDATE.
	Acts bool
	// Parts says that one of the tables is partitioned.
	Parts bool
	// Columns of Parent that it refers to; an empty one may change where no statement assigns it (a generated column), or is not known.
	Columns []string
	From    []string // the columns of Child that refer to these, in the same order
}

// referenceSQL asks a server's catalog for its foreign keys, by dialect: child, parent, whether it acts, whether a table is partitioned, what tells the key from
// others, and in one row each the columns of the parent and of the child (PostgreSQL manual, 53.13 pg_constraint; MariaDB and MySQL manual,
// INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS, KEY_COLUMN_USAGE and COLUMNS).
var referenceSQL = map[product.Dialect]string{
	product.DialectPostgres: `SELECT CASE n.nspname WHEN 'public' THEN c.relname::text ELSE n.nspname || '.' || c.relname END, CASE m.nspname WHEN 'public' THEN p.relname::text ELSE m.nspname || '.' || p.relname END, ` +
		`(k.confdeltype IN ('c', 'n', 'd') OR k.confupdtype IN ('c', 'n', 'd'))::int, (c.relkind = 'p' OR p.relkind = 'p')::int, k.oid, ` +
		`CASE a.attgenerated WHEN '' THEN a.attname::text END, o.attname::text ` +
		`FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class c ON c.oid = k.conrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace ` +
		`JOIN pg_catalog.pg_class p ON p.oid = k.confrelid JOIN pg_catalog.pg_namespace m ON m.oid = p.relnamespace ` +
		`CROSS JOIN LATERAL pg_catalog.generate_subscripts(k.conkey, 1) AS i(at) JOIN pg_catalog.pg_attribute a ON a.attrelid = p.oid AND a.attnum = k.confkey[i.at] ` +
		`JOIN pg_catalog.pg_attribute o ON o.attrelid = c.oid AND o.attnum = k.conkey[i.at] WHERE k.contype = 'f' ORDER BY k.oid, i.at`,
	product.DialectMySQL: `SELECT r.TABLE_NAME, r.REFERENCED_TABLE_NAME, r.DELETE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT') OR r.UPDATE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT'), 0, ` +
		`r.CONSTRAINT_NAME, IF((k.REFERENCED_TABLE_SCHEMA, k.REFERENCED_TABLE_NAME, k.REFERENCED_COLUMN_NAME) IN ` +
		`(SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND EXTRA IN ('', 'auto_increment')), k.REFERENCED_COLUMN_NAME, NULL), k.COLUMN_NAME ` +
		`FROM information_schema.REFERENTIAL_CONSTRAINTS r JOIN information_schema.KEY_COLUMN_USAGE k ` + // MariaDB reads all databases for an outer join
		`ON k.TABLE_SCHEMA = DATABASE() AND k.TABLE_NAME = r.TABLE_NAME AND k.CONSTRAINT_NAME = r.CONSTRAINT_NAME ` +
		`WHERE r.CONSTRAINT_SCHEMA = DATABASE() ORDER BY r.TABLE_NAME, r.CONSTRAINT_NAME, k.ORDINAL_POSITION`,
}

// References reads the foreign keys of a prepared stage. known is false where nothing is known of the product's catalog.
func References(ctx context.Context, stage Stage, p *product.Product) (list []Reference, known bool, err error) {
	sql, known := referenceSQL[p.Dialect]
	if !known {
		return nil, false, nil
	}
	got, err := stage.Execute(ctx, 0, sql)
	if err != nil {
		return nil, false, fmt.Errorf("read the foreign keys: %w", err)
	}
	if got.Answer.Err != nil {
		return nil, false, nil
	}
	for i, r := range got.Answer.Rows {
		if i == 0 || !answer.SameRow(r[:5], got.Answer.Rows[i-1][:5]) {
			list = append(list, Reference{Child: string(r[0]), Parent: string(r[1]), Acts: string(r[2]) != "0", Parts: string(r[3]) != "0"})
		}
		last := &list[len(list)-1]
		last.Columns, last.From = append(last.Columns, string(r[5])), append(last.From, string(r[6]))
	}
	return list, true, nil
}

// Acting are the tables from which (up) or to which the actions of foreign keys lead from a table, over any number of steps. The table itself is
// among them if they lead back to it.
func Acting(list []Reference, table string, up bool) (tables []string) {
	for next := []string{table}; len(next) > 0; next = next[1:] {
		for _, r := range list {
			from, to := r.Parent, r.Child
			if up {
				from, to = to, from
			}
			if r.Acts && from == next[0] && !slices.Contains(tables, to) {
				tables, next = append(tables, to), append(next, to)
			}
		}
	}
	return tables
}

// ByRows says why what a statement does depends on what the server chooses: mostly on the order in which it comes to the rows, which the plan decides; empty:
// it does not. One and the same DELETE is refused if it comes to a row that others refer to before it comes to these. a and b are the errors of the
// two answers that differ. Of unique keys only a refusal depends on it: they are looked at row by row everywhere (PostgreSQL manual, CREATE TABLE: Non-Deferred
// Uniqueness Constraints; MySQL manual, 1.6.3.2).
func (s *Schedule) ByRows(list []Reference, st *statement.Statement, a, b *answer.Error) string {
	targets := st.Targets()
	is := func(name string) bool {
		return slices.ContainsFunc(targets, func(u statement.TableUse) bool {
			return strings.EqualFold(u.Name, name) || strings.HasSuffix(strings.ToLower(name), "."+strings.ToLower(u.Name))
		})
	}
	setup := strings.Join(s.Setup, ";\n")
	// Rows that are written out come in their order.
	if s.DBMS().KeysByRow && (st.Insert == nil || st.Insert.Select != "") && moves(list, st) {
		for _, r := range list {
			if is(r.Parent) && (is(r.Child) || slices.Contains(Acting(list, r.Parent, false), r.Parent)) {
				return "foreign keys are looked at row by row, and one leads from " + r.Child + " to what the statement writes itself"
			}
		}
	}
	if !answer.SameError(a, b) && st.Insert == nil && slices.ContainsFunc(st.Assignments, func(a statement.Assignment) bool { return Computed(a) && KeyColumn(setup, a.Column) }) {
		return "unique keys are looked at row by row"
	}
	refers := func(e *answer.Error) bool { return e != nil && (e.Code == "1451" || e.Code == "1217") }
	if s.DBMS().ReplaceUpdates && st.Verb == "replace" && refers(a) != refers(b) && slices.ContainsFunc(list, func(r Reference) bool { return is(r.Parent) }) {
		return "the server may perform REPLACE as an update, which deletes no row to which others refer"
	}
	return ""
}

var literal = regexp.MustCompile(`^\s*(?:[-+]?[0-9.]+|'(?:[^'\\]|'')*'|(?i:NULL|TRUE|FALSE|DEFAULT))\s*$`)

// moves reports whether a statement may change, row by row, what foreign keys find: an UPDATE does not that leaves all columns as they are to which one refers
// (MySQL manual, 15.1.20.5).
func moves(list []Reference, st *statement.Statement) bool {
	if st.Verb != "update" || len(st.Assignments) == 0 {
		return true
	}
	return slices.ContainsFunc(list, func(r Reference) bool {
		return slices.ContainsFunc(r.Columns, func(column string) bool {
			return column == "" || slices.ContainsFunc(st.Assignments, func(a statement.Assignment) bool { return strings.EqualFold(a.Column, column) })
		})
	})
}

// Computed reports whether an assignment's value is no literal.
func Computed(a statement.Assignment) bool { return !literal.MatchString(a.Expr) }

var (
	keyList   = regexp.MustCompile(`(?i)\b(?:UNIQUE|PRIMARY\s+KEY|EXCLUDE)\b[^,;(]*\(`)
	keyItself = regexp.MustCompile(`(?i)\w[^,;()]*(?:\([^()]*\)[^,;()]*)*\b(?:UNIQUE|PRIMARY\s+KEY|SERIAL)\b`)
	computes  = regexp.MustCompile("(?i)(\\w+)[`\"]?\\s[^,;()]*(?:\\([^()]*\\)[^,;()]*)*\\bAS\\s*\\(")
)

// KeyColumn reports whether a column may belong to a key, by a setup's text: by its own definition (c VARCHAR(5) UNIQUE), in a key's list, or as a part of what
// one is computed from (an expression in the list, a generated column).
func KeyColumn(setup, column string) bool {
	return keyed(setup, column, true)
}

// keyed is KeyColumn; computed says that generated columns count.
func keyed(setup, column string, computed bool) bool {
	is := func(text string) bool {
		return slices.ContainsFunc(names.FindAllString(text, -1), func(word string) bool { return strings.EqualFold(word, column) })
	}
	if slices.ContainsFunc(keyItself.FindAllString(setup, -1), is) {
		return true
	}
	for _, at := range keyList.FindAllStringIndex(setup, -1) {
		if slices.ContainsFunc(Items(setup[at[1]:]), is) {
			return true
		}
	}
	if !computed {
		return false
	}
	for _, at := range computes.FindAllStringSubmatchIndex(setup, -1) {
		if slices.ContainsFunc(Items(setup[at[1]:]), is) && keyed(setup, setup[at[2]:at[3]], false) {
			return true
		}
	}
	return false
}

var (
	late       = regexp.MustCompile(`(?i)\binitially\s+deferred\b`)
	deferrable = regexp.MustCompile(`(?i)\bdeferrable\b`)
	prompting  = regexp.MustCompile(`(?i)^\s*set\s+constraints\b`)
)

// Postpones reports whether constraints may be looked at when a transaction ends, and not before: they are INITIALLY DEFERRED, or deferrable, and a
// statement says when they are looked at (PostgreSQL manual, CREATE TABLE and SET CONSTRAINTS; no other product here has them).
func (s *Schedule) Postpones() bool {
	return slices.ContainsFunc(s.Setup, late.MatchString) || s.prompted() && slices.ContainsFunc(s.Setup, deferrable.MatchString)
}

// lazy puts off the look for duplicates to COMMIT, or to the transaction's next look at the row.
var lazy = regexp.MustCompile(`(?i)\btidb_constraint_check_in_place_pessimistic\b`)

// Lazy reports whether a pessimistic transaction, too, may have rows with one key until COMMIT looks for them (TiDB documentation, system variables:
// tidb_constraint_check_in_place_pessimistic).
func (s *Schedule) Lazy() bool { return s.Says(lazy) }

// Says reports whether a text of the case has something: of its setup, a session's setup or a step.
func (s *Schedule) Says(what *regexp.Regexp) bool { return s.says(what.MatchString) }

func (s *Schedule) says(what func(text string) bool) bool {
	return slices.ContainsFunc(s.Setup, what) ||
		slices.ContainsFunc(s.Steps, func(st Step) bool { return what(st.Statement.Text) }) ||
		slices.ContainsFunc(s.Sessions, func(n Session) bool {
			return slices.ContainsFunc(n.Setup, func(st statement.Statement) bool { return what(st.Text) })
		})
}

// changing finds functions by which setup makes another database each time, or a default another value.
var changing = regexp.MustCompile(`(?i)\b(?:NOW|CURRENT_TIMESTAMP|CURRENT_DATE|CURRENT_TIME|CURDATE|CURTIME|LOCALTIME|LOCALTIMESTAMP|SYSDATE|UTC_TIMESTAMP|UTC_DATE|UTC_TIME|UNIX_TIMESTAMP|` +
	`CLOCK_TIMESTAMP|STATEMENT_TIMESTAMP|TRANSACTION_TIMESTAMP|TIMEOFDAY|RANDOM|RAND|UUID|UUID_SHORT|UUID_V[0-9]|GEN_RANDOM_UUID|UUID_GENERATE_V[0-9]|CONNECTION_ID|PG_BACKEND_PID|TXID_CURRENT)\s*\(|` +
	`\bCURRENT_(?:TIMESTAMP|DATE|TIME)\b|\bLOCALTIME(?:STAMP)?\b`)

// Varies names what makes another database of the setup each time, or another value of a default; empty: nothing does.
func (s *Schedule) Varies() string { return Varying(strings.Join(s.Setup, ";\n")) }

// Varying names what in a text gives another value each time; empty: nothing does.
func Varying(sql string) string {
	return strings.TrimSpace(strings.TrimRight(changing.FindString(sql), "("))
}

// held takes tables for a session, whatever becomes of its transactions (MySQL manual, 15.3.6, 15.3.5 and 15.7.8.3).
var held = regexp.MustCompile(`(?is)^\s*(lock\s+(tables?|instance)\b|flush\s+.*\b(read\s+lock|for\s+export)\b)`)

// Holds names a step by which a session of the MySQL family holds tables until it lets go of them; empty: none does. Nobody else comes to these tables where
// an oracle executes the steps in another order, or some of them.
func (s *Schedule) Holds() string {
	if s.DBMS().Dialect != product.DialectMySQL {
		return ""
	}
	for i := range s.Steps {
		if held.MatchString(s.Steps[i].Statement.Text) {
			return s.Steps[i].Name + " holds tables for its session"
		}
	}
	return ""
}

// untransacted finds storage engines whose changes no rollback takes back (MySQL manual, 18.1).
var untransacted = regexp.MustCompile(`(?i)\b(?:engine|type)\s*=?\s*['"]?(?:myisam|aria|memory|heap|csv|archive|merge|mrg_myisam|blackhole)\b`)

// Untransacted says that the setup makes tables without transactions; empty: it does not.
func (s *Schedule) Untransacted() string {
	if m := untransacted.FindString(strings.Join(s.Setup, "\n")); m != "" {
		return "there are tables without transactions: " + m
	}
	return ""
}

var (
	routine = regexp.MustCompile(`(?i)^\s*(call\b|do\s*(language\s+\w+\s*)?(\$|e?'))`) // PostgreSQL's DO; MySQL's evaluates expressions
	called  = regexp.MustCompile(`\bfunction (\S+) is not known`)
)

// Calls names a step that calls a procedure, an anonymous block or a function of the user, which may write; empty: none does. What a failed statement
// wrote is undone.
func (s *Schedule) Calls() string {
	for i := range s.Steps {
		st := &s.Steps[i]
		m := called.FindStringSubmatch(st.Statement.Volatile)
		if !st.Failed() && (routine.MatchString(st.Statement.Text) || m != nil && !strings.HasPrefix(m[1], "pg_")) {
			return st.Name + " calls a routine, which may write"
		}
	}
	return ""
}

// prompted reports whether a statement says when constraints are looked at.
func (s *Schedule) prompted() bool {
	return slices.ContainsFunc(s.Steps, func(st Step) bool { return prompting.MatchString(st.Statement.Text) })
}

// Prompt is the setup without the constraints that Postpones is about: where each statement is a transaction of its own, they would refuse what a
// longer transaction may do. The actions of foreign keys stay if acts is set: they are executed at once in any case. The checks of such a key are
// then switched off, which is a superuser's right; others get an error.
func (s *Schedule) Prompt(acts bool) []string {
	setup := slices.Clone(s.Setup)
	if !s.Postpones() {
		return setup
	}
	which, actions := "condeferred", "false"
	if s.prompted() {
		which = "condeferrable"
	}
	if acts {
		actions = "c.contype = 'f' AND (c.confdeltype IN ('c', 'n', 'd') OR c.confupdtype IN ('c', 'n', 'd'))"
	}
	return append(setup, fmt.Sprintf(`DO $$ DECLARE c record; t record; BEGIN FOR c IN SELECT * FROM pg_constraint WHERE %s AND conparentid = 0 LOOP IF %s THEN `+
		`FOR t IN SELECT tgrelid::regclass AS r, tgname FROM pg_trigger WHERE tgconstraint = c.oid AND tgfoid::regproc::text ~ '^"?RI_FKey_(check|noaction)' LOOP `+
		`EXECUTE format('ALTER TABLE %%s DISABLE TRIGGER %%I', t.r, t.tgname); END LOOP; ELSE `+
		`EXECUTE format('ALTER TABLE %%s DROP CONSTRAINT %%I', c.conrelid::regclass, c.conname); END IF; END LOOP; END $$`, which, actions))
}
