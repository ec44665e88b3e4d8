package trace

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// FormatVersion is the version of the trace file format that this package writes and reads (docs/reference/trace-format.md).
const FormatVersion = 1

// The parts of a trace file. The signature is made so that a file that passed through something that changes line ends or drops the
// eighth bit is not taken for one.
const (
	signature   = "\x89WCT\r\n\x1a\n"
	blockMark   = "WCTB"
	endMark     = "WCTE"
	blockHeader = 32 // bytes

	blockSize = 512 << 10 // a block is closed when its records take this much
	maxRecord = 64 << 20
	maxBlock  = blockSize + maxRecord + 16
	maxHeader = 1 << 20
)

// MaxText is the longest SQL text that is kept whole; of longer ones the beginning is kept, and Statement.Lost is set.
const MaxText = 16 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header says where a trace comes from.
type Header struct {
	Sources  []Source `json:"sources,omitempty"`
	Started  int64    `json:"started,omitempty"` // wall clock, nanoseconds since 1970, for people only
	Redacted bool     `json:"redacted,omitempty"`
	Sorted   bool     `json:"sorted,omitempty"` // its records stand in the order of Record.At
	// Observed says that it holds the history, too: which row versions the statements read and wrote.
	Observed bool `json:"observed,omitempty"`
	// Run names the recording that the file is a part of, and Part which one, from 1. The first Carried records of a part tell again of
	// sessions that began in an earlier one.
	Run     string `json:"run,omitempty"`
	Part    int    `json:"part,omitempty"`
	Carried int    `json:"carried,omitempty"`
}

// Source is something that a trace was made from.
type Source struct {
	Name    string   `json:"name"`
	Format  string   `json:"format"`
	Missing []string `json:"untold,omitempty"` // what it does not show
}

// Totals stand at the end of a trace file that was closed properly.
type Totals struct {
	Records    uint64   `json:"records"`
	Sessions   uint64   `json:"sessions"`
	Statements uint64   `json:"statements"`
	Sources    []Source `json:"sources,omitempty"` // with what turned out while they were read
	Next       string   `json:"next,omitempty"`    // name of the file with the recording's next part, in the same folder
	Stopped    string   `json:"stopped,omitempty"` // why recording ended before what it recorded did
}

// Writer writes a trace file as a stream of compressed blocks. It is safe for concurrent use. What was written before the last Flush
// survives a crash.
type Writer struct {
	mu       sync.Mutex
	out      *bufio.Writer
	close    io.Closer
	zip      *zstd.Encoder
	block    []byte
	record   []byte
	packed   []byte
	base     int64
	records  uint32             // in the block
	sessions map[uint64]session // that are open
	totals   Totals
	err      error // the first one: nothing is written behind it

	// Of what was handed to the underlying writer as a whole:
	whole     int64 // bytes
	wholeThen Totals
}

// NewWriter writes the header to w.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("open compressor: %w", err)
	}
	text, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("encode trace header: %w", err)
	}
	b := append([]byte(signature), 0, 0)
	binary.LittleEndian.PutUint16(b[len(signature):], FormatVersion)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
	b = append(b, text...)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	tw := &Writer{out: bufio.NewWriterSize(w, 64<<10), zip: zip, sessions: map[uint64]session{}}
	_, err = tw.out.Write(b)
	if err == nil {
		err = tw.out.Flush()
	}
	if err != nil {
		return nil, fmt.Errorf("write trace header: %w", err)
	}
	tw.whole = int64(len(b))
	return tw, nil
}

// Create makes a new trace file that only its owner may read, since statements can hold personal data. A file that exists is an
// error.
func Create(path string, h Header) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create trace: %w", err)
	}
	w, err := NewWriter(f, h)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	w.close = f
	return w, nil
}

// Write appends a record, without the passwords that package secret finds in it. It is buffered, see Flush; nothing of r is
// kept.
func (w *Writer) Write(r *Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	r = w.hide(r)
	if at := r.At(); w.records == 0 && at != 0 { // else that of the block before
		w.base = at
	}
	w.record = appendRecord(w.record[:0], r, w.base)
	if len(w.record) > maxRecord {
		if err := w.flush(); err != nil { // what stands before it is kept
			return err
		}
		w.err = fmt.Errorf("write trace: a record of session %d takes %d bytes, more than the format's %d", r.Session, len(w.record), maxRecord)
		return w.err
	}
	w.block = binary.AppendUvarint(w.block, uint64(len(w.record)))
	w.block = append(w.block, w.record...)
	w.records++
	w.totals.Records++
	switch r.Kind {
	case KindStatement:
		w.totals.Statements++
	case KindSession:
		w.totals.Sessions = max(w.totals.Sessions, r.Session)
	}
	if len(w.block) >= blockSize {
		return w.flush()
	}
	return nil
}

// reset makes room for the next block. Unusually large room is not kept.
func (w *Writer) reset() {
	w.block, w.records = w.block[:0], 0
	if cap(w.block) > 4*blockSize {
		w.block = nil
	}
	if cap(w.record) > 4*blockSize {
		w.record = nil
	}
	if cap(w.packed) > 4*blockSize {
		w.packed = nil
	}
}

// writeBlock writes a block, all of it or an error.
func (w *Writer) writeBlock(mark string, content []byte) error {
	w.packed = w.zip.EncodeAll(content, w.packed[:0])
	h := make([]byte, 0, blockHeader)
	h = append(h, mark...)
	h = binary.LittleEndian.AppendUint32(h, uint32(len(w.packed)))
	h = binary.LittleEndian.AppendUint32(h, uint32(len(content)))
	h = binary.LittleEndian.AppendUint32(h, w.records)
	h = binary.LittleEndian.AppendUint64(h, uint64(w.base))
	h = binary.LittleEndian.AppendUint32(h, crc32.Checksum(w.packed, castagnoli))
	h = binary.LittleEndian.AppendUint32(h, crc32.Checksum(h, castagnoli))
	for _, b := range [][]byte{h, w.packed} {
		if _, err := w.out.Write(b); err != nil {
			return fmt.Errorf("write trace: %w", err)
		}
	}
	if err := w.out.Flush(); err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	w.whole += int64(len(h) + len(w.packed))
	w.wholeThen = w.totals
	return nil
}

// Size is how many bytes were written.
func (w *Writer) Size() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.whole
}

// Stop ends a file that could not be written to its end (Write has said so): what is incomplete is cut off, and why is written
// behind the rest, if there is room for that much. The file is then whole, as far as it goes.
func (w *Writer) Stop(f interface {
	io.WriteSeeker
	Truncate(size int64) error
}, why string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := f.Truncate(w.whole); err != nil {
		return fmt.Errorf("cut trace: %w", err)
	}
	if _, err := f.Seek(w.whole, io.SeekStart); err != nil {
		return fmt.Errorf("cut trace: %w", err)
	}
	w.out.Reset(f)
	w.totals = w.wholeThen
	w.totals.Stopped = why
	w.reset()
	return w.end()
}

// SetNext says, before Close, which file goes on where this one ends.
func (w *Writer) SetNext(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.totals.Next = name
}

// end writes the totals.
func (w *Writer) end() error {
	text, err := json.Marshal(w.totals)
	if err != nil {
		return fmt.Errorf("encode totals: %w", err)
	}
	return w.writeBlock(endMark, text)
}

// Flush ends the block and hands everything to the underlying writer.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flush()
}

func (w *Writer) flush() error {
	if w.err == nil && w.records > 0 {
		w.err = w.writeBlock(blockMark, w.block)
		w.reset()
	}
	return w.err
}

// SetSources says what is known of the sources now that they were read.
func (w *Writer) SetSources(s []Source) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.totals.Sources = s
}

// Close writes the totals, by which a reader knows that nothing is missing, and, for a Writer made by Create, closes the file.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.flush()
	if err == nil {
		err = w.end()
	}
	err = errors.Join(err, w.zip.Close())
	if w.close != nil {
		err = errors.Join(err, w.close.Close())
	}
	if w.err == nil {
		w.err = errors.New("write trace: it is closed")
	}
	return err
}
