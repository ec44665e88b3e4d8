package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/backends"
	"wirecheck/internal/testserver"
)

// tuning is held by commands that set how the process collects garbage, and put it back as they found it.
var tuning sync.Mutex

// command runs the command line as main does.
func command(t *testing.T, args ...string) (stdout, stderr string, status exitStatus) {
	t.Helper()
	if slices.Contains([]string{"check", "collect", "explain"}, args[0]) {
		tuning.Lock()
		defer tuning.Unlock()
	}
	var out, err bytes.Buffer
	status = run(t.Context(), args, &out, &err)
	return out.String(), err.String(), status
}

func TestInstrumentCommand(t *testing.T) {
	d := testserver.MariaDB(t).Database(t)
	d.Exec(t, "CREATE TABLE account (id int PRIMARY KEY, n int)", "CREATE TABLE log (what text)", "CREATE TABLE old (a int) ENGINE=MyISAM",
		"CREATE VIEW rich AS SELECT * FROM account WHERE n > 100")
	steps := []struct {
		args []string
		want string
	}{
		{[]string{"status"}, `
TABLE     COLUMNS  ROWS  NOTES
D.account  none     ~0    
D.log      none     ~0    
D.old      none     ~0    left alone: engine MyISAM knows no transactions
D.rich     none     -     left alone: a view has no rows of its own
`},
		{[]string{"add", "--tables", "acc*,D.log"}, `
TABLE     COLUMNS  ROWS  NOTES
D.account  added    ~0    copied; others read meanwhile, writers waited
D.log      added    ~0    copied; others read meanwhile, writers waited
2 changed, 0 as they were, 0 failed
`},
		{[]string{"add"}, `
TABLE     COLUMNS  ROWS  NOTES
D.account  added    ~0    
D.log      added    ~0    
D.old      none     ~0    left alone: engine MyISAM knows no transactions
D.rich     none     -     left alone: a view has no rows of its own
0 changed, 4 as they were, 0 failed
`},
		{[]string{"remove"}, `
TABLE     COLUMNS  ROWS  NOTES
D.account  none     ~0    instant
D.log      none     ~0    instant
D.old      none     ~0    left alone: engine MyISAM knows no transactions
D.rich     none     -     left alone: a view has no rows of its own
2 changed, 2 as they were, 0 failed
`},
	}
	spaces := regexp.MustCompile(` +`)
	squeeze := func(s string) string { return spaces.ReplaceAllString(strings.TrimSpace(s), " ") }
	for _, step := range steps {
		args := []string{"instrument", step.args[0], addressOf(t, d)}
		for _, a := range step.args[1:] {
			args = append(args, strings.ReplaceAll(a, "D.", d.Name+"."))
		}
		out, errOut, status := command(t, args...)
		if status != exitClean || errOut != "" {
			t.Errorf("%v: exit status %d, said %q", step.args, status, errOut)
		}
		head, body, _ := strings.Cut(out, "\n")
		if want := "MariaDB " + d.Server.Version + ", " + d.Name + ", capture columns"; head != want {
			t.Errorf("%v: got head %q, want %q", step.args, head, want)
		}
		want := strings.ReplaceAll(step.want, "D.", d.Name+".")
		if diff := cmp.Diff(squeeze(want), squeeze(body)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", step.args, diff)
		}
	}
}

func TestInstrumentCommandJSON(t *testing.T) {
	d := testserver.Postgres(t).Database(t)
	d.Exec(t, "CREATE TABLE log (what text)")
	out, errOut, status := command(t, "instrument", "add", addressOf(t, d), "--format", "json")
	var got map[string]any
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != exitClean || errOut != "" {
		t.Fatalf("exit status %d, %v, said %q and %q", status, err, out, errOut)
	}
	want := map[string]any{
		"engine": "PostgreSQL", "version": d.Server.Version, "database": d.Name, "capture": "native",
		"note": "PostgreSQL itself tells what is needed: nothing to add", "changed": 0.0, "failed": 0.0,
		"tables": []any{map[string]any{"table": map[string]any{
			"schema": "public", "name": "log", "state": "none", "rows": -1.0,
			"limits": []any{"no primary key: a row is followed from version to version"},
		}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestInstrumentCommandFails(t *testing.T) {
	d := testserver.MariaDB(t).Database(t)
	d.Exec(t, "CREATE TABLE mine (wc_row_id int)", "CREATE TABLE other (a int)")
	out, errOut, status := command(t, "instrument", "add", addressOf(t, d))
	if status != exitFailed || errOut != "wirecheck: 1 of 2 tables could not be changed\n" {
		t.Errorf("a table with columns of the same name: exit status %d, said %q", status, errOut)
	}
	if !strings.Contains(out, "it has columns of these names that are not wirecheck's") || !strings.Contains(out, "1 changed, 0 as they were, 1 failed") {
		t.Errorf("a table with columns of the same name: printed %q", out)
	}
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"instrument", "add"}, "expected: wirecheck instrument add URL [flags]; got no argument"},
		{[]string{"instrument", "add", "sqlite:x"}, "SQLite is a library: no proxy stands in front of it"},
		{[]string{"instrument", "add", "oracle:x"}, `unknown engine "oracle"`},
		{[]string{"instrument", "add", addressOf(t, d), "--capture", "magic"}, `unknown capture "magic"`},
		{[]string{"instrument", "add", addressOf(t, d), "--format", "sarif"}, "this command gives no sarif"},
		{[]string{"instrument", "add", addressOf(t, d), "--tables", "nope"}, `no table matches "nope"`},
		{[]string{"instrument", "status", "mysql://app@127.0.0.1:1/"}, "connection refused"},
	}
	for _, test := range tests {
		out, errOut, status := command(t, test.args...)
		if status != exitFailed || out != "" || !strings.HasPrefix(errOut, "wirecheck: ") || !strings.Contains(errOut, test.want) {
			t.Errorf("%v: exit status %d, printed %q, said %q; want %q", test.args, status, out, errOut, test.want)
		}
	}
}

// TestInstrumentInterrupted: what was done is reported, and the rest is left as it is.
func TestInstrumentInterrupted(t *testing.T) {
	d := testserver.MariaDB(t).Database(t)
	d.Exec(t, "CREATE TABLE a (id int)", "CREATE TABLE b (id int)", "CREATE TABLE c (id int)")
	tx, err := d.MariaDB(t).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(t.Context(), "SELECT * FROM b"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	observer := d.MariaDB(t)
	watched := make(chan error, 1)
	go func() { // sends the signal when the server says that the second table is waited for
		var waits int
		var err error
		for waits == 0 && err == nil {
			err = observer.QueryRowContext(t.Context(), "SELECT count(*) FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for table metadata lock' AND INFO LIKE 'ALTER%'").Scan(&waits)
		}
		cancel()
		watched <- err
	}()
	var out, said bytes.Buffer
	status := run(ctx, []string{"instrument", "add", addressOf(t, d), "--lock-wait", "1h"}, &out, &said)
	if err := <-watched; err != nil {
		t.Fatal(err)
	}
	if status != exitFailed || said.String() != "wirecheck: interrupted: 1 of 3 tables are done; run it again to go on\n" {
		t.Errorf("exit status %d, said %q", status, said.String())
	}
	if !strings.Contains(out.String(), "1 changed, 0 as they were, 1 failed") {
		t.Errorf("printed %q", out.String())
	}
}

func TestInstrumentPasswordFromEnvironment(t *testing.T) {
	d := testserver.MariaDB(t).Database(t)
	url := addressOf(t, d)
	t.Setenv(backends.PasswordVariable, "")
	if _, errOut, status := command(t, "instrument", "status", url); status != exitFailed || !strings.Contains(errOut, "Access denied") {
		t.Errorf("without password: exit status %d, said %q", status, errOut)
	}
	t.Setenv(backends.PasswordVariable, d.Password)
	if _, errOut, status := command(t, "instrument", "status", url); status != exitClean {
		t.Errorf("with %s: exit status %d, said %q", backends.PasswordVariable, status, errOut)
	}
}

// addressOf gives the database's URL without the password, which it puts into the environment.
func addressOf(t *testing.T, d testserver.Database) string {
	t.Helper()
	u, err := url.Parse(d.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(backends.PasswordVariable, d.Password)
	u.User = url.User(d.User)
	return u.String()
}
