package mysqlwire

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"wirecheck/history"
	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
	"wirecheck/statement"
)

// settings is what a session's statements depend on besides their text. The session reads it from the server at the login
// and follows it from then on.
type settings struct {
	state  settingsState
	flavor dialect.Flavor
	env    dialect.Session // of the next statement
	// generation says how much is wanted of what statements write (dialect.Rewriter.Generation).
	generation func() uint64
	past       bool   // a transaction of the session read from the past (AS OF TIMESTAMP)
	packet     int    // what is as long, or longer, the server does not take
	opaque     bool   // there are too many temporary tables to know which names they hide
	snapshot   bool   // REPEATABLE READ is snapshot isolation here (innodb_snapshot_isolation)
	status     uint16 // the server's latest status

	autocommit          bool
	locked              bool   // by LOCK TABLES
	level, once, inside string // of the session, of the next transaction only, of the open one
}

// settingsState says whether a session's settings are known. If they are not, nothing is rewritten.
type settingsState int

const (
	settingsKnown settingsState = iota
	settingsStale               // the server may be asked again
	settingsRefused
)

// temporaryMax bounds the names of a session's temporary tables, in bytes. They are part of the key of each cached plan.
const temporaryMax = 16 << 10

// inTransaction reports whether ending the session now would undo something.
func (s *settings) inTransaction() bool { return s.status&statusInTrans != 0 }

// take sets what the server said of the session.
func (s *settings) take(f dialect.Facts) {
	s.state = settingsKnown
	s.flavor, s.snapshot, s.packet = f.Flavor, f.Snapshot, f.Packet
	s.env.Mode, s.env.GroupConcat, s.env.UTF8, s.env.Cut, s.env.UTC, s.env.Past = f.Session.Mode, f.Session.GroupConcat, f.Session.UTF8, f.Session.Cut, f.Session.UTC, f.Session.Past || s.past
	s.env.Lax, s.autocommit, s.level = f.Session.Lax, f.Autocommit, f.Level
}

// follow keeps the settings up to date after a statement that succeeded.
func (s *settings) follow(p *rewrite.Plan) {
	switch c := p.Control; c.Verb {
	case statement.ControlLevel:
		switch c.Scope {
		case statement.ScopeSession:
			s.level = c.Level
		case statement.ScopeNext:
			s.once = c.Level
		}
	case statement.ControlReset:
		s.state, s.locked = settingsStale, false
	case statement.ControlLocks:
		s.locked = c.Ends
	case statement.ControlAutocommit:
		s.autocommit = c.On
	case statement.ControlDatabase:
		s.env.Database = c.Name
	}
	// SET TRANSACTION and START TRANSACTION READ ONLY AS OF TIMESTAMP (TiDB)
	if p.Verb == "set" || p.Verb == "begin" {
		text := strings.ToUpper(p.Text)
		s.past = s.past || strings.Contains(text, "TRANSACTION") && strings.Contains(text, "TIMESTAMP")
		s.env.Past = s.env.Past || s.past
	}
	if p.Temporary != "" && len(s.env.Temporary) < temporaryMax {
		s.env = s.env.WithTemporary(p.Temporary)
	} else if p.Temporary != "" {
		s.opaque = true
	}
	switch in := s.inTransaction(); {
	case in && s.inside == "":
		s.inside = s.level
		if s.once != "" {
			s.inside, s.once = s.once, ""
		}
	case !in:
		s.inside = ""
		if p.Control.Verb != statement.ControlLevel && p.Coverage != history.CoverageNone {
			s.once = ""
		}
	}
}

// current is what the rewriting of the next statement depends on.
func (s *settings) current() dialect.Session {
	e := s.env
	const serializable = "serializable"
	e.LockingReads = s.inTransaction() && s.inside == serializable ||
		!s.autocommit && (s.level == serializable || s.once == serializable)
	e.Once = s.locked || slices.Contains([]string{s.inside, s.once, s.level}, "read uncommitted")
	e.Fresh = !s.inTransaction() && s.autocommit || cmp.Or(s.inside, s.once, s.level) == "read committed"
	e.Wanted = s.generation()
	return e
}

// withLevel corrects the level that a statement names where the server gives another one: with innodb_snapshot_isolation
// REPEATABLE READ is snapshot isolation, and an optimistic transaction reads from a snapshot, whatever its level (TiDB
// docs, "Transaction Isolation Levels").
func (s *settings) withLevel(p *rewrite.Plan, optimistic bool) *rewrite.Plan {
	level := p.Control.Level
	switch {
	case !s.snapshot:
		return p
	case level == "repeatable read", optimistic && level == "read committed":
		level = "snapshot"
	case optimistic && p.Control.Verb == statement.ControlBegin && strings.Contains(strings.ToUpper(p.Text), "PESSIMISTIC"):
		level = "repeatable read"
	default:
		return p
	}
	q := *p
	q.Control.Level = level
	return &q
}

// ask reads the session's settings from the server.
func (o *observation) ask() error {
	o.settings.state = settingsStale
	o.counts.disturbed = true
	rows, refused, err := o.ownRows("SELECT DATABASE(),FOUND_ROWS() LIMIT 1") // sql_select_limit may be 0
	if err != nil {
		return err
	}
	if refused == nil && len(rows) == 1 && len(rows[0]) == 2 {
		o.settings.env.Database = rows[0][0]
		o.counts.keep(rows[0][1])
		o.counts.foundNow = math.MaxUint64
	}
	if rows, refused, err = askVariables(o); err != nil {
		return err
	}
	if refused != nil { // for instance 1820: the password must be changed first
		o.settings.state = settingsRefused
		o.ps.Log.Warn().Str("error", refused.Message).Msg("the session's settings cannot be read")
		return nil
	}
	var facts dialect.Facts
	if !o.tracker.guard(func() { facts, err = dialect.DecodeSession(rows) }) {
		return nil
	}
	if err != nil {
		o.ps.Log.Warn().Err(err).Msg("the session's settings are not understood")
		return nil
	}
	o.settings.take(facts)
	o.tracker.SetLevel(facts.Level)
	return nil
}

// askVariables asks for what DecodeSession reads. What variables the server has, the first session learns for all.
func askVariables(o *observation) (rows [][]string, refused *history.ServerError, err error) {
	if known := o.observer.variables.Load(); known != nil {
		rows, refused, err = o.ownRows(dialect.KnownQuery(*known))
		if err == nil && refused == nil && len(rows) == 1 && len(rows[0]) == len(*known) {
			return dialect.KnownRows(*known, rows), nil, nil
		}
		o.observer.variables.Store(nil) // it may be another server by now
		if err != nil {
			return nil, nil, err
		}
	}
	rows, refused, err = o.ownRows(dialect.SessionQuery())
	if err == nil && refused == nil && dialect.CutOff(rows) {
		rows, refused, err = o.ownRows(dialect.WholeSessionQuery(o.greeting.flavor()))
	}
	if names := dialect.Variables(o.greeting.flavor(), rows); err == nil && refused == nil && len(names) > 0 {
		o.observer.variables.Store(&names)
	}
	return rows, refused, err
}

// refresh brings settings and catalog up to date before the statements of script, where they need it and the client cannot
// notice it. It reports whether something is new. Our own statements change what ROW_COUNT(), FOUND_ROWS() and SHOW WARNINGS
// say (rewrite/mysql, log.go), so they run only in front of a client's statement that sets these itself.
func (o *observation) refresh(script *rewrite.Script) (bool, error) {
	if !o.tracker.observed() {
		return false, nil
	}
	reads, begins, defines := false, false, false
	for _, p := range script.Plans {
		if p.Diagnostics {
			return false, nil
		}
		reads = reads || p.Coverage != history.CoverageNone
		begins = begins || p.Control.Verb == statement.ControlBegin
		defines = defines || p.Schema
	}
	did := false
	stale := o.settings.state == settingsStale && (reads || begins)
	keep := func() error {
		if p := script.Plans[0]; o.traits.forgetsWarnings(p) && !call.MatchString(p.Text) { // it may be prepared only
			return nil
		}
		return o.warnings.keep(&o.link)
	}
	if stale {
		if err := keep(); err != nil {
			return false, err
		}
		if err := o.ask(); err != nil {
			return false, err
		}
		did = true
	}
	if c := o.observer.catalogs.get(o.user); c != nil && c != o.catalog {
		o.catalog, did = c, true
	}
	missing := script.Missing
	if begins && o.catalog != nil { // in the transaction it could not ask
		missing = o.catalog.Ask(missing)
	}
	if !reads && !begins && !defines {
		if o.catalog != nil {
			o.catalog.Want(missing)
		}
		return did, nil
	}
	if o.mayAsk() && (o.catalog == nil || len(missing) > 0) {
		if err := keep(); err != nil {
			return false, err
		}
	}
	learned, err := o.learnFor(missing)
	return did || learned, err
}
