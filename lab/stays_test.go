package lab

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	enginepg "wirecheck/backends/postgres"
	"wirecheck/statement/postgres"
)

// silent is a connection that never answers.
type silent struct{ engine.Conn }

func (silent) ID() uint64 { return 7 }

func (silent) Do(ctx context.Context, _ string) (answer.Answer, error) {
	<-ctx.Done()
	return answer.Answer{}, ctx.Err()
}

// killer is a watcher that ends sessions, or cannot.
type killer struct {
	engine.Watcher
	kill func(context.Context) error
}

func (k killer) Kill(ctx context.Context, _ uint64) error { return k.kill(ctx) }

// TestStays: a session that does not end although the server was asked to end it hangs; one that ends, or that could not be asked
// to end, does not.
func TestStays(t *testing.T) {
	for _, tt := range []struct {
		name         string
		kill         func(context.Context) error
		failed, hang bool
	}{
		{"it ends", func(context.Context) error { return nil }, false, false},
		{"nobody may ask", func(context.Context) error { return errors.New("permission denied") }, true, false},
		{"it stays", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, true, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &Stage{lab: &Lab{config: Config{Backend: enginepg.Descriptor()}, members: []*session{{conn: silent{}}}, watcher: killer{kill: tt.kill}},
				describe: postgres.Describe}
			_, err := s.Execute(t.Context(), 0, "SELECT 1")
			if (err != nil) != tt.failed || errors.Is(err, ErrStays) != tt.hang {
				t.Errorf("%s: %v", tt.name, err)
			}
		})
	}
}

// TestTablesSilent: a server that does not show its tables hangs if nobody can keep it from that. A session in a transaction may; and who had little time for it knows
// nothing.
func TestTablesSilent(t *testing.T) {
	for name, tt := range map[string]struct {
		inside bool
		time   time.Duration
		hangs  bool
	}{
		"nobody is in a transaction": {false, stageLimit, true},
		"one is in a transaction":    {true, stageLimit, false},
		"in little time":             {false, stageLimit / 4, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &Stage{lab: &Lab{config: Config{Backend: enginepg.Descriptor()}, side: silent{}, members: []*session{nil, {conn: silent{}, inside: tt.inside}}}}
			ctx, cancel := context.WithTimeout(t.Context(), tt.time)
			defer cancel()
			_, err := s.Tables(ctx)
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrSilent) != tt.hangs {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
