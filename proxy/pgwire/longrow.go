package pgwire

import (
	"encoding/binary"
	"errors"
	"fmt"

	"wirecheck/proxy"
	"wirecheck/proxy/record"
	"wirecheck/rewrite"
)

// longRow relays a row that is too long to be held. Its new length must be said before its cells and is known when the
// length of the last visible one is: up to there the row is spooled, from there on it streams.
func (a *serverHalf) longRow(f frame, plan *rewrite.Plan, run *record.Running) (err error) {
	left := f.size
	take := func(n int) ([]byte, error) {
		if left -= n; left < 0 {
			return nil, fmt.Errorf("read row: %w", errLength)
		}
		return a.in.body(n)
	}
	head, err := take(2)
	if err != nil {
		return err
	}
	n := int(binary.BigEndian.Uint16(head)) - plan.Hidden
	if n < 0 {
		return fmt.Errorf("row has fewer columns than were added: %w", errLength)
	}
	var s proxy.Spool
	defer func() { err = errors.Join(err, s.Close()) }()
	last := 0 // bytes of the last visible cell
	for i := range n {
		size, err := take(4)
		if err != nil {
			return err
		}
		v := max(int(int32(binary.BigEndian.Uint32(size))), 0)
		if _, err := s.Write(size); err != nil {
			return err
		}
		if v > left {
			return fmt.Errorf("read row: %w", errLength)
		}
		left -= v
		if i == n-1 {
			last = v
			break
		}
		if err := a.in.copyTo(&s, v); err != nil {
			return err
		}
	}
	if !plan.NoRows {
		if err := a.release(); err != nil {
			return err
		}
		a.inside = true
		if err := a.out.header('D', f.size-left); err != nil {
			return err
		}
		if _, err := a.out.Write(binary.BigEndian.AppendUint16(nil, uint16(n))); err != nil {
			return err
		}
		if err := s.CopyTo(a.out); err != nil {
			return err
		}
		if err := a.in.copyTo(a.out, last); err != nil {
			return err
		}
		a.inside = false
	}
	if !a.holds(left, a.limits.Row) {
		if run != nil {
			run.Opaque("a row's hidden part is too long")
		}
		return a.in.skip(left)
	}
	hidden, err := a.in.body(left)
	if err != nil {
		return err
	}
	a.decode(hidden, plan, run)
	return nil
}

// spoolBind writes a Bind that is not held in memory. Its new length depends on the number of result format codes, which stand behind the parameters.
func spoolBind(c *clientHalf, f frame, plan *rewrite.Plan) (err error) {
	var s proxy.Spool
	defer func() { err = errors.Join(err, s.Close()) }()
	left, n, err := parametersTo(c, &s, f.size)
	if err != nil {
		return err
	}
	codes := 2*n == left && n > 0 // else it is malformed, or there are none
	none := codes && plan.NoRows  // the client knows of no columns, so its codes mean nothing
	more := 2 * plan.Hidden
	switch {
	case none:
		n, more = 0, -left
	case !codes || n == 1:
		more = 0
	default:
		n += plan.Hidden
	}
	if err := c.out.header('B', f.size+more); err != nil {
		return err
	}
	if err := s.CopyTo(c.out); err != nil {
		return err
	}
	if n >= 0 {
		if _, err := c.out.Write(binary.BigEndian.AppendUint16(nil, uint16(n))); err != nil {
			return err
		}
	}
	if none {
		return c.in.skip(left)
	}
	if err := c.in.copyTo(c.out, left); err != nil {
		return err
	}
	_, err = c.out.Write(make([]byte, max(more, 0)))
	return err
}

// parametersTo copies a Bind up to the number of its result format codes, which it reads. left is what follows. n is -1 where the message is malformed.
func parametersTo(c *clientHalf, s *proxy.Spool, size int) (left, n int, err error) {
	left = size
	move := func(k int) bool {
		if err != nil || k > left {
			return false
		}
		left -= k
		err = c.in.copyTo(s, k)
		return err == nil
	}
	number := func(k int) (v int, ok bool) { // of two or four bytes, which are not consumed
		if err != nil || k > left {
			return 0, false
		}
		if err = c.in.fill(k); err != nil {
			return 0, false
		}
		if k == 2 {
			return int(binary.BigEndian.Uint16(c.in.buf[c.in.r:])), true
		}
		return max(int(int32(binary.BigEndian.Uint32(c.in.buf[c.in.r:]))), 0), true
	}
	begin, err := c.peek(left)
	if err != nil {
		return left, -1, err
	}
	_, rest, _ := text(begin)
	if _, rest, _ = text(rest); !move(len(begin) - len(rest)) {
		return left, -1, err
	}
	codes, ok := number(2)
	if !ok || !move(2+2*codes) {
		return left, -1, err
	}
	params, ok := number(2)
	for ok = ok && move(2); ok && params > 0; params-- {
		var v int
		if v, ok = number(4); ok {
			ok = move(4 + v)
		}
	}
	if !ok {
		return left, -1, err
	}
	if n, ok = number(2); !ok {
		return left, -1, err
	}
	left -= 2
	return left, n, c.in.skip(2)
}
