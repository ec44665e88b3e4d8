package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"wirecheck/internal/shop"
	"wirecheck/trace"
	"wirecheck/trace/recorder"
)

// recordingProxy is the program in front of a database, recording to a trace.
type recordingProxy struct {
	*program
	trace string
	port  int
}

func startRecording(t *testing.T, d shop.Target, args ...string) *recordingProxy {
	t.Helper()
	p := &recordingProxy{trace: filepath.Join(t.TempDir(), "shop.wct")}
	scheme := "postgres"
	if d.Engine != "postgres" {
		scheme = "mysql"
	}
	p.program = startProgram(t, append([]string{"proxy", "--listen", scheme + "://" + anyPort, "--upstream", fmt.Sprintf("%s://%s:%d", scheme, d.Host, d.Port), "--record", p.trace, "--format", "json"}, args...)...)
	p.port = p.program.port(t, scheme, nil)
	return p
}

// client connects through the proxy.
func (p *recordingProxy) client(t *testing.T, w *world) shop.Client {
	t.Helper()
	d := w.direct
	d.Port = p.port
	c, err := d.Connect(t.Context(), shop.Driver)
	if err != nil {
		t.Fatalf("%v\n%s", err, p.stderr.String())
	}
	t.Cleanup(func() { c.Close() }) // the proxy may have ended it
	return c
}

func do(t *testing.T, c shop.Client, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := c.Do(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// TestRecordedTrace records a lost update in each protocol. The trace is the owner's alone, shows what was said, and is judged without a
// server as it was live; recorded in mode pass it is not, and says what to do.
func TestRecordedTrace(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"postgres", "mariadb"} {
		for _, mode := range []string{"observe", "pass"} {
			t.Run(engine+" "+mode, func(t *testing.T) {
				w := newWorld(t, engine, shop.Setup...)
				p := startRecording(t, w.direct, "--mode", mode)
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				target := w.direct
				target.Port = p.port
				if _, err := shop.Play(ctx, target, shop.Scenes(engine)[1], &bytes.Buffer{}); err != nil {
					t.Fatalf("%v\n%s", err, p.stderr.String())
				}
				status := p.end(t)
				if info, err := os.Stat(p.trace); err != nil || info.Mode().Perm() != 0o600 {
					t.Fatalf("%v, mode %v, want 0600", err, info.Mode())
				}
				shown, said, _ := command(t, "trace", "show", p.trace)
				for _, want := range []string{"UPDATE ", "COMMIT", "the session ends", "database "} {
					if !strings.Contains(shown, want) || said != "" {
						t.Errorf("trace show said %q and does not print %q:\n%s", said, want, shown)
					}
				}
				stats, _, _ := command(t, "trace", "stats", p.trace)
				if !strings.Contains(stats, "application") || strings.Contains(shown, w.direct.Password) {
					t.Errorf("stats:\n%s", stats)
				}
				out, said, judged := command(t, "check", "--format", "json", p.trace)
				if mode == "pass" {
					if judged != exitFailed || status != int(exitClean) || !strings.Contains(said, "this trace holds no row versions") || !strings.Contains(said, "wirecheck proxy --mode observe --record") {
						t.Errorf("check: status %d, said %q", judged, said)
					}
					return
				}
				var live, again struct {
					Findings []struct{ ID, Name string }
					Coverage map[string]any
				}
				if err := json.Unmarshal(p.stdout.Bytes(), &live); err != nil {
					t.Fatalf("%v: %s", err, p.stdout.String())
				}
				if err := json.Unmarshal([]byte(out), &again); err != nil {
					t.Fatalf("%v: %s%s", err, out, said)
				}
				if judged != exitFound || status != int(exitFound) || len(live.Findings) != 1 || !slices.Equal(live.Findings, again.Findings) || fmt.Sprint(live.Coverage) != fmt.Sprint(again.Coverage) {
					t.Errorf("live: status %d, %+v\nagain: status %d, %+v\n%s", status, live, judged, again, said)
				}
				cut := filepath.Join(t.TempDir(), "part.wct")
				if out, said, status := command(t, "trace", "cut", p.trace, "--from", "+1ms", "-o", cut); status != exitClean || !strings.Contains(out, "row versions") {
					t.Fatalf("cut: status %d, %s%s", status, out, said)
				}
				if _, said, status := command(t, "check", cut); status != exitFailed || !strings.Contains(said, "holds no row versions") {
					t.Errorf("check of a part: status %d, said %q", status, said)
				}
				redacted := filepath.Join(t.TempDir(), "redacted.wct")
				if out, said, status := command(t, "trace", "redact", p.trace, "-o", redacted); status != exitClean {
					t.Fatalf("redact: status %d, %s%s", status, out, said)
				}
				out, said, judged = command(t, "check", "--format", "json", redacted)
				var tokens struct{ Findings []struct{ ID, Name string } }
				if err := json.Unmarshal([]byte(out), &tokens); err != nil || judged != exitFound || !slices.Equal(tokens.Findings, live.Findings) {
					t.Errorf("check of the redacted one: status %d, %v %+v %s", judged, err, tokens, said)
				}
			})
		}
	}
}

// TestRecordKilled: what had passed when the recorder was killed is there, and a note says that it has no end.
func TestRecordKilled(t *testing.T) {
	w := newWorld(t, "postgres", "CREATE TABLE t (id int PRIMARY KEY)")
	p := startRecording(t, w.direct)
	client := p.client(t, w)
	do(t, client, "INSERT INTO t VALUES (1)", "SELECT 'the last words'")
	p.until(t, "the statement is in the file", func() bool {
		out, _, status := command(t, "trace", "show", p.trace)
		return status == exitClean && strings.Contains(out, "the last words")
	})
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.ended
	for _, args := range [][]string{{"trace", "show"}, {"trace", "stats"}, {"check"}} {
		out, said, status := command(t, append(args, p.trace)...)
		want := exitClean
		if args[0] == "check" { // nobody knows what happened after the end
			want = exitUnknown
		}
		if status != want || !strings.Contains(said, "was not closed: what is there ends after") || out == "" {
			t.Errorf("%v: status %d, said %q\n%s", args, status, said, out)
		}
	}
}

// TestRecordParts: a recording of several files is shown, judged and cut as one.
func TestRecordParts(t *testing.T) {
	w := newWorld(t, "postgres", "CREATE TABLE t (id int PRIMARY KEY, s text)")
	p := startRecording(t, w.direct, "--record-part-age", "300ms")
	client := p.client(t, w)
	n := 0
	p.until(t, "the third part is there", func() bool {
		do(t, client, fmt.Sprintf("INSERT INTO t VALUES (%d, 'x')", n))
		n++
		_, err := os.Stat(recorder.PartPath(p.trace, 3))
		return err == nil
	})
	if status := p.end(t); status != int(exitClean) {
		t.Errorf("status %d\n%s", status, p.stderr.String())
	}
	var s trace.Stats
	out, said, _ := command(t, "trace", "stats", "--format", "json", p.trace)
	if err := json.Unmarshal([]byte(out), &s); err != nil || s.Statements < n || said != "" {
		t.Errorf("%v, said %q: %d statements, want at least %d", err, said, s.Statements, n)
	}
	out, said, status := command(t, "check", p.trace)
	if status != exitClean || said != "" || !strings.Contains(out, fmt.Sprintf("coverage: %d exact", n)) {
		t.Errorf("check: status %d, said %q, %s, want %d exact", status, said, out, n)
	}
	if err := os.Remove(recorder.PartPath(p.trace, 2)); err != nil {
		t.Fatal(err)
	}
	if _, said, _ := command(t, "trace", "stats", p.trace); !strings.Contains(said, "shop.2.wct, which is not there") {
		t.Errorf("a missing part: said %q", said)
	}
}

// TestRecordRedacts: with --redact no value reaches the disk; what is found is the same.
func TestRecordRedacts(t *testing.T) {
	w := newWorld(t, "postgres", "CREATE TABLE person (name text PRIMARY KEY, n int)")
	p := startRecording(t, w.direct, "--redact")
	client := p.client(t, w)
	// Times have 19 digits: a short number is in some of them.
	do(t, client, "INSERT INTO person VALUES ('Lovelace', 1471147114)", "SELECT n FROM person WHERE name = 'Lovelace'")
	if status := p.end(t); status != int(exitClean) {
		t.Errorf("status %d\n%s", status, p.stderr.String())
	}
	out, said, status := command(t, "trace", "show", "--format", "json", p.trace)
	if status != exitClean || strings.Contains(out, "Lovelace") || strings.Contains(out, "1471147114") || !strings.Contains(out, "person") {
		t.Errorf("status %d, said %q:\n%s", status, said, out)
	}
	if out, _, _ := command(t, "check", p.trace); !strings.Contains(out, "coverage: 2 exact") {
		t.Errorf("check: %s", out)
	}
}

// TestRecordRefuses has mistakes on the command line.
func TestRecordRefuses(t *testing.T) {
	there := filepath.Join(t.TempDir(), "there.wct")
	if err := os.WriteFile(there, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"a trace is never written over":                           {"--record", there},
		"no trace file but a history":                             {"--record", there + ".jsonl", "--redact"},
		"must not be less than 0":                                 {"--record", there + "2.wct", "--record-rows", "-1"},
		`"5MB" is no size`:                                        {"--record", there + "2.wct", "--record-part-size", "5MB"},
		"create trace: open " + there + "/x.wct: not a directory": {"--record", there + "/x.wct"},
	} {
		_, said, status := command(t, append([]string{"proxy", "--listen", "postgres://127.0.0.1:0", "--upstream", "postgres://127.0.0.1:1"}, args...)...)
		if status != exitFailed || !strings.Contains(said, want) {
			t.Errorf("%v: status %d, said %q, want %q", args, status, said, want)
		}
	}
	if text, err := os.ReadFile(there); err != nil || string(text) != "precious" {
		t.Errorf("a file that was there is %q now, %v", text, err)
	}
}

// TestRecordTLS: a client's TLS ends at a proxy that records, in each mode, and no password is in the trace.
func TestRecordTLS(t *testing.T) {
	for _, mode := range []string{"observe", "pass"} {
		w := newWorld(t, "postgres")
		p := startRecording(t, w.direct, "--mode", mode)
		c, err := pgx.ParseConfig(fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=require&application_name=secret", w.direct.User, p.port, w.direct.Database))
		if err != nil {
			t.Fatal(err)
		}
		c.Password = w.direct.Password
		c.TLSConfig = &tls.Config{InsecureSkipVerify: true} // made up by the proxy
		conn, err := pgx.ConnectConfig(t.Context(), c)
		if err != nil {
			t.Fatalf("%v\n%s", err, p.stderr.String())
		}
		if _, err := conn.Exec(t.Context(), "SELECT $1::int, $2::text, $3::bytea", 7, nil, []byte{0, 255}); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		p.end(t)
		out, _, _ := command(t, "trace", "show", p.trace)
		if !strings.Contains(out, "application secret") || !strings.Contains(out, `{7, NULL, \x00ff}`) || strings.Contains(out, "encrypted") {
			t.Errorf("mode %s:\n%s", mode, out)
		}
	}
}

// TestRecordReplayPgbench records 8 clients of pgbench in each of its protocols, and replays them to the same answers and tables.
func TestRecordReplayPgbench(t *testing.T) {
	t.Parallel()
	n := benchTransactions / 2
	if text := os.Getenv("WIRECHECK_PGBENCH"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	protocols := []string{"simple", "prepared"}
	if *loadLength > 0 {
		protocols = append(protocols, "extended")
	}
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			p := startProduction(t)
			kept := func(name string) string {
				path := filepath.Join(p.dir, name)
				if err := os.Rename(p.dump(t), path); err != nil {
					t.Fatal(err)
				}
				return path
			}
			script := p.benchTables(t)
			before := kept("before.sql")
			path := filepath.Join(p.dir, "bench.wct")
			recorder, port := front(t, "postgres", "postgres://"+p.Address(), "--record", path)
			p.bench(t, port, "-n", "-f", script, "-M", protocol, "-c", "8", "-j", "2", "-t", strconv.Itoa(n/8))
			recorder.end(t)
			after := kept("after.sql")
			start := time.Now()
			r := replayed(t, exitClean, path, "--snapshot", before, "--engine", "postgres", "--order", "commit", "--compare", after, "--oracle", "none")
			t.Logf("%d statements, %d waited, %d deviations, %v", r.Replay.Statements, r.Replay.Waited, r.Replay.Deviated, time.Since(start))
			r.sameAsCaptured(t)
			if want := n / 8 * 8 * 7; r.Replay.Statements != want {
				t.Errorf("%d statements, want %d; not replayed: %v", r.Replay.Statements, want, r.Replay.Skipped)
			}
			if len(r.Tables) != 4 {
				t.Errorf("tables %+v, want 4", r.Tables)
			}
			for _, table := range r.Tables {
				// A clock's column is never the same again.
				if table.OnlyHere+table.OnlyThere > 0 && !(table.Name == "pgbench_history" && slices.Equal(table.Columns, []string{"mtime"})) {
					t.Errorf("%+v", table)
				}
			}
		})
	}
}
