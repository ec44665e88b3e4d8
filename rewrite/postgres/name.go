package postgres

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"time"

	"wirecheck/history/prose"
	"wirecheck/rewrite"
)

// keyColumn is a column of a row's key, as the key holds its value.
type keyColumn struct{ name, typ string }

// keyed lists the columns of which x.key makes the key.
func keyed(rel *rewrite.Relation) []keyColumn {
	var out []keyColumn
	for _, c := range keyColumns(rel) {
		if a := rel.Attribute(c); a != nil {
			out = append(out, keyColumn{c, a.Type})
		}
	}
	return out
}

// maxName is how long, in bytes, the name of a row for people may be.
const maxName = 60

// rowName makes the name of a row for people, "a=1, b='x'", from its key. It is empty if the key is not what x.key makes.
func rowName(cols []keyColumn, key string) string {
	if len(cols) == 0 {
		return ""
	}
	out := make([]byte, 0, maxName)
	for i, c := range cols {
		if i > 0 {
			out = append(out, ", "...)
		}
		out = append(append(out, c.name...), '=')
		if textKeys[c.typ] && len(cols) == 1 {
			out = append(append(append(out, '\''), prose.Cut(key, maxName)...), '\'')
			break
		}
		var value string
		if value, key = keyValue(key, textKeys[c.typ]); value == "" {
			return ""
		}
		if sentKeys[c.typ] != "" {
			value = readSent(c.typ, value)
		}
		out = append(out, value...)
	}
	return prose.Cut(string(out), maxName)
}

// keyValue takes one value off a key: up to a blank, or in the form of quote_literal.
func keyValue(key string, quoted bool) (value, rest string) {
	if !quoted {
		value, rest, _ = strings.Cut(key, " ")
		return value, rest
	}
	i := strings.IndexByte(key, '\'') + 1
	if i == 0 || i > 2 {
		return "", ""
	}
	for ; i < len(key); i++ {
		if key[i] != '\'' {
			continue
		}
		if i++; i == len(key) || key[i] != '\'' {
			return key[:i], strings.TrimPrefix(key[i:], " ")
		}
	}
	return "", ""
}

// readSent reads the hexadecimal of a value's binary form, which is what the server's send function of the type gives
// (src/backend/utils/adt). What it does not know stays as it is.
func readSent(typ, text string) string {
	b, err := hex.DecodeString(text)
	if err != nil {
		return text
	}
	epoch := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	switch {
	case typ == "bytea":
		return `'\x` + text + `'`
	case typ == "float4" && len(b) == 4:
		return strconv.FormatFloat(float64(math.Float32frombits(binary.BigEndian.Uint32(b))), 'g', -1, 32)
	case typ == "float8" && len(b) == 8:
		return strconv.FormatFloat(math.Float64frombits(binary.BigEndian.Uint64(b)), 'g', -1, 64)
	case typ == "date" && len(b) == 4:
		d := int32(binary.BigEndian.Uint32(b))
		if d == math.MaxInt32 || d == math.MinInt32 {
			return endless(d > 0)
		}
		return "'" + epoch.AddDate(0, 0, int(d)).Format("2006-01-02") + "'"
	case (typ == "timestamp" || typ == "timestamptz") && len(b) == 8:
		us := int64(binary.BigEndian.Uint64(b))
		if us == math.MaxInt64 || us == math.MinInt64 {
			return endless(us > 0)
		}
		layout := "2006-01-02 15:04:05.999999"
		if typ == "timestamptz" {
			layout += "Z07"
		}
		return "'" + time.UnixMicro(epoch.UnixMicro()+us).UTC().Format(layout) + "'"
	case typ == "time" && len(b) == 8:
		us := int64(binary.BigEndian.Uint64(b))
		return "'" + epoch.Add(time.Duration(us)*time.Microsecond).Format("15:04:05.999999") + "'"
	}
	return "x" + text
}

func endless(future bool) string {
	if future {
		return "'infinity'"
	}
	return "'-infinity'"
}
