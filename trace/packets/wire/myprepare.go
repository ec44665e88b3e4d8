package wire

// preparedAnswer takes the first packet of the answer to a PREPARE: id, number of columns and of parameters.
func (d *myDecoder) preparedAnswer(c *myCommand, in *cursor, at int64) error {
	id := uint32(in.little(4))
	columns, params := int(in.little(2)), int(in.little(2))
	if in.bad {
		d.pop()
		return nil
	}
	p := &myPrepared{sql: c.text, params: params}
	if len(d.texts) < maxNames {
		d.texts[id] = p
	}
	d.prepared = id
	c.id, c.params, c.left, c.stmt = id, params, columns, p
	// EXECUTE may have been sent before this answer (MariaDB).
	for _, later := range d.queue[1:] {
		if later.stmt == nil && later.code == comExecute && later.st.Lost {
			later.stmt, later.st.SQL, later.st.Lost, later.st.Tags = p, p.sql, false, c.st.Tags
			later.st.NoParams = params > 0
		}
	}
	switch {
	case params > 0:
		c.state = stateParams
	case columns > 0:
		c.state = statePreparedCols
	default:
		d.pop()
	}
	return nil
}

// preparing takes the rest of that answer. Whether EOF stands behind the definitions shows when it does; its absence shows by the login, or
// by the next packet.
func (d *myDecoder) preparing(c *myCommand, body []byte, at int64) error {
	isEOF := body[0] == 0xfe && len(body) == 5
	switch c.state {
	case stateParams:
		if c.params--; c.params > 0 {
			return nil
		}
		c.state = stateMaybeEOFPrep
		if d.agreed.both(capNoEOF) {
			d.afterParams(c)
		}
		return nil
	case stateMaybeEOFPrep:
		d.afterParams(c)
		if isEOF {
			return nil
		}
		if c.state == statePreparedCols {
			return d.preparing(c, body, at)
		}
		return d.answer(0, body, at) // of the next command
	case statePreparedCols:
		d.column(c, body)
		if c.left--; c.left > 0 {
			return nil
		}
		c.stmt.columns, c.stmt.defs = c.columns, c.defs
		c.state = stateMaybeEOFPrep2
		if d.agreed.both(capNoEOF) {
			d.pop()
		}
		return nil
	}
	d.pop()
	if isEOF {
		return nil
	}
	return d.answer(0, body, at)
}

func (d *myDecoder) afterParams(c *myCommand) {
	if c.left > 0 {
		c.state = statePreparedCols
		return
	}
	d.pop()
}
