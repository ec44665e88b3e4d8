package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wirecheck/internal/testserver"
)

// TestReplayQueries replays an application's log for the oracles of single queries: on its own schema, with its own queries, alone and
// inside a transaction. MySQL gives a row less if the column has an index (MySQL#110125); MariaDB does not.
func TestReplayQueries(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := map[string]string{
		"dump.sql": "CREATE TABLE price (amount DOUBLE ZEROFILL, n INT UNSIGNED NOT NULL);\nCREATE INDEX i ON price (amount);\nINSERT INTO price VALUES (0, 5);\n",
		"general.log": `/usr/sbin/mysqld, Version: 8.0.36 (MySQL Community Server - GPL). started with:
Tcp port: 3306  Unix socket: /var/run/mysqld/mysqld.sock
Time                 Id Command    Argument
2024-05-01T10:00:00.000001Z	    8 Connect	app@localhost on shop using TCP/IP
2024-05-01T10:00:00.100001Z	    8 Query	SELECT amount FROM price WHERE (IFNULL(-1, '')) IN (amount)
2024-05-01T10:00:00.200001Z	    8 Query	SELECT n FROM price WHERE n > 3
2024-05-01T10:00:00.300001Z	    8 Query	BEGIN
2024-05-01T10:00:00.400001Z	    8 Query	UPDATE price SET n = n + 1
2024-05-01T10:00:00.500001Z	    8 Query	SELECT amount FROM price WHERE (IFNULL(-1, '')) IN (amount)
2024-05-01T10:00:00.600001Z	    8 Query	COMMIT
2024-05-01T10:00:00.700001Z	    8 Quit	
`}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "shop.wct")
	if out, said, status := command(t, "trace", "import", filepath.Join(dir, "general.log"), "-o", path); status != exitClean {
		t.Fatalf("import: status %d\n%s%s", status, out, said)
	}
	for _, name := range testserver.Engines() {
		want := map[string]exitStatus{"mariadb": exitClean, "mysql": exitFound}
		status, ok := want[name]
		if !ok {
			continue
		}
		r := replayed(t, status, path, "--snapshot", filepath.Join(dir, "dump.sql"), "--engine", name, "--oracle", "radar,tlp,norec,dqe")
		if r.Explored == nil || r.Explored.Groups != 3 {
			t.Fatalf("%s: combinations: %+v, want each of the three transactions", name, r.Explored)
		}
		if status == exitClean {
			continue
		}
		var alone, inside int
		for _, a := range r.Explored.Anomalies {
			if strings.Contains(a.Spec, "BEGIN") {
				inside++
			} else {
				alone++
			}
			path := filepath.Join(t.TempDir(), "case.spec")
			if err := os.WriteFile(path, []byte(a.Spec), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, said, status := command(t, "run", path, "--engine", name, "--log-level", "error"); status != exitFound {
				t.Errorf("%s: run of the printed scenario: status %d\n%s%s", name, status, out, said)
			}
		}
		if alone != 1 || inside != 1 {
			t.Errorf("%s: found %d alone and %d in a transaction, want one each: %+v", name, alone, inside, r.Explored.Anomalies)
		}
	}
}
