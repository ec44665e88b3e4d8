package pgwire

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"wirecheck/rewrite"
	"wirecheck/statement/condition"
)

// bound is the plan of a statement with the parameters of a Bind, of which begin is the beginning and size the length.
func (p *prepared) bound(begin []byte, size int) *rewrite.Plan {
	plan := p.plan()
	if plan == nil || len(plan.Asks) == 0 || len(begin) < size || !slices.ContainsFunc(plan.Asks, func(a rewrite.Ask) bool { return len(a.Types) > 0 }) {
		return plan
	}
	formats, values, ok := parameters(begin)
	if !ok {
		return plan
	}
	q := *plan
	q.Asks = make([]rewrite.Ask, len(plan.Asks))
	for i, a := range plan.Asks {
		q.Asks[i] = a.Bind(func(n int) (condition.Value, bool) {
			if n < 1 || n > len(values) {
				return nil, false
			}
			v := values[n-1]
			if v == nil {
				return nil, true
			}
			return parameter(a.Types[n], declared(p.tail, n), v, format(formats, n-1) == 1)
		})
	}
	return &q
}

// parameters takes the format codes and the values of the parameters out of a Bind; nil is NULL.
func parameters(b []byte) (formats []int, values [][]byte, ok bool) {
	for range 2 { // portal and statement
		if _, b, ok = text(b); !ok {
			return nil, nil, false
		}
	}
	if len(b) < 2 {
		return nil, nil, false
	}
	n := int(binary.BigEndian.Uint16(b))
	if len(b) < 2+2*n+2 {
		return nil, nil, false
	}
	formats, b = codes(b[2:], n), b[2+2*n:]
	n, b = int(binary.BigEndian.Uint16(b)), b[2:]
	for range n {
		var v []byte
		if v, b, ok = cell(b); !ok {
			return nil, nil, false
		}
		values = append(values, v)
	}
	return formats, values, len(formats) <= 1 || len(formats) == len(values)
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
	1700: "numeric", 2950: "uuid"}

// maxParameter is how many bytes a parameter has at most that is compared with images.
const maxParameter = 4096

// alike are the types between which comparison is that of the values.
var alike = map[string]string{"int2": "number", "int4": "number", "int8": "number", "numeric": "number", "varchar": "text"}

// parameter reads a parameter that is compared with a column. oid is the type that the client declared.
func parameter(column string, oid uint32, v []byte, binary bool) (condition.Value, bool) {
	typ := column
	if oid != 0 && oid != 705 { // 705: unknown
		if typ = typeNames[oid]; typ == "" {
			return nil, false
		}
	}
	kind := func(t string) string {
		return cmp.Or(alike[t], t)
	}
	if kind(typ) != kind(column) || len(v) > maxParameter || !utf8.Valid(v) && !binary {
		return nil, false
	}
	s := string(v)
	if !binary {
		return &s, true
	}
	s, ok := binaryParameter(typ, v)
	return &s, ok
}

// binaryParameter reads a parameter in binary form (PostgreSQL, src/backend/utils/adt, the functions named ..._recv).
func binaryParameter(typ string, v []byte) (string, bool) {
	var n int64
	switch len(v) {
	case 2:
		n = int64(int16(binary.BigEndian.Uint16(v)))
	case 4:
		n = int64(int32(binary.BigEndian.Uint32(v)))
	case 8:
		n = int64(binary.BigEndian.Uint64(v))
	}
	epoch := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	size := map[string]int{"int2": 2, "int4": 4, "int8": 8, "bool": 1, "date": 4, "timestamp": 8, "timestamptz": 8, "uuid": 16}[typ]
	const years = 1000 * 365 * 86400 * 1_000_000 // about as far from 2000 as is read
	switch {
	case typ == "text" || typ == "varchar":
		return string(v), utf8.Valid(v)
	case size != len(v) || size == 0:
		return "", false
	case typ == "bool":
		return strconv.FormatBool(v[0] != 0), true
	case typ == "uuid":
		return fmt.Sprintf("%x-%x-%x-%x-%x", v[:4], v[4:6], v[6:8], v[8:10], v[10:]), true
	case typ == "date":
		return epoch.AddDate(0, 0, int(n)).Format("2006-01-02"), n > -365*1000 && n < 365*1000
	case typ == "timestamp" || typ == "timestamptz":
		t := time.Unix(epoch.Unix()+n/1_000_000, 0).UTC().Add(time.Duration(n%1_000_000) * time.Microsecond)
		form := "2006-01-02 15:04:05.000000"
		if typ == "timestamptz" {
			form += "+00:00"
		}
		return t.Format(form), n > -years && n < years
	}
	return strconv.FormatInt(n, 10), true
}
