package engine

import "context"

// Checker is a Conn of a server that looks for deadlocks only some time after a wait began, each waiter for itself and
// once. There, the victim is whoever looks first when the circle is closed. Who lets nobody go on before all waiters have
// looked knows the victim beforehand: the one that closes the circle.
type Checker interface {
	Conn
	// Tell makes the server tell the connection when it has looked, and reports whether it will: that takes settings of
	// the server. It has to be repeated after Descriptor.Discard.
	Tell(ctx context.Context) (bool, error)
	// Checked reports whether the server has looked for a deadlock since the step that is under way began its present
	// wait. It may be called while another goroutine is in Do.
	Checked() bool
}
