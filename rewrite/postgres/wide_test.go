package postgres_test

import (
	"strings"
	"testing"

	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
)

// TestWide adds nothing to a list that has as many entries as a server takes, wherever it stands.
func TestWide(t *testing.T) {
	conn, c, _ := setUp(t)
	list := "balance AS c0" + strings.Repeat(", balance", 1663)
	for _, sql := range []string{
		"SELECT " + list + " FROM account",
		"SELECT q.c0 FROM (SELECT " + list + " FROM account) q",
		"WITH q AS (SELECT " + list + " FROM account) SELECT q.c0 FROM q",
		"SELECT (SELECT q.c0 FROM (SELECT " + list + " FROM account) q LIMIT 1) FROM orders",
		"SELECT count(*) FROM (SELECT " + list + " FROM account) q",
		"UPDATE account SET balance = 1 RETURNING " + list,
	} {
		sc := postgres.New(rewrite.CaptureAuto).Script(sql, c, postgres.Session{})
		if err := conn.Exec(t.Context(), sc.SQL).Close(); err != nil {
			t.Errorf("%.60s...: %v", sql, err)
		}
	}
}
