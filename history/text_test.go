package history

import (
	"fmt"
	"strconv"
	"strings"
)

// AppendText appends e in text form without a line end. What the text form cannot say (client, user, ticks, wall clock)
// is left out.
func AppendText(b []byte, e *Event) []byte {
	if e.Kind == EventSession || e.Kind == EventBegin || e.Kind == EventClose {
		b = fmt.Appendf(b, "s%d ", e.Session)
	}
	if e.Txn != 0 {
		b = fmt.Appendf(b, "t%d ", e.Txn)
	} else if e.Kind == EventStmt {
		b = fmt.Appendf(b, "s%d ", e.Session)
	}
	switch e.Kind {
	case EventSession:
		b = append(b, "session"...)
		if e.Engine != "" {
			b = fmt.Appendf(b, " %q %q", e.Engine, e.Server)
		}
		return b
	case EventClose:
		b = append(b, "close"...)
		if e.Why != "" {
			b = fmt.Appendf(b, " %q", e.Why)
		}
		return b
	case EventBegin:
		b = append(b, "begin"...)
		if e.Level != "" {
			b = fmt.Appendf(b, " %q", e.Level)
		}
		if e.Implicit {
			b = append(b, " implicit"...)
		}
		return tokensText(b, e.Tokens)
	case EventEnd:
		word := map[Outcome]string{OutcomeCommitted: "commit", OutcomeAborted: "abort"}[e.Outcome]
		if word == "" {
			word = "unknown"
		}
		if e.Pending {
			word += " pending"
		}
		return append(b, word...)
	}
	b = appendAccesses(b, e)
	switch {
	case e.Coverage == CoverageOpaque || e.Coverage == CoverageApproximate:
		b = append(append(b, ' '), e.Coverage...)
	case e.Verb == "rollback to" && e.UndoesFrom > 0:
		return fmt.Appendf(b, "undo %d", e.UndoesFrom)
	case e.Coverage == CoverageNone:
		b = append(b, "stmt"...)
	}
	for i := range e.Reads {
		r := &e.Reads[i]
		word := " where "
		if r.Whole {
			word = " all "
		}
		b = strconv.AppendQuote(append(append(append(b, word...), r.Table...), ' '), r.Where)
	}
	switch {
	case e.Unread != "":
		b = strconv.AppendQuote(append(b, " unread "...), e.Unread)
	case e.Predicate && len(e.Reads) == 0:
		b = append(b, " predicate"...)
	}
	if e.UndoesFrom > 0 {
		b = fmt.Appendf(b, " undoes %d", e.UndoesFrom)
	}
	if e.Error != nil {
		b = fmt.Appendf(b, " error %q", e.Error.Code)
	}
	b = requestText(tokensText(b, e.Tokens), e)
	if e.SQL != "" {
		b = append(append(b, " -- "...), strings.Join(strings.Fields(e.SQL), " ")...)
	}
	return b
}

func appendAccesses(b []byte, e *Event) []byte {
	verb := ""
	for i := range e.Accesses {
		a := &e.Accesses[i]
		v := map[Op]string{OpRead: "r", OpLock: "lock", OpMatch: "match", OpUpdate: "w", OpInsert: "i", OpDelete: "d"}[a.Op]
		if a.Op == OpUpdate && e.CurrentRead {
			v = "inc"
		}
		switch {
		case i == 0:
			b = append(b, v...)
		case v != verb:
			b = append(append(b, " , "...), v...)
		}
		verb = v
		b = append(b, ' ')
		if a.Row.Table != "t" {
			b = append(append(b, a.Row.Table...), '.')
		}
		if a.Row.Key == "" {
			b = append(b, '_')
		}
		b = append(b, a.Row.Key...)
		if !a.Op.Writes() {
			b = versionAppend(append(b, '@'), a.Version, a.Order, a.AsOf, a.Writer, a.Approx)
			continue
		}
		b = versionAppend(append(b, ' '), a.Prev, a.PrevOrder, 0, a.PrevWriter, false)
		version := a.Version
		if a.Op == OpDelete && a.Order > 0 {
			version = strconv.FormatUint(a.Order-1, 10) // the dead version has no name
		}
		b = versionAppend(append(b, '>'), version, a.Order, 0, "", a.Approx)
		for _, image := range [2][2]string{{" image ", a.Image}, {" was ", a.Was}} {
			if image[1] != "" {
				b = strconv.AppendQuote(append(b, image[0]...), image[1])
			}
		}
	}
	return b
}

func tokensText(b []byte, tokens []string) []byte {
	if len(tokens) == 0 {
		return b
	}
	return append(append(b, " tokens "...), strings.Join(tokens, ",")...)
}

func versionAppend(b []byte, id string, order, asOf uint64, token string, approx bool) []byte {
	b = append(b, id...)
	if n, err := strconv.ParseUint(id, 10, 64); (err != nil || n+1 != order) && (order != 0 || err == nil) {
		b = fmt.Appendf(b, "#%d", order)
	}
	if asOf != 0 {
		b = fmt.Appendf(b, "<%d", asOf)
	}
	if token != "" {
		b = append(append(b, '!'), token...)
	}
	if approx {
		b = append(b, '?')
	}
	return b
}

// requestText appends what requestWord reads.
func requestText(b []byte, e *Event) []byte {
	if e.Request != "" {
		b = fmt.Appendf(b, " request %q", e.Request)
	}
	for _, o := range e.Operands {
		text := o.Column
		if o.Value != "" {
			text += "=" + o.Value
		}
		b = fmt.Appendf(b, " %s %q", o.Role, text)
	}
	for _, d := range e.Derived {
		row := d.Row.Key
		if d.Row.Table != "t" {
			row = d.Row.Table + "." + row
		}
		b = fmt.Appendf(b, " derived %q", fmt.Sprintf("%s:%s@%s:%d.%d:%s:%s:%s", d.Column, row, d.Version, d.Txn, d.N, d.Kind, d.Constant, d.Read))
	}
	return b
}
