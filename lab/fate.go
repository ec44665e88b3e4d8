package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"
)

// Fate is what became of the server in an execution that did not come to its end.
type Fate int

// The fates. Only FateOf tells them apart.
const (
	// TimedOut: the time passed, or something of ours failed. It says nothing against the server: the case was long, the machine
	// slow, or each statement waited for somebody.
	TimedOut Fate = iota
	// Ended: the server is gone, or it ended a connection that nobody asked it to end.
	Ended
	// Hangs: the server had a statement for long that waits for nobody, and gave no answer.
	Hangs
)

// ErrSilent says that the server gave no answer to what waits for nobody.
var ErrSilent = errors.New("the server gives no answer, although nobody is seen to keep it from it")

// ErrStays says that the server did not end a session although it was asked to, and got as long as it ever gets.
var ErrStays = errors.New("the session hangs")

// FateOf tells from the error of an execution what became of the server. The end of a time alone is TimedOut: who knows that the
// server was silent meanwhile says so by ErrSilent or ErrStays.
func FateOf(err error) Fate {
	if errors.Is(err, ErrSilent) || errors.Is(err, ErrStays) {
		return Hangs
	}
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNREFUSED} {
		if errors.Is(err, end) { // a server may live although one of its processes crashed (PostgreSQL)
			return Ended
		}
	}
	return TimedOut
}

// unanswered adds ErrSilent to the error of statements that wait for nobody if the time ended them, and they had at least half of a limit
// for themselves. With less, others have used up the time.
func unanswered(ctx context.Context, err error, since time.Time, limit time.Duration) error {
	if err != nil && ctx.Err() != nil && time.Since(since) >= limit/2 && !errors.Is(err, ErrSilent) {
		return fmt.Errorf("%w: %w", ErrSilent, err)
	}
	return err
}

// stop notes why an execution did not come to its end: the first reason stays, unless a later one tells more of the server.
func (r *Result) stop(err error) {
	fate := FateOf(err)
	if r.Trouble == nil || fate != TimedOut && !r.Crashed && !r.Hung {
		r.Trouble, r.Crashed, r.Hung = err, fate == Ended, fate == Hangs
	}
}
