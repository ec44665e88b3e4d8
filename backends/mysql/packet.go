package mysql

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	protocol "github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/answer"
)

// binaryCharset is the collation "binary", which tells BLOB from TEXT.
const binaryCharset = 63

var errShort = errors.New("a packet is cut short")

// lengthInt reads a length-encoded integer and how many bytes it takes: none if it is cut short (MySQL internals manual, "Integer
// Types").
func lengthInt(p []byte) (v uint64, null bool, n int) {
	if len(p) == 0 {
		return 0, false, 0
	}
	switch p[0] {
	case 0xfb:
		return 0, true, 1
	case 0xfc:
		n = 2
	case 0xfd:
		n = 3
	case 0xfe:
		n = 8
	case 0xff:
		return 0, false, 0
	default:
		return uint64(p[0]), false, 1
	}
	if len(p) <= n {
		return 0, false, 0
	}
	for i := n; i > 0; i-- {
		v = v<<8 | uint64(p[i])
	}
	return v, false, n + 1
}

// okPacket reads an OK packet: result and status flags (MySQL internals manual, "OK_Packet").
func okPacket(p []byte) (r answer.Result, status uint16, err error) {
	p = p[1:]
	affected, _, n := lengthInt(p)
	p = p[n:]
	last, _, m := lengthInt(p)
	p = p[m:]
	if n == 0 || m == 0 || len(p) < 4 {
		return r, 0, errShort
	}
	r.Affected, r.LastInsertID = int64(affected), last
	r.Warnings = int(binary.LittleEndian.Uint16(p[2:]))
	return r, binary.LittleEndian.Uint16(p), nil
}

// errorPacket reads an ERR packet: 0xff, number, '#' and SQLSTATE, message.
func errorPacket(p []byte) *answer.Error {
	if len(p) < 3 {
		return &answer.Error{Message: "an error packet that is cut short"}
	}
	e := &answer.Error{Code: strconv.Itoa(int(binary.LittleEndian.Uint16(p[1:])))}
	p = p[3:]
	if len(p) >= 6 && p[0] == '#' {
		e.SQLState = string(p[1:6])
		p = p[6:]
	}
	e.Message = string(p)
	return e
}

// textRow takes a row out of the connection's buffer, into one block of memory.
func textRow(p []byte, columns int) ([]answer.Value, error) {
	block := append(make([]byte, 0, len(p)), p...)
	row := make([]answer.Value, columns)
	for i := range row {
		length, null, n := lengthInt(block)
		if n == 0 || uint64(len(block)-n) < length && !null {
			return nil, fmt.Errorf("read a row of %d columns: %w", columns, errShort)
		}
		block = block[n:]
		if null {
			continue
		}
		row[i] = block[:length:length]
		block = block[length:]
	}
	if len(block) != 0 {
		return nil, fmt.Errorf("read a row of %d columns: %d bytes are left over", columns, len(block))
	}
	return row, nil
}

// column reads a column definition.
func column(p []byte) (answer.Column, error) {
	const fixed = 13 // charset, length, type, flags, decimals, filler
	var name []byte
	for i := range 6 { // catalog, schema, table, original table, name, original name
		length, null, n := lengthInt(p)
		if n == 0 || null || uint64(len(p)-n) < length {
			return answer.Column{}, fmt.Errorf("read a column: %w", errShort)
		}
		if i == 4 {
			name = p[n : n+int(length)]
		}
		p = p[n+int(length):]
	}
	// MariaDB's extended metadata would stand here; it comes only to clients that ask for it.
	if len(p) < fixed {
		return answer.Column{}, fmt.Errorf("read column %s: %w", name, errShort)
	}
	charset, kind, flags := binary.LittleEndian.Uint16(p[1:]), p[7], binary.LittleEndian.Uint16(p[8:])
	return answer.Column{Name: string(name), Type: typeName(kind, flags, charset), Numeric: numeric(kind)}, nil
}

// typeName is the product's name of a type, as information_schema.columns.data_type has it; integers with their sign.
func typeName(kind byte, flags, charset uint16) string {
	name := ""
	switch kind {
	case protocol.MYSQL_TYPE_TINY:
		name = "tinyint"
	case protocol.MYSQL_TYPE_SHORT:
		name = "smallint"
	case protocol.MYSQL_TYPE_INT24:
		name = "mediumint"
	case protocol.MYSQL_TYPE_LONG:
		name = "int"
	case protocol.MYSQL_TYPE_LONGLONG:
		name = "bigint"
	}
	if name != "" {
		if flags&protocol.UNSIGNED_FLAG != 0 {
			name += " unsigned"
		}
		return name
	}
	switch {
	case flags&protocol.ENUM_FLAG != 0:
		return "enum"
	case flags&protocol.SET_FLAG != 0:
		return "set"
	}
	text := charset != binaryCharset
	switch kind {
	case protocol.MYSQL_TYPE_STRING:
		return either(text, "char", "binary")
	case protocol.MYSQL_TYPE_VAR_STRING, protocol.MYSQL_TYPE_VARCHAR:
		return either(text, "varchar", "varbinary")
	case protocol.MYSQL_TYPE_TINY_BLOB, protocol.MYSQL_TYPE_MEDIUM_BLOB, protocol.MYSQL_TYPE_LONG_BLOB, protocol.MYSQL_TYPE_BLOB:
		return either(text, "text", "blob")
	}
	return cmp.Or(typeNames[kind], "unknown")
}

func either(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}

var typeNames = map[byte]string{
	protocol.MYSQL_TYPE_DECIMAL: "decimal", protocol.MYSQL_TYPE_NEWDECIMAL: "decimal",
	protocol.MYSQL_TYPE_FLOAT: "float", protocol.MYSQL_TYPE_DOUBLE: "double",
	protocol.MYSQL_TYPE_NULL: "null", protocol.MYSQL_TYPE_BIT: "bit", protocol.MYSQL_TYPE_JSON: "json",
	protocol.MYSQL_TYPE_DATE: "date", protocol.MYSQL_TYPE_NEWDATE: "date", protocol.MYSQL_TYPE_TIME: "time",
	protocol.MYSQL_TYPE_DATETIME: "datetime", protocol.MYSQL_TYPE_TIMESTAMP: "timestamp", protocol.MYSQL_TYPE_YEAR: "year",
	protocol.MYSQL_TYPE_GEOMETRY: "geometry", protocol.MYSQL_TYPE_ENUM: "enum", protocol.MYSQL_TYPE_SET: "set",
}

// numeric reports whether the type is a number.
func numeric(kind byte) bool {
	switch kind {
	case protocol.MYSQL_TYPE_TINY, protocol.MYSQL_TYPE_SHORT, protocol.MYSQL_TYPE_INT24, protocol.MYSQL_TYPE_LONG,
		protocol.MYSQL_TYPE_LONGLONG, protocol.MYSQL_TYPE_DECIMAL, protocol.MYSQL_TYPE_NEWDECIMAL,
		protocol.MYSQL_TYPE_FLOAT, protocol.MYSQL_TYPE_DOUBLE, protocol.MYSQL_TYPE_YEAR:
		return true
	}
	return false
}
