package postgres

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// settlePause is the pause between two looks at whether everything was read. What is not read yet is being processed.
const settlePause = 20 * time.Microsecond

// meter knows whether all that has arrived was read and processed: whoever reads comes back only when they have done
// with what they got before.
type meter struct {
	net.Conn
	raw     syscall.RawConn
	reading atomic.Bool
}

func (m *meter) Read(p []byte) (int, error) {
	m.reading.Store(true)
	n, err := m.Conn.Read(p)
	m.reading.Store(false)
	return n, err
}

// settled reports whether somebody waits for more and there is nothing for them.
func (m *meter) settled() bool {
	if !m.reading.Load() {
		return false
	}
	empty := true
	err := m.raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		empty = err != nil || n == 0
	})
	return empty && (err != nil || m.reading.Load())
}

// metered makes connections that have a meter, if they are sockets.
func (c *conn) metered(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		sc, ok := nc.(syscall.Conn)
		if !ok {
			return nc, nil
		}
		raw, err := sc.SyscallConn()
		if err != nil {
			return nc, nil // closed already: whoever reads will be told
		}
		c.meter = &meter{Conn: nc, raw: raw}
		return c.meter, nil
	}
}

// Settle implements engine.Settler. On loopback what a server sent before it began to wait has arrived by the time that
// its wait is seen; a proxy in between may still hold something back. If the step is done meanwhile, all of it was read.
func (c *conn) Settle(ctx context.Context) {
	for c.meter != nil && c.busy.Load() && !c.meter.settled() && ctx.Err() == nil {
		time.Sleep(settlePause)
	}
}
