package hunt

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"wirecheck/backends"
	"wirecheck/history"
	"wirecheck/lab/generate"
	"wirecheck/lab/hunt/filing"
	"wirecheck/lab/panel"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
)

// torn is the case in which an UPDATE judges its rows at two moments.
func torn(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../../testdata/reduce/torn.spec")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestHunterKeeps gives a hunter a case with a bug: it is made small and kept with all that belongs to it; the same bug in another
// case is counted.
func TestHunterKeeps(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "found")
	h := hunterOn(t, "mariadb", "troc", dir)
	level, err := panel.FindLevel(h.Instance.Engine, "read committed")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := scenario.Parse("torn.spec", torn(t))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		f, err := h.Find(t.Context(), spec, level, "troc")
		if err != nil || f == nil {
			t.Fatalf("finding %v, error %v", f, err)
		}
		if err := h.found(t.Context(), spec, level, f); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.store.save(0); err != nil {
		t.Fatal(err)
	}
	if len(h.store.kept) != 1 || h.store.kept[0].Seen != 2 {
		t.Fatalf("kept %+v", h.store.kept)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, "troc-001", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	small, err := scenario.Parse("case.spec", []byte(read("case.spec")))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(small.Permutations[0].Steps); n > 5 || len(small.Setup) != 2 || strings.Contains(read("case.spec"), "other") {
		t.Errorf("the case is not small: %d steps\n%s", n, read("case.spec"))
	}
	if original, err := scenario.Parse("original.spec", []byte(read("original.spec"))); err != nil || len(original.Permutations[0].Steps) != 8 {
		t.Errorf("the original: %v", err)
	}
	for _, want := range []string{"MariaDB 10.", "READ COMMITTED", "-- terminal 2\nUPDATE t SET b", "Expected: ", "Observed: ", "MDEV-26643"} {
		if !strings.Contains(read("report.md"), want) {
			t.Errorf("the report lacks %q:\n%s", want, read("report.md"))
		}
	}
	r, err := history.NewReader(strings.NewReader(read("history.jsonl")), "history")
	if err != nil {
		t.Fatal(err)
	}
	events := 0
	for e := (history.Event{}); r.Next(&e) == nil; {
		if e.Kind == history.EventStmt {
			events++
		}
	}
	if events < 2 {
		t.Errorf("the history has %d statements", events)
	}
	if info, err := os.Stat(filepath.Join(dir, "troc-001", "reproduce.sh")); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("reproduce.sh: %v", err)
	}
	if again, err := h.Find(t.Context(), small, level, "troc"); err != nil || again == nil {
		t.Errorf("the small case shows %v, error %v", again, err)
	}
}

// huntOptionsOf are those of a short hunt.
func huntOptionsOf(t *testing.T, name, oracles, dir string) Options {
	t.Helper()
	p, err := panel.Select(oracles)
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Engine: name, Selection: p, Out: dir, Tries: 300, Limit: time.Minute, Group: 5, Limits: generate.DefaultLimits(), Levels: []string{"all"},
		Judging: panel.Options{Log: zerolog.Nop(), Seed: 7}, Progress: func(func() string) {}, Rescue: t.Output(),
	}
}

// hunterOn makes a hunter on a private server, without a loop.
func hunterOn(t *testing.T, name, oracles, dir string) *hunter {
	t.Helper()
	h := &hunter{o: huntOptionsOf(t, name, oracles, dir), began: time.Now(), started: time.Now()}
	var err error
	if h.store, err = openStore(dir, name, "", false); err != nil {
		t.Fatal(err)
	}
	if h.Executor, err = panel.OpenExecutor(t.Context(), name, h.o.Selection, h.o.Judging, time.Minute, false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if h.settings, err = filing.ReadSettings(t.Context(), h.Instance); err != nil {
		t.Fatal(err)
	}
	if h.levels, err = panel.Levels(h.Instance.Engine, nil, &scenario.Spec{}); err != nil {
		t.Fatal(err)
	}
	return h
}

// TestHunterSurvives kills the server under a hunt: the crash is noticed and does not repeat, and the hunt goes on.
func TestHunterSurvives(t *testing.T) {
	t.Parallel()
	h := hunterOn(t, "postgres", "crash", filepath.Join(t.TempDir(), "found"))
	for i := range 3 {
		if err := h.oneCase(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	dead := h.Instance.Server
	if err := dead.Kill(); err != nil {
		t.Fatal(err)
	}
	<-dead.Done()
	if err := h.oneCase(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	if h.Instance.Server == dead {
		t.Error("no new server was started")
	}
	if err := h.oneCase(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	s := &h.store.state
	if s.Crashes != 1 || s.Flaky != 1 || len(h.store.kept) != 0 || s.Cases < 4 {
		t.Errorf("%d crashes, %d flaky, %d kept, %d cases; want 1, 1, 0, at least 4", s.Crashes, s.Flaky, len(h.store.kept), s.Cases)
	}
	if _, err := os.Stat(filepath.Join(h.store.dir, "flaky", "crash-001", "case.spec")); err != nil {
		t.Error(err)
	}
}

// TestHuntResumes: a second run goes on where the first one ended, with the same seed; results are not mixed by mistake.
func TestHuntResumes(t *testing.T) {
	t.Parallel()
	o := huntOptionsOf(t, "postgres", "crash", filepath.Join(t.TempDir(), "found"))
	o.Judging.Seed, o.Cases, o.Steer, o.Queries = 9, 6, true, 200
	first, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	steered := func() *generate.Steering {
		k, err := openStore(o.Out, "postgres", "", true)
		if err != nil {
			t.Fatal(err)
		}
		return k.steering
	}
	before := steered()
	if before.Coverage.Outcomes() == 0 || len(before.Pool) == 0 || len(before.Metadata) == 0 {
		t.Errorf("nothing steers the next run: %d outcomes, %d cases in the pool", before.Coverage.Outcomes(), len(before.Pool))
	}
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "--resume") {
		t.Errorf("a hunt into the same folder: %v", err)
	}
	o.Judging.Seed, o.Cases, o.Resume = 0, 9, true
	second, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if first.Cases != 6 || second.Cases != 9 || second.Seed != 9 || second.Statements <= first.Statements || second.Elapsed <= first.Elapsed {
		t.Errorf("first %+v\nsecond %+v", first, second)
	}
	if after := steered(); after.Coverage.Outcomes() < before.Coverage.Outcomes() || after.Coverage.Len() <= before.Coverage.Len() {
		t.Errorf("%d outcomes and %d combinations after %d and %d", after.Coverage.Outcomes(), after.Coverage.Len(), before.Coverage.Outcomes(), before.Coverage.Len())
	}
	o.Engine = "mariadb"
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "not on mariadb") {
		t.Errorf("another engine: %v", err)
	}
}

// TestHuntSteers: executions that lead the choice of cases do more different things than others, as many cases of each. The oracle is the one that
// costs least.
func TestHuntSteers(t *testing.T) {
	t.Parallel()
	outcomes := func(steer bool) int {
		h := hunterOn(t, "postgres", "crash", filepath.Join(t.TempDir(), "found"))
		h.o.Steer = steer
		for i := range 80 {
			if err := h.oneCase(t.Context(), i); err != nil {
				t.Fatal(err)
			}
		}
		return h.store.steering.Coverage.Outcomes()
	}
	without, with := outcomes(false), outcomes(true)
	t.Logf("%d outcomes, %d with steering", without, with)
	if with*5 < without*6 {
		t.Errorf("%d outcomes with steering, %d without: want a fifth more", with, without)
	}
}

// TestKeeperDisk: what cannot be written is kept in memory and written later.
func TestKeeperDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "found")
	k, err := openStore(dir, "postgres", "", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	k.pending = append(k.pending, pendingFolder{"a-001", map[string]string{"case.spec": "text"}})
	if err := k.save(0); err == nil || len(k.pending) != 1 {
		t.Errorf("error %v, %d pending; want an error and 1", err, len(k.pending))
	}
	var out bytes.Buffer
	k.dump(&out)
	if !strings.Contains(out.String(), "a-001/case.spec\ntext") {
		t.Errorf("dumped %q", out.String())
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := k.save(0); err != nil || len(k.pending) != 0 {
		t.Errorf("error %v, %d pending", err, len(k.pending))
	}
	if text, err := os.ReadFile(filepath.Join(dir, "a-001", "case.spec")); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".writing-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestKnown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "known")
	if err := os.WriteFile(path, []byte("# all\nwss-tx-0123  # MDEV-1\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := openStore(filepath.Join(t.TempDir(), "found"), "postgres", path, false)
	if err != nil || len(k.known) != 1 || !k.known["wss-tx-0123"] {
		t.Errorf("known %v, error %v", k.known, err)
	}
	if _, err := openStore(t.TempDir(), "postgres", path+"x", false); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestSignature: names, values, and how transactions begin and end do not make another bug; features, rules and causes do.
func TestSignature(t *testing.T) {
	mariadb, err := backends.ByName("mariadb")
	if err != nil {
		t.Fatal(err)
	}
	of := func(f oracle.Finding, text string) string {
		spec, err := scenario.Parse("x", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return signature(mariadb, spec, &f)
	}
	finding := func(class oracle.Class, name, rule, cause string) oracle.Finding {
		return oracle.Finding{Oracle: string(class)[:3], Class: class, Name: name, Difference: &oracle.Difference{Rule: rule, Cause: cause}}
	}
	const text = "setup { CREATE TABLE t (a INT UNIQUE) }\nsession s\nstep x { BEGIN }\nstep y { UPDATE t SET a = 1 WHERE a IN (1, 2) }\npermutation x y"
	plain := finding(oracle.Troc, oracle.NameFinalState, "a row of t as s wrote it", "")
	base := of(plain, text)
	for _, same := range []string{
		"setup { CREATE TABLE u (b INT UNIQUE) }\nsession q\nstep z { UPDATE u SET b = 7 WHERE b IN (5) }\npermutation z",
		"setup { CREATE TABLE t (a INT UNIQUE) }\nsession s\nstep x { START TRANSACTION }\nstep y { UPDATE t SET a = 1 WHERE a IN (2) }\nstep z { ROLLBACK }\npermutation x y z",
	} {
		f := plain
		if strings.Contains(same, "session q") {
			f = finding(oracle.Troc, oracle.NameFinalState, "a row of u as q wrote it", "")
		}
		if of(f, same) != base {
			t.Errorf("another signature: %s", same)
		}
	}
	for _, other := range []string{
		strings.Replace(text, "INT UNIQUE", "INT", 1), strings.Replace(text, "INT UNIQUE", "BIGINT UNIQUE", 1), strings.Replace(text, "INT UNIQUE", "INT PRIMARY KEY", 1),
		strings.Replace(text, "a INT UNIQUE", "a INT UNIQUE, b INT", 1), strings.Replace(text, "UPDATE t SET a = 1", "DELETE FROM t", 1), strings.Replace(text, "UPDATE", "UPDATE IGNORE", 1),
		strings.Replace(text, "a = 1", "a = abs(1)", 1), strings.Replace(text, "a IN (1, 2)", "a BETWEEN 1 AND 2", 1), strings.Replace(text, "a IN (1, 2)", "a IN (1, 2) LIMIT 1", 1),
		strings.Replace(text, "BEGIN", "START TRANSACTION WITH CONSISTENT SNAPSHOT", 1), strings.Replace(text, "BEGIN", "SELECT a FROM t", 1),
		strings.Replace(text, "a IN (1, 2)", "a IN (SELECT 1)", 1),
	} {
		if of(plain, other) == base {
			t.Errorf("the same signature: %s", other)
		}
	}
	for _, f := range []oracle.Finding{
		finding(oracle.WSSTx, oracle.NameFinalState, "a row of t as s wrote it", ""), finding(oracle.Troc, oracle.NameResult, "a row of t as s wrote it", ""),
		finding(oracle.Troc, oracle.NameFinalState, "another rule", ""), finding(oracle.Troc, oracle.NameFinalState, "a row of t as s wrote it", "known"),
	} {
		if of(f, text) == base {
			t.Errorf("the same signature: %+v", f)
		}
	}
	tx, stmt := finding(oracle.WSSTx, oracle.NameFinalState, "definition 1", ""), finding(oracle.WSSStmt, oracle.NameFinalState, "definition 2", "")
	if of(tx, text) != of(stmt, text) {
		t.Error("the same case, two classes of wss: two signatures")
	}
	if stmt.Name = oracle.NameResult; of(tx, text) == of(stmt, text) {
		t.Error("what differs is another thing: the same signature")
	}
	known := finding(oracle.WSSTx, oracle.NameFinalState, "r", "UPDATE passes by a row")
	one := of(known, text)
	if bare := of(finding(oracle.WSSTx, oracle.NameResult, "s", "UPDATE passes by a row"), strings.Replace(text, "UNIQUE", "", 1)); bare != one {
		t.Error("the same cause: another signature")
	}
	if of(finding(oracle.WSSTx, oracle.NameFinalState, "r", "another cause"), text) == one {
		t.Error("another cause: the same signature")
	}
	if troc := of(finding(oracle.Troc, oracle.NameFinalState, "r", "UPDATE passes by a row"), text); troc != one {
		t.Errorf("one cause, two oracles: %s, %s", one, troc)
	}
	if stmt := of(finding(oracle.WSSStmt, oracle.NameFinalState, "r", "UPDATE passes by a row"), text); stmt != one {
		t.Errorf("one cause, two classes of an oracle: %s, %s", one, stmt)
	}
}
