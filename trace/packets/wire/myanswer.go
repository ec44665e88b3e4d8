package wire

import (
	"encoding/binary"
	"strconv"

	"wirecheck/answer"
)

type myState uint8

const (
	stateFirst   myState = iota // the first packet of an answer, or of its next result
	stateColumns                // definitions of columns
	stateRows
	stateParams        // PREPARE: definitions of parameters
	statePreparedCols  // PREPARE: definitions of columns
	stateMaybeEOF      // EOF between definitions and rows, unless it was agreed to leave it out
	stateMaybeEOFPrep  // the same, behind a PREPARE's parameters
	stateMaybeEOFPrep2 // and behind its columns
)

// Status flags of the server.
const (
	statusInTrans     = 1
	statusMoreResults = 8
	statusCursor      = 0x40
)

// answer takes a message of the server.
func (d *myDecoder) answer(_ byte, body []byte, at int64) error {
	switch d.phase {
	case phaseGreeting:
		d.greeting(body)
		return nil
	case phaseLogin:
		return nil
	case phaseAuth:
		switch {
		case len(body) > 0 && body[0] == 0:
			d.phase = phaseCommand
			c := cursor{b: body[1:]}
			d.okStatus(&c)
		case len(body) > 0 && body[0] == 0xff:
			e := myError(body)
			d.parting = e.Code + " " + e.Message
		}
		return nil
	}
	if len(d.queue) == 0 {
		if len(body) > 0 && body[0] == 0xff { // the session is ended
			e := myError(body)
			d.parting = e.Code + " " + e.Message
		}
		return nil
	}
	c := d.queue[0]
	if body == nil {
		if (c.state == stateRows || c.state == stateMaybeEOF) && c.keep != nil {
			c.state = stateRows
			c.keep.row(nil)
		}
		return nil
	}
	if len(body) == 0 || isProgress(body) {
		return nil
	}
	return d.step(c, body, at)
}

// okStatus reads the rest of an OK packet: affected rows, last id, status.
func (d *myDecoder) okStatus(c *cursor) (affected int64, status int) {
	n, _ := c.lenenc()
	c.lenenc()
	status = int(c.little(2))
	if !c.bad {
		d.setStatus(status)
	}
	return int64(min(n, 1<<62)), status
}

func (d *myDecoder) setStatus(status int) {
	d.Transaction.Status = answer.Idle
	if status&statusInTrans != 0 {
		d.Transaction.Status = answer.Open
	}
}

// step takes a packet of the answer to c.
func (d *myDecoder) step(c *myCommand, body []byte, at int64) error {
	if body[0] == 0xff && (c.state == stateFirst || c.state == stateRows || c.state == stateMaybeEOF) {
		return d.refused(c, body, at)
	}
	switch c.state {
	case stateFirst:
		return d.first(c, body, at)
	case stateColumns:
		d.column(c, body)
		if c.left--; c.left == 0 {
			c.state = stateMaybeEOF
		}
	case stateMaybeEOF:
		c.state = stateRows
		if body[0] == 0xfe && len(body) == 5 {
			if status := int(binary.LittleEndian.Uint16(body[3:])); status&statusCursor != 0 {
				d.setStatus(status)
				return d.result(c, at, status)
			}
			return nil
		}
		return d.rows(c, body, at)
	case stateRows:
		return d.rows(c, body, at)
	case stateParams, stateMaybeEOFPrep, statePreparedCols, stateMaybeEOFPrep2:
		return d.preparing(c, body, at)
	}
	return nil
}

// first takes the first packet of an answer.
func (d *myDecoder) first(c *myCommand, body []byte, at int64) error {
	in := cursor{b: body[1:]}
	switch {
	case c.code == comPrepare:
		return d.preparedAnswer(c, &in, at)
	case c.code == comFieldList:
		if body[0] == 0xfe && len(body) < 9 {
			d.pop()
		}
		return nil
	case c.code == comChangeUser && body[0] != 0: // authentication goes on
		return nil
	case c.st == nil: // everything else is answered by one packet
		if body[0] == 0 {
			d.okStatus(&in)
			d.changed(c)
		}
		d.pop()
		if c.code == comInitDB || c.code == comChangeUser || c.code == comResetConn {
			return d.announce()
		}
		return nil
	case body[0] == 0:
		affected, status := d.okStatus(&in)
		c.keep = newCollector(d.out.Sink.Options, &c.kept)
		c.keep.result.Affected = affected
		return d.result(c, at, status)
	case body[0] == 0xfb:
		d.upload = true
		d.out.Copies++
		return nil
	}
	d.resultSet(c, body)
	return nil
}

// changed takes what commands other than statements change.
func (d *myDecoder) changed(c *myCommand) {
	switch c.code {
	case comInitDB:
		d.Info.Database = c.text
	case comChangeUser:
		d.Info.User = c.text
		clear(d.texts)
	case comResetConn:
		clear(d.texts)
	}
}

// resultSet takes the number of columns. MariaDB may leave the definitions out that the client has already.
func (d *myDecoder) resultSet(c *myCommand, body []byte) {
	in := cursor{b: body}
	n, _ := in.lenenc()
	follows := true
	if len(in.b) == 1 {
		follows = in.byte() != 0
	}
	if n == 0 || n > 1<<16 || in.bad {
		return
	}
	c.columns, c.defs = nil, nil
	c.left, c.state = int(n), stateColumns
	c.keep = newCollector(d.out.Sink.Options, &c.kept)
	if !follows {
		c.state = stateMaybeEOF
		if c.stmt != nil {
			c.columns, c.defs = c.stmt.columns, c.stmt.defs
		}
		c.keep.columns(c.columns)
	}
}

// column takes the definition of a column: catalog, schema, table, original table, name, original name; at the end, behind what MariaDB may
// add, 12 bytes of fixed length.
func (d *myDecoder) column(c *myCommand, body []byte) {
	in := cursor{b: body}
	for range 4 {
		in.lenencBytes()
	}
	name, _ := in.lenencBytes()
	var def myColumn
	if len(body) >= 12 {
		tail := body[len(body)-12:]
		def = myColumn{kind: tail[6], unsigned: tail[7]&0x20 != 0, decimals: int(tail[9])}
	}
	c.columns = append(c.columns, answer.Column{Name: string(name), Type: myTypeName(def.kind, def.unsigned)})
	c.defs = append(c.defs, def)
	if c.state == stateColumns && c.left == 1 {
		c.keep.columns(c.columns)
		if c.stmt != nil {
			c.stmt.columns, c.stmt.defs = c.columns, c.defs
		}
	}
}

// rows takes a row, or the end of the rows: EOF, or OK with EOF's first byte. A row that begins so is 16 MiB long at least.
func (d *myDecoder) rows(c *myCommand, body []byte, at int64) error {
	if body[0] == 0xfe && len(body) < 0xffffff {
		status := 0
		in := cursor{b: body[1:]}
		if len(body) == 5 {
			in.bytes(2)
			status = int(in.little(2))
			d.setStatus(status)
		} else {
			_, status = d.okStatus(&in)
		}
		return d.result(c, at, status)
	}
	if c.keep == nil {
		c.keep = newCollector(d.out.Sink.Options, &c.kept)
		c.keep.columns(c.columns)
	}
	if c.binary {
		var ok bool
		if d.cells, ok = myBinaryRow(d.cells[:0], body, c.defs); ok {
			c.keep.text(d.cells)
		} else {
			c.keep.row(nil)
		}
		return nil
	}
	in := cursor{b: body}
	d.cells = d.cells[:0]
	for len(in.b) > 0 {
		v, null := in.lenencBytes()
		if in.bad {
			c.keep.row(nil)
			return nil
		}
		if v == nil && !null {
			v = []byte{}
		}
		d.cells = append(d.cells, v)
	}
	c.keep.text(d.cells)
	return nil
}

// result takes the end of a result; there may be another one.
func (d *myDecoder) result(c *myCommand, at int64, status int) error {
	if c.keep != nil {
		addResult(c.st, c.keep.done())
		c.keep = nil
	}
	if status&statusMoreResults != 0 {
		c.state = stateFirst
		return nil
	}
	return d.done(c, at)
}

func (d *myDecoder) pop() { d.queue = d.queue[1:] }

// done hands on a statement.
func (d *myDecoder) done(c *myCommand, at int64) error {
	d.pop()
	c.st.End, c.st.To = at, d.out.Sink.Tick()
	c.st.After = d.Transaction.Status
	d.Executed(c.st)
	if err := d.announce(); err != nil {
		return err
	}
	return d.hand(c.st)
}

// refused takes an error. It does not tell the transaction's status.
func (d *myDecoder) refused(c *myCommand, body []byte, at int64) error {
	e := myError(body)
	if c.st == nil {
		d.pop()
		return nil
	}
	if c.keep != nil { // it came in the middle of the rows
		addResult(c.st, c.keep.done())
	}
	c.st.Error = e
	d.Done(c.st.SQL, e)
	return d.done(c, at)
}

// myError reads an error packet: code, SQLSTATE, message.
func myError(body []byte) *answer.Error {
	in := cursor{b: body[1:]}
	e := &answer.Error{Code: strconv.FormatUint(in.little(2), 10)}
	if len(in.b) > 5 && in.b[0] == '#' {
		e.SQLState = string(in.bytes(6)[1:])
	}
	e.Message = string(in.b)
	return e
}
