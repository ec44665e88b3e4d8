package recorder

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"wirecheck/trace"
)

// parts writes a recording: one file, or several, one after the other.
type parts struct {
	o       *Options
	n       int // of the part that is written
	path    string
	file    partFile
	w       *trace.Writer
	began   int64 // of the part, by the records' times
	last    int64
	live    map[uint64]*trace.Session // what is known of sessions that have not ended
	carried int
}

// partFile is what a part is written to.
type partFile interface {
	io.WriteSeeker
	io.Closer
	Truncate(size int64) error
}

// createPart makes a new file that only its owner may read, since statements can hold personal data.
func createPart(path string) (partFile, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// PartPath is where part n of a recording is: shop.wct, shop.2.wct, shop.3.wct.
func PartPath(path string, n int) string {
	if n <= 1 {
		return path
	}
	ext := filepath.Ext(path)
	return fmt.Sprintf("%s.%d%s", strings.TrimSuffix(path, ext), n, ext)
}

// open begins the next part.
func (p *parts) open(at int64) error {
	path := PartPath(p.o.Path, p.n+1)
	f, err := p.o.create(path)
	if err != nil {
		return fmt.Errorf("create trace: %w", err)
	}
	h := trace.Header{
		Sources: []trace.Source{p.o.Source}, Started: at, Redacted: p.o.Redact != nil, Observed: p.o.Observed,
		Run: p.o.Run, Part: p.n + 1, Carried: len(p.live),
	}
	w, err := trace.NewWriter(f, h)
	if err != nil {
		return errors.Join(err, f.Close(), os.Remove(path))
	}
	if p.w != nil {
		p.w.SetNext(filepath.Base(path))
		if err := errors.Join(p.w.Close(), p.file.Close()); err != nil {
			return errors.Join(err, f.Close(), os.Remove(path))
		}
	}
	p.n, p.path, p.file, p.w, p.began = p.n+1, path, f, w, at
	for _, number := range slices.Sorted(maps.Keys(p.live)) {
		again := *p.live[number]
		again.Joined, again.At = true, at
		if err := w.Write(&trace.Record{Kind: trace.KindSession, Session: number, Open: &again}); err != nil {
			return err
		}
	}
	return nil
}

// write writes a record, to the next part if it is time for that.
func (p *parts) write(r *trace.Record) error {
	p.last = max(p.last, r.At())
	full := p.o.PartSize > 0 && p.w.Size() >= p.o.PartSize
	old := p.o.PartAge > 0 && p.last-p.began >= p.o.PartAge.Nanoseconds()
	if full || old {
		if err := p.open(max(p.last, p.began)); err != nil {
			return err
		}
	}
	switch r.Kind {
	case trace.KindSession:
		known := *r.Open
		p.live[r.Session] = &known
	case trace.KindEnd:
		delete(p.live, r.Session)
	}
	return p.w.Write(r)
}

// product is that of a record's session.
func (p *parts) product(r *trace.Record) string {
	if r.Kind == trace.KindSession {
		return r.Open.Product
	}
	if s := p.live[r.Session]; s != nil {
		return s.Product
	}
	return ""
}

func (p *parts) flush(at int64) error {
	p.last = max(p.last, at)
	return p.w.Flush()
}

// close ends the recording. why is set if it has failed: then what is incomplete is cut off, and why is written in its place.
func (p *parts) close(why string) error {
	if why == "" {
		return errors.Join(p.w.Close(), p.file.Close())
	}
	return errors.Join(p.w.Stop(p.file, why), p.file.Close())
}
