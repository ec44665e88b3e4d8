package wire

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"wirecheck/answer"
	"wirecheck/trace"
)

// head gives the first of the queue if it is of one of these kinds.
func (d *pgDecoder) head(kinds string) *pgOp {
	if len(d.queue) > 0 && bytes.IndexByte([]byte(kinds), d.queue[0].kind) >= 0 {
		return d.queue[0]
	}
	return nil
}

func (d *pgDecoder) pop(kinds string) {
	if d.head(kinds) != nil {
		d.queue = d.queue[1:]
	}
}

// answer takes a message of the server.
func (d *pgDecoder) answer(kind byte, body []byte, at int64) error {
	c := cursor{b: body}
	switch kind {
	case 'S':
		d.parameterStatus(c.text(), c.text())
		return nil
	case 'K':
		d.Info.Backend = strconv.Itoa(c.int32())
		return nil
	case 'Z':
		return d.ready(answer.State(c.byte()))
	case 'N', 'A':
		return nil
	}
	if d.sync {
		return nil
	}
	switch kind {
	case '1':
		d.pop("P")
	case '2':
		d.pop("B")
	case '3':
		d.pop("C")
	case 't':
		if op := d.head("D"); op != nil && op.prepared != nil {
			op.prepared.types = op.prepared.types[:0]
			for n := c.int16(); n > 0 && !c.bad; n-- {
				op.prepared.types = append(op.prepared.types, uint32(c.int32()))
			}
		}
	case 'T':
		d.description(&c)
	case 'n':
		d.pop("D")
	case 'D':
		d.row(&c, body == nil)
	case 'C':
		return d.complete(c.text(), at)
	case 's', 'I':
		return d.complete("", at)
	case 'V':
		d.pop("F")
	case 'E':
		return d.failed(&c, at)
	case 'G', 'H', 'W':
		d.out.Copies++
	}
	return nil
}

func (d *pgDecoder) parameterStatus(key, value string) {
	switch key {
	case "server_version":
		d.Info.Version = value
	case "application_name":
		d.Info.Application = value
	case "session_authorization":
		if d.Info.User == "" {
			d.Info.User = value
		}
	}
}

// description takes the columns of a result.
func (d *pgDecoder) description(c *cursor) {
	var columns []answer.Column
	for n := c.int16(); n > 0 && !c.bad; n-- {
		col := answer.Column{Name: c.text()}
		c.bytes(6)
		col.Type = pgTypeName(uint32(c.int32()))
		c.bytes(8)
		columns = append(columns, col)
	}
	if op := d.head("D"); op != nil {
		if op.prepared != nil {
			op.prepared.columns = columns
		} else if op.portal != nil {
			op.portal.columns = columns
		}
		d.pop("D")
		return
	}
	if op := d.head("Q"); op != nil {
		d.keep = newCollector(d.out.Sink.Options, &op.kept)
		d.keep.columns(columns)
	}
}

func (d *pgDecoder) row(c *cursor, large bool) {
	op := d.head("QE")
	if op == nil {
		return
	}
	var formats []int
	var columns []answer.Column
	if p := op.portal; p != nil {
		formats, columns = p.results, p.columns
		if columns == nil {
			columns = p.of.columns
		}
	}
	if d.keep == nil {
		d.keep = newCollector(d.out.Sink.Options, &op.kept)
		d.keep.columns(columns)
	}
	if large {
		d.keep.row(nil)
		return
	}
	n := c.int16()
	if !slices.Contains(formats, 1) { // as text
		d.cells = d.cells[:0]
		for range max(n, 0) {
			size := c.int32()
			if c.bad {
				return
			}
			var v []byte
			if size >= 0 {
				if v = c.bytes(size); v == nil {
					v = []byte{}
				}
			}
			d.cells = append(d.cells, v)
		}
		d.keep.text(d.cells)
		return
	}
	row := make([]trace.Value, 0, min(max(n, 0), 1600))
	for i := range max(n, 0) {
		size := c.int32()
		if c.bad {
			return
		}
		var raw []byte
		if size >= 0 {
			raw = append([]byte{}, c.bytes(size)...)
		}
		var oid uint32
		if i < len(d.keep.result.Columns) {
			oid = pgTypeOID(d.keep.result.Columns[i].Type)
		}
		row = append(row, pgValue(raw, formatOf(formats, i), oid))
	}
	d.keep.row(row)
}

// complete takes the end of one result.
func (d *pgDecoder) complete(tag string, at int64) error {
	op := d.head("QE")
	if op == nil {
		return nil
	}
	k := d.keep
	d.keep = nil
	if k == nil {
		k = newCollector(d.out.Sink.Options, &op.kept)
		if p := op.portal; p != nil && (p.columns != nil || p.of.columns != nil) { // no rows
			k.columns(p.columns)
			if p.columns == nil {
				k.columns(p.of.columns)
			}
		}
	}
	r := k.done()
	r.Tag = tag
	r.Affected = tagCount(tag)
	addResult(op.st, r)
	op.st.End, op.st.To = at, d.out.Sink.Tick()
	if op.kind == 'E' {
		d.pop("E")
		return d.done(op)
	}
	return nil
}

// tagCount gives the rows that a command tag says were written.
func tagCount(tag string) int64 {
	var last string
	for _, verb := range []string{"INSERT ", "UPDATE ", "DELETE ", "MERGE ", "COPY "} {
		if len(tag) > len(verb) && tag[:len(verb)] == verb {
			last = tag[strings.LastIndexByte(tag, ' ')+1:]
		}
	}
	if n, err := strconv.ParseInt(last, 10, 64); err == nil {
		return n
	}
	return trace.Unknown
}

// done hands on the statement before, and keeps this one until its status is known.
func (d *pgDecoder) done(op *pgOp) error {
	st := op.st
	d.params(st, op.portal)
	if op.portal == nil && op.kind == 'E' {
		st.NoParams = true
	}
	st.Before = d.Transaction.Status
	st.After = d.Done(st.SQL, st.Error)
	d.Executed(st)
	return d.release(st)
}

func (d *pgDecoder) release(next *trace.Statement) error {
	last := d.last
	d.last = next
	if last == nil {
		return nil
	}
	if err := d.announce(); err != nil {
		return err
	}
	return d.hand(last)
}

// failed takes an error. What was sent behind it up to Sync is not executed.
func (d *pgDecoder) failed(c *cursor, at int64) error {
	e := &answer.Error{}
	for !c.bad {
		switch field := c.byte(); field {
		case 0:
			c.bad = true
		case 'C':
			e.Code = c.text()
		case 'M':
			e.Message = c.text()
		default:
			c.text()
		}
	}
	d.keep = nil
	if len(d.queue) == 0 { // the login was refused, or the session is ended
		d.parting = e.Code + " " + e.Message
		return nil
	}
	op := d.queue[0]
	if op.kind == 'Q' {
		op.st.Error, op.st.End, op.st.To = e, at, d.out.Sink.Tick()
		return nil // ReadyForQuery completes it
	}
	culprit := op
	i := 0
	for ; i < len(d.queue) && d.queue[i].kind != 'S' && d.queue[i].kind != 'Q'; i++ {
		if q := d.queue[i]; q.kind == 'E' {
			switch {
			case culprit.st == nil && culprit.executes(q):
				culprit = q
			case q != culprit:
				d.out.Sink.Other("statements skipped after an error in their pipeline")
			}
		}
	}
	d.queue = d.queue[i:]
	if culprit.kind == 'C' || culprit.kind == 'S' || culprit.kind == 'F' {
		return nil
	}
	if culprit.st == nil { // refused before it was executed
		culprit = &pgOp{kind: 'E', portal: culprit.portal, st: d.statement(trace.ProtocolPrepared, "", at), prepared: culprit.prepared}
		p := culprit.prepared
		if p == nil && culprit.portal != nil {
			p = culprit.portal.of
		}
		if p != nil {
			culprit.st.SQL, culprit.st.Name, culprit.st.Lost = p.sql, p.name, !p.known
		}
	}
	culprit.st.Error, culprit.st.End, culprit.st.To = e, at, d.out.Sink.Tick()
	return d.done(culprit)
}

// ready takes ReadyForQuery: everything up to the client's Sync or query has been answered.
func (d *pgDecoder) ready(status answer.State) error {
	if status != answer.Idle && status != answer.Open && status != answer.Failed {
		status = answer.Unknown
	}
	if d.sync {
		// What was sent before the gap, or before the source began, is over; which of the queue is complete cannot be known.
		d.sync = false
		d.forget()
	}
	i := slices.IndexFunc(d.queue, func(op *pgOp) bool { return op.kind == 'S' || op.kind == 'Q' || op.kind == 'F' })
	if i >= 0 {
		op := d.queue[i]
		d.queue = d.queue[i+1:]
		if op.kind == 'Q' && op.st.End != 0 {
			if err := d.done(op); err != nil {
				return err
			}
		}
	}
	d.Transaction.Status = status
	if d.last != nil {
		d.last.After = status
	}
	if err := d.announce(); err != nil {
		return err
	}
	return d.release(nil)
}

// forget drops the requests whose answers cannot be told apart any more.
func (d *pgDecoder) forget() {
	for _, op := range d.queue {
		if op.st != nil {
			d.lost()
		}
	}
	d.queue = nil
}
