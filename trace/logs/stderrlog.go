package logs

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"wirecheck/trace/source"
)

// stderrLog reads PostgreSQL's log in text form. Its lines begin with what log_line_prefix says; an entry goes on in lines that begin with
// a tab, and in entries DETAIL, HINT, CONTEXT, STATEMENT and QUERY with the same prefix.
type stderrLog struct {
	*pgLog
	prefix *linePrefix
	entry  *pgEntry // not handed on yet
	part   *string  // of it, what a further line belongs to
	more   []byte   // further lines, not added to part yet
	err    error
}

func newStderrLog(out *source.Sink) source.Reader {
	l := &stderrLog{pgLog: newPgLog(out)}
	l.besides = ", log_error_verbosity = default"
	if out.Options.Prefix != "" {
		l.prefix, l.err = compilePrefix(out.Options.Prefix)
	}
	return l
}

// usualPrefixes are tried where none is given: those of pgreplay (with and without more behind it), Debian, RDS, Cloud SQL, and the default.
var usualPrefixes = []string{
	"%m|%u|%d|%c|%p|%l|%v|%x|%a|", "%m|%u|%d|%c|", "%m [%p] %q%u@%d ", "%t:%r:%u@%d:[%p]:", "%m [%p]: [%l-1] db=%d,user=%u ", "%m [%p] ",
	"%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ",
}

func isStderrLog(head []byte) bool { return findPrefix(head) != nil }

// findPrefix gives the first of the usual prefixes that some line has.
func findPrefix(head []byte) *linePrefix {
	for _, text := range usualPrefixes {
		if p, err := compilePrefix(text); err == nil && anyLine(head, 100, func(line []byte) bool { return p.match(line) != nil }) {
			return p
		}
	}
	return nil
}

// linePrefix is a log_line_prefix.
type linePrefix struct {
	text   string
	re     *regexp.Regexp
	fields []byte // the letter of each group
}

// escapes are the patterns of log_line_prefix's escapes (PostgreSQL manual, 20.8.3). Others match anything without a space.
var escapes = map[byte]string{
	'm': `\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [^ |,:\]]+`, 't': `\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [^ |,:\]]+`, 'n': `\d+\.\d+`, 's': `\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [^ |,:\]]+`,
	'p': `\d+`, 'P': `\d*`, 'l': `\d+`, 'c': `[0-9a-f.]+`, 'v': `[0-9/]*`, 'x': `\d+`, 'Q': `-?\d+`, 'u': `.*?`, 'd': `.*?`, 'a': `.*?`, 'r': `.*?`, 'h': `.*?`,
	'b': `.*?`, 'i': `.*?`, 'e': `[0-9A-Z]{5}`, 'L': `.*?`,
}

var sqlState = regexp.MustCompile(`^[0-9A-Z]*[0-9][0-9A-Z]*$`)

// severityPattern also takes what may be a severity in another language, so that its lines are reported as that.
var severityPattern = `(DEBUG[1-5]?|INFO|NOTICE|WARNING|LOG|ERROR|FATAL|PANIC|DETAIL|HINT|CONTEXT|STATEMENT|QUERY|LOCATION|BACKTRACE|[\p{Lu}\p{Lo}][\p{Lu}\p{Lo} ]{1,19}) ?:  `

func compilePrefix(text string) (*linePrefix, error) {
	p := &linePrefix{text: text}
	var b strings.Builder
	b.WriteByte('^')
	optional := 0
	for i := 0; i < len(text); i++ {
		if text[i] != '%' || i+1 == len(text) {
			b.WriteString(regexp.QuoteMeta(text[i : i+1]))
			continue
		}
		i++
		i = len(text) - len(strings.TrimLeft(text[i:], "-0123456789")) // padding
		if i == len(text) {
			return nil, errors.New("log_line_prefix ends in the middle of an escape")
		}
		switch pattern, ok := escapes[text[i]]; {
		case text[i] == '%':
			b.WriteByte('%')
		case text[i] == 'q': // processes without a session stop here
			b.WriteString(`(?:`)
			optional++
		case ok:
			b.WriteString(` *(` + pattern + `) *`)
			p.fields = append(p.fields, text[i])
		default:
			return nil, errors.New("log_line_prefix has the unknown escape %" + text[i:i+1])
		}
	}
	b.WriteString(strings.Repeat(`)?`, optional))
	b.WriteString(severityPattern)
	re, err := regexp.Compile(b.String())
	p.re = re
	return p, err
}

// match gives the fields of a line, then its severity, then the rest.
func (p *linePrefix) match(line []byte) []string {
	m := p.re.FindSubmatchIndex(line)
	if m == nil {
		return nil
	}
	var out []string
	for i := 1; i < len(m)/2; i++ {
		if m[2*i] < 0 {
			out = append(out, "")
			continue
		}
		out = append(out, string(line[m[2*i]:m[2*i+1]]))
	}
	return append(out, string(line[m[1]:]))
}

// Read reads the next file.
func (l *stderrLog) Read(in *source.Input) error {
	if l.err != nil {
		return l.err
	}
	if l.prefix == nil {
		head, err := in.R.Peek(source.HeadSize)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if l.prefix = findPrefix(head); l.prefix == nil {
			return errors.New("its lines have none of the usual prefixes: give log_line_prefix with --prefix")
		}
	}
	if !strings.ContainsAny(string(l.prefix.fields), "mtn") || !strings.ContainsAny(string(l.prefix.fields), "pc") {
		return errors.New("log_line_prefix " + strconv.Quote(l.prefix.text) + " tells no time (%m) or no session (%c, %p)")
	}
	err := in.Each(func(line []byte, long bool) error { return l.line(in, bytes.TrimRight(line, "\r\n"), long) })
	if err != nil {
		return err
	}
	if l.entry != nil {
		l.entry.lost = in.Cut
	}
	return l.flush()
}

func (l *stderrLog) line(in *source.Input, line []byte, long bool) error {
	if long {
		l.out.Unknown(in.N, "the line is too long", line)
		return l.flush()
	}
	if bytes.HasPrefix(line, []byte("\t")) && l.part != nil {
		if len(*l.part)+len(l.more)+len(line) > in.Max {
			l.out.Unknown(in.N, "the entry is too long", line)
			if l.entry != nil {
				l.entry.lost = true
			}
			return nil
		}
		l.more = append(append(l.more, '\n'), line[1:]...)
		return nil
	}
	l.settle()
	f := l.prefix.match(line)
	if f == nil {
		if len(line) > 0 {
			l.out.Unknown(in.N, "it does not begin with "+strconv.Quote(l.prefix.text), line)
		}
		return nil
	}
	e := l.fields(in.N, f)
	if e == nil {
		l.out.Unknown(in.N, "its time cannot be read", line)
		return nil
	}
	text := f[len(f)-1]
	if l.entry != nil && l.entry.session == e.session {
		switch e.level {
		case "DETAIL":
			l.entry.detail, l.part = text, &l.entry.detail
			return nil
		case "CONTEXT":
			l.entry.context, l.part = text, &l.entry.context
			return nil
		case "STATEMENT":
			l.entry.query, l.part = text, &l.entry.query
			return nil
		}
	}
	switch e.level {
	case "DETAIL", "CONTEXT", "STATEMENT", "HINT", "QUERY", "LOCATION", "BACKTRACE":
		// Of another session's entry that was handed on, or nothing that matters.
		l.part = new(string)
		return nil
	}
	if err := l.flush(); err != nil {
		return err
	}
	if len(text) > 7 && text[5:7] == ": " && sqlState.MatchString(text[:5]) { // log_error_verbosity = verbose
		e.state, text = text[:5], text[7:]
	}
	e.message = text
	l.entry, l.part = e, &e.message
	return nil
}

// settle adds the further lines to what they belong to.
func (l *stderrLog) settle() {
	if len(l.more) > 0 {
		*l.part += string(l.more)
		l.more = l.more[:0]
	}
}

// fields makes an entry of a prefix.
func (l *stderrLog) fields(n int, f []string) *pgEntry {
	e := &pgEntry{line: n}
	for i, letter := range l.prefix.fields {
		v := f[i]
		switch letter {
		case 'm', 't', 'n':
			at, ok := l.clock.read(v)
			if letter == 'n' {
				sec, frac, _ := strings.Cut(v, ".")
				s, err := strconv.ParseInt(sec, 10, 64)
				at, ok = s*1_000_000_000+fraction(frac), err == nil
			}
			if !ok {
				return nil
			}
			e.at = at
		case 'u':
			e.user = v
		case 'd':
			e.db = v
		case 'p':
			e.pid = v
		case 'c':
			e.session = v
		case 'v':
			e.vxid = v
		case 'x':
			e.xid, _ = strconv.ParseUint(v, 10, 64) // digits only; too many of them are no id
		case 'a':
			e.app = v
		case 'i':
			e.ps = v
		case 'b':
			e.backend = v
		case 'e':
			e.state = v
		case 'r', 'h':
			e.client = strings.TrimSuffix(strings.Replace(v, "(", ":", 1), ")")
		}
	}
	switch { // the session's id is made of its start and its process id in hexadecimal
	case e.session == "" && e.pid != "":
		e.session = e.pid
	case e.pid == "":
		if _, hex, ok := strings.Cut(e.session, "."); ok {
			if pid, err := strconv.ParseUint(hex, 16, 32); err == nil {
				e.pid = strconv.FormatUint(pid, 10)
			}
		}
	}
	e.level = f[len(f)-2]
	return e
}

func (l *stderrLog) flush() error {
	l.settle()
	e := l.entry
	l.entry, l.part = nil, nil
	if e == nil {
		return nil
	}
	return l.add(e)
}

// Finish hands on what is left, and reports what the log does not show.
func (l *stderrLog) Finish() error {
	if err := l.flush(); err != nil {
		return err
	}
	r := l.out.Report
	if l.prefix != nil && !strings.ContainsRune(string(l.prefix.fields), 'c') {
		r.Note("sessions differ by process id alone, which comes again: %%c in log_line_prefix")
	}
	if r.Errors > 0 && l.prefix != nil && !strings.ContainsRune(string(l.prefix.fields), 'e') {
		r.Lacks("the SQLSTATE of errors", "%e in log_line_prefix, or csvlog")
	}
	return l.pgLog.Finish()
}
