package proxy

import "context"

// Gate holds statements back until it is their turn (mode control). A session passes it in front of each request that
// executes something, and says when the answer is complete. The calls about one session come one after the other.
type Gate interface {
	// Enter returns when the request may be sent. The first call is how the gate learns of the session. text is the request's,
	// perhaps cut off. An error says that it must not be sent: the session ends.
	Enter(ctx context.Context, s *Session, text string) error
	// Done says that the request has its whole answer. victim says that the server chose it to break a deadlock.
	Done(s *Session, victim bool)
	// Left says that the session is over and the server's connection is closed. It may never have entered.
	Left(s *Session)
}
