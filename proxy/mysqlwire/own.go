package mysqlwire

import (
	"bytes"
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// Statements of our own on the client's connection. Their answers never reach the client, nor do their errors.

// ownQuery puts a statement of ours into the output to the server; it leaves with what follows.
func (s *session) ownQuery(sql string) error {
	return s.server.put(0, []byte{mysql.COM_QUERY}, []byte(sql))
}

// ownAnswer reads the answer to a statement of ours: its rows, nil for NULL, or the server's error.
func (s *session) ownAnswer() (rows [][][]byte, refused *errPacket, err error) {
	f, b, err := s.ownPacket()
	if err != nil {
		return nil, nil, err
	}
	switch {
	case f.n == 0:
		return nil, nil, errMalformed
	case f.first == markERR:
		e := parseERR(b)
		return nil, &e, nil
	case f.first == markOK, f.first == markEOF:
		return nil, nil, nil
	}
	n, _, err := lenenc(b)
	if err != nil || n > 1<<16 {
		return nil, nil, fmt.Errorf("read our own statement's answer: %w", errMalformed)
	}
	cols := columns{types: make([]byte, n), hidden: int(n)} // in text rows the types do not matter
	skip := int(n)
	if s.caps&deprecateEOF == 0 {
		skip++
	}
	for range skip {
		if _, _, err = s.ownPacket(); err != nil {
			return nil, nil, err
		}
	}
	for {
		if f, b, err = s.ownPacket(); err != nil {
			return nil, nil, err
		}
		if f.first == markERR {
			e := parseERR(b)
			return nil, &e, nil
		}
		if s.endsRows(f) {
			return rows, nil, nil
		}
		_, row, err := cols.cut(b, nil)
		if err != nil {
			return nil, nil, fmt.Errorf("read our own statement's answer: %w", err)
		}
		kept := make([][]byte, len(row))
		for i := range row {
			kept[i] = bytes.Clone(row[i])
		}
		rows = append(rows, kept)
	}
}

// ownPacket reads one packet of such an answer. Reports of its progress are for nobody.
func (s *session) ownPacket() (frame, []byte, error) {
	for {
		f, err := s.nextPacket()
		if err != nil {
			return f, nil, err
		}
		b, err := s.take(f)
		if err != nil || f.first != markERR || parseERR(b).code != progress {
			return f, b, err
		}
	}
}

// ownRows executes one statement of ours now and gives its rows as text.
func (s *session) ownRows(sql string) (rows [][]string, refused *errPacket, err error) {
	if err := s.ownQuery(sql); err != nil {
		return nil, nil, err
	}
	raw, refused, err := s.ownAnswer()
	if err != nil || refused != nil {
		return nil, refused, err
	}
	rows = make([][]string, len(raw))
	for i, r := range raw {
		rows[i] = make([]string, len(r))
		for j, cell := range r {
			rows[i][j] = string(cell)
		}
	}
	return rows, nil, nil
}
