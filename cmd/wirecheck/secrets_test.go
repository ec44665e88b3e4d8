package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wirecheck/internal/shop"
	"wirecheck/trace"
)

// hush are statements with a secret in them. The last ones are refused.
var hush = map[string][]string{
	"postgres": {
		"CREATE ROLE wc_hush PASSWORD 'hush1'", "BEGIN", "UPDATE coupon SET uses_left = 5 WHERE code = 'SPRING'", "ALTER ROLE wc_hush PASSWORD 'hush2'",
		"DO $$ BEGIN EXECUTE 'ALTER ROLE wc_hush PASSWORD ''hush3'''; END $$", "SELECT 'postgres://u:hush4@h/d', count(*) FROM coupon", "DROP ROLE wc_hush",
		"ALTER ROLE wc_hush PASSWORD hush5", "ROLLBACK", "CREATE USER MAPPING FOR nobody SERVER s OPTIONS (password 'hush6')",
	},
	"mariadb": {
		"CREATE USER wc_hush IDENTIFIED BY 'hush1'", "BEGIN", "UPDATE coupon SET uses_left = 5 WHERE code = 'SPRING'", "ROLLBACK", "SHOW CREATE USER wc_hush",
		"SET PASSWORD FOR wc_hush = PASSWORD('hush2')", "PREPARE s FROM 'ALTER USER wc_hush IDENTIFIED BY ''hush3'''",
		"SELECT 'mysql://u:hush4@h/d', count(*) FROM coupon", "/*!50000 ALTER USER wc_hush */ /*! IDENTIFIED BY 'hush5' */", "DROP USER wc_hush",
		"ALTER USER wc_hush IDENTIFIED BY hush6",
	},
}

// TestSecrets: no password leaves the process, and with --redact no value does, in anything that it writes, shows or says to
// clients. Without --redact the values are there.
func TestSecrets(t *testing.T) {
	t.Parallel()
	for engine, statements := range hush {
		w := newWorld(t, engine, shop.Setup...)
		for _, redact := range []bool{false, true} {
			said := hear(t, w, statements, redact)
			for what, text := range said {
				values := []string{"hush1", "hush2", "hush3", "hush4", "hush5", "hush6", w.direct.Password, w.admin.Password}
				if redact {
					values = append(values, "WELCOME10", "SPRING")
				}
				for _, v := range values {
					if strings.Contains(text, v) {
						t.Errorf("%s, redacted %v: %s has %s", engine, redact, what, v)
					}
				}
			}
			if !strings.Contains(said["the trace"], "uses_left") || !strings.Contains(said["the report"], "LOST UPDATE") {
				t.Errorf("%s: trace of %d bytes, report:\n%s", engine, len(said["the trace"]), said["the report"])
			}
			if log := said["the log"]; !strings.Contains(log, "update coupon set uses_left") {
				t.Errorf("%s: the log has no statement:\n%s", engine, log)
			}
			if out := said["stdout"]; !strings.Contains(out, "seen exactly") {
				t.Errorf("%s: coverage is not explained:\n%s", engine, out)
			}
			if !redact && !(strings.Contains(said["the trace"], "WELCOME10") && strings.Contains(said["the report"], "WELCOME10")) {
				t.Errorf("%s: no values without --redact", engine)
			}
		}
	}
}

// hear plays a lost update and the statements through the program and gives all that it wrote and said.
func hear(t *testing.T, w *world, statements []string, redact bool) map[string]string {
	t.Helper()
	dir := t.TempDir()
	scheme := map[string]string{"postgres": "postgres", "mariadb": "mysql"}[w.direct.Engine]
	file := func(name string) string { return filepath.Join(dir, name) }
	p, port := front(t, scheme, fmt.Sprintf("%s://127.0.0.1:%d", w.direct.Engine, w.direct.Port), "--log-level", "debug",
		"--record", file("all.wct"), "--report", file("report"), "--stream", file("stream"), fmt.Sprintf("--redact=%v", redact), "--explain-coverage")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	target, admin := w.direct, w.admin
	target.Port, admin.Port, admin.Database = port, port, w.direct.Database
	heard, err := shop.Play(ctx, target, shop.Scenes(target.Engine)[1], io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	w.run(t, "UPDATE coupon SET uses_left = 1 WHERE code = 'WELCOME10'")
	for _, part := range []shop.Part{shop.Terminal, shop.Driver} {
		c, err := admin.Connect(ctx, part)
		if err != nil {
			t.Fatal(err)
		}
		for _, sql := range statements {
			_, _ = c.Do(ctx, sql) // some are refused
		}
		if err := c.Close(); err != nil && part == shop.Driver {
			t.Error(err)
		}
	}
	if status := p.end(t); status != int(exitFound) {
		t.Errorf("exit status %d\n%s", status, p.stderr.String())
	}
	said := map[string]string{
		"stdout": p.stdout.String(), "the log": p.stderr.String(), "the trace": records(t, file("all.wct")), "a warning": fmt.Sprint(heard),
	}
	for _, name := range []string{"report", "stream"} {
		b, err := os.ReadFile(file(name))
		if err != nil {
			t.Fatal(err)
		}
		said["the "+name] = string(b)
	}
	return said
}

// records gives all records of a trace as JSON.
func records(t *testing.T, path string) string {
	t.Helper()
	r, err := trace.Open(path, trace.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	for {
		var rec trace.Record
		if err := r.Next(&rec); errors.Is(err, io.EOF) {
			return out.String()
		} else if err != nil {
			t.Fatal(err)
		}
		if err := e.Encode(rec); err != nil {
			t.Fatal(err)
		}
	}
}
