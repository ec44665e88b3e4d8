package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"wirecheck/history/prose"
)

// Format is a kind of log that can be imported.
type Format struct {
	Name  string // as the user calls it
	Title string
	// detect looks at the beginning of a file.
	detect func(head []byte) bool
	open   func(*sink) source
}

// source reads the files of one log, in their order.
type source interface {
	read(in *input) error
	// finish hands on what waited for more, and says what the log could not tell.
	finish() error
}

// Formats are all that can be imported. Of those that know a file by its looks the first one takes it.
func Formats() []Format {
	return []Format{
		{"pcap", "packet capture", isPcap, newPcap},
		{"jsonlog", "PostgreSQL jsonlog", isJSONLog, newJSONLog},
		{"csvlog", "PostgreSQL csvlog", isCSVLog, newCSVLog},
		{"audit", "MariaDB server_audit", isServerAudit, newServerAudit},
		{"slow", "slow query log (MySQL, MariaDB, Percona Server, TiDB)", isSlowLog, newSlowLog},
		{"general", "general query log (MySQL, MariaDB)", isGeneralLog, newGeneralLog},
		{"stderr", "PostgreSQL log (stderr)", isStderrLog, newStderrLog},
	}
}

// ImportOptions say how logs are read.
type ImportOptions struct {
	Format  string                // name of a Format; empty or "auto": each file's own
	Prefix  string                // log_line_prefix of PostgreSQL's stderr log; empty: one of the usual ones
	Product string                // mysql, mariadb: for logs that do not say whose they are
	Ports   []int                 // of servers in a packet capture, besides those that are recognised
	Read    func(n int64)         // told how many bytes of the files were read, for progress
	MaxLine int                   // longest line that is kept; 0: DefaultMaxLine
	Rows    int                   // rows of a result that are kept, 0: DefaultRows; negative: none
	Out     func(r *Record) error // takes the records; it must not keep them

	sessions int // that are followed at a time; 0: maxSessions
}

// Limits of what is kept.
const (
	DefaultMaxLine = 64 << 20
	DefaultRows    = 1000
	maxRowBytes    = 1 << 20 // of one result

	// maxSessions are followed at a time. Logs that do not tell when sessions end would need room for all that ever were.
	maxSessions = 1 << 18
)

// Import reads logs. Files of the same format are one log, in the order in which they are given (as a rotated log's should be).
// The reports are also returned if an error ends the import.
func Import(ctx context.Context, files []string, o ImportOptions) ([]*Report, error) {
	formats := Formats()
	if o.Format != "" && o.Format != "auto" {
		i := slices.IndexFunc(formats, func(f Format) bool { return f.Name == o.Format })
		if i < 0 {
			return nil, fmt.Errorf("unknown format %q: known are auto, %s", o.Format, formatNames())
		}
		formats = formats[i : i+1]
		formats[0].detect = func([]byte) bool { return true }
	}
	if o.MaxLine <= 0 {
		o.MaxLine = DefaultMaxLine
	}
	if err := distinct(files); err != nil {
		return nil, err
	}
	im := &importer{ctx: ctx, o: o, formats: formats, open: map[string]int{}}
	for _, path := range files {
		if err := im.file(path); err != nil {
			return im.reports(), err
		}
	}
	return im.reports(), im.finish()
}

// distinct refuses a file that is given twice: all its statements would have happened twice.
func distinct(files []string) error {
	infos := make([]os.FileInfo, len(files))
	for i, path := range files {
		var err error
		if infos[i], err = os.Stat(path); err != nil {
			return fmt.Errorf("open log: %w", err)
		}
		if infos[i].IsDir() {
			return fmt.Errorf("open log: %s is a folder: name the files in it", path)
		}
		for j := range i {
			if os.SameFile(infos[i], infos[j]) {
				return fmt.Errorf("%s and %s are the same file: name it once", files[j], path)
			}
		}
	}
	return nil
}

// finish ends all logs, and says what only all of them together show.
func (im *importer) finish() error {
	for _, l := range im.logs {
		if err := l.source.finish(); err != nil {
			return err
		}
		l.sink.clockNote()
	}
	if len(im.logs) == 0 {
		if len(im.empty) == 0 {
			return nil
		}
		return fmt.Errorf("%s is empty: the server has written nothing to it", im.empty[0])
	}
	first := im.logs[0].sink.report
	for _, path := range im.empty {
		first.note("%s is empty", path)
	}
	if len(im.logs) > 1 {
		first.note("the files are logs of %d formats: what two of them tell of the same statement is in the capture twice. Import them one by one unless they are of "+
			"different servers", len(im.logs))
	}
	return nil
}

func formatNames() string {
	var names []string
	for _, f := range Formats() {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

// importer is one import.
type importer struct {
	ctx      context.Context
	o        ImportOptions
	formats  []Format
	logs     []*log
	open     map[string]int // format: index in logs
	empty    []string       // files
	sessions uint64
	tick     uint64
	last     uint64 // of a recorder: the last tick that may be given; 0: any
}

// log is one log that is being read.
type log struct {
	source source
	sink   *sink
}

func (im *importer) reports() []*Report {
	var all []*Report
	for _, l := range im.logs {
		all = append(all, l.sink.report)
	}
	return all
}

func (im *importer) file(path string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer f.Close() // read only: nothing can be lost
	return im.stream(f, path)
}

func (im *importer) stream(r io.Reader, path string) error {
	raw := &counted{ctx: im.ctx, in: r, read: im.o.Read}
	packed, err := decompress(bufio.NewReaderSize(raw, 256<<10))
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	defer packed.close()
	plain := bufio.NewReaderSize(packed, 256<<10)
	head, err := plain.Peek(headSize)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("read %s: %w", path, err)
	case len(head) == 0 && packed.err != nil:
		return fmt.Errorf("read %s: the compressed data is damaged or cut off at its beginning: %w", path, packed.err)
	case len(head) == 0:
		im.empty = append(im.empty, path)
		return nil
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return fmt.Errorf("%s: this is UTF-16: make UTF-8 of it: iconv -f UTF-16 -t UTF-8", path)
	case bytes.HasPrefix(head, byteOrderMark):
		head = head[len(byteOrderMark):]
		if _, err := plain.Discard(len(byteOrderMark)); err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
	}
	i := slices.IndexFunc(im.formats, func(f Format) bool { return f.detect(head) })
	if i < 0 {
		return fmt.Errorf("%s: %s", path, refusal(head))
	}
	l := im.log(im.formats[i])
	l.sink.report.Files = append(l.sink.report.Files, path)
	in := &input{name: path, r: plain, lines: lines{in: plain, max: im.o.MaxLine}}
	l.sink.in = in
	if err := l.source.read(in); err != nil {
		return fmt.Errorf("import %s as %s: %w", path, im.formats[i].Name, err)
	}
	if raw.err != nil {
		return fmt.Errorf("read %s: %w", path, raw.err)
	}
	if packed.err != nil {
		l.sink.unknown(in.n, "the compressed file is damaged or cut off behind this line: "+packed.err.Error(), nil)
	}
	l.sink.report.Lines += in.n
	return nil
}

// byteOrderMark is what some editors put in front of UTF-8.
var byteOrderMark = []byte("\xef\xbb\xbf")

// headSize is how much of a file its format is recognised by.
const headSize = 32 << 10

// log gives the log of a format, which is opened at its first file.
func (im *importer) log(f Format) *log {
	if i, ok := im.open[f.Name]; ok {
		return im.logs[i]
	}
	s := &sink{im: im, o: &im.o, report: &Report{Format: f.Name, Title: f.Title}}
	l := &log{source: f.open(s), sink: s}
	im.open[f.Name] = len(im.logs)
	im.logs = append(im.logs, l)
	return l
}

// unpacked is a file behind its compression. Damage ends it: what comes before is good, and err says what was wrong.
type unpacked struct {
	in    io.Reader
	close func()
	err   error
}

func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.in.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		u.err, err = err, io.EOF
	}
	return n, err
}

// decompress looks through gzip and zstd.
func decompress(in *bufio.Reader) (*unpacked, error) {
	head, err := in.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		return &unpacked{in: z, close: func() {}}, nil
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return nil, err
		}
		return &unpacked{in: z, close: z.Close}, nil
	}
	return &unpacked{in: in, close: func() {}}, nil
}

// counted tells how much was read, and ends with the context.
type counted struct {
	ctx  context.Context
	in   io.Reader
	read func(int64)
	err  error // other than the end
}

func (c *counted) Read(p []byte) (int, error) {
	if c.err = c.ctx.Err(); c.err != nil {
		return 0, c.err
	}
	n, err := c.in.Read(p)
	if c.read != nil && n > 0 {
		c.read(int64(n))
	}
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	return n, err
}

// input is one file of a log.
type input struct {
	name string
	r    *bufio.Reader
	lines
}

// lines reads lines of bounded length.
type lines struct {
	in   *bufio.Reader
	max  int
	n    int // number of the line that was read last
	room []byte
	cut  bool // the last line has no end
}

// each gives every line to a function, as next does.
func (l *lines) each(take func(line []byte, long bool) error) error {
	for {
		line, long, err := l.next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := take(line, long); err != nil {
			return err
		}
	}
}

// next gives a line with its line end, valid until the next call. Of a line that is too long it gives the beginning, and says so.
func (l *lines) next() (line []byte, long bool, err error) {
	line, err = l.in.ReadSlice('\n')
	if err == nil {
		l.n++
		return line, false, nil
	}
	if len(line) == 0 {
		return nil, false, err
	}
	l.n++
	if !errors.Is(err, bufio.ErrBufferFull) {
		if errors.Is(err, io.EOF) {
			l.cut, err = true, nil
		}
		return line, false, err
	}
	l.room = append(l.room[:0], line...)
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = l.in.ReadSlice('\n')
		if len(l.room)+len(line) > l.max {
			long = true
			line = line[:0]
		}
		l.room = append(l.room, line...)
	}
	if errors.Is(err, io.EOF) {
		l.cut, err = true, nil
	}
	line = l.room
	if cap(l.room) > 4<<20 {
		l.room = nil
	}
	return line, long, err
}

// sink takes what a source finds.
type sink struct {
	im     *importer
	o      *ImportOptions
	in     *input
	report *Report
	rec    Record
	clock  clock
}

// newSession gives the number of a new session.
func (s *sink) newSession() uint64 {
	s.im.sessions++
	s.report.Sessions++
	return s.im.sessions
}

// tick gives the next place in the order of the log.
func (s *sink) tick() uint64 {
	if s.im.last == 0 || s.im.tick < s.im.last {
		s.im.tick++
	}
	return s.im.tick
}

// known is what a source knows of a session.
type known struct {
	number uint64
	info   Session
	told   Session // as it was handed on last
	seen   int64   // when it was seen last
}

// tell hands on what became known of a session.
func (s *sink) tell(k *known) error {
	if k.info == k.told {
		return nil
	}
	if k.told != (Session{}) {
		k.info.At = k.seen // when more became known
	}
	k.told = k.info
	info := k.info
	s.rec = Record{Kind: KindSession, Session: k.number, Open: &info}
	return s.o.Out(&s.rec)
}

func (s *sink) statement(number uint64, st *Statement) error {
	s.report.Statements++
	if len(st.SQL) > MaxText {
		st.SQL, st.Lost = st.SQL[:MaxText], true
	}
	if len(st.Prepared) > MaxText {
		st.Prepared, st.Lost = st.Prepared[:MaxText], true
	}
	if st.Lost {
		s.report.Lost++
	}
	if st.NoParams {
		s.report.NoParams++
	}
	if st.Error != nil {
		s.report.Errors++
	}
	s.rec = Record{Kind: KindStatement, Session: number, Statement: st}
	return s.o.Out(&s.rec)
}

func (s *sink) wait(number uint64, w *Wait) error {
	s.report.Waits++
	s.rec = Record{Kind: KindWait, Session: number, Wait: w}
	return s.o.Out(&s.rec)
}

func (s *sink) end(number uint64, e *End) error {
	s.rec = Record{Kind: KindEnd, Session: number, End: e}
	return s.o.Out(&s.rec)
}

// crowded tells whether so many sessions are too many, and how many of those that were seen least recently are to go.
func (s *sink) crowded(n int) (drop int) {
	most := s.o.sessions
	if most == 0 {
		most = maxSessions
	}
	if n < most {
		return 0
	}
	return (n + 1) / 2
}

// stale is why a session is not followed any more.
const stale = "not seen to its end"

// other counts what was understood and has no place in a trace.
func (s *sink) other(what string) { s.report.other(what, 1) }

// unknown notes that a line was not understood.
func (s *sink) unknown(line int, why string, text []byte) {
	s.report.Unknown++
	if len(s.report.Samples) < maxSamples {
		s.report.Samples = append(s.report.Samples, UnknownLine{File: filepath.Base(s.in.name), Line: line, Why: why, Text: prose.Line(string(text), sampleWidth)})
	}
}

// clock notices when a log's times go back.
type clock struct {
	latest int64
	back   int   // how often
	most   int64 // by how much
	at     UnknownLine
}

// clockSlack is how far back times may go without a reason: servers write lines of the same moment in any order.
const clockSlack = 2_000_000_000

// seen tells the time of a line.
func (s *sink) seen(line int, at int64) {
	c := &s.clock
	if at < c.latest-clockSlack {
		if by := c.latest - at; by > c.most {
			c.most, c.at = by, UnknownLine{File: filepath.Base(s.in.name), Line: line}
		}
		c.back++
		c.latest = at
	}
	c.latest = max(c.latest, at)
}

// clockNote says that the times went back.
func (s *sink) clockNote() {
	c := &s.clock
	if c.back > 0 {
		s.report.note("the clock goes back %s, by %s at most (%s:%d). Rotated files are to be given oldest first, each once, and only those of one server; "+
			"a clock that was set, or the end of daylight saving time, does the same", prose.Count(c.back, "time"), Took(c.most), c.at.File, c.at.Line)
	}
}
