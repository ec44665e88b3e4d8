package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wirecheck/configs"
	"wirecheck/internal/testserver"
)

// suiteOf writes a test suite of psql or mariadb that loses an update, or only reads.
func suiteOf(t *testing.T, engine string, racy bool) string {
	t.Helper()
	client := `psql -q -v ON_ERROR_STOP=1 "$DATABASE_URL"`
	if engine != "postgres" {
		client = `mariadb -h "$MYSQL_HOST" -P "$DB_PORT" -u "$MYSQL_USER" "$MYSQL_DATABASE"`
	}
	sql := "SELECT n FROM coupon WHERE id = 1;\n"
	if racy {
		sql = "BEGIN;\nSELECT n FROM coupon WHERE id = 1;\n\\! " + client + ` -f other.sql` + "\nUPDATE coupon SET n = 3 WHERE id = 1;\nCOMMIT;\n"
		if engine != "postgres" {
			sql = strings.Replace(sql, "-f other.sql", "< other.sql", 1)
		}
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"other.sql": "UPDATE coupon SET n = 4 WHERE id = 1;\n", "main.sql": sql,
		"suite.sh": "set -e\ncd " + dir + "\n" + client + " < main.sql\necho done; exit ${SUITE_STATUS:-0}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "suite.sh")
}

// TestCI runs test suites through wirecheck ci: its exit status is the suite's, or says that something new was found.
func TestCI(t *testing.T) {
	for _, engine := range []string{"postgres", "mariadb"} {
		t.Run(engine, func(t *testing.T) {
			server := testserver.Postgres(t)
			if engine == "mariadb" {
				server = testserver.MariaDB(t)
			}
			d := server.Database(t)
			d.Exec(t, "CREATE TABLE coupon (id INT PRIMARY KEY, n INT)", "INSERT INTO coupon VALUES (1, 5)")
			dir := t.TempDir()
			file := func(name string) string { return filepath.Join(dir, name) }
			ci := func(suite string, args ...string) (string, string, exitStatus) {
				return command(t, append(append([]string{"ci", "--upstream", d.URL(), "--env", "DB_PORT={port}"}, args...), "--", "bash", suite)...)
			}
			racy, quiet := suiteOf(t, engine, true), suiteOf(t, engine, false)
			out, said, status := ci(racy, "--junit", file("j.xml"), "--sarif", file("s.json"), "--json", file("f.json"), "--markdown", file("m.md"))
			if status != exitFound || !strings.HasSuffix(out, "done\n") || strings.Contains(out, "LOST UPDATE") || !strings.Contains(said, "LOST UPDATE") {
				t.Fatalf("a race: exit status %d\n%s\n%s", status, out, said)
			}
			for name, want := range map[string]string{"j.xml": `failures="1"`, "s.json": `"ruleId": "lost-update"`, "f.json": `"name": "lost update"`, "m.md": "1 found"} {
				if text, err := os.ReadFile(file(name)); err != nil || !strings.Contains(string(text), want) {
					t.Errorf("%s lacks %q: %v\n%s", name, want, err, text)
				}
			}
			if _, said, status = ci(racy, "--baseline", file("known.yaml"), "--update-baseline"); status != exitClean {
				t.Errorf("the baseline is made: exit status %d\n%s", status, said)
			}
			if text, err := os.ReadFile(file("known.yaml")); err != nil || !strings.Contains(string(text), "- id: WC-") {
				t.Errorf("the baseline: %s, %v", text, err)
			}
			if err := os.WriteFile(file("class.yaml"), []byte("ignore:\n  - class: lost update\n    table: coupon\n    reason: known\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"known.yaml", "class.yaml"} {
				if _, said, status = ci(racy, "--baseline", file(name)); status != exitClean || !strings.Contains(said, "known before, and left out: 1 finding") {
					t.Errorf("what is known by %s: exit status %d\n%s", name, status, said)
				}
			}
			if err := os.WriteFile(file("other.yaml"), []byte("ignore:\n  - class: write skew\n    reason: near\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, said, status = ci(racy, "--baseline", file("other.yaml")); status != exitFound {
				t.Errorf("another one is known: exit status %d\n%s", status, said)
			}
			if _, said, status = ci(quiet); status != exitClean || strings.Contains(said, "found: ") {
				t.Errorf("no race: exit status %d\n%s", status, said)
			}
			t.Setenv("SUITE_STATUS", "7")
			if _, said, status = ci(racy); status != 7 || !strings.Contains(said, "LOST UPDATE") {
				t.Errorf("the suite fails: exit status %d\n%s", status, said)
			}
			if engine == "mariadb" {
				if columns := tableText(t, d); strings.Contains(columns, "wc_") {
					t.Errorf("hidden columns are left: %s", columns)
				}
			}
		})
	}
}

// tableText is how MariaDB shows the table.
func tableText(t *testing.T, d testserver.Database) (text string) {
	t.Helper()
	var name string
	if err := d.MariaDB(t).QueryRow("SHOW CREATE TABLE coupon").Scan(&name, &text); err != nil {
		t.Fatal(err)
	}
	return text
}

// TestCIErrors: a run that judges nothing is not green, and what cannot be run is said before a server is asked.
func TestCIErrors(t *testing.T) {
	t.Setenv("DATABASE_URL", "")
	url := testserver.Postgres(t).Database(t).URL()
	for _, tt := range []struct {
		args   []string
		status exitStatus
		want   string
	}{
		{[]string{"--upstream", url, "--", "true"}, exitUnknown, "undecided: no session was seen"},
		{[]string{"--upstream", url}, exitFailed, "expected: wirecheck ci [flags] -- COMMAND [ARGUMENT...]; got no argument"},
		{[]string{"--", "true"}, exitFailed, "give --upstream URL, or set DATABASE_URL"},
		{[]string{"--upstream", "postgres//x", "--", "true"}, exitFailed, "it should look like postgres://"},
		{[]string{"--upstream", "oracle://127.0.0.1/x", "--", "true"}, exitFailed, "oracle"},
		{[]string{"--upstream", url, "--", "no-such-program"}, exitFailed, "no-such-program"},
		{[]string{"--upstream", url, "--env", "DB_PORT", "--", "true"}, exitFailed, "it should look like DB_PORT={port}"},
		{[]string{"--upstream", url, "--update-baseline", "--", "true"}, exitFailed, "needs --baseline"},
		{[]string{"--upstream", url, "--baseline", "/no/such/file", "--", "true"}, exitFailed, "/no/such/file"},
		{[]string{"--upstream", url, "--format", "json", "--", "true"}, exitFailed, "--junit"},
		{[]string{"--upstream", url, "--junit", "/no/such/folder/x", "--", "true"}, exitFailed, "/no/such/folder"},
	} {
		_, said, status := command(t, append([]string{"ci"}, tt.args...)...)
		if status != tt.status || !strings.Contains(said, tt.want) {
			t.Errorf("%v: exit status %d, want %d and %q\n%s", tt.args, status, tt.status, tt.want, said)
		}
	}
}

// TestDatabaseURL: frameworks have schemes of their own, and leave out the port.
func TestDatabaseURL(t *testing.T) {
	for raw, want := range map[string][2]string{
		"postgresql+psycopg://app:x@db/shop": {"postgres", "db:5432"},
		"pgsql://app@db:6432/shop":           {"postgres", "db:6432"},
		"mysql2://root@[::1]/shop":           {"mysql", "[::1]:3306"},
		"mariadb+pymysql://root@db:3307/x":   {"mysql", "db:3307"},
		"tidb://root@db:4000/x":              {"mysql", "db:4000"},
	} {
		d, err := parseDatabase(raw)
		if err != nil {
			t.Fatal(err)
		}
		if protocol, address, socket := configs.SplitAddress(d.upstream()); (protocol != want[0] || address != want[1] || socket) || d.protocol != want[0] {
			t.Errorf("%s: %s %s", raw, protocol, address)
		}
	}
	for _, raw := range []string{"sqlite:///file.db", "postgres:///shop", "db.mysql://root@h/x"} {
		if _, err := parseDatabase(raw); err == nil {
			t.Errorf("%s is taken", raw)
		}
	}
}
