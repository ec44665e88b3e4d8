package logs

import (
	"bytes"
	"strconv"
	"strings"

	"wirecheck/trace/source"
)

// The columns of a csvlog (PostgreSQL manual, 20.8.4 Using CSV-Format Log Output). Later versions have added columns at the end:
// 9.0 application_name, 13 backend_type, 14 leader_pid and query_id.
const (
	csvTime = iota
	csvUser
	csvDatabase
	csvPID
	csvClient
	csvSession
	csvLine
	csvTag
	csvSessionStart
	csvVXID
	csvXID
	csvSeverity
	csvState
	csvMessage
	csvDetail
	csvHint
	csvInternalQuery
	csvInternalPos
	csvContext
	csvQuery
	csvQueryPos
	csvLocation
	csvApplication
	csvBackend
	csvColumns // that matter

	csvLeast = csvLocation + 1
)

// csvLog reads PostgreSQL's csvlog.
type csvLog struct {
	*pgLog
	fields []string
	entry  pgEntry
	held   []byte // lines of a record whose quotes are still open
	first  int    // number of the first of them
	open   bool   // a quote is open at the end of held
}

func newCSVLog(out *source.Sink) source.Reader { return &csvLog{pgLog: newPgLog(out)} }

// isCSVLog looks for a line that is a record, or the beginning of one.
func isCSVLog(head []byte) bool {
	return anyLine(head, 100, func(line []byte) bool { return recordStart(line) && bytes.Count(line, []byte(",")) >= csvMessage })
}

// recordStart tells whether a line may begin a record: 2026-11-20 09:31:14.156 UTC,
func recordStart(line []byte) bool {
	if len(line) < 25 || line[4] != '-' || line[7] != '-' || line[10] != ' ' || line[13] != ':' || line[16] != ':' || line[19] != '.' {
		return false
	}
	comma := bytes.IndexByte(line[20:min(len(line), 40)], ',')
	return line[0] >= '0' && line[0] <= '9' && comma >= 4
}

// Read reads the next file.
func (l *csvLog) Read(in *source.Input) error {
	err := in.Each(func(line []byte, long bool) error { return l.line(in, line, long) })
	if err == nil && l.held != nil {
		l.out.Unknown(l.first, "the record is cut off", l.held)
		l.held, l.open = nil, false
	}
	return err
}

// line takes a line. A quoted field may go on in the next one, so a line with an odd number of quotes opens or closes one. In a
// damaged file this would turn inside and outside round for all that follows. So a line that begins like a record is tried by itself:
// within a quoted field its own quotes would be doubled, and it would not pass.
func (l *csvLog) line(in *source.Input, line []byte, long bool) error {
	odd := bytes.Count(line, []byte{'"'})&1 == 1
	if l.held == nil {
		switch {
		case long:
			l.out.Unknown(in.N, "the line is too long", line)
			return nil
		case !odd:
			return l.record(in.N, line)
		}
		l.held, l.first, l.open = append(l.held[:0:0], line...), in.N, true
		return nil
	}
	if recordStart(line) && !long && (odd || l.record0(line)) && bytes.Contains(line, []byte(`,"`)) && (!odd || plausible(line)) {
		l.out.Unknown(l.first, "a quoted field has no end", l.held)
		l.held = nil
		return l.line(in, line, long)
	}
	if long || len(l.held)+len(line) > in.Max {
		l.out.Unknown(l.first, "the record is too long", l.held)
		l.held = nil
		return nil
	}
	l.held = append(l.held, line...)
	if odd {
		held, first := l.held, l.first
		l.held = nil
		return l.record(first, held)
	}
	return nil
}

// plausible tells whether a line with an open quote at its end looks like a record's first line: what comes before the message is in
// order.
func plausible(line []byte) bool {
	fields, ok := splitCSV(string(line)+`"`, nil)
	return ok && len(fields) > csvMessage && len(fields[csvState]) == 5 && fields[csvSession] != ""
}

// record0 tells whether a line is a whole record.
func (l *csvLog) record0(line []byte) bool {
	fields, ok := splitCSV(string(bytes.TrimRight(line, "\r\n")), nil)
	return ok && len(fields) >= csvLeast && len(fields[csvState]) == 5
}

// record takes a whole record.
func (l *csvLog) record(n int, text []byte) error {
	text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
	if len(text) == 0 {
		return nil
	}
	var ok bool
	l.fields, ok = splitCSV(string(text), l.fields[:0])
	f := l.fields
	switch {
	case !ok:
		l.out.Unknown(n, "this is not a line of comma-separated values", text)
		return nil
	case len(f) < csvLeast:
		l.out.Unknown(n, strconv.Itoa(len(f))+" columns; a csvlog has "+strconv.Itoa(csvLeast)+" at least", text)
		return nil
	}
	at, ok := l.clock.read(f[csvTime])
	xid, err := strconv.ParseUint(f[csvXID], 10, 64)
	if !ok || err != nil || len(f[csvState]) != 5 {
		l.out.Unknown(n, "the columns are not those of a csvlog", text)
		return nil
	}
	l.entry = pgEntry{
		line: n, at: at, user: f[csvUser], db: f[csvDatabase], client: f[csvClient], pid: f[csvPID], session: f[csvSession], ps: f[csvTag],
		vxid: f[csvVXID], xid: xid, level: f[csvSeverity], state: f[csvState], message: f[csvMessage], detail: f[csvDetail],
		context: f[csvContext], query: f[csvQuery],
	}
	if len(f) > csvApplication {
		l.entry.app = f[csvApplication]
	}
	if len(f) > csvBackend {
		l.entry.backend = f[csvBackend]
	}
	return l.add(&l.entry)
}

// splitCSV splits a record as PostgreSQL writes it: fields in quotes have doubled quotes in them, the others have none.
func splitCSV(s string, fields []string) ([]string, bool) {
	for {
		if strings.HasPrefix(s, `"`) {
			end, doubled := 1, false
			for {
				i := strings.IndexByte(s[end:], '"')
				if i < 0 {
					return fields, false
				}
				end += i
				if end+1 < len(s) && s[end+1] == '"' {
					doubled = true
					end += 2
					continue
				}
				break
			}
			v := s[1:end]
			if doubled {
				v = strings.ReplaceAll(v, `""`, `"`)
			}
			fields = append(fields, v)
			s = s[end+1:]
		} else {
			i := strings.IndexByte(s, ',')
			v := s
			if i >= 0 {
				v = s[:i]
			}
			if strings.IndexByte(v, '"') >= 0 {
				return fields, false
			}
			fields = append(fields, v)
			s = s[len(v):]
		}
		if s == "" {
			return fields, true
		}
		if s[0] != ',' {
			return fields, false
		}
		s = s[1:]
	}
}
