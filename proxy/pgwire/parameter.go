package pgwire

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf8"

	"wirecheck/rewrite"
	"wirecheck/statement/condition"
	"wirecheck/trace/packets/wire"
)

// formats are format codes of a Bind, as they stand there.
type formats []byte

// of is the format of number i, by the rule of Bind: none is text, and one is for all.
func (f formats) of(i int) int {
	if len(f) == 2 {
		i = 0
	}
	if len(f) < 2*i+2 {
		return 0
	}
	return int(binary.BigEndian.Uint16(f[2*i:]))
}

// bound are the parameters of a Bind, and the formats of its answer.
type bound struct {
	stmt    *prepared
	ok      bool // the parameters could be read
	in, out formats
	values  [][]byte // nil is NULL
	room    [4][]byte
}

// bind reads a Bind of p, of which begin is the beginning and size the length; nil if nobody asks for it.
func (p *prepared) bind(begin []byte, size int) *bound {
	if p == nil || len(begin) < size || p.seen == nil && !asks(p.plan()) {
		return nil
	}
	if p.seen != nil { // it is needed when the answer comes
		begin = slices.Clone(begin)
	}
	b := &bound{stmt: p}
	b.in, b.values, b.out, b.ok = parameters(begin, b.room[:0])
	return b
}

// asks reports whether a plan's statement asks by its parameters.
func asks(plan *rewrite.Plan) bool {
	return plan != nil && slices.ContainsFunc(plan.Asks, func(a rewrite.Ask) bool { return len(a.Types) > 0 })
}

// boundPlan is the plan of p with the parameters of a Bind, which may be nil.
func boundPlan(c *clientHalf, p *prepared, b *bound) *rewrite.Plan {
	plan := zoned(c, p)
	if b == nil || !b.ok || !asks(plan) {
		return plan
	}
	room := struct {
		plan rewrite.Plan
		asks [1]rewrite.Ask
	}{plan: *plan}
	q := &room.plan
	q.Asks = room.asks[:0]
	for _, a := range plan.Asks {
		rounds := false
		asked := a.Bind(func(n int) (condition.Value, bool) {
			if n < 1 || n > len(b.values) {
				return nil, false
			}
			v := b.values[n-1]
			if v == nil {
				return nil, true
			}
			typ := declared(p.tail, n)
			rounds = rounds || typ == oidFloat4 || typ == oidFloat8
			return parameter(a.Types[n], typ, v, b.in.of(n-1) == 1)
		})
		asked.Pinned = a.Pinned && !rounds // many numbers equal one that is rounded
		q.Asks = append(q.Asks, asked)
	}
	return q
}

// parameters takes a Bind apart: the format codes and the values of the parameters, and the format codes of the result. The values use room if it is enough.
func parameters(b []byte, room [][]byte) (in formats, values [][]byte, out formats, ok bool) {
	for range 2 { // portal and statement
		i := bytes.IndexByte(b, 0)
		if i < 0 {
			return nil, nil, nil, false
		}
		b = b[i+1:]
	}
	if in, b, ok = codes(b); !ok || len(b) < 2 {
		return nil, nil, nil, false
	}
	n := int(binary.BigEndian.Uint16(b))
	b, values = b[2:], room
	for range n {
		var v []byte
		if v, b, ok = cell(b); !ok {
			return nil, nil, nil, false
		}
		values = append(values, v)
	}
	if out, b, ok = codes(b); !ok || len(b) > 0 {
		out = nil
	}
	return in, values, out, len(in) <= 2 || len(in) == 2*len(values)
}

// codes takes a number of format codes and these off b.
func codes(b []byte) (f formats, rest []byte, ok bool) {
	if len(b) < 2 {
		return nil, nil, false
	}
	n := 2 * int(binary.BigEndian.Uint16(b))
	if b = b[2:]; len(b) < n {
		return nil, nil, false
	}
	return formats(b[:n]), b[n:], true
}

// declared is the type that the client's Parse, of which tail is the end, gave parameter n; 0 if it left that to the server.
func declared(tail []byte, n int) uint32 {
	if len(tail) < 2 || n > int(binary.BigEndian.Uint16(tail)) || len(tail) < 2+4*n {
		return 0
	}
	return binary.BigEndian.Uint32(tail[4*n-2:])
}

// The types of parameters, by the numbers that pg_type has for them.
var typeNames = map[uint32]string{16: "bool", 20: "int8", 21: "int2", 23: "int4", 25: "text", 1043: "varchar", 1082: "date", 1083: "time", 1114: "timestamp", 1184: "timestamptz",
	1700: "numeric", 2950: "uuid", 3802: "jsonb", 3904: "int4range", 3906: "numrange", 3908: "tsrange", 3910: "tstzrange", 3912: "daterange", 3926: "int8range",
	1000: "bool[]", 1005: "int2[]", 1007: "int4[]", 1009: "text[]", 1015: "varchar[]", 1016: "int8[]", 1115: "timestamp[]", 1182: "date[]", 1185: "timestamptz[]", 1231: "numeric[]", 2951: "uuid[]"}

var typeNumbers = func() map[string]uint32 {
	m := map[string]uint32{}
	for number, name := range typeNames {
		m[name] = number
	}
	return m
}()

// maxParameter is how many bytes a parameter has at most that is compared with images.
const maxParameter = 4096

// alike are the types between which comparison is that of the values.
var alike = map[string]string{"int2": "number", "int4": "number", "int8": "number", "numeric": "number", "varchar": "text"}

// parameter reads a parameter that is compared with a column, or whose cast has the type of one. oid is the type that the client declared. A cast of a
// decimal to a whole number rounds.
func parameter(column string, oid uint32, v []byte, binary bool) (condition.Value, bool) {
	typ := column
	if oid != 0 && oid != 705 { // 705: unknown
		if typ = typeNames[oid]; typ == "" {
			return nil, false
		}
	} else {
		oid = typeNumbers[typ]
	}
	kind := func(t string) string {
		element, isArray := strings.CutSuffix(t, "[]")
		if element = cmp.Or(alike[element], element); isArray {
			element += "[]"
		}
		return element
	}
	if kind(typ) != kind(column) || len(v) > maxParameter {
		return nil, false
	}
	format := 0
	if binary {
		format = 1
	}
	s, ok := wire.PostgresText(v, format, oid)
	if strings.HasPrefix(typ, "numeric") && !strings.HasPrefix(column, "numeric") && strings.ContainsAny(s, ".eE") {
		return nil, false
	}
	return &s, ok && len(s) <= maxParameter && utf8.ValidString(s)
}
