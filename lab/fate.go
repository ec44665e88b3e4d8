package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"wirecheck/answer"
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

// errEnded says that the server answered by ending the connection.
var errEnded = errors.New("the server ended the connection")

// FateOf tells from the error of an execution what became of the server. The end of a time alone is TimedOut: who knows that the
// server was silent meanwhile says so by ErrSilent or ErrStays.
func FateOf(err error) Fate {
	if errors.Is(err, ErrSilent) || errors.Is(err, ErrStays) {
		return Hangs
	}
	for _, end := range []error{errEnded, io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNREFUSED} {
		if errors.Is(err, end) { // a server may live although one of its processes crashed (PostgreSQL)
			return Ended
		}
	}
	return TimedOut
}

// blame adds to the error of statements that wait for nobody what it tells of the server: errEnded if the product's table of errors says that the
// connection ends with it; ErrSilent if the time ended them, and they had at least half of a limit for themselves. With less, others have used up
// the time.
func (l *Lab) blame(ctx context.Context, err error, since time.Time, limit time.Duration) error {
	switch {
	case err == nil:
		return nil
	case l.config.Backend.Product.Error(codeOf(err), err.Error()).Gone:
		return fmt.Errorf("%w: %w", errEnded, err)
	case ctx.Err() != nil && time.Since(since) >= limit/2 && !errors.Is(err, ErrSilent):
		return fmt.Errorf("%w: %w", ErrSilent, err)
	}
	return err
}

// codeOf is the server's code of an error; empty: it has none.
func codeOf(err error) string {
	if refused, ok := errors.AsType[*answer.Error](err); ok {
		return refused.Code
	}
	if state, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok {
		return state.SQLState()
	}
	return ""
}

// stop notes why an execution did not come to its end: the first reason stays, unless a later one tells more of the server.
func (r *Result) stop(err error) {
	fate := FateOf(err)
	if r.Trouble == nil || fate != TimedOut && !r.Crashed && !r.Hung {
		r.Trouble, r.Crashed, r.Hung = err, fate == Ended, fate == Hangs
	}
}
