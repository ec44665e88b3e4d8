package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"

	"wirecheck/backends/engine"
)

// tell makes the server send what it logs to the client too, and asks whether it logs lock waits and looks for deadlocks soon
// (PostgreSQL manual, 19.8, log_lock_waits and client_min_messages; 19.12, deadlock_timeout). The log line about a wait is
// written by the waiting process right after it has looked for a deadlock (ProcSleep, src/backend/storage/lmgr/proc.c).
const tell = "SET client_min_messages = log; " +
	"SELECT current_setting('log_lock_waits') = 'on' AND current_setting('deadlock_timeout')::interval <= '100 ms'"

// Tell implements engine.Checker.
func (c *conn) Tell(ctx context.Context) (bool, error) {
	rows, err := engine.Query(ctx, c, tell)
	if err != nil {
		return false, err
	}
	return len(rows) == 1 && string(rows[0][0]) == "t", nil
}

// Checked implements engine.Checker.
func (c *conn) Checked() bool { return c.checked.Load() }

// logged takes a line of the server's log, which the scenario did not ask for. Lines about lock waits say how it stands with the
// present wait: a lock that was granted may be followed by the next one.
func (c *conn) logged(msg pgproto3.BackendMessage) bool {
	n, ok := msg.(*pgproto3.NoticeResponse)
	if !ok || n.SeverityUnlocalized != "LOG" {
		return false
	}
	if n.Routine == "ProcSleep" {
		c.checked.Store(strings.Contains(n.Message, " still waiting for "))
	}
	return true
}
