package postgres

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"wirecheck/history"
	"wirecheck/rewrite"
)

// part says what one hidden column holds: fields separated by blanks, in this order:
//
//	the write-ahead log's insert position   if lsn
//	xmax of the new version                 if upsert
//	the length and text of the old version: ctid, xmin and the key as below, if linked
//	the table's file                        if it is not the first one
//	tableoid, ctid, xmin                    missing together if there is no row (the null side of an outer join)
//	the key                                 if key; the rest of the text, in hexadecimal if hex
//
// With image it is a JSON array of the values of these columns, of the version that the first column tells, or, with was, of the one
// that this version replaced.
//
// With scan a JSON array of arrays comes behind the position, one for each of its parts, of what else would be the text.
// Empty text says nothing, NULL or "!" that there were too many rows.
type part struct {
	rel     *rewrite.Relation
	table   string // what relation gives, see nameTables
	op      history.Op
	lsn     bool
	upsert  bool
	linked  bool
	top     bool // the transaction's id, of 64 bits, in place of xmin
	key     bool
	hex     bool
	cols    []keyColumn                                                // of the key
	group   bool                                                       // the versions of a group: a JSON array of what else would be the text behind lsn; NULL if they were too many
	nested  bool                                                       // the versions of a group within a subquery: such an array, perhaps of arrays; "!" if they were too many
	scan    []part                                                     // of a scan: its tables
	sole    bool                                                       // of several versions of a table, it is not certain which one was read
	rows    func([]history.Access, [][]byte) ([]history.Access, error) // of a part of WITH: a JSON array for each of its rows, which this reads; NULL if they were too many
	another bool                                                       // whether there is a row beside those of the answer, in the place of which it would have done; NULL if that is not known
	apart   bool                                                       // what others read: see rewrite.Plan.Cascades, Lacking and Snapshot
	image   []string
	was     bool
	left    []string // columns of image that are the same in the version that an upsert replaced
	horizon *rewrite.Horizon
	columns bool // capture by columns, see columnAccess: none of the above but key, group, rel and op
}

var errHidden = errors.New("malformed hidden value")

// decoder gives the Decode function for hidden columns.
func decoder(parts []part) func([]history.Access, [][]byte) ([]history.Access, error) {
	nameTables(parts)
	return func(out []history.Access, hidden [][]byte) ([]history.Access, error) {
		if len(hidden) != len(parts) {
			return nil, fmt.Errorf("%w: %d columns, not %d", errHidden, len(hidden), len(parts))
		}
		var lsn uint64
		var partial error
		before, first := len(out), 0
		for i := range parts {
			p := &parts[i]
			text := hidden[i]
			if i == 1 {
				first = len(out)
			}
			if p.apart || p.another {
				p.doubt(out[before:], text)
				continue
			}
			if p.image != nil {
				if err := p.imaged(out[before:first], text); err != nil {
					return nil, err
				}
				continue
			}
			if (p.group || p.scan != nil || p.rows != nil) && (text == nil || string(text) == tooMany) {
				partial = rewrite.ErrPartial
				continue
			}
			if (p.scan != nil || p.rows != nil) && len(text) == 0 {
				continue
			}
			if p.rows != nil {
				list, err := p.decodeRows(out, text)
				if errors.Is(err, rewrite.ErrPartial) {
					partial = err
				} else if err != nil {
					return nil, err
				}
				out = list
				continue
			}
			if p.lsn {
				var f []byte
				f, text = cut(text)
				var err error
				if lsn, err = parseLSN(f); err != nil {
					return nil, err
				}
			}
			if p.scan != nil {
				list, err := p.scanned(text, lsn)
				if errors.Is(err, rewrite.ErrPartial) {
					partial = err
				} else if err != nil {
					return nil, err
				}
				out = append(out, list...)
				continue
			}
			texts := [][]byte{text}
			if p.group {
				var err error
				if texts, err = elements(text); err != nil {
					return nil, err
				}
			}
			if p.nested {
				var err error
				if texts, err = flatten(texts); errors.Is(err, rewrite.ErrPartial) {
					partial = err
				} else if err != nil {
					return nil, err
				}
			}
			for _, text := range texts {
				if p.linked {
					list, err := p.link(text, lsn)
					if err != nil {
						return nil, err
					}
					out = append(out, list...)
					continue
				}
				a, ok, err := p.access(text, lsn)
				if errors.Is(err, rewrite.ErrPartial) {
					partial = rewrite.ErrPartial
					continue
				}
				if err != nil {
					return nil, err
				}
				if ok {
					out = append(out, a)
				}
			}
		}
		return out, partial
	}
}

// armDecoder gives the number of hidden columns of a UNION ALL and their Decode function. The first column begins with
// the number of the arm from which the row is. Further columns, of parts, stand behind those of the arms.
func armDecoder(arms [][]part, parts []part) (int, func([]history.Access, [][]byte) ([]history.Access, error)) {
	width := 1
	decode := make([]func([]history.Access, [][]byte) ([]history.Access, error), len(arms))
	for i, parts := range arms {
		width = max(width, len(parts))
		decode[i] = decoder(parts)
	}
	further := decoder(parts)
	return width + len(parts), func(list []history.Access, hidden [][]byte) ([]history.Access, error) {
		if len(hidden) != width+len(parts) {
			return nil, fmt.Errorf("%w: %d columns, not %d", errHidden, len(hidden), width+len(parts))
		}
		number, rest := cut(hidden[0])
		i, err := strconv.Atoi(string(number))
		if err != nil || i < 0 || i >= len(arms) {
			return nil, errHidden
		}
		columns := append([][]byte{rest}, hidden[1:width]...)
		list, err = decode[i](list, columns[:len(arms[i])])
		if err != nil && !errors.Is(err, rewrite.ErrPartial) {
			return nil, err
		}
		list, more := further(list, hidden[width:])
		return list, cmp.Or(more, err)
	}
}

// scanned tells the versions of a scan.
func (p *part) scanned(text []byte, lsn uint64) (out []history.Access, err error) {
	var lists [][]string
	if err := json.Unmarshal(text, &lists); err != nil {
		return nil, fmt.Errorf("%w: %w", errHidden, err)
	}
	if len(lists) != len(p.scan) {
		return nil, fmt.Errorf("%w: %d tables, not %d", errHidden, len(lists), len(p.scan))
	}
	var partial error
	for i, list := range lists {
		for _, version := range list {
			a, ok, err := p.scan[i].access([]byte(version), lsn)
			switch {
			case errors.Is(err, rewrite.ErrPartial):
				partial = err
			case err != nil:
				return nil, err
			case ok:
				a.Approx = p.sole && len(list) > 1
				out = append(out, a)
			}
		}
	}
	return out, partial
}

func elements(text []byte) ([][]byte, error) {
	var list []string
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("%w: %w", errHidden, err)
	}
	out := make([][]byte, len(list))
	for i, s := range list {
		out[i] = []byte(s)
	}
	return out, nil
}

// flatten gives the versions in the arrays of groups. No version begins with a bracket.
func flatten(list [][]byte) (out [][]byte, err error) {
	for _, text := range list {
		switch {
		case len(text) == 0: // the null side of an outer join
		case string(text) == tooMany:
			err = rewrite.ErrPartial
		case text[0] != '[':
			out = append(out, text)
		default:
			inside, e := elements(text)
			if e == nil {
				inside, e = flatten(inside)
			}
			if e != nil && !errors.Is(e, rewrite.ErrPartial) {
				return nil, e
			}
			err = cmp.Or(e, err)
			out = append(out, inside...)
		}
	}
	return out, err
}

// tooMany stands for the versions of a scan, or of a group within a subquery, that were too many.
const tooMany = "!"

func cut(b []byte) (field, rest []byte) {
	field, rest, _ = bytes.Cut(b, []byte{' '})
	return field, rest
}

// located takes the table's number off the front of a version, and that of its file if it is told.
func located(text []byte) (file, oid, rest []byte) {
	oid, rest = cut(text)
	if len(rest) > 0 && rest[0] != '(' {
		file = oid
		oid, rest = cut(rest)
	}
	return file, oid, rest
}

func (p *part) access(text []byte, lsn uint64) (a history.Access, ok bool, err error) {
	if p.columns {
		return p.columnAccess(text)
	}
	op := p.op
	if p.upsert {
		var xmax []byte
		xmax, text = cut(text)
		// An upsert that met a row locked it before it wrote the new version, which carries that lock.
		if op = history.OpUpdate; string(xmax) == "0" {
			op = history.OpInsert
		}
	}
	if len(text) == 0 {
		return a, false, nil
	}
	file, oidText, text := located(text)
	ctid, text := cut(text)
	xminText, key, keyed := bytes.Cut(text, []byte{' '})
	oid, err1 := strconv.ParseUint(string(oidText), 10, 32)
	bits := 32
	if p.top {
		bits = 64
	}
	xmin, err2 := strconv.ParseUint(string(xminText), 10, bits)
	if p.top {
		xmin = uint64(uint32(xmin)) // rows keep the lower half
		xminText = strconv.AppendUint(nil, xmin, 10)
	}
	if err1 != nil || err2 != nil || !tid(ctid) {
		return a, false, errHidden
	}
	rel, err := p.relation(uint32(oid))
	if err != nil {
		return a, false, err
	}
	version := make([]byte, 0, 40)
	if p.rel.Kind == "partitioned" || p.rel.Root != nil {
		version = append(append(version, oidText...), ':')
	}
	version = append(append(append(version, ctid...), '/'), xminText...)
	if len(file) > 0 {
		version = append(append(version, '/'), file...)
	}
	a.Op, a.Row.Table = op, rel
	if p.key && !keyed {
		return a, false, &rewrite.ChangedError{Table: p.rel.Name}
	}
	if p.key {
		if a.Row.Key = string(key); p.hex {
			if a.Row.Key, err = unhex(key); err != nil {
				return a, false, err
			}
		}
		a.Name = rowName(p.cols, a.Row.Key)
	}
	writer := "x" + string(xminText)
	switch op {
	case history.OpDelete:
		a.Prev, a.PrevWriter, a.Order = string(version), writer, lsn
		if p.initial(uint32(xmin)) {
			a.PrevWriter, a.PrevOrder = "", history.OrderInitial
		}
	case history.OpInsert, history.OpUpdate:
		a.Version, a.Writer, a.Order = string(version), writer, lsn
	default:
		a.Version, a.Writer = string(version), writer
		if p.initial(uint32(xmin)) {
			a.Writer, a.Order = "", history.OrderInitial
		}
		if lsn != 0 {
			a.AsOf = lsn + 1
		}
	}
	if p.top {
		a.Version, a.Approx = "", true // xmin may be that of a subtransaction
	}
	if op.Writes() && p.rel.Unlogged {
		a.Order = history.OrderUnknown // two changes of one transaction may have the same position
	}
	return a, true, nil
}

// link tells an update together with the version that it replaced. If the key changed, one row ends and another begins.
func (p *part) link(text []byte, lsn uint64) ([]history.Access, error) {
	count, text := cut(text)
	n, err := strconv.Atoi(string(count))
	if err != nil || n < 0 || n >= len(text) || text[n] != ' ' {
		return nil, errHidden
	}
	_, _, rest := located(text[n+1:])
	place := text[n+1 : len(text)-len(rest)]
	old := append(append([]byte{}, place...), text[:n]...)
	now, ok1, err1 := p.access(text[n+1:], lsn)
	q := *p
	q.op = history.OpDelete
	was, ok2, err2 := q.access(old, lsn)
	switch {
	case err1 != nil:
		return nil, err1
	case err2 != nil:
		return nil, err2
	case !ok1 || !ok2:
		return nil, errHidden
	case now.Row != was.Row:
		now.Op = history.OpInsert
		return []history.Access{was, now}, nil
	}
	now.Prev, now.PrevWriter, now.PrevOrder = was.Prev, was.PrevWriter, was.PrevOrder
	return []history.Access{now}, nil
}

// relation names the row's table: the one that the statement names, or the partitioned table at its top.
func (p *part) relation(oid uint32) (string, error) {
	if oid != p.rel.OID && !slices.Contains(p.rel.Partitions, oid) {
		return "", &rewrite.ChangedError{Table: p.rel.Name}
	}
	return p.table, nil
}

// nameTables makes the names that relation gives, so that it makes none for each row.
func nameTables(parts []part) {
	for i := range parts {
		if p := &parts[i]; p.rel != nil {
			p.table = topName(p.rel)
		}
		nameTables(parts[i].scan)
	}
}

// initial reports whether xid is surely older than the horizon. Transaction ids are compared modulo 2^32; 1 and 2 are older
// than all others (manual, 25.1.5).
func (p *part) initial(xid uint32) bool {
	horizon, known := p.horizon.XID()
	return xid < 3 || known && int32(xid-uint32(horizon)) < 0
}

// tid checks the form "(block,offset)".
func tid(b []byte) bool {
	if len(b) < 5 || b[0] != '(' || b[len(b)-1] != ')' {
		return false
	}
	block, off, ok := bytes.Cut(b[1:len(b)-1], []byte{','})
	_, err1 := strconv.ParseUint(string(block), 10, 32)
	_, err2 := strconv.ParseUint(string(off), 10, 16)
	return ok && err1 == nil && err2 == nil
}

// parseLSN reads a pg_lsn: two hexadecimal numbers of 32 bits (manual, 8.20).
func parseLSN(b []byte) (uint64, error) {
	hi, lo, ok := strings.Cut(string(b), "/")
	h, err1 := strconv.ParseUint(hi, 16, 32)
	l, err2 := strconv.ParseUint(lo, 16, 32)
	if !ok || err1 != nil || err2 != nil {
		return 0, errHidden
	}
	return h<<32 | l, nil
}

func unhex(b []byte) (string, error) {
	out := make([]byte, len(b)/2)
	if len(b)%2 != 0 {
		return "", errHidden
	}
	for i := range out {
		v, err := strconv.ParseUint(string(b[2*i:2*i+2]), 16, 8)
		if err != nil {
			return "", errHidden
		}
		out[i] = byte(v)
	}
	return string(out), nil
}
