// Package source has what all sources of traces share: the import of files, the sink that takes what a reader finds, the report that counts it, and
// what statements do to a session where the source does not tell.
package source

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"wirecheck/trace"
)

// Format is a kind of log that can be imported.
type Format struct {
	Name  string // as the user calls it
	Title string
	Unit  string // what its files consist of: lines, packets
	// Detect looks at the beginning of a file.
	Detect func(head []byte) bool
	Open   func(*Sink) Reader
}

// Reader reads the files of one log, in their order.
type Reader interface {
	Read(in *Input) error
	// Finish hands on what waited for more, and reports what the log does not show.
	Finish() error
}

// Options say how files are read.
type Options struct {
	Format  string                      // name of a Format; empty or "auto": each file's own
	Prefix  string                      // log_line_prefix of PostgreSQL's stderr log; empty: one of the usual ones
	Product string                      // mysql, mariadb: for logs that do not say whose they are
	Ports   []int                       // of servers in a packet capture, besides those that are recognised
	Read    func(n int64)               // gets the number of bytes that were read last, for progress
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

// finish ends all logs, and reports what only all of them together show.
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
		first.Note("the files are logs of %d formats: what two of them tell of the same statement is in the trace twice. Import them one by one unless they are of "+
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
