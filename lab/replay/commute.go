package replay

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"wirecheck/backends/engine"
	"wirecheck/product"
	"wirecheck/statement"
)

// Statements of which neither can tell whether the other one came first are with the server at the same time: BEGIN and anything, two plain reads, and a plain
// read and a write of a transaction that has not committed. These reads neither lock nor see what is not committed (PostgreSQL manual, 13.2; MySQL manual,
// 17.7.2.3), so this holds at READ COMMITTED and above, below SERIALIZABLE, and for tables that know transactions.

// role is what a step can do to others that are with the server.
type role int

const (
	anything role = iota
	begin
	plainRead
	openWrite // in a transaction that stays open
)

// commute reports whether the steps of two sessions bring the same whichever comes first.
func (k *pacer) commute(x, y *Step) bool {
	one, other := k.role(x), k.role(y)
	switch {
	case one == begin || other == begin:
		return true
	case one == plainRead && other == plainRead:
		return true
	}
	return k.versions && (one == plainRead && other == openWrite || one == openWrite && other == plainRead)
}

func (k *pacer) role(s *Step) role {
	m := k.sessions[s.Session]
	if m == nil || m.odd || s.Statement == nil || s.Skip != "" || s.standIn != "" || len(s.form) != 1 || !snapshots(k.config.level(s)) {
		return anything
	}
	v := &s.form[0]
	switch {
	case v.Control.Verb == statement.ControlBegin && !m.open && !v.Begin.Snapshot && k.config.Backend.Product.SnapshotAt != product.AtBegin:
		return begin
	case s.plain() && v.Volatile == "":
		return plainRead
	case (v.Verb == "insert" || v.Verb == "update" || v.Verb == "delete") && m.open && !s.ends:
		return openWrite
	}
	return anything
}

// snapshots reports whether plain reads at a level neither lock nor see what is not committed.
func snapshots(level string) bool {
	return level == product.ReadCommitted || level == product.RepeatableRead || level == product.Snapshot
}

// follows notes what a session does that makes it another one than its trace's first record says: another level, locks of tables, what is not understood.
func (m *session) follows(s *Step) {
	for i := range s.form {
		c := &s.form[i].Control
		m.odd = m.odd || s.form[i].Unparsed || c.Level != "" && !snapshots(c.Level) || c.Verb == statement.ControlReset || c.Verb == statement.ControlLocks
	}
}

// otherLevel is a setting of a level at which plain reads lock, or see what is not committed.
var otherLevel = regexp.MustCompile(`(?i)serializable|uncommitted`)

// otherEngine is a definition that may make a table which knows no transactions.
var otherEngine = regexp.MustCompile(`(?i)\bengine\b`)

// knowsVersions reports whether all tables of a server know transactions. Only one order asks for it.
func knowsVersions(ctx context.Context, c *Config) (all bool, err error) {
	if c.Order != OrderCommit {
		return false, nil
	}
	if c.Backend.Protocol != engine.ProtocolMySQL {
		return true, nil
	}
	conn, err := c.Backend.Connect(ctx, c.Side)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	rows, err := engine.Query(ctx, conn, "SELECT DISTINCT table_schema FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND engine <> 'InnoDB'")
	if err != nil {
		return false, err
	}
	for _, row := range rows {
		if !c.Backend.System(strings.ToLower(string(row[0]))) {
			return false, nil
		}
	}
	return true, nil
}
