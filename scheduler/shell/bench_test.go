package shell

import (
	"testing"

	"wirecheck/scheduler"
)

// BenchmarkStep is what the shell adds to a step that neither waits nor takes time: one goroutine per session, three events
// and one decision per step.
func BenchmarkStep(b *testing.B) {
	for _, sessions := range []int{1, 2, 8} {
		b.Run(map[int]string{1: "1session", 2: "2sessions", 8: "8sessions"}[sessions], func(b *testing.B) {
			sh := New(scheduler.Random(seeded(1)), nil, Limits{})
			errs := make(chan error, sessions)
			for range sessions {
				sh.Join()
			}
			b.ReportAllocs()
			b.ResetTimer()
			for s := range sessions {
				steps := b.N / sessions
				if s == 0 {
					steps += b.N % sessions
				}
				go func() {
					errs <- run(b, sh, scheduler.Session(s), steps)
				}()
			}
			if err := sh.Run(b.Context(), true); err != nil {
				b.Fatal(err)
			}
			for range sessions {
				if err := <-errs; err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func run(b *testing.B, sh *Shell, s scheduler.Session, steps int) error {
	defer sh.Leave(s)
	for range steps {
		if _, err := sh.Enter(b.Context(), s, "step"); err != nil {
			return err
		}
		sh.Finish(s, false)
	}
	return nil
}
