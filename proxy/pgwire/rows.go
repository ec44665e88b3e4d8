package pgwire

import (
	"bytes"
	"encoding/binary"
	"errors"

	"wirecheck/proxy/record"
	"wirecheck/rewrite"
)

const (
	fieldTail = 18 // of a field in a RowDescription, behind its name: table, column, type, size, modifier, format
	oidText   = 25
	oidFloat4 = 700
	oidFloat8 = 701
	null      = 0xffffffff // in place of the length of a value
)

// rowDescription relays a RowDescription without its hidden fields, which are the last ones, of type text.
func (a *serverHalf) rowDescription(f frame, plan *rewrite.Plan, e *entry) error {
	if f.size > a.limits.Row {
		return a.misfit(f, "a row description is too long")
	}
	body, err := a.in.body(f.size)
	if err != nil {
		return err
	}
	return a.described(body, plan, e)
}

// described relays a RowDescription of that plan.
func (a *serverHalf) described(body []byte, plan *rewrite.Plan, e *entry) error {
	end, n, ok := visibleFields(body, plan.Hidden)
	a.describe(body, n, ok, e)
	if err := a.release(); err != nil {
		return err
	}
	if !ok {
		a.pipeline.lose("a row description does not have the hidden columns")
		return a.out.message('T', body)
	}
	binary.BigEndian.PutUint16(body, uint16(n))
	return a.out.message('T', body[:end])
}

// misfit passes a message on and gives up.
func (a *serverHalf) misfit(f frame, why string) error {
	a.pipeline.lose(why)
	return a.relay(f)
}

// visibleFields finds where the hidden fields of a RowDescription begin, and how many others there are.
func visibleFields(body []byte, hidden int) (end, n int, ok bool) {
	if len(body) < 2 {
		return 0, 0, false
	}
	all := int(binary.BigEndian.Uint16(body))
	n = all - hidden
	if n < 0 {
		return 0, 0, false
	}
	pos := 2
	for i := range all {
		if i == n {
			end = pos
		}
		k := bytes.IndexByte(body[pos:], 0)
		if k < 0 || pos+k+1+fieldTail > len(body) {
			return 0, 0, false
		}
		pos += k + 1 + fieldTail
		if i >= n && binary.BigEndian.Uint32(body[pos-12:]) != oidText {
			return 0, 0, false
		}
	}
	return end, n, pos == len(body)
}

// dataRow relays a DataRow without its hidden columns.
func (a *serverHalf) dataRow(f frame, e *entry) error {
	switch {
	case e == nil:
		return a.unasked(f)
	case e.request == ownQuery:
		return a.ownRow(f, e.own)
	}
	plan := e.current()
	if plan == nil || plan.Hidden == 0 && !plan.AsksExistence() {
		return a.relay(f)
	}
	run := a.pipeline.begin(e)
	if !a.holds(f.size, a.limits.Row) {
		return a.longRow(f, plan, run)
	}
	body, err := a.in.body(f.size)
	if err != nil {
		return err
	}
	end, n, ok := visibleCells(body, plan.Hidden)
	if !ok {
		a.pipeline.lose("a row does not have the hidden columns")
		return a.out.message('D', body)
	}
	if plan.Blank && binary.BigEndian.Uint32(body[end:]) == null {
		e.blank = true
		a.decode(body[end:], plan, run)
		return nil
	}
	if plan.Hidden > 0 {
		a.decode(body[end:], plan, run)
	}
	if run != nil && plan.AsksExistence() {
		if value, _, ok := cell(body[2:end]); ok {
			run.Existed(value)
		}
	}
	if run != nil && run.WantsCells() {
		a.cells(body[2:end], e, run)
	}
	if plan.NoRows {
		return nil
	}
	if err := a.release(); err != nil {
		return err
	}
	binary.BigEndian.PutUint16(body, uint16(n))
	return a.out.message('D', body[:end])
}

// visibleCells finds where the hidden cells of a DataRow begin, and how many others there are.
func visibleCells(body []byte, hidden int) (end, n int, ok bool) {
	if len(body) < 2 {
		return 0, 0, false
	}
	n = int(binary.BigEndian.Uint16(body)) - hidden
	if n < 0 {
		return 0, 0, false
	}
	rest := body[2:]
	for range n {
		if _, rest, ok = cell(rest); !ok {
			return 0, 0, false
		}
	}
	return len(body) - len(rest), n, true
}

// cell takes one value (nil for NULL) off the front of b.
func cell(b []byte) (value, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	size := int32(binary.BigEndian.Uint32(b))
	b = b[4:]
	if size == -1 {
		return nil, b, true
	}
	if size < 0 || int(size) > len(b) {
		return nil, nil, false
	}
	return b[:size:size], b[size:], true
}

// errUnread stands for the result of a decoder that panicked.
var errUnread = errors.New("hidden columns not read")

// decode gives the hidden cells to the plan, and what it reads in them to the running statement.
func (a *serverHalf) decode(b []byte, plan *rewrite.Plan, run *record.Running) {
	if run == nil {
		return
	}
	a.hidden = a.hidden[:0]
	for range plan.Hidden {
		v, rest, ok := cell(b)
		if !ok {
			run.Opaque("a row's hidden part is malformed")
			return
		}
		a.hidden, b = append(a.hidden, v), rest
	}
	err := a.decodeHidden(plan, run)
	if err == nil {
		return
	}
	var changed *rewrite.ChangedError
	switch {
	case errors.Is(err, rewrite.ErrPartial):
		run.Opaque(err.Error())
	case errors.As(err, &changed): // a definition went past the proxy
		run.Opaque(err.Error())
		a.environment.database.changes.Add(changed.Table)
	case err == errUnread: // nothing is recorded any more
	default:
		run.Opaque("a row's hidden part cannot be read")
		a.log.Warn().Err(err).Msg("hidden columns not understood")
	}
}

func (a *serverHalf) decodeHidden(plan *rewrite.Plan, run *record.Running) (err error) {
	err = errUnread
	defer recovered(a.pipeline)
	return run.Decode(plan, a.hidden)
}
