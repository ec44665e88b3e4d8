package pgwire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"wirecheck/proxy/record"
	"wirecheck/rewrite"
)

const (
	fieldTail = 18 // of a field in a RowDescription, behind its name: table, column, type, size, modifier, format
	oidText   = 25
)

// rowDescription relays a RowDescription without its hidden fields, which are the last ones, of type text.
func (o *observing) rowDescription(f frame, plan *rewrite.Plan) error {
	if f.size > o.Config.Limits.Row {
		return o.misfit(f, "a row description is too long")
	}
	body, err := o.fromServer.body(f.size)
	if err != nil {
		return err
	}
	end, n, ok := visibleFields(body, plan.Hidden)
	if err := o.release(); err != nil {
		return err
	}
	if !ok {
		o.mu.Lock()
		o.lose("a row description does not have the hidden columns")
		o.mu.Unlock()
		return o.toClient.message('T', body)
	}
	if err := o.toClient.header('T', end); err != nil {
		return err
	}
	if _, err := o.toClient.Write(binary.BigEndian.AppendUint16(nil, uint16(n))); err != nil {
		return err
	}
	_, err = o.toClient.Write(body[2:end])
	return err
}

// misfit passes a message on and gives up.
func (o *observing) misfit(f frame, why string) error {
	o.mu.Lock()
	o.lose(why)
	o.mu.Unlock()
	return o.relayAnswer(f)
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
func (o *observing) dataRow(f frame, e *entry) error {
	switch {
	case e == nil:
		return o.unasked(f)
	case e.request == ownQuery:
		return o.ownRow(f, e.own)
	}
	plan := e.current()
	if plan == nil || plan.Hidden == 0 {
		return o.relayAnswer(f)
	}
	run := o.begin(e)
	if f.size > o.Config.Limits.Row {
		return o.longRow(f, plan, run)
	}
	body, err := o.fromServer.body(f.size)
	if err != nil {
		return err
	}
	end, n, ok := visibleCells(body, plan.Hidden)
	if !ok {
		o.mu.Lock()
		o.lose("a row does not have the hidden columns")
		o.mu.Unlock()
		return o.toClient.message('D', body)
	}
	o.decode(body[end:], plan, run)
	if plan.NoRows {
		return nil
	}
	if err := o.release(); err != nil {
		return err
	}
	if err := o.toClient.header('D', end); err != nil {
		return err
	}
	binary.BigEndian.PutUint16(body, uint16(n))
	_, err = o.toClient.Write(body[:end])
	return err
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

// decode gives the hidden cells to the plan, and what it reads in them to the running statement.
func (o *observing) decode(b []byte, plan *rewrite.Plan, run *record.Running) {
	if run == nil {
		return
	}
	cells := make([][]byte, 0, 4)
	for range plan.Hidden {
		v, rest, ok := cell(b)
		if !ok {
			run.Opaque("a row's hidden part is malformed")
			return
		}
		cells, b = append(cells, v), rest
	}
	switch err := run.Decode(plan, cells); {
	case err == nil:
	case errors.Is(err, rewrite.ErrPartial):
		run.Opaque(err.Error())
	default:
		run.Opaque("a row's hidden part cannot be read")
		o.Log.Warn().Err(err).Msg("hidden columns not understood")
	}
}

// longRow relays a row that is too long to be held. Its new length must be said before its cells and is known when the
// length of the last visible one is: up to there the row is spooled, from there on it streams.
func (o *observing) longRow(f frame, plan *rewrite.Plan, run *record.Running) (err error) {
	left := f.size
	take := func(n int) ([]byte, error) {
		if left -= n; left < 0 {
			return nil, fmt.Errorf("read row: %w", errLength)
		}
		return o.fromServer.body(n)
	}
	head, err := take(2)
	if err != nil {
		return err
	}
	n := int(binary.BigEndian.Uint16(head)) - plan.Hidden
	if n < 0 {
		return fmt.Errorf("row has fewer columns than were added: %w", errLength)
	}
	s := &spool{limit: o.Config.Limits.Row}
	defer func() { err = errors.Join(err, s.close()) }()
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
		if err := o.fromServer.copyTo(s, v); err != nil {
			return err
		}
	}
	if !plan.NoRows {
		if err := o.release(); err != nil {
			return err
		}
		o.inside = true
		if err := o.toClient.header('D', f.size-left); err != nil {
			return err
		}
		if _, err := o.toClient.Write(binary.BigEndian.AppendUint16(nil, uint16(n))); err != nil {
			return err
		}
		if err := s.copyTo(o.toClient); err != nil {
			return err
		}
		if err := o.fromServer.copyTo(o.toClient, last); err != nil {
			return err
		}
		o.inside = false
	}
	if left > o.Config.Limits.Row {
		if run != nil {
			run.Opaque("a row's hidden part is too long")
		}
		return o.fromServer.skip(left)
	}
	hidden, err := o.fromServer.body(left)
	if err != nil {
		return err
	}
	o.decode(hidden, plan, run)
	return nil
}

// spool keeps bytes, in memory up to a limit and in a temporary file beyond.
type spool struct {
	limit int
	mem   []byte
	file  *os.File
}

// Write implements io.Writer.
func (s *spool) Write(p []byte) (int, error) {
	if s.file == nil && len(s.mem)+len(p) <= s.limit {
		s.mem = append(s.mem, p...)
		return len(p), nil
	}
	if s.file == nil {
		f, err := os.CreateTemp("", "wirecheck-row-")
		if err != nil {
			return 0, fmt.Errorf("spool row: %w", err)
		}
		s.file = f
		if err := os.Remove(f.Name()); err != nil { // it lives as long as it is open
			return 0, fmt.Errorf("spool row: %w", err)
		}
	}
	n, err := s.file.Write(p)
	if err != nil {
		return n, fmt.Errorf("spool row: %w", err)
	}
	return n, nil
}

func (s *spool) copyTo(w io.Writer) error {
	if _, err := w.Write(s.mem); err != nil {
		return err
	}
	if s.file == nil {
		return nil
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read spooled row: %w", err)
	}
	_, err := io.CopyBuffer(w, onlyReader{s.file}, make([]byte, bufferLen))
	return err
}

// onlyReader hides WriteTo, which would take a buffer of its own.
type onlyReader struct{ io.Reader }

func (s *spool) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
