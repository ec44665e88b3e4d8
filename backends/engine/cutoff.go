package engine

import (
	"context"
	"net"
	"time"
)

// CutOff makes reads and writes on conn fail once ctx ends. The function that it returns undoes that and gives ctx's
// error if conn has been cut off, after which it is of no use any more.
func CutOff(ctx context.Context, conn net.Conn) (stop func() error) {
	if ctx.Done() == nil {
		return func() error { return nil }
	}
	release := context.AfterFunc(ctx, func() {
		_ = conn.SetDeadline(time.Unix(1, 0)) // long ago
	})
	return func() error {
		if release() {
			return nil
		}
		return context.Cause(ctx)
	}
}
