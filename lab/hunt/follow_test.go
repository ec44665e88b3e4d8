package hunt

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"wirecheck/answer"
	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/lab/panel"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/product"
)

// TestFiled: who follows a report's script with the product's own client, in as many terminals as it names, sees what the report says.
func TestFiled(t *testing.T) {
	t.Parallel()
	h := hunterOn(t, "mariadb", "troc,tlp,radar", filepath.Join(t.TempDir(), "found"))
	for _, test := range []struct{ file, oracle, seen, report string }{
		{"../../testdata/reduce/torn.spec", "troc", "0;10\t1\tx;10\t20\ty;10\t20\tz", "The statement that differs: `UPDATE t SET b = 20 WHERE a` (s2)"},
		{"../../testdata/found/mariadb-row-is-null.spec", "tlp", "1", "The statement that is wrong: `SELECT a FROM t WHERE (ROW(a, 0) = ROW(1, NULL)) IS NULL`"},
		{"../../testdata/found/mariadb-float-not-in.spec", "radar", "1;1;1", "in the raw database"},
	} {
		text, err := os.ReadFile(test.file)
		if err != nil {
			t.Fatal(err)
		}
		level, err := panel.FindLevel(h.Instance.Engine, "read committed")
		if err != nil {
			t.Fatal(err)
		}
		spec, err := scenario.Parse(test.file, text)
		if err != nil {
			t.Fatal(err)
		}
		f, err := h.Find(t.Context(), spec, level, test.oracle)
		if err != nil || f == nil {
			t.Fatalf("%s: finding %v, error %v", test.file, f, err)
		}
		_, seen, err := h.evidence(t.Context(), spec, false, level, f)
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		h.file(t.Context(), files, spec, level, &Bug{Finding: f, Level: level.History}, seen)
		script, said := files["reproduce.sql"], files["report.md"]
		if got := follow(t, h.Instance, script); got != test.seen {
			t.Errorf("%s: the clients show %q, want %q\n%s", test.file, got, test.seen, script)
		}
		if head, _, _ := strings.Cut(said, "\n"); strings.Contains(strings.ToLower(head), "read committed") || !strings.Contains(said, test.report) || !strings.Contains(said, "sql_mode = ") {
			t.Errorf("%s: the report lacks %q:\n%s", test.file, test.report, said)
		}
	}
}

// TestFiledPostgres: the same with psql, for a case whose finding is made up.
func TestFiledPostgres(t *testing.T) {
	t.Parallel()
	h := hunterOn(t, "postgres", "wss", filepath.Join(t.TempDir(), "found"))
	level, err := panel.FindLevel(h.Instance.Engine, "read committed")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := scenario.Parse("wait.spec", []byte(`
setup { CREATE TABLE t (a int PRIMARY KEY, b text) }
setup { INSERT INTO t VALUES (1, '{'), (2, 'y') }
session s1
step a1 { BEGIN }
step a2 { UPDATE t SET b = 'z;' WHERE a = 1 }
step a3 { COMMIT }
session s2
step b1 { UPDATE t SET b = b || 'w' }
step b2 { SELECT * FROM t ORDER BY a }
permutation a1 a2 b1 b2 a3
`))
	if err != nil {
		t.Fatal(err)
	}
	f := &oracle.Finding{Oracle: "wss", Class: oracle.WSSStmt, Name: oracle.NameResult, Kind: oracle.KindViolation, Difference: &oracle.Difference{Step: "b2", Session: "s2", SQL: "SELECT * FROM t ORDER BY a"}}
	_, seen, err := h.evidence(t.Context(), spec, false, level, f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := h.At(t.Context(), level)
	if err != nil {
		t.Fatal(err)
	}
	d, err := b.Run(t.Context(), spec, spec.Permutations[0])
	if err != nil {
		t.Fatal(err)
	}
	h.executed = d.Result
	if err := h.found(t.Context(), spec, level, f); err != nil || h.store.state.Flaky != 1 || len(h.store.kept) != 0 {
		t.Errorf("a finding that the case does not show: flaky %d, kept %d, %v", h.store.state.Flaky, len(h.store.kept), err)
	}
	text, err := os.ReadFile(filepath.Join(h.store.dir, "flaky", string(oracle.WSSStmt)+"-001", "execution.txt"))
	if err != nil || !strings.Contains(string(text), "... waits for s1 (row)") || !strings.Contains(string(text), "2 | yw") {
		t.Errorf("the execution was not kept: %v\n%s", err, text)
	}
	files := map[string]string{}
	h.file(t.Context(), files, spec, level, &Bug{Finding: f, Level: level.History}, seen)
	if got, want := follow(t, h.Instance, files["reproduce.sql"]), "1|z;w;2|yw"; got != want {
		t.Errorf("psql shows %q, want %q\n%s", got, want, files["reproduce.sql"])
	}
	again, err := scenario.Parse("case.isolation.spec", []byte(files["case.isolation.spec"]))
	if err != nil {
		t.Fatalf("%v\n%s", err, files["case.isolation.spec"])
	}
	if n := len(again.Permutations[0].Steps); n != 5 {
		t.Errorf("%d steps\n%s", n, files["case.isolation.spec"])
	}
}

// TestRefusedSetup: a case whose setup the server refuses is counted with the error, and kept.
func TestRefusedSetup(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "found")
	store, err := openStore(dir, "postgres", "", false)
	if err != nil {
		t.Fatal(err)
	}
	d, err := backends.ByName("postgres")
	if err != nil {
		t.Fatal(err)
	}
	h := &hunter{Executor: &panel.Executor{Instance: &backends.Instance{Engine: d}}, store: store}
	spec, err := scenario.Parse("x", []byte("setup { CREATE TABEL t (a int) }\nsession s\nstep a { SELECT 1 }\npermutation a"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		why := &answer.Error{Code: "42601", Message: "syntax error"}
		h.refused(t.Context(), spec, d.Levels[0], why, why)
	}
	for _, folder := range []string{"setup-001", "setup-002"} {
		if text, err := os.ReadFile(filepath.Join(dir, "refused", folder, "case.spec")); err != nil || !strings.Contains(string(text), "CREATE TABEL") {
			t.Errorf("%s: %v\n%s", folder, err, text)
		}
	}
	var text strings.Builder
	if err := (&Report{State: store.state}).Text(&text); err != nil || !strings.Contains(text.String(), "setups refused, error 42601: 2\n") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

// follow does what a script says, each statement in its terminal and in the script's order, and gives what the clients show.
func follow(t *testing.T, s *backends.Instance, script string) string {
	t.Helper()
	var shown []string
	terminals := map[string]*terminal{}
	now, text := "1", ""
	lines := strings.Split(script, "\n")
	for i, line := range lines {
		name, named := strings.CutPrefix(line, "-- terminal ")
		if named {
			now = name
		}
		if terminals[now] == nil {
			terminals[now] = openTerminal(t, s)
		}
		c := terminals[now]
		switch {
		case strings.HasPrefix(line, "-- waits"):
			awaitLock(t, s)
		case strings.HasPrefix(line, "-- goes on"):
			shown = append(shown, c.answer()...)
		case strings.HasPrefix(line, "--") || line == "":
		default:
			text += line + "\n"
			if !strings.HasSuffix(line, ";") && !strings.HasPrefix(line, `\`) {
				continue
			}
			c.send(text)
			text = ""
			if i+1 == len(lines) || !strings.HasPrefix(lines[i+1], "-- waits") {
				shown = append(shown, c.answer()...)
			}
		}
	}
	return strings.Join(shown, ";")
}

// terminal is a client of the product.
type terminal struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Scanner
	n   int
}

func openTerminal(t *testing.T, s *backends.Instance) *terminal {
	t.Helper()
	k := s.Target
	cmd := exec.CommandContext(t.Context(), "mariadb", "--no-defaults", "--protocol=tcp", "--batch", "--skip-column-names", "--unbuffered", "--force", "-h", k.Host, "-P", fmt.Sprint(k.Port), "-u", k.User, "-p"+k.Password)
	if s.Engine.Dialect == product.DialectPostgres {
		cmd = exec.CommandContext(t.Context(), "psql", "-X", "-A", "-t", "-q", "-h", k.Host, "-p", fmt.Sprint(k.Port), "-U", k.User, "-d", "postgres")
		cmd.Env = append(os.Environ(), "PGPASSWORD="+k.Password)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	return &terminal{t: t, in: in, out: bufio.NewScanner(out)}
}

// send types a statement, and a query behind it whose answer says that the statement is done.
func (c *terminal) send(sql string) {
	c.n++
	if _, err := fmt.Fprintf(c.in, "%sSELECT 'done %d';\n", sql, c.n); err != nil {
		c.t.Fatal(err)
	}
}

// answer is what the client shows until then.
func (c *terminal) answer() (lines []string) {
	for c.out.Scan() {
		if c.out.Text() == fmt.Sprintf("done %d", c.n) {
			return lines
		}
		lines = append(lines, c.out.Text())
	}
	c.t.Errorf("the client ended: %v", c.out.Err())
	return lines
}

// awaitLock waits until a session of the server waits for a lock.
func awaitLock(t *testing.T, s *backends.Instance) {
	t.Helper()
	// Not innodb_trx: it is never renewed while it is read more often than each 0.1 s.
	sql := "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'Innodb_row_lock_current_waits'"
	if s.Engine.Dialect == product.DialectPostgres {
		sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
	}
	conn, err := s.Engine.Connect(t.Context(), s.Target)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for {
		rows, err := engine.Query(t.Context(), conn, sql)
		if err != nil {
			t.Fatal(err)
		}
		if string(rows[0][0]) != "0" {
			return
		}
		time.Sleep(10 * time.Millisecond) // the server is asked again; a test's own limit ends it
	}
}
