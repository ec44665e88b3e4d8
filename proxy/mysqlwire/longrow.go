package mysqlwire

import "slices"

// relayLongRow relays a row without its hidden columns that is longer than what a session holds of a row. The cut is at the
// row's end and shortens it by less than a frame, so it holds no more than two frames: then the first one is surely the
// client'l.
func (l *link) relayLongRow(c *columns) error {
	var held []byte
	w := walker{columns: c}
	for started := false; ; {
		f, err := l.server.peek()
		if err != nil {
			return err
		}
		l.server.r += headerSize
		for left := f.n; left > 0; {
			if _, err := l.server.need(1); err != nil {
				return unexpected(err)
			}
			k := min(left, l.server.buffered())
			held = append(held, l.server.in[l.server.r:l.server.r+k]...)
			l.server.r += k
			left -= k
		}
		if !started {
			if started = w.start(held); !started {
				return errMalformed
			}
			if c.binary {
				all, head := bitmap(len(c.types)), c.appendNulls(nil, held)
				w.nulls = slices.Clone(held[:all])
				held = slices.Replace(held, 0, all, head...)
				w.at = len(head)
			}
		}
		for w.column < c.shown() {
			_, _, _, more, err := w.next(held)
			if err != nil {
				return err
			}
			if !more {
				break
			}
		}
		for f.n == frameMax && len(held) > 2*frameMax {
			if err := l.toClient(held[:frameMax]); err != nil {
				return err
			}
			held = slices.Delete(held, 0, frameMax)
			w.at -= frameMax
		}
		if f.n < frameMax {
			break
		}
	}
	if w.column < c.shown() || w.at > len(held) {
		return errMalformed
	}
	return l.toClientFrames(held[:w.at])
}
