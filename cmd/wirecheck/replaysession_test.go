package main

import (
	"encoding/json"
	"testing"

	"wirecheck/internal/testserver"
	"wirecheck/lab/explore"
)

// orders runs wirecheck replay --interleavings all, and gives how many interleavings there were, and how many go wrong.
func orders(t *testing.T, want exitStatus, path, engine, snapshot string, args ...string) (all, wrong int) {
	t.Helper()
	out, said, status := command(t, append([]string{"replay", path, "--engine", engine, "--snapshot", snapshot, "--oracle", "none", "--interleavings", "all", "--format", "json", "--log-level", "warn"}, args...)...)
	var r struct{ Explored explore.Explored }
	if err := json.Unmarshal([]byte(out), &r); err != nil || status != want || r.Explored.Interleavings == 0 {
		t.Fatalf("%q: exit status %d, want %d: %v\n%s%s", args, status, want, err, out, said)
	}
	return r.Explored.Interleavings, r.Explored.Wrong
}

// TestReplaySessionSQL: what --session-sql says holds in the interleavings, too, and one that changes nothing of what statements lock does not change which
// interleavings there are.
func TestReplaySessionSQL(t *testing.T) {
	t.Parallel()
	buy := func(id string) []string {
		return transaction("buy", "SELECT id, stock FROM product WHERE id = "+id, "UPDATE product SET stock = 4 WHERE id = "+id)
	}
	schema := file(t, productSchema)
	for name, of := range map[string]struct {
		path, engine  string
		plain, strict string // a setting that changes nothing, and one with which no update is lost
	}{
		"mariadb":  {loggedTrace(t, serially(buy("1"), buy("1"))...), serverURL(testserver.MariaDB(t)), "SET NAMES utf8mb4", "SET SESSION innodb_snapshot_isolation = ON"},
		"postgres": {loggedPostgres(t, serially(buy("1"), buy("1"))...), serverURL(testserver.Postgres(t)), "SET timezone = 'UTC'", "SET default_transaction_isolation = 'repeatable read'"},
	} {
		all, wrong := orders(t, exitFound, of.path, of.engine, schema)
		if n, w := orders(t, exitFound, of.path, of.engine, schema, "--session-sql", of.plain); n != all || w != wrong || wrong == 0 {
			t.Errorf("%s: %d of %d wrong, with %q %d of %d", name, wrong, all, of.plain, w, n)
		}
		if n, w := orders(t, exitClean, of.path, of.engine, schema, "--session-sql", of.strict); n != all || w != 0 {
			t.Errorf("%s: with %q %d of %d wrong, of %d without", name, of.strict, w, n, all)
		}
	}
}
