package mysqlwire

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/history"
)

// Statements of our own on the client's connection. The client sees neither their answers nor their errors.

// ownQuery puts a statement of ours into the output to the server; it leaves with what follows.
func (l *link) ownQuery(sql string) error {
	return l.server.put(0, []byte{mysql.COM_QUERY}, []byte(sql))
}

// ownAnswer reads the answer to a statement of ours: its rows, nil for NULL, or the server's error.
func (l *link) ownAnswer() (rows [][][]byte, refused *history.ServerError, err error) {
	f, b, err := l.ownPacket()
	if err != nil {
		return nil, nil, err
	}
	switch {
	case f.n == 0:
		return nil, nil, errMalformed
	case f.first == markERR:
		e := parseERR(b)
		return nil, e, nil
	case f.first == markOK, f.first == markEOF:
		return nil, nil, nil
	}
	n, _, err := lenenc(b)
	if err != nil || n > 1<<16 {
		return nil, nil, fmt.Errorf("read our own statement's answer: %w", errMalformed)
	}
	cols := columns{types: make([]byte, n), hidden: int(n)} // in text rows the types do not matter
	skip := int(n)
	if !l.has(deprecateEOF) {
		skip++
	}
	for range skip {
		if _, _, err = l.ownPacket(); err != nil {
			return nil, nil, err
		}
	}
	for {
		if f, b, err = l.ownPacket(); err != nil {
			return nil, nil, err
		}
		if f.first == markERR {
			e := parseERR(b)
			return nil, e, nil
		}
		if l.endsRows(f) {
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

// ownPacket reads one packet of such an answer. It skips reports of progress.
func (l *link) ownPacket() (frame, []byte, error) {
	for {
		f, err := l.nextPacket()
		if err != nil {
			return f, nil, err
		}
		b, err := l.take(f)
		if err != nil || f.first != markERR || parseERR(b).Code != progress {
			return f, b, err
		}
	}
}

// ownRows executes one statement of ours now and returns its rows as text. The server's list of warnings does not keep its error.
func (l *link) ownRows(sql string) (rows [][]string, refused *history.ServerError, err error) {
	if err := l.ownQuery(sql); err != nil {
		return nil, nil, err
	}
	raw, refused, err := l.ownAnswer()
	if err == nil && refused != nil {
		if err = l.ownQuery(forgetsWarnings); err == nil {
			_, _, err = l.ownAnswer()
		}
	}
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

// ownPrepare puts our preparation of a text into the output to the server.
func (l *link) ownPrepare(sql string) error {
	return l.server.put(0, []byte{mysql.COM_STMT_PREPARE}, []byte(sql))
}

// ownStatement is what the server says of a statement that it has prepared for us.
type ownStatement struct {
	id       uint32
	warnings int
	types    []byte // of the columns
}

// ownPrepared reads the answer to a preparation of ours: the statement, or the server's error.
func (l *link) ownPrepared() (st ownStatement, refused *history.ServerError, err error) {
	f, err := l.nextPacket()
	if err != nil {
		return st, nil, err
	}
	b, err := l.take(f)
	if err != nil {
		return st, nil, err
	}
	if f.first != markOK || len(b) < 9 {
		return st, parseERR(b), nil
	}
	if len(b) >= 12 {
		st.warnings = int(binary.LittleEndian.Uint16(b[10:]))
	}
	st.id = binary.LittleEndian.Uint32(b[1:])
	columns, params := int(binary.LittleEndian.Uint16(b[5:])), int(binary.LittleEndian.Uint16(b[7:]))
	if _, err = l.ownDefinitions(params); err == nil {
		st.types, err = l.ownDefinitions(columns)
	}
	return st, nil, err
}

// ownDefinitions takes a list of definitions with its EOF, and returns their types.
func (l *link) ownDefinitions(n int) (types []byte, err error) {
	for range n {
		_, typ, err := l.takeDefinition()
		if err != nil {
			return nil, err
		}
		types = append(types, typ)
	}
	if n > 0 && !l.has(deprecateEOF) {
		_, err = l.takeNext()
	}
	return types, err
}

// ownClose puts the end of a prepared statement of ours into the output to the server. It has no answer.
func (l *link) ownClose(id uint32) error {
	return l.server.put(0, binary.LittleEndian.AppendUint32([]byte{mysql.COM_STMT_CLOSE}, id))
}
