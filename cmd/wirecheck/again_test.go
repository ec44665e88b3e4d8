package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wirecheck/oracle"
)

// recordedAnomalies are anomalies that a recording has, in the order of their steps ("SESSION statement").
var recordedAnomalies = []struct {
	name, level string
	steps       string
}{
	{"lost update", "READ COMMITTED", `
		1 begin
		1 select uses_left from coupon where code = 'WELCOME10'
		2 begin
		2 select uses_left from coupon where code = 'WELCOME10'
		2 update coupon set uses_left = 4 where code = 'WELCOME10'
		2 commit
		1 update coupon set uses_left = 3 where code = 'WELCOME10'
		1 commit`},
	{"write skew", "REPEATABLE READ", `
		1 begin
		1 select sum(balance) from account
		2 begin
		2 select sum(balance) from account
		1 update account set balance = balance - 150 where id = 1
		2 update account set balance = balance - 150 where id = 2
		1 commit
		2 commit`},
	{"read skew", "READ COMMITTED", `
		1 begin
		1 select balance from account where id = 1
		2 begin
		2 update account set balance = balance - 10 where id = 1
		2 update account set balance = balance + 10 where id = 2
		2 commit
		1 select balance from account where id = 2
		1 commit`},
	{"write skew", "REPEATABLE READ", `
		1 begin
		1 select count(*) from booking where room = 7 and day = '2026-12-24'
		2 begin
		2 select count(*) from booking where room = 7 and day = '2026-12-24'
		1 insert into booking values (1, 7, '2026-12-24', 'ann')
		2 insert into booking values (2, 7, '2026-12-24', 'bob')
		1 commit
		2 commit`},
}

// TestShownAgain records a lost update, two write skews (one of them a double booking) and a read skew, each at its own level and with a change
// of the same rows in between. Each finding of check names the command that shows it again. What that prints is a scenario in which wirecheck run
// finds the same anomaly. Without the dump, of a history and of an unknown id it says what is missing.
func TestShownAgain(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"postgres", "mariadb"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			tables := []string{"CREATE TABLE coupon (code varchar(20) PRIMARY KEY, uses_left int)", "CREATE TABLE account (id int PRIMARY KEY, balance int)",
				"CREATE TABLE booking (id int PRIMARY KEY, room int, day date, guest varchar(20))", "CREATE INDEX by_room ON booking (room, day)"}
			rows := []string{"INSERT INTO coupon VALUES ('WELCOME10', 5)", "INSERT INTO account VALUES (1, 100), (2, 100)"}
			w := newWorld(t, engine, tables...)
			w.run(t, rows...)
			before := filepath.Join(t.TempDir(), "before.sql")
			if err := os.WriteFile(before, []byte(strings.Join(append(tables, rows...), ";\n")+";\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			p, url := startRecording(t, w.direct), w.server.As(w.admin.User).URL()
			through := w.direct
			through.Port = p.port
			for _, a := range recordedAnomalies {
				s := newStage(t, t.Context(), w.admin, through, a.level)
				s.play(t.Context(), lines(a.steps))
				s.close()
				do(t, p.client(t, w), "UPDATE account SET balance = 80 WHERE id = 2") // what a scenario must begin with
			}
			if status := p.end(t); status != int(exitFound) {
				t.Fatalf("exit status %d\n%s", status, p.stderr.String())
			}
			out, said, _ := command(t, "check", p.trace, "--format", "json")
			var got struct{ Findings []oracle.Finding }
			if err := json.Unmarshal([]byte(out), &got); err != nil || len(got.Findings) != len(recordedAnomalies) {
				t.Fatalf("%v, findings: %d\n%s%s", err, len(got.Findings), out, said)
			}
			text, _, _ := command(t, "check", p.trace)
			dir := t.TempDir()
			for i := range got.Findings {
				f := &got.Findings[i]
				args := []string{"explain", f.ID, p.trace, "--snapshot", "before.sql", "--format", "scenario"}
				if f.Title() != recordedAnomalies[i].name || !strings.Contains(text, "\n  Show it again:\n    wirecheck "+strings.Join(args, " ")+"\n") {
					t.Fatalf("finding %d is a %s\n%s", i, f.Title(), text)
				}
				args[4] = before
				spec, said, status := command(t, append(args, "--engine", url)...)
				if status != exitClean {
					t.Fatalf("%s: exit status %d: %s", f.Title(), status, said)
				}
				path := filepath.Join(dir, f.ID+".spec")
				if err := os.WriteFile(path, []byte(spec), 0o600); err != nil {
					t.Fatal(err)
				}
				if shown, said, status := command(t, "run", path, "--engine", url); status != exitFound || !strings.Contains(shown, "isolation: "+f.Title()) {
					t.Errorf("%s: exit status %d: %s\n%s\n%s", f.Title(), status, said, spec, shown)
				}
			}
			id := got.Findings[0].ID
			for _, c := range []struct {
				args []string
				want string
			}{
				{[]string{id, p.trace}, "add a dump of the database from that time, --snapshot FILE"},
				{[]string{id, p.trace, "--snapshot", before + "x"}, "no such file"},
				{[]string{"WC-000000", p.trace, "--snapshot", before}, "there is no finding WC-000000 in it"},
				{[]string{id, "shop.jsonl"}, "wirecheck proxy --record NAME.wct"},
			} {
				out, said, status := command(t, append([]string{"explain", "--format", "scenario", "--engine", url}, c.args...)...)
				if status != exitFailed || out != "" || !strings.Contains(said, c.want) {
					t.Errorf("explain %q: exit status %d, want %q, got: %s%s", c.args, status, c.want, out, said)
				}
			}
		})
	}
}
