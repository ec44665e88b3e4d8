package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/product"
	"wirecheck/scheduler/shell"
)

// TestFateOf has each fate with a near miss beside it.
func TestFateOf(t *testing.T) {
	over, cancel := context.WithTimeoutCause(t.Context(), 0, fmt.Errorf("%w 6s", ErrCaseLimit))
	defer cancel()
	<-over.Done()
	passed := fmt.Errorf("read answer: %w", context.Cause(over))
	long, short := time.Now().Add(-4*time.Second), time.Now()
	l := &Lab{config: Config{Backend: engine.Descriptor{Product: product.Of("postgres")}}}
	tests := []struct {
		name string
		err  error
		want Fate
	}{
		{"the server closed the connection", fmt.Errorf("read answer: %w", io.ErrUnexpectedEOF), Ended},
		{"it was reset", &net.OpError{Op: "read", Err: syscall.ECONNRESET}, Ended},
		{"nobody listens any more", fmt.Errorf("open a session: %w", syscall.ECONNREFUSED), Ended},
		{"we closed it ourselves", fmt.Errorf("read answer: %w", net.ErrClosed), TimedOut},
		{"it ended the connection with its answer", l.blame(t.Context(), fmt.Errorf("look: %w", &pgconn.PgError{Severity: "FATAL", Code: "57P01"}), short, 6*time.Second), Ended},
		{"it shuts down, and says so", l.blame(t.Context(), fmt.Errorf("begin: %w", &answer.Error{Code: "57P03"}), short, 6*time.Second), Ended},
		{"it refused the question", l.blame(t.Context(), fmt.Errorf("look: %w", &pgconn.PgError{Severity: "ERROR", Code: "42501"}), short, 6*time.Second), TimedOut},
		{"a question was refused", fmt.Errorf("look: %w", &answer.Error{Code: "1227"}), TimedOut},

		{"a statement that waits for nobody had the time for itself", l.blame(over, passed, long, 6*time.Second), Hangs},
		{"others had used up the time", l.blame(over, passed, short, 6*time.Second), TimedOut},
		{"it failed within the time", l.blame(t.Context(), io.EOF, long, 6*time.Second), Ended},
		{"it was not ended on request", fmt.Errorf("%w: %w", ErrStays, context.DeadlineExceeded), Hangs},
		{"the case took too long", passed, TimedOut},
		{"a limit passed", context.DeadlineExceeded, TimedOut},
		{"all wait for one another", shell.ErrStuck, TimedOut},
	}
	for _, test := range tests {
		if got := FateOf(test.err); got != test.want {
			t.Errorf("%s (%v): %d, want %d", test.name, test.err, got, test.want)
		}
	}
}

// TestStop: the first trouble stays; one that tells more of the server takes its place; a case has one fate.
func TestStop(t *testing.T) {
	hang := fmt.Errorf("%w: reset", ErrSilent)
	for _, test := range []struct {
		name          string
		errs          []error
		crashed, hung bool
		want          error
	}{
		{"a time-out", []error{ErrCaseLimit}, false, false, ErrCaseLimit},
		{"the end behind a time-out", []error{ErrCaseLimit, io.EOF}, true, false, io.EOF},
		{"a hang behind a time-out", []error{shell.ErrStuck, hang}, false, true, hang},
		{"a time-out behind the end", []error{io.EOF, ErrCaseLimit}, true, false, io.EOF},
		{"the end behind a hang", []error{hang, io.EOF}, false, true, hang}, // we ended the connections meanwhile
	} {
		r := &Result{}
		for _, err := range test.errs {
			r.stop(err)
		}
		if r.Crashed != test.crashed || r.Hung != test.hung || !errors.Is(r.Trouble, test.want) {
			t.Errorf("%s: crashed %v, hung %v, %v", test.name, r.Crashed, r.Hung, r.Trouble)
		}
	}
}
