package mysqlwire

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"wirecheck/history"
	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
)

// What a session must know of itself and of the tables, and how it keeps it up. Our own statements change what
// ROW_COUNT(), FOUND_ROWS() and SHOW WARNINGS say (rewrite/mysql, log.go), so they run only in front of a statement of
// the client's that sets these anew; FOUND_ROWS(), which COMMIT for one leaves alone, is put back when it is asked for.

// ask reads the session's settings from the server.
func (s *session) ask() error {
	s.asked, s.blind = true, true
	database, refused, err := s.ownRows("SELECT DATABASE()")
	if err != nil {
		return err
	}
	if refused == nil && len(database) == 1 && len(database[0]) == 1 {
		s.env.Database = database[0][0]
	}
	rows, refused, err := s.ownRows(dialect.SessionQuery())
	if err != nil {
		return err
	}
	if refused != nil { // for instance 1820: the password must be changed first
		s.asked = false
		s.ps.Log.Warn().Str("error", refused.message).Msg("the session's settings cannot be read")
		return nil
	}
	if s.facts, err = dialect.DecodeSession(rows); err != nil {
		s.ps.Log.Warn().Err(err).Msg("the session's settings are not understood")
		return nil
	}
	s.blind = false
	s.snapshot = s.facts.Snapshot
	s.env.Mode, s.env.GroupConcat = s.facts.Session.Mode, s.facts.Session.GroupConcat
	s.autocommit = s.facts.Autocommit
	s.level = s.facts.Level
	s.tracker.SetLevel(s.level)
	return nil
}

// readCatalog reads the tables if nobody has done so since they were last changed. If that is not possible the session
// goes on with what it had.
func (s *session) readCatalog() error {
	c, fresh, changes := s.observer.catalog(s.user)
	if fresh {
		s.catalog = c
		return nil
	}
	// A LIMIT of its own, as the client may have set sql_select_limit: half a catalog would be wrong.
	rows, refused, err := s.ownRows(dialect.CatalogQuery() + " LIMIT 18446744073709551615")
	if err != nil {
		return err
	}
	if refused != nil {
		s.ps.Log.Warn().Str("error", refused.message).Msg("the tables cannot be read")
		return nil
	}
	if c, err = dialect.LoadCatalog(rows); err != nil {
		s.ps.Log.Warn().Err(err).Msg("the tables are not understood")
		return nil
	}
	s.observer.keep(s.user, c, changes)
	s.catalog = c
	return nil
}

// resetDiagnostics makes FOUND_ROWS() and ROW_COUNT() say what they say on a new connection.
func (s *session) resetDiagnostics() error {
	if _, _, err := s.ownRows("SELECT 1 FROM DUAL WHERE FALSE"); err != nil {
		return err
	}
	_, refused, err := s.ownRows(dialect.NewLog())
	s.hasLog = err == nil && refused == nil
	return err
}

// refresh brings settings and tables up to date before the statements of script, if that is needed for them and cannot
// be noticed. It reports whether something is new.
func (s *session) refresh(script *rewrite.Script) (bool, error) {
	reads, begins := false, false
	for _, p := range script.Plans {
		if p.Diagnostics {
			return false, nil
		}
		reads = reads || p.Coverage != history.CoverageNone
		begins = begins || p.Control.Verb == rewrite.ControlBegin
	}
	did := false
	if s.blind && s.asked && (reads || begins) {
		if err := s.saveFoundRows(); err != nil {
			return false, err
		}
		if err := s.ask(); err != nil {
			return false, err
		}
		did = true
	}
	if _, fresh, _ := s.observer.catalog(s.user); fresh {
		c, _, _ := s.observer.catalog(s.user)
		did = did || c != s.catalog
		s.catalog = c
	} else if reads && s.idle() && !s.blind {
		if err := s.saveFoundRows(); err != nil {
			return false, err
		}
		if err := s.readCatalog(); err != nil {
			return false, err
		}
		did = true
	}
	return did, nil
}

// saveFoundRows keeps what FOUND_ROWS() says before a statement of ours changes it.
func (s *session) saveFoundRows() error {
	s.foundNow = math.MaxUint64
	if s.found != nil {
		return nil
	}
	rows, refused, err := s.ownRows("SELECT FOUND_ROWS()")
	if err != nil || refused != nil || len(rows) != 1 || len(rows[0]) != 1 {
		return err
	}
	s.keepFoundRows(rows[0][0])
	return nil
}

// keepFoundRows keeps the answer to FOUND_ROWS(). What is no number cannot be put back.
func (s *session) keepFoundRows(text string) {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		s.found = &n
	}
}

// foundRowsMax bounds the answer of ours with which FOUND_ROWS() is put back.
const foundRowsMax = 100_000

var foundRows = regexp.MustCompile(`(?i)FOUND_ROWS`)

// restoreFoundRows puts FOUND_ROWS() back before a statement that asks for it: by a query with that many rows. Where
// ROW_COUNT() was 0, as after COMMIT, it is put back too; a statement that asks for both after another change of rows
// gets -1 for it.
func (s *session) restoreFoundRows(script *rewrite.Script) error {
	if s.found == nil || *s.found > foundRowsMax || *s.found == s.foundNow || !asksFoundRows(script) {
		return nil
	}
	n := *s.found
	s.found = nil
	if _, _, err := s.ownRows(rowsQuery(n)); err != nil || s.changedRows != 0 {
		return err
	}
	_, _, err := s.ownRows("SET @wc_log=@wc_log")
	return err
}

func asksFoundRows(script *rewrite.Script) bool {
	return slices.ContainsFunc(script.Plans, func(p *rewrite.Plan) bool { return p.Diagnostics && foundRows.MatchString(p.Text) })
}

// rowsQuery is a query that answers n rows.
func rowsQuery(n uint64) string {
	digits := "(SELECT 0" + strings.Repeat(" UNION ALL SELECT 0", 9) + ")"
	from := digits + " d0"
	for i, size := 1, uint64(10); size < n; i, size = i+1, size*10 {
		from += "," + digits + " d" + strconv.Itoa(i)
	}
	return "SELECT 1 FROM " + from + " LIMIT " + utoa(n)
}

// follow keeps the session's settings up after a statement that succeeded.
func (s *session) follow(p *rewrite.Plan) {
	switch c := p.Control; c.Verb {
	case rewrite.ControlLevel:
		switch c.Scope {
		case rewrite.ScopeSession:
			s.level = c.Level
		case rewrite.ScopeNext:
			s.once = c.Level
		}
	case rewrite.ControlReset:
		s.blind, s.asked, s.stampedApart = true, true, true
	case rewrite.ControlAutocommit:
		s.autocommit = c.On
	case rewrite.ControlDatabase:
		s.env.Database = c.Name
	case rewrite.ControlSavepoint, rewrite.ControlRollbackTo:
		s.stampedApart = true
	}
	if p.Temporary != "" {
		s.env = s.env.WithTemporary(p.Temporary)
	}
	if p.Schema {
		s.observer.changed()
	}
	switch in := s.inTransaction(); {
	case in && s.inside == "":
		s.inside = s.level
		if s.once != "" {
			s.inside, s.once = s.once, ""
		}
	case !in:
		s.inside = ""
		if p.Control.Verb != rewrite.ControlLevel && p.Coverage != history.CoverageNone {
			s.once = ""
		}
	}
}

// current is what the rewriting of the next statement depends on.
func (s *session) current() dialect.Session {
	e := s.env
	const serializable = "serializable"
	e.LockingReads = s.inTransaction() && s.inside == serializable ||
		!s.autocommit && (s.level == serializable || s.once == serializable)
	return e
}

// named corrects the level that a statement names: with innodb_snapshot_isolation REPEATABLE READ is another one.
func (s *session) named(p *rewrite.Plan) *rewrite.Plan {
	if s.onTiDB() {
		return s.namedOnTiDB(p)
	}
	if !s.snapshot || p.Control.Level != "repeatable read" {
		return p
	}
	q := *p
	q.Control.Level = "snapshot"
	return &q
}

func (s *session) aborts(code uint16) bool {
	if s.observer.Aborts != nil {
		return s.observer.Aborts(s.greeting.flavor(), code)
	}
	return AbortsByDefault(s.greeting.flavor(), code)
}
