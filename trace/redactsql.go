package trace

import (
	"encoding/hex"
	"strings"

	"wirecheck/trace/lex"
)

// SQL redacts the literals of a statement. Numbers that are no data stay: the n of LIMIT n, of ORDER BY n, of types like varchar(n).
func (r *Redactor) SQL(sql string, d lex.Dialect) string {
	if sql == "" {
		return ""
	}
	var b strings.Builder
	b.Grow(len(sql))
	setting, text := special(sql, d)
	var p place
	for t := range lex.Tokens(sql, d) {
		kind, part := t.Kind, t.Text
		switch kind {
		case lex.Comment:
			switch {
			case strings.HasPrefix(part, "/*+") && !strings.ContainsAny(part, `'"`), strings.HasPrefix(part, "/*!"), strings.HasPrefix(part, "/*M!"), part == "*/":
				b.WriteString(part)
			default:
				b.WriteByte(' ')
			}
		case lex.String:
			switch {
			case setting:
				b.WriteString(part)
			case text && p.last == "from":
				inner := unquote(strings.Trim(part, part[:1]), part[0], true)
				b.WriteString(quote(r.SQL(inner, d), part[0], true))
			default:
				b.WriteString(r.literal(part, d))
			}
			p.see(kind, part)
		case lex.Number:
			if p.structural() {
				b.WriteString(part)
			} else {
				b.WriteString(r.numeral(part))
			}
			p.see(kind, part)
		default:
			b.WriteString(part)
			p.see(kind, part)
		}
	}
	return b.String()
}

// settings are those whose values are no data, and which a replay needs.
var settings = map[string]bool{
	"search_path": true, "names": true, "character": true, "charset": true, "character_set_client": true, "character_set_results": true,
	"character_set_connection": true, "collation_connection": true, "client_encoding": true, "sql_mode": true, "time": true, "timezone": true, "time_zone": true,
	"datestyle": true, "intervalstyle": true, "bytea_output": true, "extra_float_digits": true, "transaction": true, "transaction_isolation": true,
	"tx_isolation": true, "default_transaction_isolation": true, "standard_conforming_strings": true, "statement_timeout": true, "lock_timeout": true,
}

// special tells statements whose strings are no data: a setting (SET search_path = 'shop'); and, MySQL family, PREPARE s FROM
// 'statement'.
func special(sql string, d lex.Dialect) (setting, text bool) {
	w := lex.Words(sql, d, 3)
	if len(w) < 2 {
		return false, false
	}
	setting = w[0] == "set" && settings[w[1]] && !strings.ContainsAny(sql, "@,") && !lex.Several(sql, d)
	return setting, d == lex.MySQL && w[0] == "prepare" && len(w) == 3 && w[2] == "from"
}

// quote writes a text as a string in the given quotes.
func quote(s string, q byte, backslash bool) string {
	c := string(q)
	s = strings.ReplaceAll(s, c, c+c)
	if backslash {
		s = strings.ReplaceAll(s, `\`, `\\`)
	}
	return c + s + c
}

// numeral redacts a number of SQL's.
func (r *Redactor) numeral(s string) string {
	if len(s) > 2 && s[0] == '0' && (s[1]|0x20 == 'x' || s[1]|0x20 == 'b' || s[1]|0x20 == 'o') {
		if s[1]|0x20 != 'x' {
			return s[:2] + strings.Repeat("1", len(s)-2)
		}
		h := hex.EncodeToString(r.bytes([]byte(strings.ToLower(s[2:]))))
		return s[:2] + h[:len(s)-2]
	}
	if t, ok := r.number(strings.ReplaceAll(s, "_", "")); ok {
		return t
	}
	return "0"
}

// literal redacts a string, in its own quotes.
func (r *Redactor) literal(s string, d lex.Dialect) string {
	q := strings.IndexAny(s, `'"$`)
	if q < 0 {
		return s
	}
	prefix := strings.ToLower(s[:q])
	if s[q] == '$' {
		end := strings.IndexByte(s[1:], '$') + 2
		if len(s) < 2*end {
			return "''"
		}
		tag, body := s[:end], s[end:len(s)-end]
		if strings.ContainsAny(body, ";") || strings.Contains(strings.ToLower(body), "select") {
			return tag + r.SQL(body, d) + tag // the body of a function or DO
		}
		return "'" + strings.ReplaceAll(r.Text(body), "'", "''") + "'"
	}
	body := strings.TrimSuffix(s[q+1:], s[q:q+1])
	switch prefix {
	case "x":
		h := hex.EncodeToString(r.bytes([]byte(strings.ToLower(body))))
		return s[:q] + "'" + h[:len(body)] + "'"
	case "b":
		return s[:q] + "'" + strings.Repeat("1", len(body)) + "'"
	}
	backslash := d == lex.MySQL || prefix == "e"
	return s[:q] + quote(r.Text(unquote(body, s[q], backslash)), s[q], backslash)
}

// unquote gives the text of a string without its quotes.
func unquote(s string, quote byte, backslash bool) string {
	q := string(quote)
	s = strings.ReplaceAll(s, q+q, q)
	if !backslash {
		return s
	}
	return lex.Unescape(s, "ntr0", "\n\t\r\x00")
}

// place knows whether the next number belongs to the structure of the statement.
type place struct {
	last   string // token in lower case
	before string // the one before it
	by     bool   // behind ORDER BY or GROUP BY
	sized  int    // within the parentheses of a type
	depth  int
	byAt   int
}

// sizedTypes take numbers in parentheses.
var sizedTypes = map[string]bool{
	"char": true, "varchar": true, "character": true, "varying": true, "nchar": true, "nvarchar": true, "binary": true, "varbinary": true, "decimal": true,
	"numeric": true, "dec": true, "fixed": true, "float": true, "double": true, "real": true, "precision": true, "bit": true, "varbit": true, "int": true,
	"integer": true, "bigint": true, "smallint": true, "tinyint": true, "mediumint": true, "year": true, "time": true, "timestamp": true, "datetime": true,
	"timestamptz": true, "interval": true, "text": true, "blob": true, "vector": true, "current_timestamp": true, "now": true, "bpchar": true,
}

func (p *place) structural() bool {
	switch {
	case p.sized > 0:
		return true
	case p.last == "limit", p.last == "offset", p.last == "first", p.last == "next", p.last == ",", p.last == "by":
		return p.last != "," && p.last != "by" || p.by && p.depth == p.byAt || p.before == "limit"
	}
	return false
}

func (p *place) see(kind lex.Kind, text string) {
	if kind == lex.Space {
		return
	}
	word := strings.ToLower(text)
	switch {
	case word == "(":
		p.depth++
		if p.sized > 0 || sizedTypes[p.last] {
			p.sized++
		}
	case word == ")":
		p.depth--
		p.sized = max(0, p.sized-1)
	case word == "by" && (p.last == "order" || p.last == "group"):
		p.by, p.byAt = true, p.depth
	case kind == lex.Word && word != "asc" && word != "desc" && word != "nulls" && word != "first" && word != "last" && p.by && p.depth <= p.byAt && clauses[word]:
		p.by = false
	}
	if kind == lex.Number && p.last == "limit" { // LIMIT 10, 20
		p.before, p.last = "limit", word
		return
	}
	if word == "," && p.before == "limit" {
		p.last = word
		return
	}
	p.before, p.last = p.last, word
}

// clauses end ORDER BY and GROUP BY.
var clauses = map[string]bool{
	"having": true, "limit": true, "offset": true, "fetch": true, "for": true, "union": true, "intersect": true, "except": true, "order": true, "window": true,
	"select": true, "where": true, "rows": true, "range": true, "lock": true,
}
