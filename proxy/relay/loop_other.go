//go:build !linux

package relay

import (
	"errors"
	"net"
)

// Other systems have no loop.

type loop struct {
	pairs int
	ended chan struct{}
}

func startLoop() (*loop, error) { return nil, errors.ErrUnsupported }

func (l *loop) post(*pair, func(*loop, *pair)) {}
func (l *loop) quit(*pair)                     {}
func (l *loop) add(*pair)                      {}
func (l *loop) drain(*pair)                    {}
func (l *loop) stop(*pair)                     {}

type pair struct{ done chan struct{} }

func take(*Pair) (*pair, bool) { return nil, false }
func (p *pair) drop()          {}
func (p *pair) end() End       { return End{} }

// Socket gives c.
func Socket(c net.Conn) net.Conn { return c }
