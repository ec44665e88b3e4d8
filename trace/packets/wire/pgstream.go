package wire

import (
	"bytes"
	"encoding/binary"
	"slices"

	"wirecheck/trace"
)

// isStartup knows the first message of a client: version 3, or a request for encryption or cancellation.
func isStartup(b []byte) bool {
	if len(b) < 8 {
		return false
	}
	n, code := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	return n >= 8 && n <= 10000 && (code>>16 == 3 || code >= 80877102 && code <= 80877104)
}

// isPgRequest tells whether b may begin with a client's message.
func isPgRequest(b []byte) bool { return pgMessage(b, "QPBDECSHFXdcfp") }

func isPgAnswer(b []byte) bool { return pgMessage(b, "RSKZTDCEINAG123nstdcHVW") }

func pgMessage(b []byte, types string) bool {
	if len(b) < 5 || bytes.IndexByte([]byte(types), b[0]) < 0 {
		return false
	}
	n := binary.BigEndian.Uint32(b[1:])
	return n >= 4 && n < 1<<24 && (len(b) == int(n)+1 || int(n)+1 > len(b) || bytes.IndexByte([]byte(types), b[n+1]) >= 0)
}

// certainPgRequest tells requests from chance: messages that fill the segment, the last of which is a query, Sync or Flush.
func certainPgRequest(b []byte) bool {
	n, last := pgChain(b, "QPBDECSHFX")
	switch last[0] {
	case 'Q':
		return n == 1 && len(b) > 6 && b[len(b)-1] == 0
	case 'S', 'H':
		return n > 1 && len(last) == 5
	}
	return false
}

// certainPgAnswer tells answers from chance: messages that fill the segment, the last of which is ReadyForQuery.
func certainPgAnswer(b []byte) bool {
	n, last := pgChain(b, "RSKZTDCEINAG123nstdcHVW")
	return n > 1 && last[0] == 'Z' && len(last) == 6 && bytes.IndexByte([]byte("ITE"), last[5]) >= 0
}

// endsReady tells whether the bytes end with ReadyForQuery.
func endsReady(b []byte) bool {
	return len(b) >= 6 && bytes.Equal(b[len(b)-6:len(b)-1], []byte{'Z', 0, 0, 0, 5})
}

// pgChain gives the number of messages that fill b, and the last one; 0 if they do not.
func pgChain(b []byte, types string) (n int, last []byte) {
	for len(b) > 0 {
		if len(b) < 5 || bytes.IndexByte([]byte(types), b[0]) < 0 {
			return 0, []byte{0}
		}
		size := binary.BigEndian.Uint32(b[1:])
		if size < 4 || uint64(size)+1 > uint64(len(b)) {
			return 0, []byte{0}
		}
		last, b = b[:size+1], b[size+1:]
		n++
	}
	if n == 0 {
		last = []byte{0}
	}
	return n, last
}

// pgStream splits a direction into messages.
type pgStream struct {
	buf  []byte
	skip int    // bytes of a message that is not looked at
	head []byte // its beginning
}

// plain gives a message without type.
func (s *pgStream) plain(b []byte) (msg, rest []byte, ok bool) {
	s.buf = append(s.buf, b...)
	if len(s.buf) < 4 {
		return nil, nil, false
	}
	n := int(binary.BigEndian.Uint32(s.buf))
	if n < 8 || n > 10000 {
		s.buf = nil
		return nil, nil, false
	}
	if len(s.buf) < n {
		return nil, nil, false
	}
	msg, rest = s.buf[4:n], s.buf[n:]
	s.buf = nil
	return msg, rest, true
}

// message gives the next message. The body of one that is too large, or of no interest, is nil.
func (s *pgStream) message(b []byte) (kind byte, body, rest []byte, ok bool) {
	if s.skip > 0 {
		n := min(s.skip, len(b))
		s.skip -= n
		b = b[n:]
		if s.skip > 0 {
			return 0, nil, nil, false
		}
	}
	if len(s.buf) > 0 {
		s.buf = append(s.buf, b...)
		b = s.buf
	}
	n := 0
	if len(b) >= 5 {
		n = int(binary.BigEndian.Uint32(b[1:]))
	}
	switch {
	case len(b) < 5:
		s.hold(b, 64)
		return 0, nil, nil, false
	case n < 4:
		s.buf = nil
		return 0, nil, nil, false // no message: what follows makes no sense either, until something does
	case (n > maxMessage || b[0] == 'd') && len(b) < 1+n:
		s.skip, s.buf, s.head = 1+n-len(b), nil, nil
		if b[0] == 'Q' || b[0] == 'P' {
			s.head = slices.Clone(b[5:])
		}
		return b[0], nil, nil, true
	case len(b) < 1+n:
		s.hold(b, 1+n)
		return 0, nil, nil, false
	}
	s.buf = nil
	if n > maxMessage || b[0] == 'd' {
		return b[0], nil, b[1+n:], true
	}
	return b[0], b[5 : 1+n], b[1+n:], true
}

// hold keeps what is there of a message of a length.
func (s *pgStream) hold(b []byte, length int) {
	if len(s.buf) == 0 {
		s.buf = append(make([]byte, 0, max(len(b), min(length, 1<<20))), b...)
	}
}

// maxMessage is the largest message that is looked at; of larger ones nothing is kept.
const maxMessage = trace.MaxText + 1<<20

// tlsHandshake is the first byte of TLS.
const tlsHandshake = 0x16
