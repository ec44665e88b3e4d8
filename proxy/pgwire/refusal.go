package pgwire

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"wirecheck/answer"
	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
)

// ends reports whether the server ends the session with an error.
func ends(e *answer.Error) bool { return e.Severity == "FATAL" || e.Severity == "PANIC" }

// parseError reads what matters of an ErrorResponse.
func parseError(body []byte) *answer.Error {
	e := &answer.Error{}
	fields(body, func(kind byte, value []byte) {
		switch kind {
		case 'V':
			e.Severity = string(value)
		case 'C':
			e.Code = string(value)
		case 'M':
			e.Message = string(value)
		}
	})
	return e
}

// fields calls f with each field of an ErrorResponse or NoticeResponse.
func fields(body []byte, f func(kind byte, value []byte)) {
	for len(body) > 1 && body[0] != 0 {
		i := bytes.IndexByte(body[1:], 0)
		if i < 0 {
			return
		}
		f(body[0], body[1:1+i])
		body = body[i+2:]
	}
}

// position finds the number in field P of an error or notice: where its text stands, and the number; 0 if there is none.
func position(body []byte) (at, size, pos int) {
	rest := body
	for len(rest) > 1 && rest[0] != 0 {
		i := bytes.IndexByte(rest[1:], 0)
		if i < 0 {
			break
		}
		if rest[0] == 'P' {
			if n, err := strconv.Atoi(string(rest[1 : 1+i])); err == nil && n > 0 {
				return len(body) - len(rest) + 1, i, n
			}
		}
		rest = rest[i+2:]
	}
	return 0, 0, 0
}

// mapped makes the position of an error or notice one of the client's text.
func mapped(body []byte, e *entry) []byte {
	edits := e.edits()
	if len(edits) == 0 {
		return body
	}
	at, size, pos := position(body)
	if pos == 0 {
		return body
	}
	mapped := rewrite.MapPosition(e.client, edits, pos)
	out := append([]byte{}, body[:at]...)
	out = strconv.AppendInt(out, int64(mapped), 10)
	return ofWhere(append(out, body[at+size:]...), e.client, edits, mapped)
}

// ofWhere calls the condition WHERE where the server, which says at pos that it is not boolean, or returns a set, calls it AND for what was
// added behind it (coerce_to_boolean, src/backend/parser/parse_coerce.c).
func ofWhere(body []byte, client string, edits []rewrite.Edit, pos int) []byte {
	where, ok := postgres.Condition(edits)
	if !ok || where > len(client) {
		return body
	}
	// The position is that of the condition's first token. What may stand in front of it are brackets.
	rest := []rune(client[where:])
	n := pos - 1 - utf8.RuneCountInString(client[:where])
	if n < 0 || n >= len(rest) || strings.Trim(string(rest[:n]), " \t\n\r\f\v(") != "" {
		return body
	}
	ours := false
	fields(body, func(kind byte, value []byte) { ours = ours || kind == 'R' && string(value) == "coerce_to_boolean" })
	if !ours {
		return body
	}
	var out []byte
	fields(body, func(kind byte, value []byte) {
		if kind == 'M' {
			value = bytes.Replace(value, []byte("AND"), []byte("WHERE"), 1)
		}
		out = append(append(append(out, kind), value...), 0)
	})
	return append(out, 0)
}

// ourFault reports whether an error may come from what was added to the client's text: it points into it, or a right is
// missing. Then the catalog is older than the schema, which another client changed directly.
func ourFault(body []byte, e *entry, code string) bool {
	edits := e.edits()
	if len(edits) == 0 {
		return false
	}
	if code == "42501" { // insufficient_privilege
		return true
	}
	_, _, pos := position(body)
	// A position in added text maps to where the text was added, and so do its neighbours.
	return pos > 1 && rewrite.MapPosition(e.client, edits, pos) == rewrite.MapPosition(e.client, edits, pos-1)
}

// recounted takes our columns out of the server's complaint that a Bind has the wrong number of format codes: it counts
// ours on both sides (PortalSetResultFormat, src/backend/tcop/pquery.c).
func recounted(body []byte, hidden int) []byte {
	routine := ""
	fields(body, func(kind byte, value []byte) {
		if kind == 'R' {
			routine = string(value)
		}
	})
	if routine != "PortalSetResultFormat" {
		return body
	}
	var out []byte
	fields(body, func(kind byte, value []byte) {
		out = append(out, kind)
		if kind == 'M' {
			value = lowered(value, hidden)
		}
		out = append(append(out, value...), 0)
	})
	return append(out, 0)
}

// lowered subtracts n from each number in a text.
func lowered(text []byte, n int) []byte {
	var out []byte
	for len(text) > 0 {
		k := 0
		for k < len(text) && text[k] >= '0' && text[k] <= '9' {
			k++
		}
		if v, err := strconv.Atoi(string(text[:k])); k > 0 && err == nil {
			out = strconv.AppendInt(out, int64(v-n), 10)
		} else {
			k = max(k, 1)
			out = append(out, text[:k]...)
		}
		text = text[k:]
	}
	return out
}

// spentPortal is what the server says of a portal whose statement returns no rows and was executed already
// (MarkPortalActive, src/backend/utils/mmgr/portalmem.c). The source line, which differs between versions, is left out.
func spentPortal(body []byte, name string) []byte {
	var out []byte
	fields(body, func(kind byte, value []byte) {
		if kind == 'S' || kind == 'V' { // the severity, in the server's language and in English
			out = append(append(append(out, kind), value...), 0)
		}
	})
	return append(out, "C55000\x00Mportal \""+name+"\" cannot be run\x00Fportalmem.c\x00RMarkPortalActive\x00\x00"...)
}
