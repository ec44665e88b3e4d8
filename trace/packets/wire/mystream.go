package wire

import "encoding/binary"

// isGreeting knows the server's first packet: protocol version 10, or an error.
func isGreeting(b []byte) bool {
	return len(b) > 5 && b[3] == 0 && (b[4] == 10 || b[4] == 0xff) && int(b[0])|int(b[1])<<8|int(b[2])<<16 == len(b)-4
}

// isMyRequest tells whether b may begin with a command.
func isMyRequest(b []byte) bool {
	if len(b) < 5 || b[3] != 0 {
		return false
	}
	n := int(b[0]) | int(b[1])<<8 | int(b[2])<<16
	return n >= 1 && n+4 >= len(b) && (b[4] <= 0x1f && b[4] >= 1 || b[4] == comBulkExecute)
}

// certainMyRequest tells a request that fills the segment from chance: a query, or the execution of a prepared statement, whose header has a
// small number, a flag and the constant 1.
func certainMyRequest(b []byte) bool {
	n := int(b[0]) | int(b[1])<<8 | int(b[2])<<16
	switch {
	case n+4 != len(b) || n < 6:
		return false
	case b[4] == comQuery || b[4] == comPrepare:
		return printable(b[5:min(len(b), 40)])
	}
	return b[4] == comExecute && n >= 10 && b[8] == 0 && b[9] < 16 && binary.LittleEndian.Uint32(b[10:]) == 1
}

func printable(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\t' && c != '\r' || c == 0x7f {
			return false
		}
	}
	return true
}

// myStream puts packets together.
type myStream struct {
	buf  []byte // of a packet that is not complete
	msg  []byte // of a message of several packets
	big  bool   // the message is too large to be looked at
	skip int
	more bool   // the packet that is skipped is not the message's last
	head []byte // the beginning of a message that is too large
}

// message gives the next message with the sequence number of its last packet; a body of nil is one that is too large.
func (s *myStream) message(b []byte) (seq byte, body, rest []byte, ok bool) {
	for {
		if s.skip > 0 {
			n := min(s.skip, len(b))
			s.skip -= n
			b = b[n:]
			if s.skip > 0 {
				return 0, nil, nil, false
			}
			if !s.more {
				s.big = false
				return 0, nil, b, true
			}
		}
		if len(s.buf) > 0 {
			s.buf = append(s.buf, b...)
			b = s.buf
		}
		if len(b) < 4 {
			s.hold(b, 64)
			return 0, nil, nil, false
		}
		n := int(b[0]) | int(b[1])<<8 | int(b[2])<<16
		last := n < 0xffffff
		if s.big || len(s.msg)+n > maxMessage {
			have := min(len(b)-4, n)
			if !s.big {
				s.head = append(s.msg, b[4:4+have]...)
			}
			s.big, s.msg, s.buf = true, nil, nil
			s.skip, s.more = n-have, !last
			b = b[4+have:]
			if s.skip > 0 {
				return 0, nil, nil, false
			}
			if last {
				s.big = false
				return 0, nil, b, true
			}
			continue
		}
		if len(b) < 4+n {
			s.hold(b, 4+n)
			return 0, nil, nil, false
		}
		s.buf = nil
		seq, body, b = b[3], b[4:4+n], b[4+n:]
		if last && s.msg == nil {
			return seq, body, b, true
		}
		s.msg = append(s.msg, body...)
		if last {
			body, s.msg = s.msg, nil
			return seq, body, b, true
		}
	}
}

func (s *myStream) hold(b []byte, length int) {
	if len(s.buf) == 0 {
		s.buf = append(make([]byte, 0, max(len(b), min(length, 1<<20))), b...)
	}
}

// isProgress knows MariaDB's reports of progress, which look like an error of number 65535 and come before the answer (Knowledge Base,
// Progress Reporting).
func isProgress(body []byte) bool {
	return len(body) > 3 && body[0] == 0xff && body[1] == 0xff && body[2] == 0xff
}
