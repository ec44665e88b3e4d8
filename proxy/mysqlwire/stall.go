package mysqlwire

import (
	"net"
	"sync/atomic"
	"time"

	"wirecheck/proxy/relay"
)

// stallCheck is how often a session whose write does not go through looks whether the other side has ended.
const stallCheck = time.Second

// stallGuard ends a write to one side that does not go through after the other side has ended. It belongs to the goroutine
// that writes.
type stallGuard struct {
	to       net.Conn
	other    net.Conn
	patience time.Duration // how long a write may still take after the other side has ended
	timer    *time.Timer
	writing  atomic.Bool
	checks   atomic.Int64 // that found the other side ended, during the present write
}

func newStallGuard(to, other net.Conn, patience time.Duration) *stallGuard {
	g := &stallGuard{to: to, other: other, patience: patience}
	g.timer = time.AfterFunc(time.Hour, g.check)
	g.timer.Stop()
	return g
}

// write writes b to nc, which is to or TLS on it.
func (g *stallGuard) write(nc net.Conn, b []byte) error {
	g.checks.Store(0)
	g.writing.Store(true)
	g.timer.Reset(stallCheck)
	_, err := nc.Write(b)
	g.writing.Store(false)
	g.timer.Stop()
	return err
}

// check runs in a goroutine of the timer while a write does not go through.
func (g *stallGuard) check() {
	if !g.writing.Load() {
		return
	}
	if relay.HungUp(g.other) && time.Duration(g.checks.Add(1))*stallCheck >= g.patience {
		_ = g.to.SetWriteDeadline(time.Unix(1, 0)) // a connection that is closed already needs none
		return
	}
	g.timer.Reset(stallCheck)
}
