package mysqlwire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
)

// relayResultSet relays metadata and rows.
func (a *answer) relayResultSet(st *sentStatement, f frame) (more bool, err error) {
	o := a.o
	b, err := o.take(f)
	if err != nil {
		return false, err
	}
	count, rest, err := lenenc(b)
	if err != nil || count > 1<<16 {
		return false, fmt.Errorf("read the number of columns: %w", errMalformed)
	}
	hidden := st.plan.Hidden
	// MariaDB tells in a further byte whether the metadata follows.
	follows := !o.has(capCacheMetadata) || len(rest) == 0 || rest[0] != 0
	var held [][]byte
	if hidden == 0 && follows && o.traits.mayShow(st.plan) {
		b = bytes.Clone(b) // the definitions that follow may overwrite it
		rest = b[len(b)-len(rest):]
		if held, hidden, err = o.holdDefinitions(int(count)); err != nil {
			return false, err
		}
	}
	if uint64(hidden) > count || st.plan.NoRows {
		return false, fmt.Errorf("a result has %d columns, %d of them ours: %w", count, hidden, errMalformed)
	}
	o.counts.changed = -1
	if hidden > 0 {
		b = append(mysql.PutLengthEncodedInt(count-uint64(hidden)), rest...)
	}
	if err := o.toClient(b); err != nil {
		return false, err
	}
	if a.prepared != nil && o.traits.TellsNewColumns {
		a.another, a.reshaped = a.prepared.tells(int(count) - hidden)
		a.reshaped = a.reshaped && !slices.Contains(changing, st.plan.Verb) // RETURNING
	}
	cols := &columns{hidden: hidden, binary: a.binary, hide: st.plan.Conceal}
	var names *[][5]string
	if cols.hide == nil && st.plan.Verb == "other" {
		names = new([][5]string)
		for _, def := range held {
			*names = append(*names, columnNames(def))
		}
	}
	o.wantSources = o.observer.Recorder.Requests != nil && (a.prepared != nil && o.prepared.wants(a.prepared) || st.running != nil && st.running.WantsCells())
	if cols.types, err = a.columnTypes(int(count), hidden, follows, held, names); err != nil {
		return false, err
	}
	if names != nil {
		cols.hide = dialect.ConcealAnswer(*names)
	}
	if cols.sources = o.sources; a.prepared != nil {
		if follows {
			a.prepared.sources = o.sources
		}
		cols.sources = a.prepared.sources
	}
	if !o.has(deprecateEOF) {
		ended, more, err := a.relayColumnsEnd(st)
		if err != nil || ended {
			return more, err
		}
	}
	return a.relayRows(st, cols)
}

// columnTypes relays the definitions of a result's columns, if they follow, and gives the types of all columns.
func (a *answer) columnTypes(count, hidden int, follows bool, held [][]byte, names *[][5]string) (types []byte, err error) {
	switch {
	case held != nil:
		types, err = a.o.releaseDefinitions(held, hidden)
	case follows:
		types, err = a.o.relayDefinitions(count, hidden, names)
	case a.prepared != nil && len(a.prepared.used.types) == count:
		return a.prepared.used.types, nil
	case hidden == 0 && a.prepared == nil: // one of too many prepared statements: its rows pass as they are
		return nil, nil
	default:
		return nil, fmt.Errorf("a result came without its columns: %w", errMalformed)
	}
	if err == nil && a.prepared != nil {
		a.prepared.used.types = types
	}
	return types, err
}

// relayColumnsEnd relays the EOF behind the column definitions. If a cursor was opened it ends the result too.
func (a *answer) relayColumnsEnd(st *sentStatement) (ended, more bool, err error) {
	f, err := a.o.nextPacket()
	if err != nil {
		return false, false, err
	}
	if f.first == markERR {
		more, err := a.relayError(st, f)
		return true, more, err
	}
	b, err := a.o.take(f)
	if err != nil {
		return false, false, err
	}
	if f.first != markEOF || len(b) < 5 {
		return false, false, fmt.Errorf("read the end of the columns: %w", errMalformed)
	}
	a.tellColumns(b[3:])
	// In other answers the status tells of a cursor that a procedure has opened for itself.
	if binary.LittleEndian.Uint16(b[3:])&statusCursor != 0 && a.prepared != nil && a.prepared.cursor && !manyResults(st.plan) {
		more, err := a.endWithEOF(st, b, false)
		return true, more, err
	}
	return false, false, a.o.toClient(b)
}

// relayRows relays rows and what ends them.
func (a *answer) relayRows(st *sentStatement, cols *columns) (more bool, err error) {
	o := a.o
	for _, row := range st.listing.rowsInFront(cols) {
		if err := o.toClientFrames(row); err != nil {
			return false, err
		}
	}
	asItIs := cols.hidden == 0 && cols.hide == nil && !st.plan.AsksExistence() && !st.plan.ShowsExtreme()
	a.shown, a.concealed = 0, 0
	for {
		f, err := o.nextPacket()
		if err != nil {
			return false, err
		}
		switch {
		case o.endsRows(f):
			ended, more, err := a.endRows(st, f, cols)
			if err != nil || ended {
				return more, err
			}
		case asItIs:
			err = o.pass(f)
		default:
			err = a.relayRow(st, cols, f)
		}
		if err != nil {
			return false, err
		}
	}
}

// endRows relays what ends the rows. A progress report among them ends nothing.
func (a *answer) endRows(st *sentStatement, f frame, cols *columns) (ended, more bool, err error) {
	o := a.o
	if f.first == markERR {
		report, err := a.relayError(st, f)
		return !report, false, err
	}
	b, err := o.take(f)
	if err != nil {
		return true, false, err
	}
	for _, row := range st.listing.rowsBehind(cols, o.warnings.server) {
		if err := o.toClientFrames(row); err != nil {
			return true, false, err
		}
	}
	if f.n < packetEOF && !o.has(deprecateEOF) {
		more, err := a.endWithEOF(st, b, false)
		return true, more, err
	}
	ok, err := parseOK(b)
	if err != nil {
		return true, false, fmt.Errorf("read the end of the rows: %w", err)
	}
	more, err = a.end(st, ok.terminator(b, false))
	return true, more, err
}

// tellCells gives the client's values of a row to the running statement, if it wants them.
func tellCells(st *sentStatement, cols *columns, row []byte) {
	if st.running != nil && st.running.WantsCells() {
		st.running.Cells(cols.values(row))
	}
}

// relayRow relays one row without its hidden columns.
func (a *answer) relayRow(st *sentStatement, cols *columns, f frame) error {
	o := a.o
	before := o.share.Own()
	if f.n > min(o.ps.Config.Limits.Row, packetMax) || cols.hide == nil && !holds(o, f) {
		if cols.hidden == 0 {
			return o.pass(f)
		}
		st.opaque("a row is too long to be held, or too many long ones are")
		return o.relayLongRow(cols)
	}
	defer func() { o.share.Add(before - o.share.Own()) }()
	row, err := o.take(f)
	if err != nil {
		return err
	}
	if st.running != nil && st.plan.AsksExistence() {
		st.running.Existed(cols.first(row))
	}
	if cols.hidden > 0 {
		shown, hidden, err := cols.cut(row, o.scratch)
		if err != nil {
			return fmt.Errorf("read a row: %w", err)
		}
		if o.tracker.observed() {
			o.tracker.guard(func() {
				st.decode(hidden)
				tellCells(st, cols, row)
			})
		}
		row = shown
		if cols.binary {
			o.scratch = shown
		}
	} else if st.plan.ShowsExtreme() && o.tracker.observed() {
		o.tracker.guard(func() { tellCells(st, cols, row) })
	}
	if cols.hide != nil {
		changed, keep := row, true
		if !o.tracker.guard(func() { changed, keep, err = cols.conceal(row, cols.hide) }) {
			changed, keep = row, true
		}
		if err != nil {
			return fmt.Errorf("read a row: %w", err)
		}
		row = changed
		if !keep {
			a.concealed++
			return nil
		}
		a.shown++
	}
	return o.toClientFrames(row)
}

// decode gives a row's hidden values to the history.
func (st *sentStatement) decode(hidden [][]byte) {
	if st.running == nil || st.plan.Decode == nil {
		return
	}
	switch err := st.running.Decode(st.plan, hidden); {
	case err == nil:
	case errors.Is(err, rewrite.ErrPartial):
		st.running.Opaque(err.Error())
	default:
		st.running.Opaque("the hidden columns are not understood: " + err.Error())
	}
}
