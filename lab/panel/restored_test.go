package panel

import (
	"context"
	"testing"

	"github.com/rs/zerolog"

	"wirecheck/backends"
	"wirecheck/internal/testserver"
	"wirecheck/lab"
)

// TestRestored: where a watched database gets its rows back without a setup (engine.Lab.Restores), the isolation oracle says the same of a case as behind a
// setup: of one that it calls an anomaly, and of one that is none.
func TestRestored(t *testing.T) {
	t.Parallel()
	for _, name := range testserver.Engines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := backends.Open(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			if !s.Engine.Lab.Restores {
				t.Skip("its watched databases are set up for each case")
			}
			level, err := FindLevel(s.Engine, "read committed")
			if err != nil {
				t.Fatal(err)
			}
			b, err := Open(t.Context(), s, lab.Config{Level: level, Reset: lab.Quick}, Selection{Isolation: true}, Options{Log: zerolog.Nop()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := b.Close(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			})
			const setup = "setup { CREATE TABLE t (a INT PRIMARY KEY, b INT) }\nsetup { INSERT INTO t VALUES (1, 1), (2, 2) }\n"
			lost := parse(t, setup+"session s\nstep s1 { BEGIN }\nstep s2 { SELECT b FROM t WHERE a = 1 }\nstep s3 { UPDATE t SET b = 5 WHERE a = 1 }\nstep s4 { COMMIT }\n"+
				"session u\nstep u1 { UPDATE t SET b = 7 WHERE a = 1 }\npermutation s1 s2 u1 s3 s4")
			innocent := parse(t, setup+"session s\nstep s1 { DELETE FROM t WHERE a = 2 }\nsession u\nstep u1 { SELECT * FROM t }\npermutation s1 u1")
			for i, want := range []int{1, 0, 1, 0} {
				spec := lost
				if want == 0 {
					spec = innocent
				}
				d, err := b.Run(t.Context(), spec, spec.Permutations[0])
				if err != nil || len(d.Isolation.Findings) != want || d.Isolation.Coverage.Exact < len(spec.Permutations[0].Steps)-2 {
					t.Errorf("execution %d: %d findings, want %d; %d exact, %v", i, len(d.Isolation.Findings), want, d.Isolation.Coverage.Exact, err)
				}
			}
		})
	}
}
