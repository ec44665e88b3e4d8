package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wirecheck/internal/testserver"
)

// loggedTrace makes a trace of a general log of MySQL: each line is "session: statement", a thousandth of a second after the one before.
func loggedTrace(t *testing.T, lines ...string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("/usr/sbin/mysqld, Version: 8.0.36 (MySQL Community Server - GPL). started with:\nTcp port: 3306  Unix socket: /var/run/mysqld/mysqld.sock\nTime                 Id Command    Argument\n")
	seen := map[string]bool{}
	for i, line := range lines {
		session, sql, _ := strings.Cut(line, ": ")
		at := fmt.Sprintf("2024-05-01T10:00:%02d.%03d000Z", i/1000, i%1000)
		if !seen[session] {
			seen[session] = true
			fmt.Fprintf(&b, "%s\t    %s Connect\tapp@localhost on shop using TCP/IP\n", at, session)
		}
		fmt.Fprintf(&b, "%s\t    %s Query\t%s\n", at, session, sql)
	}
	dir := t.TempDir()
	log, path := filepath.Join(dir, "general.log"), filepath.Join(dir, "shop.wct")
	if err := os.WriteFile(log, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, said, status := command(t, "trace", "import", log, "-o", path); status != exitClean {
		t.Fatalf("import: status %d\n%s%s", status, out, said)
	}
	return path
}

// file writes a file of a test's own.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.sql")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestReplayLacks replays without the tables that the trace needs: nothing found means nothing, and the report says what is missing. BEGIN and COMMIT do not
// count for the statements that worked.
func TestReplayLacks(t *testing.T) {
	t.Parallel()
	server := testserver.MariaDB(t).Server.Target()
	url := fmt.Sprintf("mariadb://%s:%s@%s:%d", server.User, server.Password, server.Host, server.Port)
	use := []string{"8: BEGIN", "8: SELECT n FROM stock WHERE id = 1", "8: COMMIT", "8: BEGIN", "8: SELECT n FROM stock WHERE id = 2", "8: COMMIT"}
	create := "9: CREATE TABLE stock (id INT PRIMARY KEY, n INT)"
	snapshot := file(t, "CREATE TABLE stock (id INT PRIMARY KEY, n INT);\nINSERT INTO stock VALUES (1, 5), (2, 5);\n")
	for _, tt := range []struct {
		name  string
		lines []string
		args  []string
		want  exitStatus
		says  []string
		not   []string
	}{
		{"no snapshot", use, nil, exitUnknown, []string{"undecided: 2 of 2 statements failed", "missing in the database, for 2 statements:", ".stock' doesn't exist", "mysqldump --single-transaction", "2024-05-01 10:00:00 UTC"}, []string{"--infer-schema"}},
		{"no snapshot, nobody judges", use, []string{"--oracle", "none"}, exitUnknown, []string{"undecided: 2 of 2 statements failed"}, nil},
		{"near miss: a snapshot", use, []string{"--snapshot", snapshot}, exitClean, []string{"nothing found"}, []string{"missing", "undecided"}},
		{"near miss: one statement of many", append([]string{"8: SELECT n FROM gone"}, use...), []string{"--snapshot", snapshot}, exitClean, []string{"missing in the database, for 1 statement:"}, []string{"undecided"}},
		{"created too late", append(use[:len(use):len(use)], create), nil, exitUnknown, []string{"undecided: 2 of ", "--infer-schema executes"}, nil},
		{"inferred", append(use[:len(use):len(use)], create), []string{"--infer-schema"}, exitClean, []string{"not replayed: 1: --infer-schema has executed it before", "nothing found"}, []string{"missing", "undecided"}},
		{"not all can be inferred", append(use[:len(use):len(use)], create, "9: SELECT * FROM orders"), []string{"--infer-schema"}, exitFailed, []string{"none of its statements creates (orders)", "mysqldump"}, nil},
	} {
		out, said, status := command(t, append([]string{"replay", loggedTrace(t, tt.lines...), "--engine", url, "--log-level", "error"}, tt.args...)...)
		if status != tt.want {
			t.Errorf("%s: status %d, want %d\n%s%s", tt.name, status, tt.want, out, said)
		}
		for _, text := range tt.says {
			if !strings.Contains(out+said, text) {
				t.Errorf("%s: it does not say %q:\n%s%s", tt.name, text, out, said)
			}
		}
		for _, text := range tt.not {
			if strings.Contains(out+said, text) {
				t.Errorf("%s: it says %q:\n%s%s", tt.name, text, out, said)
			}
		}
	}
}

// slowPair are two transactions that are quick in the replay and do not end in a lab, and behind them a lost update that would have been.
func slowPair(t *testing.T) (trace, snapshot string) {
	const slow = "SLEEP(IF(DATABASE() = 'shop', 0, 600))"
	return loggedTrace(t, "8: BEGIN", "8: UPDATE slow SET n = n + "+slow+" WHERE id = 1", "8: COMMIT", "9: BEGIN", "9: UPDATE slow SET n = n + 1 WHERE id = 1", "9: COMMIT",
			"8: BEGIN", "8: SELECT n FROM stock WHERE id = 1", "8: UPDATE stock SET n = 4 WHERE id = 1", "8: COMMIT",
			"9: BEGIN", "9: SELECT n FROM stock WHERE id = 1", "9: UPDATE stock SET n = 3 WHERE id = 1", "9: COMMIT"),
		file(t, "CREATE TABLE stock (id INT PRIMARY KEY, n INT);\nCREATE TABLE slow (id INT PRIMARY KEY, n INT);\nINSERT INTO stock VALUES (1, 5);\nINSERT INTO slow VALUES (1, 5);\n")
}

// TestReplaySlowCombination: one combination that takes too long is counted, and the others run.
func TestReplaySlowCombination(t *testing.T) {
	t.Parallel()
	path, snapshot := slowPair(t)
	r := replayed(t, exitFound, path, "--snapshot", snapshot, "--engine", "mariadb", "--interleavings", "all", "--window", "2", "--limit", "3s", "--seed", "1")
	x := r.Explored
	if x.TooLong != 1 || len(x.Anomalies) != 1 || len(x.Anomalies[0].Tables) != 1 || x.Anomalies[0].Tables[0] != "stock" || len(x.Unjudged) != 1 {
		t.Errorf("got %+v, want the lost update, and one combination that took too long", x)
	}
}

// TestReplayInterrupted: what the replay found is printed before other orders run, and an interrupted one says how far it came.
func TestReplayInterrupted(t *testing.T) {
	t.Parallel()
	path, snapshot := slowPair(t)
	p := startProgram(t, "replay", path, "--snapshot", snapshot, "--engine", "mariadb", "--interleavings", "all", "--window", "2", "--limit", "10m", "--seed", "1")
	p.until(t, "the recorded order's result", func() bool { return strings.Contains(p.stdout.String(), "\nnothing found") })
	status := p.end(t)
	out := p.stdout.String()
	if status != int(exitUnknown) || !strings.Contains(out, "undecided: interrupted: ") || strings.Count(out, "isolation, of the whole replay") != 1 {
		t.Errorf("status %d, printed:\n%s\n%s", status, out, p.stderr.String())
	}
}

// TestReplayOneReason: a lost update of two transactions among four that overlap is told once, by the live oracle. The near miss is a race of values that
// the live oracle calls none: it has one reason, with its row and column.
func TestReplayOneReason(t *testing.T) {
	t.Parallel()
	snapshot := file(t, "CREATE TABLE stock (id INT PRIMARY KEY, n INT);\nINSERT INTO stock VALUES (1, 5), (2, 5), (3, 5), (4, 5);\n")
	lines := []string{"1: BEGIN", "2: BEGIN", "3: BEGIN", "4: BEGIN",
		"1: SELECT n FROM stock WHERE id = 1", "2: SELECT n FROM stock WHERE id = 1", "3: SELECT n FROM stock WHERE id = 3", "4: SELECT n FROM stock WHERE id = 4",
		"1: UPDATE stock SET n = 4 WHERE id = 1", "1: COMMIT", "2: UPDATE stock SET n = 3 WHERE id = 1", "2: COMMIT",
		"3: UPDATE stock SET n = 4 WHERE id = 3", "3: COMMIT", "4: UPDATE stock SET n = 4 WHERE id = 4", "4: COMMIT"}
	path := loggedTrace(t, lines...)
	server := testserver.MariaDB(t).Server.Target()
	url := fmt.Sprintf("mariadb://%s:%s@%s:%d", server.User, server.Password, server.Host, server.Port)
	r := replayed(t, exitFound, path, "--snapshot", snapshot, "--engine", url)
	if len(r.Findings) != 1 || r.Findings[0].Name != "lost update" || r.Explored.Groups < 2 || len(r.Explored.Anomalies) != 0 {
		t.Errorf("got findings %+v and %+v, want one lost update", r.Findings, r.Explored)
	}
	r = replayed(t, exitFound, path, "--snapshot", snapshot, "--engine", url, "--oracle", "serial")
	if len(r.Explored.Anomalies) != 1 || len(r.Explored.Anomalies[0].Sessions) != 2 || len(r.Explored.Anomalies[0].Why) != 1 {
		t.Fatalf("got %+v, want one reason for two transactions", r.Explored)
	}
	if why := r.Explored.Anomalies[0].Why[0]; !strings.Contains(why, "(the closest of 2 serial orders)") || !strings.Contains(why, "s2") {
		t.Errorf("the reason: %s", why)
	}
	if spec := r.Explored.Anomalies[0].Spec; strings.Count(spec, "one after the other") > 1 {
		t.Errorf("the scenario tells several reasons:\n%s", spec)
	}
}

// TestReplayUnits: requests that nobody can tell apart are no result, and pauses that tell nothing apart are named.
func TestReplayUnits(t *testing.T) {
	t.Parallel()
	snapshot := file(t, "CREATE TABLE stock (id INT PRIMARY KEY, n INT);\nINSERT INTO stock VALUES (1, 5);\n")
	server := testserver.MariaDB(t).Server.Target()
	url := fmt.Sprintf("mariadb://%s:%s@%s:%d", server.User, server.Password, server.Host, server.Port)
	var plain, tagged []string
	for i := range 5 {
		plain = append(plain, "8: UPDATE stock SET n = n + 1 WHERE id = 1")
		tagged = append(tagged, fmt.Sprintf("8: UPDATE stock SET n = n + 1 WHERE id = 1 /*request_id='%d'*/", i))
	}
	for _, tt := range []struct {
		name  string
		lines []string
		args  []string
		want  exitStatus
		says  string
	}{
		{"no tags", plain, []string{"--unit", "request"}, exitUnknown, "no statement of the trace has a tag that names its request"},
		{"near miss: tags", tagged, []string{"--unit", "request"}, exitClean, ""},
		{"near miss: nobody asked", plain, nil, exitClean, ""},
		{"a gap longer than all pauses", plain, []string{"--unit-gap", "50ms"}, exitClean, "--unit-gap 50ms made one unit of all transactions of 1 session (sessions 1)"},
	} {
		out, said, status := command(t, append([]string{"replay", loggedTrace(t, tt.lines...), "--snapshot", snapshot, "--engine", url, "--log-level", "error"}, tt.args...)...)
		if status != tt.want || !strings.Contains(out, tt.says) || tt.says == "" && strings.Contains(out, "--unit") {
			t.Errorf("%s: status %d, want %d and %q\n%s%s", tt.name, status, tt.want, tt.says, out, said)
		}
	}
}
