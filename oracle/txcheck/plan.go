package txcheck

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"wirecheck/answer"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
)

// role is what a statement of the case is to the oracle.
type role uint8

const (
	control role = iota // begins and ends transactions, savepoints, sets levels: part of the case, not of the graph
	setting             // SET, and what changes definitions: part of both
	read
	write
)

// plannedStatement is one statement of the case.
type plannedStatement struct {
	number  int            // from 1: its place in the schedule, and the version key that it assigns
	step    *schedule.Step // as it was in the schedule
	role    role
	text    string // to be sent, as instrumented
	hidden  int    // columns to take off what it returns
	level   string // that its transaction runs at
	begun   bool   // its transaction is an explicit one
	tx      int    // its transaction in the schedule; -1: none
	target  *table // of a write
	tables  []*table
	sources []*table // of tables: those from which actions of foreign keys may have changed what it reads
	locking bool
	// constraint names what relates it to other writes besides rows, see Node.Constraint.
	constraint []string
	counter    bool // an INSERT into a table that counts its rows by itself
	defines    bool // it changes definitions
}

func (s *plannedStatement) name() string { return "S" + strconv.Itoa(s.number) }

// plan is a test case: statements in the order in which they are to be done.
type plan struct {
	dbms       dbms
	setup      []string
	sessions   []schedule.Session
	steps      []schedule.Step // of the schedule
	tables     []table
	statements []*plannedStatement
	notes      []string
	untouched  bool     // the tables have no columns of ours
	removed    bool     // statements of the schedule are not in it
	declined   bool     // one of them is a write: the case is another one than the schedule
	acts       bool     // statements may have set off actions of foreign keys
	acted      []*table // whose rows such actions change
	doubt      string   // why a difference may have come from what the server chooses; empty: it did not
	late       bool     // the instrumented database is without the constraints that are checked at the end of a transaction
}

var (
	// implicit finds tables that a statement reads or writes though its text does not tell, and those that are not there each time.
	implicit = regexp.MustCompile(`(?i)\b(?:INHERITS|TEMPORARY|TEMP)\b`)
	// stirring finds definitions by which a statement writes rows that its text does not tell.
	stirring = regexp.MustCompile(`(?i)\b(?:TRIGGER|RULE)\b`)
	// altering finds definitions that leave all tables there, unless they rename one, and not something inside of it.
	altering = regexp.MustCompile(`(?i)^\s*(?:alter\s+table|truncate|(?:create|drop)\s+(?:unique\s+)?index)\b`)
	renaming = regexp.MustCompile(`(?i)\brename\b`)
	inside   = regexp.MustCompile(`(?i)\brename\s+(?:column|index|key|constraint)\b`)
	// unchecked finds sessions whose writes neither look for the row that they refer to nor lock it.
	unchecked = regexp.MustCompile(`(?i)\bset\b.*\bforeign_key_checks\b`)
	acting    = regexp.MustCompile(`(?i)\bON\s+(?:DELETE|UPDATE)\s+(?:CASCADE|SET)\b`)
	touched   = regexp.MustCompile(`(?i)\bON\s+UPDATE\s+(?:CURRENT_TIMESTAMP|NOW|LOCALTIME)`)
	counting  = regexp.MustCompile(`(?i)\b(?:AUTO_INCREMENT|AUTO_RANDOM|(?:SMALL|BIG)?SERIAL[248]?|IDENTITY|NEXTVAL|NEXT\s+VALUE)\b`)
	relating  = regexp.MustCompile(`(?i)\b(?:UNIQUE|PRIMARY\s+KEY|EXCLUDE|SERIAL)\b`)
	foreign   = regexp.MustCompile(`(?i)\bREFERENCES\b`)
)

// newPlan makes the test case of a schedule. why says what makes it impossible.
func newPlan(s *schedule.Schedule, p dbms) (c *plan, why string) {
	c = &plan{dbms: p, setup: s.Setup, sessions: s.Sessions, steps: s.Steps, tables: tablesOf(&p, s.Final)}
	setup := strings.Join(s.Setup, ";\n")
	if m := s.Varies(); m != "" {
		return nil, "the setup makes another database each time: " + m
	}
	if why := s.Untransacted(); why != "" {
		return nil, why
	}
	for i := 1; i < len(s.Steps); i++ {
		if a, b := &s.Steps[i-1], &s.Steps[i]; a.Sent == b.Sent && a.Session == b.Session {
			return nil, b.Name + " holds several statements"
		}
	}
	if m := implicit.FindString(setup); m != "" {
		return nil, "the database has a definition (" + m + ") by which statements read or write more than their text tells"
	}
	switch m := stirring.FindString(setup); {
	case m != "":
		c.doubt = "the database has a definition (" + m + ") by which statements read or write more than their text tells"
	case s.Says(unchecked) && referring.MatchString(setup):
		c.doubt = "a session has the checks of foreign keys off, and what it writes does not keep others from removing what it refers to"
	default:
		c.doubt = replaced(s)
	}
	c.acts = acting.MatchString(dormant(setup, c.tables, s.Steps))
	c.late = s.Postpones()
	if p.family && touched.MatchString(setup) {
		return nil, "the database has columns that are set ON UPDATE"
	}
	for i := range c.tables {
		if slices.ContainsFunc(c.tables[i].columns, hiddenColumn) {
			return nil, "the table " + c.tables[i].name + " has columns with the names of the added ones"
		}
	}
	transactions := s.Transactions()
	of := schedule.Places(transactions, len(s.Steps))
	gone := map[int]bool{} // transactions whose remaining statements have nothing to run in
	for i := range s.Steps {
		st := &s.Steps[i]
		x := &plannedStatement{number: i + 1, step: st, text: st.Statement.Text, tx: of[i], level: s.Level}
		if x.tx >= 0 {
			t := &transactions[x.tx]
			x.level, x.begun = t.Level, t.Explicit
			if gone[x.tx] && st.Statement.Control.Verb != statement.ControlCommit && st.Statement.Control.Verb != statement.ControlRollback {
				continue
			}
		}
		if st.Effect == answer.EffectGone {
			return nil, "a connection ended"
		}
		switch st.Reason {
		case answer.ReasonDeadlock, answer.ReasonKilled:
			c.removed = true
			if st.Effect == answer.EffectStatement {
				continue
			}
			gone[x.tx] = true
			x.role, x.text = control, "ROLLBACK" // as the server did, so that its locks are let go here
			c.statements = append(c.statements, x)
			continue
		case answer.ReasonLockTimeout, answer.ReasonNoWait, answer.ReasonCancelled:
			c.remove(x, "it failed since another transaction held a lock")
			continue
		}
		if why := c.classify(x, setup, transactions); why != "" {
			return nil, why
		}
	}
	return c, ""
}

// replaced says that it is the server's choice whether foreign keys act (product.ReplaceUpdates); empty: it is not.
func replaced(s *schedule.Schedule) string {
	if s.DBMS().ReplaceUpdates && acting.MatchString(strings.Join(s.Setup, ";\n")) && slices.ContainsFunc(s.Steps, func(st schedule.Step) bool { return st.Statement.Verb == "replace" }) {
		return "the server may perform REPLACE as an update, by which foreign keys do not act"
	}
	return ""
}

// bare is the case of a schedule that cannot be instrumented: its tables stay as they are, and only the schedule itself is
// compared.
func bare(s *schedule.Schedule, p dbms) *plan {
	return &plan{dbms: p, sessions: s.Sessions, tables: tablesOf(&p, s.Final), untouched: true}
}

// remove notes that a statement is not part of the test case.
func (c *plan) remove(x *plannedStatement, why string) {
	c.removed = true
	c.declined = c.declined || x.role == write
	c.notes = append(c.notes, x.step.Name+" is not part of the test case: "+why)
}

// classify finds the role of a statement, instruments it, and takes it into the case. why says what makes the whole case
// impossible.
func (c *plan) classify(x *plannedStatement, setup string, transactions []schedule.Transaction) (why string) {
	st := &x.step.Statement
	switch {
	case !x.begun && schedule.Upkeep(c.setup, st):
		c.remove(x, "it changes neither rows nor columns nor constraints")
		return ""
	case st.DDL && x.begun:
		return x.step.Name + " changes definitions within a transaction"
	case st.DDL && (!altering.MatchString(st.Text) || renaming.MatchString(st.Text) && !inside.MatchString(st.Text)):
		return x.step.Name + " changes which tables there are"
	case st.DDL:
		c.define(x)
		return ""
	case schedule.SetsRetry(c.dbms.Product, st):
		x.role = setting
		c.statements = append(c.statements, x)
		return ""
	case st.Control.Verb == statement.ControlLocks || st.Control.Verb == statement.ControlReset || st.Control.Verb == statement.ControlDatabase:
		return x.step.Name + " changes the session in a way that is not followed"
	case st.Control.Verb != statement.ControlNone, schedule.SetsAccess(c.dbms.Product, st):
		if st.Control.Verb == statement.ControlLevel && st.Control.Scope == statement.ScopeSession && !c.dbms.family {
			x.role = control
		}
		c.statements = append(c.statements, x)
		return ""
	case st.Verb == "set":
		x.role = setting
		c.statements = append(c.statements, x)
		return ""
	case st.Verb == "select":
		x.role = read
	case st.Verb == "insert", st.Verb == "update", st.Verb == "delete", st.Verb == "replace":
		x.role = write
	case st.Verb != "" && x.step.Before.InTransaction() && !x.step.After.InTransaction() && !x.step.Failed(): // PREPARE TRANSACTION, XA PREPARE
		return x.step.Name + " ends its transaction in a way that is not followed"
	default:
		x.role = write // it may be one
		c.remove(x, "statements of its kind ("+st.Verb+") are not instrumented")
		return ""
	}
	if st.Unparsed {
		x.role = write // it may be one
		c.remove(x, "it is not understood")
		return ""
	}
	for _, u := range st.Tables {
		if u.Kind != statement.SourceTable {
			continue
		}
		t := c.table(u)
		if t == nil {
			c.remove(x, "it names "+u.Name+", which is no table of the case")
			return ""
		}
		if u.Target {
			x.target = t
		}
		if (u.Read || u.Target) && !slices.Contains(x.tables, t) {
			x.tables = append(x.tables, t)
		}
	}
	x.locking = locks(st)
	if other := c.dbms.halfDone(x.step, x.level, c.steps); other != "" {
		c.remove(x, "it can see what "+other+" had done before it waited")
		return ""
	}
	if x.role == read {
		if why := unfit(&c.dbms, st); why != "" {
			c.remove(x, why)
			return ""
		}
		c.statements = append(c.statements, x)
		return ""
	}
	if c.dbms.Optimistic(x.level, x.begun) && relating.MatchString(setup) && (st.Ignore || st.Verb == "replace" || st.Insert != nil && st.Insert.Conflict) {
		c.remove(x, "an optimistic transaction looks for rows with its keys in its snapshot")
		return ""
	}
	c.relate(x, setup)
	if x.constraint != nil && slices.ContainsFunc(transactions, func(t schedule.Transaction) bool { return c.pends(&t, x) }) {
		c.remove(x, "it looks at keys that an open optimistic transaction writes when it commits")
		return ""
	}
	in := instrument(&c.dbms, st, x.target, x.number)
	if in.why != "" {
		c.remove(x, in.why)
		return ""
	}
	x.text, x.hidden = in.text, in.hidden
	c.statements = append(c.statements, x)
	return ""
}

// define takes a statement into the case that changes definitions, alone in its transaction. All others keep their place around it, and a difference is doubtful: what
// becomes of the rows, the added reads do not tell.
func (c *plan) define(x *plannedStatement) {
	x.role, x.defines = setting, true
	c.doubt = x.step.Name + " changes definitions"
	for i := range c.tables { // TRUNCATE deletes rows without a version
		if strings.Contains(x.text, c.tables[i].name) {
			c.acted = append(c.acted, &c.tables[i])
		}
	}
	c.statements = append(c.statements, x)
}

// pends reports whether a transaction other than a statement's has written by the time of the statement and lets nobody see it before its COMMIT,
// which comes later: it is optimistic, and holds no locks (TiDB docs, TiDB Optimistic Transaction Model). So the order of the statements
// is not that in which a constraint relates them.
func (c *plan) pends(t *schedule.Transaction, x *plannedStatement) bool {
	return t.Session != x.step.Session && c.dbms.Optimistic(t.Level, t.Explicit) && t.End > x.step.Sent && slices.ContainsFunc(t.Steps, func(i int) bool {
		st := &c.steps[i]
		return st.Sent < x.step.Sent && st.Answer.Err == nil && slices.ContainsFunc(st.Statement.Targets(), func(u statement.TableUse) bool {
			other := c.table(u)
			return other == nil || other == x.target || slices.Contains(x.constraint, foreignKeys)
		})
	})
}

// locks reports whether a statement asks for locks on what it reads.
func locks(st *statement.Statement) bool {
	return st.Locking.Lock != statement.LockNone || slices.ContainsFunc(st.Tables, func(u statement.TableUse) bool { return u.Lock != statement.LockNone })
}

// halfDone names a write of another session that waited while a statement read what is not committed: which rows it had come to by then
// depends on the plan, and the added columns may change that.
func (p *dbms) halfDone(st *schedule.Step, level string, steps []schedule.Step) string {
	d := &st.Statement
	if !p.dirty || level != product.ReadUncommitted || !(d.Verb == "select" && !locks(d) || d.HasSubquery || d.Insert != nil && d.Insert.Select != "") {
		return ""
	}
	for i := range steps {
		o := &steps[i]
		if o.Session != st.Session && o.Waited && o.Sent < st.Done && o.Done > st.Sent && len(o.Statement.Targets()) > 0 {
			return o.Name
		}
	}
	return ""
}

// table finds the table that a mention names.
func (c *plan) table(u statement.TableUse) *table {
	for i := range c.tables {
		t := &c.tables[i]
		name := u.Name
		if strings.Contains(t.name, ".") && u.Schema != "" {
			name = u.Schema + "." + u.Name
		}
		if c.dbms.SameTable(t.name, name) {
			return t
		}
	}
	return nil
}

// foreignKeys is what foreign keys relate writes by.
const foreignKeys = "foreign keys"

// relate finds the constraints that a write may meet: keys, foreign keys and counters, by the setup's text. It errs on the side
// of yes, which costs an edge too many.
func (c *plan) relate(x *plannedStatement, setup string) {
	st := &x.step.Statement
	if foreign.MatchString(setup) {
		x.constraint = append(x.constraint, foreignKeys)
	}
	inserts := st.Verb == "insert" || st.Verb == "replace"
	if relating.MatchString(setup) && (inserts || st.Verb == "delete" || slices.ContainsFunc(st.Assignments, func(a statement.Assignment) bool {
		return schedule.KeyColumn(setup, a.Column)
	})) {
		x.constraint = append(x.constraint, "keys of "+x.target.name)
	}
	// An UPDATE may bring the counter ahead (MySQL manual, 17.6.1.6).
	moves := c.dbms.family && st.Verb == "update" && slices.ContainsFunc(st.Assignments, func(a statement.Assignment) bool { return schedule.KeyColumn(setup, a.Column) })
	if x.counter = (inserts || moves) && counting.MatchString(setup); x.counter {
		x.constraint = append(x.constraint, "counter of "+x.target.name)
	}
}

// replaces reports whether a statement may leave a row as it is that it finds: with columns of ours REPLACE and ON DUPLICATE KEY
// UPDATE change it (MySQL family), so that rows are written, and others wait, which otherwise would not.
func (c *plan) replaces(s *schedule.Schedule) bool {
	return c.dbms.family && slices.ContainsFunc(s.Steps, func(x schedule.Step) bool {
		return x.Statement.Verb == "replace" || x.Statement.Insert != nil && x.Statement.Insert.Conflict
	})
}

// selects reports whether a statement inserts what it reads.
func (c *plan) selects() bool {
	return slices.ContainsFunc(c.statements, func(x *plannedStatement) bool {
		return x.step.Statement.Insert != nil && x.step.Statement.Insert.Select != ""
	})
}

// without gives the case without some statements.
func (c *plan) without(numbers ...int) *plan {
	out := *c
	out.statements, out.removed = nil, true
	for _, x := range c.statements {
		if slices.Contains(numbers, x.number) {
			out.declined = out.declined || x.role == write
			continue
		}
		out.statements = append(out.statements, x)
	}
	return &out
}

// serial reports whether reads of a level take locks, so that they see what is newest.
func serial(x *plannedStatement) bool { return x.level == product.Serializable && x.begun }
