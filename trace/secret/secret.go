// Package secret hides passwords in the texts that wirecheck keeps and shows: those of accounts, of replication and of
// connections to other servers. It reads tokens, not trees, so it also works where a text cannot be parsed. Where it is not
// sure it hides more.
package secret

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"wirecheck/answer"
	"wirecheck/trace/lex"
)

// Mark stands in the place of a secret.
const Mark = "***"

// Hidden is a statement without its secrets.
type Hidden struct {
	SQL    string
	Found  bool // a secret was hidden: the server's error may show it, too
	Params bool // parameters stand where secrets belong
}

// Any reports whether the statement has to do with a secret.
func (h Hidden) Any() bool { return h.Found || h.Params }

// SQL hides the secrets of a text of one or several statements.
func SQL(sql string, d lex.Dialect) Hidden {
	if !mayHold(sql, d) {
		return Hidden{SQL: sql}
	}
	return hide(sql, d, 0)
}

// Value hides the secrets of a value: URLs, connection strings and statements about accounts.
func Value(s string, d lex.Dialect) string {
	if !mayHold(s, d) {
		return s
	}
	return connection(hide(s, d, 1).SQL, false)
}

// Error leaves of a server's error what cannot show a secret: all but its texts. The error of a statement that has to do with a
// secret may quote it.
func Error(e *answer.Error) *answer.Error {
	if e == nil {
		return nil
	}
	hidden := *e
	hidden.Message, hidden.Detail, hidden.Hint, hidden.Where = Mark, "", "", ""
	return &hidden
}

// URLs hides the passwords of the URLs in a text.
func URLs(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	text = urlPassword.ReplaceAllString(text, "$1:"+Mark+"@")
	return urlParameter.ReplaceAllString(text, "$1="+Mark)
}

// Column reports whether the name of a column says that its values are secrets.
func Column(name string) bool { return mayBeSecret(name) && column.MatchString(name) }

// mayBeSecret is a cheap look for what all names that column matches have in them: each value that an answer shows asks.
func mayBeSecret(name string) bool {
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf { // other letters may count as these
			return true
		}
		for _, w := range secretParts {
			if name[i]|0x20 == w[0] && len(name)-i >= len(w) && strings.EqualFold(name[i:i+len(w)], w) {
				return true
			}
		}
	}
	return false
}

var secretParts = [...]string{"pass", "pwd", "pin", "secret", "salt", "ssn", "token", "hash", "otp", "cvv", "iban", "key"}

var (
	column       = regexp.MustCompile(`(?i)passw|passphrase|secret|token|(^|_)(pwd|pass|hash|salt|pin|otp|cvv|iban|ssn)($|_)|(api|private|access)_?key`)
	urlPassword  = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s/?#:@'"]*):[^\s/?#'"]+@`)
	urlParameter = regexp.MustCompile(`(?i)([?&](?:[a-z0-9_-]*(?:password|passwd|secret)[a-z0-9_-]*|pwd|access[-_]key|token))=[^&\s'"]+`)
	conninfo     = regexp.MustCompile(`(?i)\b(password|passwd|pwd|sslpassword)(\s*=\s*)('(?:[^'\\]|\\.)*'?|"[^"]*"?|[^\s'";,)]+)`)
	conninfoKey  = regexp.MustCompile(`(?i)\b(host|hostaddr|server|user|uid|dbname|database|port|service)\s*=`)
)

// connection hides the password of a connection string. sure says that the text is one.
func connection(s string, sure bool) string {
	s = URLs(s)
	if sure || conninfoKey.MatchString(s) {
		s = conninfo.ReplaceAllString(s, "$1$2"+Mark)
	}
	return s
}

// mayHold is a cheap look for what all secrets have near them.
func mayHold(s string, d lex.Dialect) bool {
	for i := range len(s) {
		c := s[i]
		if !marks[c] {
			continue
		}
		switch c {
		case 'w', 'W':
			if endsWith(s[:i], "pass") || endsWith(s[:i], "p") && i+1 < len(s) && s[i+1]|0x20 == 'd' {
				return true
			}
		case 'f', 'F':
			if endsWith(s[:i], "identi") {
				return true
			}
		case 'k', 'K':
			if endsWith(s[:i], "dblin") {
				return true
			}
		case ':':
			if strings.HasPrefix(s[i:], "://") {
				return true
			}
		}
	}
	s = strings.TrimLeft(s, " \t\r\n;(#")
	if len(s) < 2 {
		return false
	}
	switch strings.ToLower(s[:2]) {
	case "al", "ch", "cl", "cr", "st", "/*", "--": // ALTER, CHANGE, CLONE, CREATE, START, or a comment in front of it
		return account(lex.Words(s, d, 5))
	}
	return false
}

// marks are the bytes at which mayHold looks closer.
var marks = [256]bool{'w': true, 'W': true, 'f': true, 'F': true, 'k': true, 'K': true, ':': true}

func endsWith(s, word string) bool {
	return len(s) >= len(word) && strings.EqualFold(s[len(s)-len(word):], word)
}

// account reports whether a statement that begins with these words is about accounts or connections: its strings are
// secrets, unless they are names.
func account(w []string) bool {
	if len(w) > 3 && w[0] == "create" && w[1] == "or" && w[2] == "replace" {
		w = w[2:]
		w[0] = "create"
	}
	if len(w) < 2 {
		return false
	}
	switch w[0] {
	case "create", "alter":
		return slices.Contains([]string{"user", "role", "group", "server", "subscription"}, w[1])
	case "change":
		return w[1] == "master" || w[1] == "replication"
	case "start":
		return w[1] == "slave" || w[1] == "replica" || w[1] == "group_replication"
	case "set":
		return w[1] == "password"
	case "clone":
		return w[1] == "instance"
	}
	return false
}

// dml are the first words of statements in which a column may be called password.
var dml = map[string]bool{
	"select": true, "insert": true, "update": true, "delete": true, "replace": true, "with": true, "merge": true, "values": true, "table": true,
	"explain": true, "copy": true, "load": true, "call": true, "execute": true, "declare": true, "fetch": true,
}

// hider goes through the tokens of a text.
type hider struct {
	dialect lex.Dialect
	// level counts the strings and comments around the text. Within one, only what is about accounts is sure.
	level  int
	out    strings.Builder
	tokens []lex.Token
	found  bool
	params bool

	// Of the statement:
	words   []string // the first ones
	account bool
	all     bool // what follows IDENTIFIED: all strings
	// Of the last tokens:
	next  bool // a secret may follow
	prev  string
	depth int
	call  int  // depth of the arguments of a function that takes secrets; 0: not in one
	dials bool // that function takes connection strings
}

// maxLevel bounds the work on a text of many quotes.
const maxLevel = 4

func hide(sql string, d lex.Dialect, level int) Hidden {
	if level > maxLevel {
		return Hidden{SQL: Mark, Found: true}
	}
	h := &hider{dialect: d, level: level, tokens: slices.Collect(lex.Tokens(sql, d))}
	for i := range h.tokens {
		if !h.token(i) {
			h.found = true
			h.out.WriteString(" " + Mark)
			break
		}
	}
	if !h.found {
		return Hidden{SQL: sql, Params: h.params}
	}
	return Hidden{SQL: h.out.String(), Found: true, Params: h.params}
}

// token writes a token, or the mark in its place. It returns false if the rest of the text must be hidden.
func (h *hider) token(i int) bool {
	t := h.tokens[i]
	text := t.Text
	switch t.Kind {
	case lex.Space:
		h.out.WriteString(text)
		return true
	case lex.Comment:
		h.comment(text)
		return true
	case lex.Word:
		if h.next && h.account && h.prev != "for" && !follows[strings.ToLower(text)] {
			text = h.hidden("'" + Mark + "'")
			h.next = false
		} else {
			h.word(i, strings.ToLower(text))
		}
	case lex.String:
		if h.secret(i) {
			if h.dialect == lex.MySQL && strings.Contains(text[:len(text)-1], `\`) {
				return false // where the string ends depends on the session's mode
			}
			text = h.hidden("'" + Mark + "'")
		} else {
			text = h.string(text)
		}
		h.next = false
	case lex.Name, lex.Number:
		hex := t.Kind == lex.Number && len(text) > 2 && text[0] == '0' && text[1]|0x20 == 'x'
		if h.next && h.prev != "for" && (h.account || hex) || h.all && hex && h.prev != "," {
			text = h.hidden("'" + Mark + "'")
		}
		h.next = false
	case lex.Placeholder:
		h.params = h.params || h.next || h.account || h.all || h.call > 0
		h.next = false
	case lex.Other:
		h.other(text)
	}
	h.prev = strings.ToLower(t.Text)
	h.out.WriteString(text)
	return true
}

func (h *hider) hidden(mark string) string {
	h.found = true
	return mark
}

// comment keeps MySQL's executed comments, of which the lexer gives the insides as tokens.
func (h *hider) comment(text string) {
	hint := text == "*/" || strings.HasPrefix(text, "/*!") || strings.HasPrefix(text, "/*M!")
	switch {
	case hint:
	case h.account || h.all || h.next:
		text = h.hidden("/* " + Mark + " */")
		if h.dialect == lex.MySQL {
			text += " " // what stood behind it may look like a part of it
		}
	case mayHold(text, h.dialect):
		body := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(text, "/*"), "--"), "#")
		inner := hide(body, h.dialect, h.level+1)
		if hidden := connection(inner.SQL, false); hidden != body {
			text = h.hidden(text[:len(text)-len(body)] + hidden)
		}
	}
	h.out.WriteString(text)
}

// follows are words between a keyword and its secret, and words that stand in a secret's place.
var follows = map[string]bool{
	"by": true, "as": true, "using": true, "via": true, "with": true, "password": true, "old_password": true, "to": true, "for": true, "values": true, "null": true,
	"expire": true, "history": true, "reuse": true, "require": true, "default": true, "never": true, "interval": true, "current": true, "random": true, "or": true,
}

// word follows the keywords.
func (h *hider) word(i int, w string) {
	if len(h.words) < 5 {
		h.words = append(h.words, w)
		h.account = h.account || account(slices.Clone(h.words))
	}
	if account([]string{h.prev, w}) && (w != "password" || !h.dml()) { // in a text that cannot be parsed
		h.account = true
	}
	function := h.following(i) == "("
	switch {
	case w == "identified" && slices.Contains([]string{"by", "as", "with", "via"}, h.following(i)), w == "identified" && h.level == 0 && !h.dml():
		h.all = true
	case h.all && (w == "by" || w == "as" || w == "using"):
		h.next = true
	case h.all && w == "random":
		h.params = true // the answer has the password
	case strings.HasPrefix(w, "dblink") && function:
		h.call, h.dials = h.depth+1, true
	case h.dialect == lex.MySQL && function && (w == "password" || w == "old_password") && h.level == 0:
		h.call, h.dials = h.depth+1, false
	case strings.HasSuffix(w, "password") || strings.HasSuffix(w, "passwd") || w == "wsrep_sst_auth":
		h.next = h.account || h.level == 0 && !h.dml()
	case h.next && w == "for":
	case w != "to" && w != "values" && w != "password":
		h.next = false
	}
}

func (h *hider) dml() bool { return len(h.words) > 0 && dml[h.words[0]] }

func (h *hider) other(c string) {
	switch c {
	case "(":
		h.depth++
	case ")":
		h.depth--
		if h.depth < h.call {
			h.call = 0
		}
		h.next = false
	case ";":
		h.words, h.account, h.all, h.next, h.call = nil, false, false, false, 0
	case "=", ":", "@":
	default:
		h.next = false
	}
}

// following is the next token that means something, in small letters.
func (h *hider) following(i int) string {
	for _, t := range h.tokens[i+1:] {
		if t.Kind != lex.Space && t.Kind != lex.Comment {
			return strings.ToLower(t.Text)
		}
	}
	return ""
}

// secret reports whether a string is hidden as a whole.
func (h *hider) secret(i int) bool {
	name := h.prev == "@" || h.following(i) == "@"
	switch {
	case h.call > 0 && !h.dials:
		return true
	case h.next && h.prev != "for": // behind FOR stands a user
		return true
	case h.all:
		return !name
	case h.account:
		switch h.prev {
		case "user", "role", "group", "for", "to", "exists", "until", "comment", "attribute":
			return false
		}
		return !name
	}
	return false
}

// string hides what is secret within a string: a connection string, or another statement.
func (h *hider) string(s string) string {
	q := strings.IndexAny(s, `'"$`)
	if q < 0 {
		return s
	}
	if s[q] == '$' {
		end := strings.IndexByte(s[1:], '$') + 2
		tag, body := s[:end], s[end:]
		if b, closed := strings.CutSuffix(body, tag); closed {
			body = b
		}
		inner, changed := h.inner(body)
		if !changed {
			return s
		}
		return tag + inner + tag
	}
	quote := s[q : q+1]
	body := strings.ReplaceAll(strings.TrimSuffix(s[q+1:], quote), quote+quote, quote)
	if h.dialect == lex.MySQL || strings.EqualFold(s[:q], "e") {
		body = lex.Unescape(body, "ntr0", "\n\t\r\x00")
	}
	inner, changed := h.inner(body)
	if !changed {
		return s
	}
	inner = strings.ReplaceAll(inner, quote, quote+quote)
	if h.dialect == lex.MySQL || strings.EqualFold(s[:q], "e") {
		inner = strings.ReplaceAll(inner, `\`, `\\`)
	}
	return s[:q] + quote + inner + quote
}

func (h *hider) inner(body string) (hidden string, changed bool) {
	if !mayHold(body, h.dialect) {
		return body, false
	}
	in := hide(body, h.dialect, h.level+1)
	hidden = connection(in.SQL, h.call > 0 && h.dials)
	h.params = h.params || in.Params
	h.found = h.found || hidden != body
	return hidden, hidden != body
}
