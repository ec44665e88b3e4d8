package wire

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"wirecheck/trace"
	"wirecheck/trace/lex"
)

// pgTypes are the names of types that are common; of others the number stands for the name (pg_type.dat).
var pgTypes = map[uint32]string{
	16: "bool", 17: "bytea", 18: "char", 19: "name", 20: "int8", 21: "int2", 23: "int4", 25: "text", 26: "oid", 114: "json", 142: "xml", 700: "float4",
	701: "float8", 705: "unknown", 790: "money", 829: "macaddr", 869: "inet", 650: "cidr", 1000: "bool[]", 1005: "int2[]", 1007: "int4[]", 1009: "text[]", 1015: "varchar[]",
	1016: "int8[]", 1042: "bpchar", 1043: "varchar", 1082: "date", 1083: "time", 1114: "timestamp", 1184: "timestamptz", 1186: "interval", 1266: "timetz",
	1560: "bit", 1562: "varbit", 1700: "numeric", 2950: "uuid", 3802: "jsonb", 2278: "void", 2249: "record", 1021: "float4[]", 1022: "float8[]", 2951: "uuid[]",
	1182: "date[]", 1115: "timestamp[]", 1185: "timestamptz[]", 1231: "numeric[]",
}

var pgTypeNumbers = func() map[string]uint32 {
	m := make(map[string]uint32, len(pgTypes))
	for oid, name := range pgTypes {
		m[name] = oid
	}
	return m
}()

// pgElements are the element types of arrays.
var pgElements = map[uint32]bool{1000: true, 1005: true, 1007: true, 1009: true, 1015: true, 1016: true, 1021: true, 1022: true, 2951: true, 1182: true, 1115: true, 1185: true, 1231: true}

func pgTypeName(oid uint32) string {
	if oid == 0 {
		return ""
	}
	if name, ok := pgTypes[oid]; ok {
		return name
	}
	return strconv.FormatUint(uint64(oid), 10)
}

func pgTypeOID(name string) uint32 {
	if oid, ok := pgTypeNumbers[name]; ok {
		return oid
	}
	v, _ := strconv.ParseUint(name, 10, 32) // a number that pgTypeName made, or empty
	return uint32(v)
}

// pgValue writes a value as PostgreSQL's text format would. nil is NULL. A binary value of a type that is not known, or that is not as its
// type demands, stays as it is.
func pgValue(raw []byte, format int, oid uint32) trace.Value {
	switch {
	case raw == nil:
		return trace.Value{Null: true}
	case format == 0:
		return trace.Value{Text: string(raw)}
	}
	if text, ok := pgText(raw, oid); ok {
		return trace.Value{Text: text}
	}
	return trace.Value{Binary: true, Text: string(raw)}
}

// PostgresText is a value in the text format; ok is false if it is in a binary form that is not known.
func PostgresText(raw []byte, format int, oid uint32) (text string, ok bool) {
	v := pgValue(raw, format, oid)
	return v.Text, !v.Binary
}

// pgText decodes the binary formats (the send functions of src/backend/utils/adt).
func pgText(b []byte, oid uint32) (string, bool) {
	if n := pgLength(oid); n != 0 && len(b) != n {
		return "", false
	}
	switch oid {
	case 16:
		if b[0] != 0 {
			return "t", true
		}
		return "f", true
	case 17:
		return `\x` + hex.EncodeToString(b), true
	case 20:
		return strconv.FormatInt(int64(binary.BigEndian.Uint64(b)), 10), true
	case 21:
		return strconv.FormatInt(int64(int16(binary.BigEndian.Uint16(b))), 10), true
	case 23:
		return strconv.FormatInt(int64(int32(binary.BigEndian.Uint32(b))), 10), true
	case 26:
		return strconv.FormatUint(uint64(binary.BigEndian.Uint32(b)), 10), true
	case 18, 19, 25, 114, 142, 705, 1042, 1043:
		return string(b), true
	case 3802:
		if len(b) > 0 && b[0] == 1 {
			return string(b[1:]), true
		}
	case 700:
		return pgFloat(float64(math.Float32frombits(binary.BigEndian.Uint32(b))), 32), true
	case 701:
		return pgFloat(math.Float64frombits(binary.BigEndian.Uint64(b)), 64), true
	case 1082:
		return pgDate(int32(binary.BigEndian.Uint32(b)))
	case 1083:
		return pgTime(int64(binary.BigEndian.Uint64(b)))
	case 1114, 1184:
		return pgTimestamp(int64(binary.BigEndian.Uint64(b)), oid == 1184)
	case 1700:
		return pgNumeric(b)
	case 2950:
		s := hex.EncodeToString(b)
		return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:], true
	}
	if pgElements[oid] {
		return pgArray(b)
	}
	return "", false
}

// pgLength is how many bytes a type has in binary form, 0 if that is not fixed.
func pgLength(oid uint32) int {
	switch oid {
	case 16:
		return 1
	case 21:
		return 2
	case 23, 26, 700, 1082:
		return 4
	case 20, 701, 1083, 1114, 1184:
		return 8
	case 2950:
		return 16
	}
	return 0
}

func pgFloat(f float64, bits int) string {
	switch {
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case math.IsNaN(f):
		return "NaN"
	}
	// The server prints an exponent from 1e+15 (float4: 1e+06) on and below 1e-04 (ryu, extra_float_digits = 1).
	limit := 1e15
	if bits == 32 {
		limit = 1e6
	}
	if abs := math.Abs(f); abs != 0 && (abs < 1e-4 || abs >= limit) {
		return strconv.FormatFloat(f, 'e', -1, bits)
	}
	return strconv.FormatFloat(f, 'f', -1, bits)
}

// epoch is that of PostgreSQL's dates and times.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func pgDate(days int32) (string, bool) {
	switch days {
	case math.MaxInt32:
		return "infinity", true
	case math.MinInt32:
		return "-infinity", true
	}
	t := epoch.AddDate(0, 0, int(days))
	return t.Format(time.DateOnly), t.Year() > 0 && t.Year() < 10000
}

func pgTime(us int64) (string, bool) {
	if us < 0 || us > 86_400_000_000 {
		return "", false
	}
	s := fmt.Sprintf("%02d:%02d:%02d", us/3_600_000_000, us/60_000_000%60, us/1_000_000%60)
	return s + pgFraction(us%1_000_000), true
}

func pgFraction(us int64) string {
	if us == 0 {
		return ""
	}
	return strings.TrimRight(fmt.Sprintf(".%06d", us), "0")
}

func pgTimestamp(us int64, zone bool) (string, bool) {
	switch us {
	case math.MaxInt64:
		return "infinity", true
	case math.MinInt64:
		return "-infinity", true
	}
	sec, rest := us/1_000_000, us%1_000_000
	if rest < 0 {
		sec, rest = sec-1, rest+1_000_000
	}
	t := time.Unix(epoch.Unix()+sec, 0).UTC()
	s := t.Format(time.DateTime) + pgFraction(rest)
	if zone {
		s += "+00"
	}
	return s, t.Year() > 0 && t.Year() < 10000
}

// maxZeros is how many digits a numeric has at most that its bytes do not tell: 8 bytes may stand for 131,072 zeros, and an array for many of those. So much a
// double may have.
const maxZeros = 400

// pgNumeric decodes digits to the base 10000 (numeric_send).
func pgNumeric(b []byte) (string, bool) {
	c := cursor{b: b}
	digits, weight, sign, scale := c.int16(), c.int16(), uint16(c.int16()), c.int16()
	switch sign {
	case 0xc000:
		return "NaN", true
	case 0xd000:
		return "Infinity", true
	case 0xf000:
		return "-Infinity", true
	case 0, 0x4000:
	default:
		return "", false
	}
	if digits < 0 || digits*2 != len(c.b) || scale < 0 || 4*max(weight, 0)+scale > 4*digits+maxZeros {
		return "", false
	}
	all := make([]int, digits)
	for i := range all {
		if all[i] = c.int16(); all[i] < 0 || all[i] > 9999 {
			return "", false
		}
	}
	at := func(i int) int { // digit i, 0 being that of weight 0
		if k := weight - i; k >= 0 && k < digits {
			return all[k]
		}
		return 0
	}
	var s strings.Builder
	if sign == 0x4000 {
		s.WriteByte('-')
	}
	s.WriteString(strconv.Itoa(at(max(weight, 0))))
	for i := weight - 1; i >= 0; i-- {
		fmt.Fprintf(&s, "%04d", at(i))
	}
	if scale > 0 {
		var frac strings.Builder
		for i := -1; frac.Len() < scale; i-- {
			fmt.Fprintf(&frac, "%04d", at(i))
		}
		s.WriteByte('.')
		s.WriteString(frac.String()[:scale])
	}
	return s.String(), true
}

// pgArray decodes an array of one dimension.
func pgArray(b []byte) (string, bool) {
	c := cursor{b: b}
	dims, _, element := c.int32(), c.int32(), uint32(c.int32())
	if dims == 0 && !c.bad {
		return "{}", true
	}
	n, lower := c.int32(), c.int32()
	if dims != 1 || lower != 1 || n < 0 || pgElements[element] {
		return "", false
	}
	var s strings.Builder
	s.WriteByte('{')
	for i := range n {
		if i > 0 {
			s.WriteByte(',')
		}
		size := c.int32()
		if c.bad {
			return "", false
		}
		if size < 0 {
			s.WriteString("NULL")
			continue
		}
		text, ok := pgText(c.bytes(size), element)
		if !ok || c.bad {
			return "", false
		}
		s.WriteString(lex.QuoteElement(text))
	}
	s.WriteByte('}')
	return s.String(), !c.bad && len(c.b) == 0
}
