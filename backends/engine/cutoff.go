package engine

import (
	"context"
	"net"
	"time"
)

// CutOff makes reads and writes on conn fail once ctx ends. The function that it returns undoes that. It takes the error of what was done, and gives
// ctx's error in its place if conn has been cut off: then conn is of no use any more. Where nothing failed conn is as it was, also if ctx ended at the last moment.
func CutOff(ctx context.Context, conn net.Conn) (stop func(err error) error) {
	if ctx.Done() == nil {
		return func(err error) error { return err }
	}
	cut := make(chan struct{})
	release := context.AfterFunc(ctx, func() {
		defer close(cut)
		_ = conn.SetDeadline(time.Unix(1, 0)) // long ago
	})
	return func(err error) error {
		if release() {
			return err
		}
		<-cut
		if err == nil {
			return conn.SetDeadline(time.Time{})
		}
		return context.Cause(ctx)
	}
}
