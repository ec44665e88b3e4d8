package trace

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"wirecheck/answer"
	"wirecheck/history"
	"wirecheck/history/prose"
)

// TextOptions say how records are printed.
type TextOptions struct {
	Rows int  // rows of a result that are printed
	SQL  int  // longest text; 0: all of it
	Date bool // print the day with the time
}

// AppendText prints a record as a person reads it: when, which session, the transaction's status before it, the statement, what it brought.
func AppendText(b []byte, r *Record, o TextOptions) []byte {
	b = appendTime(b, r.At(), o)
	b = fmt.Appendf(b, " s%-3d ", r.Session)
	switch r.Kind {
	case KindSession:
		b = appendSession(b, r.Open)
	case KindStatement:
		b = appendStatement(b, r.Statement, o)
	case KindWait:
		b = appendWait(b, r.Wait)
	case KindNote:
		b = append(b, "- note: "...)
		b = prose.AppendLine(b, r.Note.Text, 0)
	case KindHistory:
		b = append(b, "- history: "...)
		b = prose.AppendLine(b, string(history.AppendEvent(nil, r.History)), o.SQL)
	case KindEnd:
		b = append(b, "- the session ends"...)
		if r.End.Reason != EndQuit && r.End.Reason != "" {
			b = append(b, ": "...)
			b = prose.AppendLine(b, r.End.Reason, 0)
		}
	}
	return append(b, '\n')
}

func appendTime(b []byte, at int64, o TextOptions) []byte {
	layout := "15:04:05.000000"
	if o.Date {
		layout = "2006-01-02 " + layout
	}
	if at == 0 {
		return append(b, strings.Repeat("-", len(layout))...)
	}
	return time.Unix(0, at).UTC().AppendFormat(b, layout)
}

func appendSession(b []byte, s *Session) []byte {
	b = append(b, "- session"...)
	if s.Joined {
		b = append(b, " (joined)"...)
	}
	for _, p := range []struct{ name, value string }{
		{"", strings.TrimSpace(s.Product + " " + s.Version)}, {"user ", s.User}, {"database ", s.Database}, {"application ", s.Application}, {"from ", s.Client},
		{"backend ", s.Backend}, {"level ", s.Level},
	} {
		if p.value != "" {
			b = append(b, ", "...)
			b = append(b, p.name...)
			b = prose.AppendLine(b, p.value, 200)
		}
	}
	if s.Encrypted {
		b = append(b, ", goes on encrypted"...)
	}
	return b
}

func appendStatement(b []byte, st *Statement, o TextOptions) []byte {
	status := byte('?')
	if st.Before != answer.Unknown {
		status = byte(st.Before)
	}
	b = append(b, status, ' ')
	switch st.Protocol {
	case ProtocolPrepared:
		b = append(b, "[prepared] "...)
	case ProtocolFetch:
		b = append(b, "[fetch] "...)
	}
	switch {
	case st.SQL == "" && st.Lost:
		b = append(b, "(a statement whose text is not known)"...)
	default:
		b = prose.AppendLine(b, st.SQL, o.SQL)
		if st.Lost {
			b = append(b, " (cut)"...)
		}
	}
	if len(st.Params) > 0 {
		b = append(b, "  {"...)
		for i, p := range st.Params {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = appendValue(b, Value{Null: p.Null, Binary: p.Binary, Text: p.Value})
		}
		b = append(b, '}')
	}
	b = append(b, "  -> "...)
	b = appendResults(b, st, o)
	switch {
	case st.Took != 0:
		b = fmt.Appendf(b, "  (%s)", Took(st.Took))
	case st.Start != 0 && st.End > st.Start:
		b = fmt.Appendf(b, "  (%s)", Took(st.End-st.Start))
	}
	return b
}

// Took prints a duration as people do.
func Took(ns int64) string {
	d := time.Duration(ns)
	switch {
	case d < time.Millisecond:
		return strconv.FormatFloat(float64(d)/1e6, 'f', 3, 64) + " ms"
	case d < time.Second:
		return strconv.FormatFloat(float64(d)/1e6, 'f', 1, 64) + " ms"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) + " s"
}

func appendResults(b []byte, st *Statement, o TextOptions) []byte {
	for i := range st.Results {
		if i > 0 {
			b = append(b, "; "...)
		}
		b = appendResult(b, &st.Results[i], o)
	}
	switch {
	case st.Error != nil:
		if len(st.Results) > 0 {
			b = append(b, "; "...)
		}
		b = append(b, "ERROR"...)
		if st.Error.Code != "" {
			b = append(b, ' ')
			b = append(b, st.Error.Code...)
		}
		if st.Error.Message != "" {
			b = append(b, ": "...)
			b = prose.AppendLine(b, st.Error.Message, 300)
		}
	case len(st.Results) == 0:
		b = append(b, '?')
	}
	return b
}

func appendResult(b []byte, r *Result, o TextOptions) []byte {
	from := len(b)
	b = append(b, r.Tag...)
	rows := r.Count > 0 || r.Columns != nil // sources without columns tell 0 rows also of what returns none
	if r.Tag == "" && r.Affected != Unknown && (!rows || r.Affected > 0) {
		b = fmt.Appendf(b, "%d affected", r.Affected)
	}
	if rows && r.Count != Unknown {
		if len(b) > from {
			b = append(b, ", "...)
		}
		b = append(b, prose.Count(r.Count, "row")...)
		for i, row := range r.Rows {
			if i == o.Rows {
				b = append(b, " ..."...)
				break
			}
			b = append(b, " ["...)
			for k, v := range row {
				if k > 0 {
					b = append(b, ", "...)
				}
				b = appendValue(b, v)
			}
			b = append(b, ']')
		}
	}
	if len(b) == from {
		b = append(b, "ok"...)
	}
	return b
}

func appendValue(b []byte, v Value) []byte {
	switch {
	case v.Null:
		return append(b, "NULL"...)
	case v.Binary:
		return fmt.Appendf(b, "0x%x", v.Text[:min(len(v.Text), 50)])
	}
	return prose.AppendLine(b, v.Text, 100)
}

func appendWait(b []byte, w *Wait) []byte {
	verbs := map[WaitState]string{WaitBegan: "waits for", WaitEnded: "has got", WaitDeadlock: "closes a circle, waiting for", WaitGaveUp: "gives up waiting for"}
	b = append(b, "- "...)
	b = append(b, verbs[w.State]...)
	b = append(b, ' ')
	b = prose.AppendLine(b, w.Lock, 200)
	for i, s := range w.For {
		if i == 0 {
			b = append(b, ", held by"...)
		}
		b = fmt.Appendf(b, " s%d", s)
	}
	return fmt.Appendf(b, "  (%s)", Took(w.Took))
}
