package wire

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"wirecheck/trace"
)

// myTypes are the names of column types (enum_field_types), without their prefix MYSQL_TYPE_.
var myTypes = map[byte]string{
	0: "DECIMAL", 1: "TINY", 2: "SHORT", 3: "LONG", 4: "FLOAT", 5: "DOUBLE", 6: "NULL", 7: "TIMESTAMP", 8: "LONGLONG", 9: "INT24", 10: "DATE", 11: "TIME",
	12: "DATETIME", 13: "YEAR", 15: "VARCHAR", 16: "BIT", 242: "VECTOR", 245: "JSON", 246: "NEWDECIMAL", 247: "ENUM", 248: "SET", 249: "TINY_BLOB", 250: "MEDIUM_BLOB",
	251: "LONG_BLOB", 252: "BLOB", 253: "VAR_STRING", 254: "STRING", 255: "GEOMETRY",
}

func myTypeName(kind byte, unsigned bool) string {
	name, ok := myTypes[kind]
	if !ok {
		name = strconv.Itoa(int(kind))
	}
	if unsigned && (kind <= 3 || kind == 8 || kind == 9) {
		name += " UNSIGNED"
	}
	return name
}

// myColumn is what the definition of a column says of its values.
type myColumn struct {
	kind     byte
	unsigned bool
	decimals int // of times
}

// anyDecimals is the number of decimals of what has no fixed one (NOT_FIXED_DEC).
const anyDecimals = 31

// myBinary reads a value of the binary protocol as the text protocol would have it.
func myBinary(c *cursor, def myColumn) trace.Value {
	whole := func(n int) trace.Value {
		v := c.little(n)
		if def.unsigned {
			return trace.Value{Text: strconv.FormatUint(v, 10)}
		}
		shift := 64 - 8*n
		return trace.Value{Text: strconv.FormatInt(int64(v<<shift)>>shift, 10)}
	}
	switch def.kind {
	case 1:
		return whole(1)
	case 2:
		return whole(2)
	case 13:
		return trace.Value{Text: fmt.Sprintf("%04d", c.little(2))}
	case 3, 9:
		return whole(4)
	case 8:
		return whole(8)
	case 4:
		return trace.Value{Text: myFloat(float64(math.Float32frombits(uint32(c.little(4)))), 32)}
	case 5:
		return trace.Value{Text: myFloat(math.Float64frombits(c.little(8)), 64)}
	case 6:
		return trace.Value{Null: true}
	case 7, 10, 12:
		return myDate(c, def)
	case 11:
		return myTime(c, def)
	}
	v, null := c.lenencBytes()
	return trace.Value{Null: null, Text: string(v)}
}

// MySQLText is a value of the binary protocol, without the length in front of it, as the text protocol would have it.
func MySQLText(b []byte, kind byte, unsigned bool) string {
	switch kind {
	case 7, 10, 11, 12:
		b = append([]byte{byte(len(b))}, b...)
	case 1, 2, 3, 4, 5, 8, 9, 13:
	default:
		return string(b)
	}
	return myBinary(&cursor{b: b}, myColumn{kind, unsigned, anyDecimals}).Text
}

// myFloat prints like the servers: digits as needed, an exponent only for numbers of 15 digits and more, or less than 1e-15.
func myFloat(f float64, bits int) string {
	if abs := math.Abs(f); abs != 0 && (abs >= 1e15 || abs < 1e-15) {
		return strings.Replace(strconv.FormatFloat(f, 'e', -1, bits), "e+", "e", 1)
	}
	return strconv.FormatFloat(f, 'f', -1, bits)
}

func myDate(c *cursor, def myColumn) trace.Value {
	n := int(c.byte())
	in := cursor{b: c.bytes(n)}
	year, month, day := in.little(2), byte(0), byte(0)
	if n >= 4 {
		month, day = in.byte(), in.byte()
	}
	if n == 0 {
		year = 0
	}
	s := fmt.Sprintf("%04d-%02d-%02d", year, month, day)
	if def.kind == 10 {
		return trace.Value{Text: s}
	}
	var h, m, sec byte
	if n >= 7 {
		h, m, sec = in.byte(), in.byte(), in.byte()
	}
	s += fmt.Sprintf(" %02d:%02d:%02d", h, m, sec)
	return trace.Value{Text: s + def.fraction(in.little(min(4, max(0, n-7))))}
}

func myTime(c *cursor, def myColumn) trace.Value {
	n := int(c.byte())
	in := cursor{b: c.bytes(n)}
	sign := ""
	var hours uint64
	var m, sec byte
	if n >= 8 {
		if in.byte() != 0 {
			sign = "-"
		}
		hours = in.little(4) * 24
		hours += uint64(in.byte())
		m, sec = in.byte(), in.byte()
	}
	s := fmt.Sprintf("%s%02d:%02d:%02d", sign, hours, m, sec)
	return trace.Value{Text: s + def.fraction(in.little(min(4, max(0, n-8))))}
}

// fraction prints microseconds with as many decimals as the column has.
func (d myColumn) fraction(us uint64) string {
	s := fmt.Sprintf(".%06d", us)
	switch {
	case d.decimals > 0 && d.decimals <= 6:
		return s[:1+d.decimals]
	case d.decimals == 0 || us == 0:
		return ""
	}
	return s
}

// myBinaryRow reads a row of the binary protocol in text form, NULL as nil; false if it is not one, or its columns are not known.
func myBinaryRow(row [][]byte, body []byte, defs []myColumn) ([][]byte, bool) {
	n := len(defs)
	c := cursor{b: body}
	if n == 0 || c.byte() != 0 {
		return row, false
	}
	nulls := c.bytes((n + 9) / 8)
	if c.bad {
		return row, false
	}
	for i := range n {
		if bit := i + 2; nulls[bit/8]&(1<<(bit%8)) != 0 {
			row = append(row, nil)
			continue
		}
		row = append(row, myCell(&c, defs[i]))
	}
	return row, !c.bad
}

// myCell gives a value in text form, nil for NULL. Strings are not copied.
func myCell(c *cursor, def myColumn) []byte {
	switch def.kind {
	case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13:
		v := myBinary(c, def)
		if v.Null {
			return nil
		}
		return []byte(v.Text)
	}
	v, null := c.lenencBytes()
	if v == nil && !null {
		v = []byte{}
	}
	return v
}
