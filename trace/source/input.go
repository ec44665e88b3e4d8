package source

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Input is one file of a log.
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

// Each gives every line to a function, as next does.
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

// byteOrderMark is what some editors put in front of UTF-8.
var byteOrderMark = []byte("\xef\xbb\xbf")

// HeadSize is how much of a file its format is recognised by.
const HeadSize = 32 << 10
