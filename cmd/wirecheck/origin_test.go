package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"wirecheck/internal/testserver"
)

// clone is a database of a test's own with the rows that the captures begin with.
func clone(t *testing.T, s *testserver.Server) testserver.Database {
	t.Helper()
	d := s.Database(t).As(s.User)
	for sql := range strings.SplitSeq(strings.TrimSpace(productSchema), "\n") {
		d.Exec(t, sql)
	}
	return d
}

// stock is the sum of what the captures change.
func stock(t *testing.T, d testserver.Database) (n int) {
	t.Helper()
	const sql = "SELECT sum(stock) FROM product"
	var err error
	if strings.HasPrefix(d.URL(), "postgres") {
		conn := d.Postgres(t)
		err = conn.QueryRow(t.Context(), sql).Scan(&n)
		_ = conn.Close(t.Context())
	} else {
		db := d.MariaDB(t)
		err = db.QueryRowContext(t.Context(), sql).Scan(&n)
		_ = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestReplayOrigins replays the same trace from a dump in each of pg_dump's formats, and from a copy of a database, which stays as it is.
func TestReplayOrigins(t *testing.T) {
	t.Parallel()
	d := clone(t, testserver.Postgres(t))
	path, dir := loggedPostgres(t, captured()[:8]...), t.TempDir()
	origins := map[string][]string{"template": {"--template", d.Name}}
	for _, format := range []string{"plain", "custom", "tar", "directory"} {
		dump := filepath.Join(dir, format)
		said, err := exec.CommandContext(t.Context(), "pg_dump", "--format", format, "--file", dump, d.URL()).CombinedOutput()
		if err != nil {
			t.Fatalf("pg_dump: %v\n%s", err, said)
		}
		origins[format] = []string{"--snapshot", dump}
	}
	for name, args := range origins {
		out, said, status := command(t, append([]string{"replay", path, "--engine", serverURL(testserver.Postgres(t)), "--interleavings", "random:5", "--seed", "1"}, args...)...)
		if status != exitFound || !strings.Contains(out, "LOST UPDATE") || !strings.Contains(out, "interleavings: ") {
			t.Errorf("%s: exit status %d\n%s%s", name, status, out, said)
		}
	}
	if n := stock(t, d); n != 25 {
		t.Errorf("the database that was copied has changed: %d", n)
	}
	out, said, status := command(t, "advise", path, "--engine", d.URL(), "--template", d.Name, "--budget", "1m")
	if status != exitFound || !strings.Contains(out, "lost update") {
		t.Errorf("advise: exit status %d\n%s%s", status, out, said)
	}
}

// TestTemplateRefused: what cannot be copied is said before anything runs.
func TestTemplateRefused(t *testing.T) {
	t.Parallel()
	d := clone(t, testserver.Postgres(t))
	path, family := loggedPostgres(t, captured()[:8]...), loggedTrace(t, captured()[:8]...)
	maria := serverURL(testserver.MariaDB(t))
	refused := func(want string, args ...string) {
		t.Helper()
		out, said, status := command(t, append([]string{"replay"}, args...)...)
		if status != exitFailed || !strings.Contains(said, want) || out != "" {
			t.Errorf("%q: exit status %d, want %q in:\n%s%s", args, status, want, out, said)
		}
	}
	url := serverURL(testserver.Postgres(t))
	refused("no database of that name", path, "--engine", url, "--template", "nowhere")
	refused("a private server is empty", path, "--template", d.Name)
	refused("give one of them", path, "--engine", url, "--template", d.Name, "--snapshot", "dump.sql")
	refused("MariaDB cannot copy a database: give a dump of it (mariadb-dump", family, "--engine", maria, "--template", "shop")
	refused("give --snapshot", path, "--engine", url, "--template", d.Name, "--what-if", "engine=postgres")
	plain := d.As("app")
	refused("the user must own it", path, "--engine", plain.URL(), "--template", d.Name)
	conn := d.Postgres(t)
	defer conn.Close(t.Context())
	refused("others are connected to it", path, "--engine", url, "--template", d.Name)
}

// TestReplayInPlace replays in a clone itself, once and several times.
func TestReplayInPlace(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, logged, client := testserver.Postgres(t), loggedPostgres, "psql -q %s -c %s"
			if name == "mariadb" {
				server, logged = testserver.MariaDB(t), loggedTrace
			}
			d := clone(t, server)
			path, allowed := logged(t, captured()[:8]...), d.Name+"=may-be-changed"
			if name == "mariadb" {
				client = fmt.Sprintf("mariadb -h %s -P %d -u %s -p%s %s -e %%[2]s", d.Host, d.Port, d.User, d.Password, d.Name)
			}
			// The word, the URL and an empty database are needed; nothing has changed without.
			for want, args := range map[string][]string{
				"and say so":                       {"--engine", d.URL(), "--in-place", d.Name},
				"must name the same database":      {"--engine", serverURL(server), "--in-place", allowed},
				"a private server is empty":        {"--in-place", allowed},
				"give --reset COMMAND":             {"--engine", d.URL(), "--in-place", allowed, "--interleavings", "all"},
				"--reset brings back the rows":     {"--engine", d.URL(), "--reset", "true"},
				"this database belongs to the ser": {"--engine", strings.Replace(d.URL(), d.Name, map[string]string{"postgres": "postgres", "mariadb": "mysql"}[name], 1), "--in-place", map[string]string{"postgres": "postgres", "mariadb": "mysql"}[name] + "=may-be-changed"},
			} {
				out, said, status := command(t, append([]string{"replay", path}, args...)...)
				if status != exitFailed || !strings.Contains(said, want) || out != "" {
					t.Errorf("%q: exit status %d, want %q in:\n%s%s", args, status, want, out, said)
				}
			}
			if n := stock(t, d); n != 25 {
				t.Fatalf("refused, and yet: %d", n)
			}
			out, said, status := command(t, "replay", path, "--engine", d.URL(), "--in-place", allowed)
			if n := stock(t, d); status != exitFound || !strings.Contains(out, "LOST UPDATE") || !strings.Contains(out, "replays once") || n == 25 {
				t.Errorf("once: exit status %d, stock %d\n%s%s", status, n, out, said)
			}
			reset := fmt.Sprintf(client, "'"+d.URL()+"'", `"UPDATE product SET stock = 5, views = 0, title = 'tea'; UPDATE doctor SET on_call = 1"`)
			out, said, status = command(t, "replay", path, "--engine", d.URL(), "--in-place", allowed, "--reset", reset, "--interleavings", "random:5", "--seed", "1")
			if status != exitFound || !strings.Contains(out, "interleavings") {
				t.Errorf("several times: exit status %d\n%s%s", status, out, said)
			}
			columns := map[string]string{"postgres": "SELECT 1 FROM product", "mariadb": "ALTER TABLE product ADD COLUMN wc_row_id INT"}[name]
			d.Exec(t, columns) // nothing is left of hidden columns
			_, said, status = command(t, "replay", path, "--engine", d.URL(), "--in-place", allowed, "--reset", "exit 3")
			if status != exitFailed || !strings.Contains(said, "exit status 3") {
				t.Errorf("--reset fails: exit status %d\n%s", status, said)
			}
		})
	}
}

// TestInPlaceOthers: nobody replays in a database that somebody uses.
func TestInPlaceOthers(t *testing.T) {
	t.Parallel()
	d := clone(t, testserver.Postgres(t))
	path := loggedPostgres(t, captured()[:8]...)
	conn := d.Postgres(t)
	defer conn.Close(t.Context())
	_, said, status := command(t, "replay", path, "--engine", d.URL(), "--in-place", d.Name+"=may-be-changed")
	if n := stock(t, d); status != exitFailed || !strings.Contains(said, "others are connected to it") || n != 25 {
		t.Errorf("exit status %d, stock %d\n%s", status, n, said)
	}
}
