package trace

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"wirecheck/history/prose"
)

// Reader reads a trace file as a stream: one block is in memory at a time.
type Reader struct {
	in      *bufio.Reader
	close   io.Closer
	name    string
	zip     *zstd.Decoder
	header  Header
	offset  int64
	packed  []byte
	block   []byte // of it, what was not read yet
	room    []byte
	left    uint32 // records
	base    int64
	n       int // of the block, from 1
	read    uint64
	totals  *Totals
	warning string
	skip    bool
	damaged int
	err     error // io.EOF too

	// Of a recording in several parts:
	follow func(name string) (io.ReadCloser, string, error) // opens the next one; nil: this file is all that is read
	around func(io.Reader) io.Reader
	before uint64 // records of the parts before this one
	part   int
	carry  int // records of this part that tell again what is known
}

// IsFile reports whether a file that begins like this is a trace file.
func IsFile(head []byte) bool { return bytes.HasPrefix(head, []byte(signature)) }

// ReadOptions say how a trace file is read.
type ReadOptions struct {
	SkipDamaged bool // go on behind a damaged block, see Reader.Damaged
}

// Open opens a trace file. Where it is a part of a recording, the parts behind it are read, too.
func Open(path string, o ReadOptions) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	r, err := NewReader(f, path, o)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r.close = f
	r.follow = func(name string) (io.ReadCloser, string, error) {
		next := filepath.Join(filepath.Dir(path), filepath.Base(name))
		f, err := os.Open(next)
		return f, next, err
	}
	return r, nil
}

// Wrap puts something around the files that are read from now on: progress, or an end that comes early.
func (r *Reader) Wrap(around func(io.Reader) io.Reader) {
	r.in = bufio.NewReaderSize(around(r.in), 64<<10)
	r.around = around
}

// NewReader reads the header. name stands in errors.
func NewReader(in io.Reader, name string, o ReadOptions) (*Reader, error) {
	r := &Reader{in: bufio.NewReaderSize(in, 64<<10), name: name, skip: o.SkipDamaged}
	if err := r.readHeader(); err != nil {
		return nil, err
	}
	var err error
	r.zip, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBlock), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, fmt.Errorf("open decompressor: %w", err)
	}
	return r, nil
}

func (r *Reader) readHeader() error {
	head := make([]byte, len(signature)+6)
	if n, err := io.ReadFull(r.in, head); err != nil || string(head[:len(signature)]) != signature {
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("read %s: %w", r.name, err)
		}
		if n < len(signature) || string(head[:len(signature)]) != signature {
			return fmt.Errorf("%s: this is not a trace file (.wct): logs and packet captures become one by \"wirecheck trace import\"", r.name)
		}
		return fmt.Errorf("%s: the header is cut off", r.name)
	}
	if v := binary.LittleEndian.Uint16(head[len(signature):]); v != FormatVersion {
		return fmt.Errorf("%s: the trace file has format version %d, this wirecheck reads version %d: use a newer one", r.name, v, FormatVersion)
	}
	n := binary.LittleEndian.Uint32(head[len(signature)+2:])
	if n > maxHeader {
		return fmt.Errorf("%s: the header is damaged: it cannot be %d bytes long", r.name, n)
	}
	text := make([]byte, n+4)
	if _, err := io.ReadFull(r.in, text); err != nil {
		return fmt.Errorf("%s: the header is cut off", r.name)
	}
	sum := binary.LittleEndian.Uint32(text[n:])
	if crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, text[:n]) != sum {
		return fmt.Errorf("%s: the header is damaged: its checksum is wrong", r.name)
	}
	if err := json.Unmarshal(text[:n], &r.header); err != nil {
		return fmt.Errorf("%s: read header: %w", r.name, err)
	}
	r.offset, r.part = int64(len(head)+len(text)), r.header.Part
	return nil
}

// Header is what the file says of itself, the first one if there are several.
func (r *Reader) Header() Header { return r.header }

// Totals are what the file says at its end, nil before the end and if it was cut off.
func (r *Reader) Totals() *Totals { return r.totals }

// Warning says what is missing at the end of the file; it is empty while reading.
func (r *Reader) Warning() string { return r.warning }

// Damaged is how many blocks were left out because they are damaged.
func (r *Reader) Damaged() int { return r.damaged }

// Close closes the file.
func (r *Reader) Close() error {
	r.zip.Close()
	if r.close != nil {
		return r.close.Close()
	}
	return nil
}

// Next reads the next record into rec, which then owns what it holds. At the end it returns io.EOF; see Warning then.
func (r *Reader) Next(rec *Record) error {
	for {
		if err := r.record(rec); err != nil {
			return err
		}
		if r.carry == 0 {
			return nil
		}
		r.carry-- // known from the part before
	}
}

// record reads the next record of the file.
func (r *Reader) record(rec *Record) error {
	for r.err == nil && r.left == 0 {
		r.err = r.nextBlock()
	}
	if r.err != nil {
		return r.err
	}
	n, used := binary.Uvarint(r.block)
	if used <= 0 || n > uint64(len(r.block)-used) {
		return r.bad(errShort)
	}
	if err := decodeRecord(r.block[used:used+int(n)], rec, r.base); err != nil {
		return r.bad(err)
	}
	r.block = r.block[used+int(n):]
	r.left--
	r.read++
	return nil
}

// bad is an error in a block whose checksum is right: nothing that follows can be trusted.
func (r *Reader) bad(err error) error {
	r.err = fmt.Errorf("%s: block %d before byte %d: record %d of the file: %w", r.name, r.n, r.offset, r.read+1, err)
	return r.err
}

// nextBlock reads the next block, or says io.EOF.
func (r *Reader) nextBlock() error {
	h := make([]byte, blockHeader)
	at := r.offset
	if n, err := io.ReadFull(r.in, h); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return r.cut(n)
	} else if err != nil {
		return fmt.Errorf("read %s: %w", r.name, err)
	}
	r.n++
	packed, length := binary.LittleEndian.Uint32(h[4:]), binary.LittleEndian.Uint32(h[8:])
	mark := string(h[:4])
	sound := crc32.Checksum(h[:28], castagnoli) == binary.LittleEndian.Uint32(h[28:])
	if !sound || mark != blockMark && mark != endMark || length > maxBlock || packed > maxBlock {
		return fmt.Errorf("%s: block %d at byte %d: its header is damaged, so nothing behind it can be read; %d records stood before it", r.name, r.n, at, r.read)
	}
	r.packed = grow(r.packed, int(packed))
	if n, err := io.ReadFull(r.in, r.packed); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return r.cut(blockHeader + n)
	} else if err != nil {
		return fmt.Errorf("read %s: %w", r.name, err)
	}
	r.offset += blockHeader + int64(packed)
	if err := r.unpack(h, int(length)); err != nil {
		if r.skip && mark == blockMark {
			r.damaged++
			r.left = 0
			return nil
		}
		return fmt.Errorf("%s: block %d at byte %d is damaged (%w); %d records stood before it, --skip-damaged goes on behind it", r.name, r.n, at, err, r.read)
	}
	if mark == endMark {
		return r.end()
	}
	r.left, r.base = binary.LittleEndian.Uint32(h[12:]), int64(binary.LittleEndian.Uint64(h[16:]))
	return nil
}

func (r *Reader) unpack(h []byte, length int) (err error) {
	if crc32.Checksum(r.packed, castagnoli) != binary.LittleEndian.Uint32(h[24:]) {
		return errors.New("wrong checksum")
	}
	r.room = grow(r.room, length)
	r.block, err = r.zip.DecodeAll(r.packed, r.room[:0:length])
	if err == nil && len(r.block) != length {
		err = fmt.Errorf("%d bytes in place of %d", len(r.block), length)
	}
	return err
}

// grow gives a slice of length n, b if it is large enough and not much too large.
func grow(b []byte, n int) []byte {
	if cap(b) >= n && cap(b) <= max(4*n, 4*blockSize) {
		return b[:n]
	}
	return make([]byte, n)
}

// cut is the end of a file whose writer did not come to its end.
func (r *Reader) cut(rest int) error {
	r.warn("%s was not closed: what is there ends after %d records", r.name, r.read)
	if rest > 0 {
		r.warning += fmt.Sprintf(" (%d bytes of an incomplete block were left out)", rest)
	}
	return io.EOF
}

func (r *Reader) end() error {
	r.totals = &Totals{}
	if err := json.Unmarshal(r.block, r.totals); err != nil {
		return fmt.Errorf("%s: read totals: %w", r.name, err)
	}
	read := r.read - r.before
	if r.totals.Records != read && r.damaged == 0 {
		return fmt.Errorf("%s: %d records were written and %d read: blocks are missing", r.name, r.totals.Records, read)
	}
	if r.damaged > 0 {
		r.warn("%s: %s with %d of %d records left out", r.name, prose.Count(r.damaged, "damaged block"), r.totals.Records-read, r.totals.Records)
	}
	if _, err := r.in.Peek(1); err == nil {
		r.warn("%s: something stands behind its end and was left out", r.name)
	}
	if r.totals.Stopped != "" {
		r.warn("%s: the recording stopped here, before what it recorded did: %s", r.name, r.totals.Stopped)
	}
	if r.totals.Next != "" && r.follow != nil {
		return r.nextPart()
	}
	return io.EOF
}

// warn adds to what is missing.
func (r *Reader) warn(format string, args ...any) {
	if r.warning != "" {
		r.warning += "; "
	}
	r.warning += fmt.Sprintf(format, args...)
}

// nextPart goes on with the next part of the recording.
func (r *Reader) nextPart() error {
	f, path, err := r.follow(r.totals.Next)
	if errors.Is(err, fs.ErrNotExist) {
		r.warn("%s: the recording goes on in %s, which is not there: what it holds is missing", r.name, path)
		return io.EOF
	} else if err != nil {
		return fmt.Errorf("open trace: %w", err)
	}
	var in io.Reader = f
	if r.around != nil {
		in = r.around(f)
	}
	next := &Reader{in: bufio.NewReaderSize(in, 64<<10), name: path}
	if err := next.readHeader(); err != nil {
		return errors.Join(err, f.Close())
	}
	if h := next.header; h.Run != r.header.Run || h.Part != r.part+1 {
		return errors.Join(fmt.Errorf("%s: it is no next part of %s: it is part %d of recording %q, and not part %d of %q", path, r.name, h.Part, h.Run, r.part+1, r.header.Run), f.Close())
	}
	if r.close != nil {
		err = r.close.Close()
	}
	r.in, r.name, r.close, r.offset, r.n = next.in, path, f, next.offset, 0
	r.part, r.carry, r.before, r.damaged, r.totals = next.header.Part, next.header.Carried, r.read, 0, nil
	return err
}
