package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/fleet/bus"
	"wirecheck/fleet/work"
	"wirecheck/lab/explore"
)

// doneBy reads how many items a fleet has done, and how many are under way; none while there is no such fleet.
func doneBy(t *testing.T, b *bus.Bus, fleet string) (done, under int) {
	t.Helper()
	f, err := work.Look(t.Context(), b, fleet)
	if err != nil {
		return 0, 0
	}
	sum, list, err := f.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	if sum != nil {
		if err := json.Unmarshal(sum, &all); err != nil {
			t.Fatal(err)
		}
	}
	return len(all), len(list)
}

// comparableAdvice is an advice without what differs from run to run.
func comparableAdvice(t *testing.T, text string) string {
	t.Helper()
	var a explore.Advice
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	a.Elapsed = 0
	out, err := json.MarshalIndent(&a, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestAdviseJoin: three processes with servers of their own share an advice, and one is killed in the middle: the others give the advice that one by
// itself gives. So does one that comes when all is done; one with another trace, or other settings, is refused.
func TestAdviseJoin(t *testing.T) {
	t.Parallel()
	const schema = "CREATE TABLE stock (item INT PRIMARY KEY, n INT);\nCREATE TABLE visits (id INT PRIMARY KEY, n INT);\n" +
		"INSERT INTO stock VALUES (1, 100);\nINSERT INTO visits VALUES (1, 0);\n"
	var requests [][]string
	for i := range 2 {
		requests = append(requests,
			transaction("buy", "SELECT n FROM stock WHERE item = 1", fmt.Sprintf("UPDATE stock SET n = %d WHERE item = 1", 99-i)),
			transaction("visit", "SELECT n FROM visits WHERE id = 1", "UPDATE visits SET n = n + 1 WHERE id = 1"))
	}
	for _, engine := range []string{"postgres", "mariadb"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			trace := loggedTrace
			if engine == "postgres" {
				trace = loggedPostgres
			}
			path, snapshot := trace(t, serially(requests...)...), file(t, schema)
			args := []string{"advise", path, "--snapshot", snapshot, "--engine", engine, "--log-level", "warn", "--format", "json"}
			out, said, status := command(t, args...)
			if status != exitFound {
				t.Fatalf("by itself: exit status %d\n%s%s", status, out, said)
			}
			want := comparableAdvice(t, out)
			where := bus.Embedded + filepath.Join(t.TempDir(), "fleet")
			b := connect(t, where)
			args = append(args, "--join", where, "--lease", "2s")
			var all []*program
			for range 3 {
				all = append(all, startProgram(t, args...))
			}
			all[0].until(t, "some trials", func() bool { done, _ := doneBy(t, b, "advise-default"); return done >= 2 })
			if err := all[0].cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			<-all[0].ended
			for _, p := range all[1:] {
				if status := p.wait(t); status != int(exitFound) {
					t.Fatalf("exit status %d\n%s", status, p.stderr.String())
				}
				if diff := cmp.Diff(want, comparableAdvice(t, p.stdout.String())); diff != "" {
					t.Errorf("another advice (-one +several):\n%s", diff)
				}
			}
			if _, under := doneBy(t, b, "advise-default"); under > 0 {
				t.Errorf("%d trials are still under way", under)
			}
			late, said, status := command(t, args...)
			if status != exitFound || comparableAdvice(t, late) != want {
				t.Errorf("joined when all was done: exit status %d\n%s%s", status, late, said)
			}
			other := trace(t, serially(requests[:2]...)...)
			for _, refused := range []struct {
				args []string
				want string
			}{
				{append([]string{"advise", other}, args[2:]...), "the fleet advises on another trace"},
				{append(args, "--unit-gap", "1ms"), `the fleet has --unit-gap "0s", and this process "1ms"`},
			} {
				if _, said, status := command(t, refused.args...); status != exitFailed || !strings.Contains(said, refused.want) {
					t.Errorf("exit status %d, want %q\n%s", status, refused.want, said)
				}
			}
		})
	}
}
