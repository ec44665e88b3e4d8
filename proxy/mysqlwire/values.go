package mysqlwire

import (
	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/proxy/record"
	"wirecheck/trace/flow"
	"wirecheck/trace/packets/wire"
)

// source is the column of a table that a column of an answer shows.
type source struct {
	table, column string // empty: it is an expression
	unsigned      bool
}

// wants reports whether the values of a prepared statement matter.
func (s *preparedStatements) wants(p *prepared) bool {
	return s.o.observer.Recorder.Requests.Wants(p.sql, s.o.observer.Limits)
}

// sourceOf reads a column definition: catalog, schema, alias and name of the table, alias and name of the column, and what typeOf says.
func sourceOf(def []byte) (s source) {
	var parts [6][]byte
	rest := def
	for i := range parts {
		var err error
		if parts[i], rest, err = lenencString(rest); err != nil {
			return source{}
		}
	}
	if len(parts[1]) == 0 || len(parts[3]) == 0 || len(parts[5]) == 0 || len(def) < 13 {
		return source{}
	}
	flags := uint16(def[len(def)-5]) | uint16(def[len(def)-4])<<8
	return source{string(parts[1]) + "." + string(parts[3]), string(parts[5]), flags&mysql.UNSIGNED_FLAG != 0}
}

// values are the values of a row's columns.
func (c *columns) values(row []byte) (list []record.Cell) {
	w, unread := walker{columns: c}, []record.Cell{{Unread: true}}
	if len(c.sources) == 0 || !w.start(row) {
		return unread
	}
	for w.column < c.shown() && w.column < len(c.sources) {
		i := w.column
		from, to, null, err := w.next(row)
		if err != nil {
			return unread
		}
		s := c.sources[i]
		cell := record.Cell{Table: s.table, Column: s.column, Null: null}
		switch {
		case null:
		case c.binary:
			cell.Text = wire.MySQLText(row[from:to], c.types[i], s.unsigned)
		default:
			cell.Text = string(row[from:to])
		}
		list = append(list, cell)
	}
	return list
}

// values are the parameters of an execution (MySQL manual, "COM_STMT_EXECUTE").
func (p *prepared) values(b []byte) (list []flow.Param) {
	const fixed = 1 + 4 + 1 + 4
	at := fixed + (p.params+7)/8
	if p.params == 0 || len(b) <= at || b[0] != mysql.COM_STMT_EXECUTE || len(p.bound) < 2*p.params {
		return nil
	}
	nulls, rest := b[fixed:at], b[at+1:]
	if b[at] != 0 {
		if len(rest) < 2*p.params {
			return nil
		}
		rest = rest[2*p.params:]
	}
	for i := range p.params {
		if nulls[i/8]&(1<<(i%8)) != 0 {
			list = append(list, flow.Param{Null: true})
			continue
		}
		kind := p.bound[2*i]
		n, fixed := binarySize(kind)
		if !fixed {
			size, after, err := lenenc(rest)
			if err != nil || size > uint64(len(after)) {
				return nil
			}
			rest, n = after, int(size)
		}
		if n > len(rest) {
			return nil
		}
		list = append(list, flow.Param{Text: wire.MySQLText(rest[:n], kind, p.bound[2*i+1]&0x80 != 0)})
		rest = rest[n:]
	}
	return list
}
