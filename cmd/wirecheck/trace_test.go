package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wirecheck/trace"
)

// csvLine is a line of a PostgreSQL csvlog.
func csvLine(ms int, pid, ps, message, detail string) string {
	txn := pid + "/2"
	if ps == "SELECT" || ps == "COMMIT" { // no transaction is left
		txn = pid + "/0"
	}
	return fmt.Sprintf("2026-03-01 12:00:00.%03d UTC,\"app\",\"shop\",%s,\"10.0.0.1:1\",6b00.%s,1,\"%s\",2026-03-01 11:00:00 UTC,%s,0,LOG,00000,\"%s\",%s,,,,,,,,\"shop-%s\",\"client backend\",,0\n",
		ms, pid, pid, ps, txn, message, detail, pid)
}

// shopLog has two sessions, the first of which waits for nobody.
func shopLog() string {
	var b strings.Builder
	b.WriteString(csvLine(1, "7", "idle", "statement: BEGIN", ""))
	b.WriteString(csvLine(2, "7", "BEGIN", "duration: 0.100 ms", ""))
	b.WriteString(csvLine(10, "7", "UPDATE", "execute s: UPDATE account SET n = $1 WHERE name = $2", `"parameters: $1 = '5', $2 = 'ann'"`))
	b.WriteString(csvLine(20, "8", "idle", "statement: SELECT * FROM stock WHERE item = 'pen'", ""))
	b.WriteString(csvLine(21, "8", "SELECT", "duration: 0.900 ms", ""))
	b.WriteString(csvLine(30, "7", "UPDATE", "duration: 20.000 ms", ""))
	b.WriteString("what is this\n")
	b.WriteString(csvLine(40, "7", "idle in transaction", "statement: COMMIT", ""))
	b.WriteString(csvLine(41, "7", "COMMIT", "duration: 0.500 ms", ""))
	return b.String()
}

// importShop makes a trace file of it.
func importShop(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	log, wct := filepath.Join(dir, "server.csv"), filepath.Join(dir, "shop.wct")
	if err := os.WriteFile(log, []byte(shopLog()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, said, status := command(t, "trace", "import", log, "-o", wct)
	if status != exitClean || said != "" {
		t.Fatalf("exit status %d, said %q", status, said)
	}
	for _, want := range []string{"PostgreSQL csvlog", "lines: 9; sessions: 2, statements: 4 (errors: 0)", "unknown lines: 1", "server.csv:7: ", "what is this", "results, and how many rows"} {
		if !strings.Contains(out, want) {
			t.Errorf("import does not say %q:\n%s", want, out)
		}
	}
	return wct
}

func TestTraceShow(t *testing.T) {
	wct := importShop(t)
	out, said, status := command(t, "trace", "show", wct)
	want := `12:00:00.001000 s1   - session (joined), postgres, user app, database shop, application shop-7, from 10.0.0.1:1, backend 7
12:00:00.001000 s1   I BEGIN  -> ?  (0.100 ms)
12:00:00.010000 s1   T [prepared] UPDATE account SET n = $1 WHERE name = $2  {5, ann}  -> ?  (20.0 ms)
12:00:00.020000 s2   - session (joined), postgres, user app, database shop, application shop-8, from 10.0.0.1:1, backend 8
12:00:00.020000 s2   I SELECT * FROM stock WHERE item = 'pen'  -> ?  (0.900 ms)
12:00:00.040000 s1   T COMMIT  -> ?  (0.500 ms)
`
	if status != exitClean || said != "" || out != want {
		t.Errorf("exit status %d, said %q, printed\n%s\nwant\n%s", status, said, out, want)
	}
	for args, lines := range map[string]int{"--session 2": 2, "--from 12:00:00.02": 3, "--to +15ms": 3, "--failed": 0, "--as-recorded": 6, "--session 1,2 --from +39ms": 1} {
		out, _, status := command(t, append([]string{"trace", "show", wct}, strings.Fields(args)...)...)
		if n := strings.Count(out, "\n"); status != exitClean || n != lines {
			t.Errorf("%s: exit status %d, %d lines, want %d:\n%s", args, status, n, lines, out)
		}
	}
	out, _, status = command(t, "trace", "show", "--format", "html", wct)
	if status != exitClean || strings.Count(out, `scope="row"`) != 6 || !strings.Contains(out, ">session 2<") || !strings.Contains(out, "UPDATE account SET n = $1 WHERE name = $2  {5, ann}") {
		t.Errorf("exit status %d, printed\n%s", status, out)
	}
	out, _, _ = command(t, "trace", "show", "--format", "json", wct)
	var first struct {
		Kind string
		Open struct{ Database string }
	}
	if err := json.Unmarshal([]byte(strings.SplitN(out, "\n", 2)[0]), &first); err != nil || first.Kind != "session" || first.Open.Database != "shop" {
		t.Errorf("%v in %s", err, out)
	}
}

func TestTraceStats(t *testing.T) {
	out, _, status := command(t, "trace", "stats", importShop(t))
	for _, want := range []string{"sessions: 2, joined after their beginning: 2", "transactions: 1, autocommit statements: 1", "statements: 4, failed: 0", "2 statements at most", "update  1"} {
		if status != exitClean || !strings.Contains(out, want) {
			t.Errorf("exit status %d; no %q:\n%s", status, want, out)
		}
	}
	var s trace.Stats
	out, _, _ = command(t, "trace", "stats", "--format", "json", importShop(t))
	if err := json.Unmarshal([]byte(out), &s); err != nil || s.Statements != 4 || s.Transactions.Begun != 1 || s.Transactions.Ended != 1 {
		t.Errorf("%v: %s", err, out)
	}
}

func TestTraceCut(t *testing.T) {
	wct := importShop(t)
	for args, want := range map[string][]string{
		"--tables account":           {"BEGIN", "UPDATE", "COMMIT"},
		"--tables acc*,nothing":      {"BEGIN", "UPDATE", "COMMIT"},
		"--tables public.stock":      {},
		"--tables stock":             {"SELECT"},
		"--session 2":                {"SELECT"},
		"--from +5ms --to +35ms":     {"UPDATE", "SELECT"},
		"--from +5ms --tables stock": {"SELECT"},
		"--from 2026-03-01T13:00:00+01:00 --session 1 --to 12:00:00.005": {"BEGIN"},
	} {
		to := filepath.Join(t.TempDir(), "part.wct")
		out, said, status := command(t, append([]string{"trace", "cut", wct, "-o", to}, strings.Fields(args)...)...)
		if len(want) == 0 {
			if status != exitUnknown || !strings.Contains(said, "nothing was kept") {
				t.Errorf("%s: exit status %d, %q", args, status, said)
			}
			continue
		}
		shown, _, _ := command(t, "trace", "show", to)
		for _, word := range []string{"BEGIN", "UPDATE", "SELECT", "COMMIT"} {
			has, wanted := strings.Contains(shown, word), false
			for _, w := range want {
				wanted = wanted || w == word
			}
			if has != wanted {
				t.Errorf("%s: %s there: %v\n%s", args, word, has, shown)
			}
		}
		if !strings.Contains(out, fmt.Sprintf("statements kept: %d\n", len(want))) || !strings.Contains(shown, "session (joined)") {
			t.Errorf("%s: %s\n%s", args, out, shown)
		}
		if middle := strings.Contains(out, "in the middle of a transaction: 1"); middle != (want[0] == "UPDATE") {
			t.Errorf("%s: %s", args, out)
		}
	}
}

func TestTraceRedact(t *testing.T) {
	to := filepath.Join(t.TempDir(), "redacted.wct")
	out, _, status := command(t, "trace", "redact", importShop(t), "-o", to)
	if status != exitClean || !strings.Contains(out, "statements redacted: 4") {
		t.Fatalf("exit status %d: %s", status, out)
	}
	shown, _, _ := command(t, "trace", "show", to)
	for _, value := range []string{"ann", "pen", "10.0.0.1"} {
		if strings.Contains(shown, value) {
			t.Errorf("%s is left:\n%s", value, shown)
		}
	}
	if !strings.Contains(shown, "UPDATE account SET n = $1 WHERE name = $2") {
		t.Errorf("the statement is gone:\n%s", shown)
	}
	r, err := trace.Open(to, trace.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if !r.Header().Redacted {
		t.Error("the file does not say that it is redacted")
	}
}

func TestTraceRefuses(t *testing.T) {
	wct := importShop(t)
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	data, err := os.ReadFile(wct)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(data)
	damaged[bytes.Index(data, []byte("WCTB"))+40] ^= 1
	empty := write("empty.csv", []byte("\n"))
	for _, tt := range []struct {
		args   string
		status exitStatus
		want   string
	}{
		{"import " + wct, exitFailed, "name it with -o"},
		{"import -o " + wct + " " + empty, exitFailed, "file exists"},
		{"import -o " + dir + "/x.wct " + dir + "/none", exitFailed, "no such file"},
		{"import -o " + dir + "/x.wct " + empty, exitFailed, "none of the formats"},
		{"import --format csvlog -o " + dir + "/y.wct " + empty, exitUnknown, "no statement was found"},
		{"import --format xml -o " + dir + "/x.wct " + empty, exitFailed, `unknown format "xml"`},
		{"show " + empty, exitFailed, "this is not a trace file"},
		{"show --format junit " + wct, exitFailed, "gives no junit"},
		{"show --from yesterday " + wct, exitFailed, `"yesterday" is no time`},
		{"show --from +x " + wct, exitFailed, `"+x"`},
		{"show --from +2s --to +1s " + wct, exitFailed, "is not later"},
		{"show " + write("cut.wct", data[:len(data)-3]), exitClean, "was not closed"},
		{"show " + write("damaged.wct", damaged), exitFailed, "--skip-damaged goes on"},
		{"show --skip-damaged " + dir + "/damaged.wct", exitClean, "1 damaged block with"},
		{"stats " + dir + "/none.wct", exitFailed, "no such file"},
		{"cut " + wct + " -o " + dir + "/x.wct", exitFailed, "nothing to cut"},
		{"cut --session 1 " + wct, exitFailed, "name it with -o"},
		{"redact " + wct + " -o " + wct, exitFailed, "file exists"},
	} {
		_, said, status := command(t, append([]string{"trace"}, strings.Fields(tt.args)...)...)
		if status != tt.status || !strings.Contains(said, tt.want) {
			t.Errorf("%s: exit status %d, said %q; want %d, %q", tt.args, status, said, tt.status, tt.want)
		}
		if _, err := os.Stat(dir + "/x.wct"); err == nil {
			t.Errorf("%s: leaves a file", tt.args)
		}
	}
}

// TestTraceInterrupted ends each command before it begins to read: it says so, and leaves no file.
func TestTraceInterrupted(t *testing.T) {
	wct := importShop(t)
	log := filepath.Join(t.TempDir(), "server.csv")
	if err := os.WriteFile(log, []byte(shopLog()), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	to := filepath.Join(t.TempDir(), "x.wct")
	for _, args := range [][]string{
		{"import", log, "-o", to}, {"show", wct}, {"show", "--as-recorded", wct}, {"stats", wct}, {"cut", "--tables", "stock", wct, "-o", to}, {"redact", wct, "-o", to},
	} {
		var out, said bytes.Buffer
		status := run(ctx, append([]string{"trace"}, args...), &out, &said)
		if status != exitFailed || said.String() != "wirecheck: interrupted\n" {
			t.Errorf("%v: exit status %d, said %q", args, status, said.String())
		}
		if _, err := os.Stat(to); err == nil {
			t.Errorf("%v: leaves a file", args)
		}
	}
}
