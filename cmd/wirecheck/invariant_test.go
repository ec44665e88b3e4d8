package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"wirecheck/internal/testserver"
	"wirecheck/lab/explore"
)

// stocked is a warehouse: what is on the shelf and what was sold is never more than there was.
const (
	stockSchema = "CREATE TABLE item (id INT PRIMARY KEY, stock INT);\nCREATE TABLE sold (id INT, item INT);\nINSERT INTO item VALUES (1, 5);\n"
	neverMore   = "SELECT stock, (SELECT count(*) FROM sold WHERE item = item.id) FROM item WHERE stock + (SELECT count(*) FROM sold WHERE item = item.id) > 5"
)

// sale takes one from the shelf: the application computes what is left, or (careful) the server does.
func sale(careful bool, number, left string) []string {
	update := "UPDATE item SET stock = " + left + " WHERE id = 1"
	if careful {
		update = "UPDATE item SET stock = stock - 1 WHERE id = 1"
	}
	return transaction("sale", "SELECT stock FROM item WHERE id = 1", update, "INSERT INTO sold VALUES ("+number+", 1)")
}

func sales(careful bool) []string {
	return serially(sale(careful, "1", "4"), sale(careful, "2", "3"))
}

// stockTrace gives a trace of one of the products, the URL of a server and the schema.
func stockTrace(t *testing.T, engine string, lines []string) (path, url, schema string) {
	t.Helper()
	if engine == "postgres" {
		return loggedPostgres(t, lines...), serverURL(testserver.Postgres(t)), file(t, stockSchema)
	}
	return loggedTrace(t, lines...), serverURL(testserver.MariaDB(t)), file(t, stockSchema)
}

// TestReplayInvariant: a serial capture keeps the invariant, other interleavings of it break it, and the command that replay prints shows that again. If the
// server computes what is left, none does.
func TestReplayInvariant(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"postgres", "mariadb"} {
		path, url, schema := stockTrace(t, engine, sales(false))
		dir := t.TempDir()
		args := []string{"replay", path, "--engine", url, "--snapshot", schema, "--log-level", "warn", "--oracle", "none", "--interleavings", "all", "--unit", "transaction"}
		out, said, status := command(t, append(args, "--invariant", neverMore, "--invariant", "same:SELECT count(*) FROM item", "--out", dir)...)
		for _, part := range []string{"ANOMALY: INVARIANT BROKEN", "it gives 4|2", "no serial order breaks it: the interleaving does"} {
			if status != exitFound || !strings.Contains(out, part) {
				t.Fatalf("%s: exit status %d, without %q:\n%s%s", engine, status, part, out, said)
			}
		}
		again := regexp.MustCompile(`shown by: wirecheck run (\S+) --engine \S+ --invariant '(.*)'`).FindStringSubmatch(out)
		if again == nil || again[2] != neverMore {
			t.Fatalf("%s: no command shows it again:\n%s", engine, out)
		}
		expectRun(t, exitFound, []string{"invariant broken in 1 of 1 permutation", "it gives 4|2"}, again[1], "--engine", url, "--invariant", neverMore)
		careful, _, _ := stockTrace(t, engine, sales(true))
		args[1] = careful
		if out, said, status := command(t, append(args, "--invariant", neverMore)...); status != exitClean || !strings.Contains(out, "wrong: 0") {
			t.Errorf("%s: the careful one: exit status %d\n%s%s", engine, status, out, said)
		}
		args[1] = path
		out, said, status = command(t, append(args, "--invariant", "same:SELECT stock FROM item")...)
		if status != exitFound || !strings.Contains(out, "INVARIANT BROKEN in the recorded order: SELECT stock FROM item: before: 5; after: 3") ||
			!strings.Contains(out, "breaks it as well: the statements do not keep it") {
			t.Errorf("%s: what the statements break: exit status %d\n%s%s", engine, status, out, said)
		}
		if out, said, status := command(t, append(args, "--invariant", "SELECT nothing FROM item")...); status != exitFailed || !strings.Contains(said, "the server refuses it") {
			t.Errorf("%s: a wrong query: exit status %d\n%s%s", engine, status, out, said)
		}
	}
}

// TestAdviseInvariant: the levels at which an interleaving breaks it are told, and it counts as wrong there. What lets the server compute what is left is a
// remedy: it keeps it.
func TestAdviseInvariant(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := advised(t, "postgres", exitFound, stockSchema, sales(false), "--invariant", neverMore, "--out", dir)
	for _, o := range a.Pairs[0].Levels {
		broken := 0
		for _, b := range o.Breaches {
			if broken += b.Broken; b.Invariant != neverMore || b.Shown.Serial != "" || b.Broken > o.Wrong {
				t.Errorf("%s: %+v of %d wrong", o.Level, b, o.Wrong)
			}
			if text, err := os.ReadFile(b.Shown.Kept); err != nil || filepath.Dir(b.Shown.Kept) != dir || !strings.Contains(string(text), "permutation") {
				t.Errorf("%s: kept in %q: %v\n%s", o.Level, b.Shown.Kept, err, text)
			}
		}
		if weak := o.Level == "read committed"; (broken > 0) != weak {
			t.Errorf("%s: broken in %d", o.Level, broken)
		}
	}
	for _, r := range a.Pairs[0].Remedies {
		if len(r.Breaches) > 0 || r.Outcome.Tried == 0 {
			t.Errorf("the careful one, %s: %+v", r.Text, r.Outcome)
		}
	}
	if len(a.Pairs[0].Remedies) == 0 || !strings.Contains(a.Pairs[0].Remedies[0].SQL, "stock = stock - 1") {
		t.Errorf("proven: %+v, want that the UPDATE computes what is left", a.Pairs[0].Remedies)
	}
}

// TestReplayInvariantJSON: the shape of it for programs.
func TestReplayInvariantJSON(t *testing.T) {
	t.Parallel()
	path, url, schema := stockTrace(t, "postgres", sales(false))
	out, said, status := command(t, "replay", path, "--engine", url, "--snapshot", schema, "--log-level", "warn", "--interleavings", "all", "--unit", "transaction", "--invariant", neverMore, "--format", "json")
	var r struct {
		Explored struct {
			Interleavings, Wrong int
			Anomalies            []explore.WrongRun
		}
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil || status != exitFound {
		t.Fatalf("exit status %d: %v\n%s", status, err, said)
	}
	i := slices.IndexFunc(r.Explored.Anomalies, func(w explore.WrongRun) bool { return w.Invariant == neverMore })
	if i < 0 || len(r.Explored.Anomalies) != 2 || r.Explored.Wrong > r.Explored.Interleavings || r.Explored.Anomalies[i].Wrong != r.Explored.Wrong {
		t.Errorf("want the lost update and the broken invariant, in the same interleavings: %d of %d wrong", r.Explored.Wrong, r.Explored.Interleavings)
		for _, a := range r.Explored.Anomalies {
			t.Error(a.Found, a.Invariant, a.Wrong, a.Why)
		}
	}
}

// TestExploreInvariant: a run that breaks an invariant fails, though no oracle and no command says so.
func TestExploreInvariant(t *testing.T) {
	for _, engine := range []string{"postgres", "mariadb"} {
		r := newRace(t, engine)
		known := file(t, "ignore:\n  - class: lost update\n    table: coupon\n    reason: the invariant is to find it\n")
		const used = "SELECT n FROM coupon WHERE n NOT IN (4, 5)"
		args := []string{"--think", thinking, "--seed", "94", "--shrink-runs", "1", "--baseline", known, "--runs", "4"}
		if out, said, status := r.explore(t, "racy", append(args, "--invariant", used)...); status != exitClean {
			t.Errorf("%s: an invariant that holds: exit status %d\n%s%s", engine, status, out, said)
		}
		out, said, status := r.explore(t, "racy", append(args, "--invariant", "same:SELECT n FROM coupon")...)
		if status != exitFound || !strings.Contains(out, "invariant broken: SELECT n FROM coupon: before: 5; after: 4") || !strings.Contains(out, "run it again: wirecheck explore --schedule") ||
			!strings.Contains(out, "it breaks an invariant") {
			t.Errorf("%s: exit status %d\n%s%s", engine, status, out, said)
		}
	}
}
