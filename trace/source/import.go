// Package source has what all sources of traces share: the import of files, the sink that takes what a reader finds, the report that counts it, and
// what statements do to a session where the source does not tell.
package source

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
	"wirecheck/trace"
	"wirecheck/trace/lex"
)

// Format is a kind of log that can be imported.
type Format struct {
	Name  string // as the user calls it
	Title string
	Unit  string // what its files consist of: lines, packets
	// detect looks at the beginning of a file.
	Detect func(head []byte) bool
	Open   func(*Sink) Reader
}

// source reads the files of one log, in their order.
type Reader interface {
	Read(in *Input) error
	// finish hands on what waited for more, and says what the log could not tell.
	Finish() error
}

// ImportOptions say how logs are read.
type Options struct {
	Format  string                      // name of a Format; empty or "auto": each file's own
	Prefix  string                      // log_line_prefix of PostgreSQL's stderr log; empty: one of the usual ones
	Product string                      // mysql, mariadb: for logs that do not say whose they are
	Ports   []int                       // of servers in a packet capture, besides those that are recognised
	Read    func(n int64)               // told how many bytes of the files were read, for progress
	MaxLine int                         // longest line that is kept; 0: DefaultMaxLine
	Rows    int                         // rows of a result that are kept, 0: DefaultRows; negative: none
	Out     func(r *trace.Record) error // takes the records; it must not keep them

	sessions int // that are followed at a time; 0: maxSessions
}

// Limits of what is kept.
const (
	DefaultMaxLine = 64 << 20
	DefaultRows    = 1000

	// maxSessions are followed at a time. Logs that do not tell when sessions end would need room for all that ever were.
	maxSessions = 1 << 18
)

// Import reads files of some formats; the first format that knows a file by its looks takes it. Files of the same format are one log, in the order
// in which they are given (as a rotated log's should be). The reports are also returned if an error ends the import.
func Import(ctx context.Context, formats []Format, files []string, o Options) ([]*Report, error) {
	if o.Format != "" && o.Format != "auto" {
		i := slices.IndexFunc(formats, func(f Format) bool { return f.Name == o.Format })
		if i < 0 {
			return nil, fmt.Errorf("unknown format %q: known are auto, %s", o.Format, formatNames(formats))
		}
		formats = []Format{formats[i]}
		formats[0].Detect = func([]byte) bool { return true }
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
		if err := l.source.Finish(); err != nil {
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
	first := im.logs[0].sink.Report
	for _, path := range im.empty {
		first.Note("%s is empty", path)
	}
	if len(im.logs) > 1 {
		first.Note("the files are logs of %d formats: what two of them tell of the same statement is in the capture twice. Import them one by one unless they are of "+
			"different servers", len(im.logs))
	}
	return nil
}

func formatNames(formats []Format) string {
	var names []string
	for _, f := range formats {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

// importer is one import.
type importer struct {
	ctx      context.Context
	o        Options
	formats  []Format
	logs     []*log
	open     map[string]int // format: index in logs
	empty    []string       // files
	counters counters
}

// counters are what all logs of an import share.
type counters struct {
	sessions uint64
	tick     uint64
	last     uint64 // the last tick that may be given; 0: any
}

// log is one log that is being read.
type log struct {
	source Reader
	sink   *Sink
}

func (im *importer) reports() []*Report {
	var all []*Report
	for _, l := range im.logs {
		all = append(all, l.sink.Report)
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
	head, err := plain.Peek(HeadSize)
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
	i := slices.IndexFunc(im.formats, func(f Format) bool { return f.Detect(head) })
	if i < 0 {
		return fmt.Errorf("%s: %s", path, refusal(head, im.formats))
	}
	l := im.log(im.formats[i])
	l.sink.Report.Files = append(l.sink.Report.Files, path)
	in := &Input{Name: path, R: plain, lines: lines{in: plain, Max: im.o.MaxLine}}
	l.sink.in = in
	if err := l.source.Read(in); err != nil {
		return fmt.Errorf("import %s as %s: %w", path, im.formats[i].Name, err)
	}
	if raw.err != nil {
		return fmt.Errorf("read %s: %w", path, raw.err)
	}
	if packed.err != nil {
		l.sink.Unknown(in.N, "the compressed file is damaged or cut off behind this line: "+packed.err.Error(), nil)
	}
	l.sink.Report.Lines += in.N
	return nil
}

// byteOrderMark is what some editors put in front of UTF-8.
var byteOrderMark = []byte("\xef\xbb\xbf")

// headSize is how much of a file its format is recognised by.
const HeadSize = 32 << 10

// log gives the log of a format, which is opened at its first file.
func (im *importer) log(f Format) *log {
	if i, ok := im.open[f.Name]; ok {
		return im.logs[i]
	}
	s := &Sink{counters: &im.counters, Options: &im.o, Report: &Report{Format: f.Name, Title: f.Title, Unit: f.Unit}}
	l := &log{source: f.Open(s), sink: s}
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
type Input struct {
	Name string
	R    *bufio.Reader
	lines
}

// lines reads lines of bounded length.
type lines struct {
	in   *bufio.Reader
	Max  int
	N    int // number of the line that was read last
	room []byte
	Cut  bool // the last line has no end
}

// each gives every line to a function, as next does.
func (l *lines) Each(take func(line []byte, long bool) error) error {
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
		l.N++
		return line, false, nil
	}
	if len(line) == 0 {
		return nil, false, err
	}
	l.N++
	if !errors.Is(err, bufio.ErrBufferFull) {
		if errors.Is(err, io.EOF) {
			l.Cut, err = true, nil
		}
		return line, false, err
	}
	l.room = append(l.room[:0], line...)
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = l.in.ReadSlice('\n')
		if len(l.room)+len(line) > l.Max {
			long = true
			line = line[:0]
		}
		l.room = append(l.room, line...)
	}
	if errors.Is(err, io.EOF) {
		l.Cut, err = true, nil
	}
	line = l.room
	if cap(l.room) > 4<<20 {
		l.room = nil
	}
	return line, long, err
}

// sink takes what a source finds, and counts it.
type Sink struct {
	counters *counters
	Options  *Options
	in       *Input
	Report   *Report
	rec      trace.Record
	clock    clock
}

// newSink makes a sink for records of which no import is made.
func NewSink(o Options) *Sink {
	return &Sink{counters: &counters{}, Options: &o, Report: &Report{}}
}

// newSession gives the number of a new session.
func (s *Sink) NewSession() uint64 {
	s.counters.sessions++
	s.Report.Sessions++
	return s.counters.sessions
}

// tick gives the next place in the order of the log.
func (s *Sink) Tick() uint64 {
	if c := s.counters; c.last == 0 || c.tick < c.last {
		c.tick++
	}
	return s.counters.tick
}

// setTicks says that the next ticks are those behind first up to last.
func (s *Sink) SetTicks(first, last uint64) { s.counters.tick, s.counters.last = first, last }

// known is what a source knows of a session.
type Session struct {
	Number      uint64
	Info        trace.Session
	Seen        int64 // when it was seen last
	Transaction Transaction
	told        trace.Session // as it was handed on last
}

// announced tells whether something was handed on of the session.
func (k *Session) Announced() bool { return k.told != (trace.Session{}) }

// executed takes what a statement changes of its session: its level, its database.
func (k *Session) Executed(st *trace.Statement) {
	if st.Error != nil {
		return
	}
	if level := levelOf(st.SQL, k.Transaction.Dialect); level != "" {
		k.Info.Level = level
	}
	if k.Transaction.Dialect == lex.MySQL {
		if db, ok := useDatabase(st.SQL); ok {
			k.Info.Database = db
		}
	}
}

// tell hands on what became known of a session.
func (s *Sink) Session(k *Session) error {
	if k.Info == k.told {
		return nil
	}
	if k.Announced() {
		k.Info.At = k.Seen // when more became known
	}
	k.told = k.Info
	info := k.Info
	s.rec = trace.Record{Kind: trace.KindSession, Session: k.Number, Open: &info}
	return s.Options.Out(&s.rec)
}

func (s *Sink) Statement(number uint64, st *trace.Statement) error {
	s.Report.Statements++
	if len(st.SQL) > trace.MaxText {
		st.SQL, st.Lost = st.SQL[:trace.MaxText], true
	}
	if len(st.Prepared) > trace.MaxText {
		st.Prepared, st.Lost = st.Prepared[:trace.MaxText], true
	}
	if st.Lost {
		s.Report.Lost++
	}
	if st.NoParams {
		s.Report.NoParams++
	}
	if st.Error != nil {
		s.Report.Errors++
	}
	s.rec = trace.Record{Kind: trace.KindStatement, Session: number, Statement: st}
	return s.Options.Out(&s.rec)
}

func (s *Sink) Wait(number uint64, w *trace.Wait) error {
	s.Report.Waits++
	s.rec = trace.Record{Kind: trace.KindWait, Session: number, Wait: w}
	return s.Options.Out(&s.rec)
}

func (s *Sink) End(number uint64, e *trace.End) error {
	s.rec = trace.Record{Kind: trace.KindEnd, Session: number, End: e}
	return s.Options.Out(&s.rec)
}

// crowded tells whether so many sessions are too many, and how many of those that were seen least recently are to go.
func (s *Sink) Crowded(n int) (drop int) {
	most := s.Options.sessions
	if most == 0 {
		most = maxSessions
	}
	if n < most {
		return 0
	}
	return (n + 1) / 2
}

// stale is why a session is not followed any more.
const Stale = "not seen to its end"

// other counts what was understood and has no place in a trace.
func (s *Sink) Other(what string) { s.Report.other(what, 1) }

// unknown notes that a line was not understood.
func (s *Sink) Unknown(line int, why string, text []byte) {
	s.Report.Unknown++
	if len(s.Report.Samples) < maxSamples {
		s.Report.Samples = append(s.Report.Samples, UnknownLine{File: filepath.Base(s.in.Name), Line: line, Why: why, Text: prose.Line(string(text), sampleWidth)})
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
func (s *Sink) Seen(line int, at int64) {
	c := &s.clock
	if at < c.latest-clockSlack {
		if by := c.latest - at; by > c.most {
			c.most, c.at = by, UnknownLine{File: filepath.Base(s.in.Name), Line: line}
		}
		c.back++
		c.latest = at
	}
	c.latest = max(c.latest, at)
}

// clockNote says that the times went back.
func (s *Sink) clockNote() {
	c := &s.clock
	if c.back > 0 {
		s.Report.Note("the clock goes back %s, by %s at most (%s:%d). Rotated files are to be given oldest first, each once, and only those of one server; "+
			"a clock that was set, or the end of daylight saving time, does the same", prose.Count(c.back, "time"), trace.Took(c.most), c.at.File, c.at.Line)
	}
}
