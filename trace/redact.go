package trace

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"wirecheck/history"
	"wirecheck/product"
	"wirecheck/trace/lex"
)

// Redactor replaces the values of a trace by tokens: literals in texts, parameters, result rows, tags, addresses. The same value has the same
// token wherever it stands, as long as the key is the same, so that what belonged together still does. A token looks like what it
// stands for: a number of n digits is a number of n digits, a date a date, a UUID a UUID, other text a word. Numbers of the same
// length, and dates, are exchanged among each other, so different ones stay different. Order, sums and lengths of texts do not stay.
//
// Comments go, except hints; names of tables, columns, users, databases and applications stay.
type Redactor struct {
	key   []byte
	cache map[string]string
}

// NewRedactor makes a Redactor. Who has the key can find out what short values were, so it must be random and be thrown away.
func NewRedactor(key []byte) *Redactor { return &Redactor{key: key, cache: map[string]string{}} }

// Record redacts a record in place. engine is the session's (see Session.Product).
func (r *Redactor) Record(rec *Record, engine string) {
	switch rec.Kind {
	case KindSession:
		if rec.Open.Client != "" {
			rec.Open.Client = r.word("client", rec.Open.Client)
		}
	case KindStatement:
		r.statement(rec.Statement, lex.Of(product.Of(engine).Dialect))
	case KindHistory:
		r.Event(rec.History, lex.Of(product.Of(engine).Dialect))
	case KindEnd:
		if rec.End.Reason != EndQuit && rec.End.Reason != EndLost {
			rec.End.Reason = "ended"
		}
	}
}

// Event redacts an event of a history in place. Its rows are known by tokens, too, since keys can be data; findings stay the same,
// except those over conditions: images, conditions, values of answers and parameters go.
func (r *Redactor) Event(e *history.Event, d lex.Dialect) {
	e.SQL = r.SQL(e.SQL, d)
	if e.Error != nil {
		e.Error.Message, e.Error.Detail, e.Error.Hint, e.Error.Where = "", "", "", ""
	}
	if len(e.Reads) > 0 {
		e.Reads, e.Unread = nil, "its values are redacted"
	}
	e.Tags, e.Params = nil, ""
	if e.Request != "" {
		e.Request = r.word("request", e.Request)
	}
	for i := range e.Operands {
		if o := &e.Operands[i]; o.Value != "" {
			o.Value = r.Text(o.Value)
		}
	}
	for i := range e.Derived {
		d := &e.Derived[i]
		d.Row.Key, d.Constant = r.rowKey(d.Row), ""
		if d.Read != "" {
			d.Read = r.Text(d.Read)
		}
	}
	for i := range e.Accesses {
		a := &e.Accesses[i]
		a.Image, a.Was, a.Values, a.Row.Key = "", "", "", r.rowKey(a.Row)
		if column, value, ok := strings.Cut(a.Name, "="); ok {
			a.Name = column + "=" + r.Text(strings.Trim(value, "'"))
		} else {
			a.Name = ""
		}
	}
}

func (r *Redactor) rowKey(row history.Row) string {
	if row.Key == "" {
		return ""
	}
	return hex.EncodeToString(r.sum("row", row.Table+"\x00"+row.Key)[:16])
}

func (r *Redactor) statement(st *Statement, d lex.Dialect) {
	r.columns(st, d)
	st.SQL = r.SQL(st.SQL, d)
	st.Prepared = r.SQL(st.Prepared, d)
	for i := range st.Params {
		p := &st.Params[i]
		v := r.value(Value{Null: p.Null, Binary: p.Binary, Text: p.Value}, p.Type)
		p.Value = v.Text
	}
	for i := range st.Results {
		res := &st.Results[i]
		res.Digest = "" // it would tell whether rows are guessed right
		for _, row := range res.Rows {
			for k := range row {
				kind := ""
				if k < len(res.Columns) {
					kind = res.Columns[k].Type
				}
				row[k] = r.value(row[k], kind)
			}
		}
	}
	if e := st.Error; e != nil { // the server puts values into its texts
		e.Message, e.Detail, e.Hint, e.Where = "", "", "", ""
	}
	for i := range st.Tags {
		if t := &st.Tags[i]; t.Key != "traceparent" { // a random number; it leads to the application's traces
			t.Value = r.word("tag", t.Value)
		}
	}
}

// columns redacts the names of columns that are the text of an expression, as the redacted statement would give them (MySQL
// family).
func (r *Redactor) columns(st *Statement, d lex.Dialect) {
	if d != lex.MySQL {
		return
	}
	var literals map[string]bool
	for i := range st.Results {
		for k := range st.Results[i].Columns {
			if literals == nil {
				literals = map[string]bool{}
				for t := range lex.Tokens(st.SQL, d) {
					if t.Kind == lex.String {
						literals[unquote(strings.Trim(t.Text, t.Text[:1]), t.Text[0], true)] = true
					}
				}
			}
			c := &st.Results[i].Columns[k]
			if literals[c.Name] {
				c.Name = r.Text(c.Name)
			} else {
				c.Name = r.SQL(c.Name, d)
			}
		}
	}
}

func (r *Redactor) value(v Value, kind string) Value {
	switch {
	case v.Null:
	case v.Binary:
		v.Text = string(r.bytes([]byte(v.Text)))
	case kind == "bool" || kind == "BIT":
	case strings.HasSuffix(kind, "BLOB") && strings.ContainsFunc(v.Text, control):
		v.Text = string(r.bytes([]byte(v.Text)))
	default:
		v.Text = r.Text(v.Text)
	}
	return v
}

// sum is the keyed hash of a value.
func (r *Redactor) sum(class, s string) []byte {
	h := hmac.New(sha256.New, r.key)
	h.Write([]byte(class))
	h.Write([]byte{0})
	h.Write([]byte(s))
	return h.Sum(nil)
}

func (r *Redactor) word(class, s string) string {
	if s == "" {
		return ""
	}
	return "r" + hex.EncodeToString(r.sum(class, s)[:8])
}

// bytes gives as many bytes.
func (r *Redactor) bytes(b []byte) []byte {
	out := make([]byte, 0, len(b)+sha256.Size)
	for i := 0; len(out) < len(b); i++ {
		out = append(out, r.sum("bytes"+strconv.Itoa(i), string(b))...)
	}
	return out[:len(b)]
}

// maxCached bounds the tokens that are remembered.
const maxCached = 1 << 16

// Text redacts the text of a value.
func (r *Redactor) Text(s string) string {
	if s == "" {
		return ""
	}
	if t, ok := r.cache[s]; ok {
		return t
	}
	t := r.text(s)
	if len(s) < 256 && len(r.cache) < maxCached {
		r.cache[strings.Clone(s)] = t
	}
	return t
}

func (r *Redactor) text(s string) string {
	switch lower := strings.ToLower(s); lower {
	case "t", "f", "true", "false", "yes", "no", "on", "off", "null":
		return s // two values are no secret, and what takes them takes nothing else
	}
	if t, ok := r.number(s); ok {
		return t
	}
	if t, ok := r.moment(s); ok {
		return t
	}
	switch {
	case len(s) == 36 && isUUID(s):
		h := hex.EncodeToString(r.sum("uuid", strings.ToLower(s))[:16])
		return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:]
	case strings.HasPrefix(s, `\x`) && isHex(s[2:]):
		raw, err := hex.DecodeString(s[2:])
		if err == nil {
			return `\x` + hex.EncodeToString(r.bytes(raw))
		}
	case s[0] == '{' || s[0] == '[':
		if t, ok := r.json(s); ok {
			return t
		}
		if t, ok := r.array(s); ok {
			return t
		}
	}
	if strings.ContainsAny(s, "%") { // a pattern stays one
		parts := strings.Split(s, "%")
		for i := range parts {
			parts[i] = r.word("text", parts[i])
		}
		return strings.Join(parts, "%")
	}
	return r.word("text", s)
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdefABCDEF") == "" }

func isUUID(s string) bool {
	return s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' && isHex(strings.ReplaceAll(s, "-", ""))
}

// number redacts a decimal number, sign and exponent left alone. Whole and fractional digits are exchanged among those of the same
// length; a number with a leading zero is a code, whose zeros may change.
func (r *Redactor) number(s string) (string, bool) {
	body := strings.TrimLeft(s, "+-")
	sign := s[:len(s)-len(body)]
	if len(sign) > 1 || body == "" {
		return "", false
	}
	mantissa, exponent := body, ""
	if i := strings.IndexAny(body, "eE"); i > 0 {
		mantissa, exponent = body[:i], body[i:]
		if strings.Trim(strings.TrimLeft(exponent[1:], "+-"), "0123456789") != "" || len(exponent) < 2 {
			return "", false
		}
	}
	whole, frac, point := strings.Cut(mantissa, ".")
	if whole+frac == "" || strings.Trim(whole+frac, "0123456789") != "" {
		return "", false
	}
	out := sign + r.digits("whole", whole)
	if point {
		out += "." + r.digits("fraction", frac)
	}
	return out + exponent, true
}

// digits exchanges a string of digits for another one of the same length. One without a leading zero gets none.
func (r *Redactor) digits(class, s string) string {
	if s == "" {
		return ""
	}
	if len(s) > 18 {
		b := []byte(s)
		for i, x := range r.bytes(b) {
			b[i] = '0' + x%10
		}
		if s[0] != '0' && b[0] == '0' {
			b[0] = '1'
		}
		return string(b)
	}
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return s // not digits: the caller has looked
	}
	size, low := uint64(1), uint64(0)
	for range s {
		size *= 10
	}
	if len(s) > 1 && s[0] != '0' && class == "whole" {
		low = size / 10
	}
	out := strconv.FormatUint(low+r.exchange(class+strconv.Itoa(len(s))+strconv.FormatBool(low > 0), v-low, size-low), 10)
	return strings.Repeat("0", len(s)-len(out)) + out
}

// exchange is a permutation of the numbers below n that the key and the class choose: a Feistel network over the next power of four, applied again
// until the outcome is below n (Black and Rogaway 2002, Ciphers with Arbitrary Finite Domains, section 4, cycle walking).
func (r *Redactor) exchange(class string, v, n uint64) uint64 {
	half := 1
	for half < 32 && uint64(1)<<(2*half) < n {
		half++
	}
	mask := uint64(1)<<half - 1
	for {
		left, right := v>>half, v&mask
		for round := range 4 {
			var in [9]byte
			in[0] = byte(round)
			binary.BigEndian.PutUint64(in[1:], right)
			left, right = right, left^binary.BigEndian.Uint64(r.sum(class, string(in[:])))&mask
		}
		if v = left<<half | right; v < n {
			return v
		}
	}
}

// The days among which dates are exchanged: those that all types of both families can hold, else all.
var (
	firstDay = time.Date(1971, 1, 1, 0, 0, 0, 0, time.UTC)
	lastDay  = time.Date(2037, 12, 31, 0, 0, 0, 0, time.UTC)
)

// moment redacts dates and times: 2026-11-20, 2026-11-20 01:02:03.5, 2026-11-20T01:02:03Z, 01:02:03. What follows the seconds' digits, a
// zone, stays.
func (r *Redactor) moment(s string) (string, bool) {
	date, rest := "", s
	if len(s) >= 10 && s[4] == '-' && s[7] == '-' {
		day, err := time.Parse(time.DateOnly, s[:10])
		if err != nil {
			return "", false
		}
		date, rest = r.day(day), s[10:]
		if rest == "" {
			return date, true
		}
		if rest[0] != ' ' && rest[0] != 'T' {
			return "", false
		}
		date, rest = date+rest[:1], rest[1:]
	}
	if len(rest) < 8 {
		return "", false
	}
	day, err := time.Parse(time.TimeOnly, rest[:8])
	if err != nil {
		return "", false
	}
	v := r.exchange("time", uint64(day.Hour()*3600+day.Minute()*60+day.Second()), 86400)
	clock := time.Unix(int64(v), 0).UTC().Format(time.TimeOnly)
	rest = rest[8:]
	if strings.HasPrefix(rest, ".") {
		zone := strings.TrimLeft(rest[1:], "0123456789")
		clock += "." + r.digits("fraction", rest[1:len(rest)-len(zone)])
		rest = zone
	}
	if strings.Trim(rest, "0123456789:+-Z ") != "" || len(rest) > 10 {
		return "", false
	}
	return date + clock + rest, true
}

func (r *Redactor) day(day time.Time) string {
	first, last := firstDay, lastDay
	if day.Before(first) || day.After(last) {
		first, last = time.Date(1000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	}
	n := func(t time.Time) uint64 { return uint64((t.Unix() - first.Unix()) / 86400) }
	if day.Before(first) {
		return first.Format(time.DateOnly)
	}
	return first.AddDate(0, 0, int(r.exchange("day"+first.String(), n(day), n(last)+1))).Format(time.DateOnly)
}

// json redacts the values of a JSON text; its keys stay.
func (r *Redactor) json(s string) (string, bool) {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil || d.More() {
		return "", false
	}
	b, err := json.Marshal(r.jsonValue(v))
	return string(b), err == nil
}

func (r *Redactor) jsonValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = r.jsonValue(x)
		}
	case []any:
		for i, x := range v {
			v[i] = r.jsonValue(x)
		}
	case json.Number:
		if t, ok := r.number(v.String()); ok {
			return json.Number(t)
		}
		return json.Number("0")
	case string:
		return r.Text(v)
	}
	return v
}

// array redacts the elements of PostgreSQL's array text.
func (r *Redactor) array(s string) (string, bool) {
	if len(s) < 2 || s[0] != '{' || s[len(s)-1] != '}' {
		return "", false
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		switch c := s[i]; c {
		case '{', '}', ',':
			b.WriteByte(c)
			i++
		case '"':
			end := i + 1
			for end < len(s) && s[end] != '"' {
				if s[end] == '\\' {
					end++
				}
				end++
			}
			if end >= len(s) {
				return "", false
			}
			text := strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(s[i+1 : end])
			b.WriteString(lex.QuoteElement(r.Text(text)))
			i = end + 1
		default:
			n := strings.IndexAny(s[i:], `{},"`)
			if n <= 0 {
				return "", false
			}
			b.WriteString(lex.QuoteElement(r.Text(s[i : i+n])))
			i += n
		}
	}
	return b.String(), true
}

// control tells characters that texts do not have.
func control(r rune) bool { return r < ' ' && r != '\n' && r != '\t' && r != '\r' || r == 0x7f }
