package pgwire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"wirecheck/proxy/record"
	"wirecheck/rewrite"
)

// longRow relays a row that is too long to be held. Its new length must be said before its cells and is known when the
// length of the last visible one is: up to there the row is spooled, from there on it streams.
func (a *serverHalf) longRow(f frame, plan *rewrite.Plan, run *record.Running) (err error) {
	left := f.size
	take := func(n int) ([]byte, error) {
		if left -= n; left < 0 {
			return nil, fmt.Errorf("read row: %w", errLength)
		}
		return a.in.body(n)
	}
	head, err := take(2)
	if err != nil {
		return err
	}
	n := int(binary.BigEndian.Uint16(head)) - plan.Hidden
	if n < 0 {
		return fmt.Errorf("row has fewer columns than were added: %w", errLength)
	}
	s := &spool{limit: a.limits.Row}
	defer func() { err = errors.Join(err, s.close()) }()
	last := 0 // bytes of the last visible cell
	for i := range n {
		size, err := take(4)
		if err != nil {
			return err
		}
		v := max(int(int32(binary.BigEndian.Uint32(size))), 0)
		if _, err := s.Write(size); err != nil {
			return err
		}
		if v > left {
			return fmt.Errorf("read row: %w", errLength)
		}
		left -= v
		if i == n-1 {
			last = v
			break
		}
		if err := a.in.copyTo(s, v); err != nil {
			return err
		}
	}
	if !plan.NoRows {
		if err := a.release(); err != nil {
			return err
		}
		a.inside = true
		if err := a.out.header('D', f.size-left); err != nil {
			return err
		}
		if _, err := a.out.Write(binary.BigEndian.AppendUint16(nil, uint16(n))); err != nil {
			return err
		}
		if err := s.copyTo(a.out); err != nil {
			return err
		}
		if err := a.in.copyTo(a.out, last); err != nil {
			return err
		}
		a.inside = false
	}
	if left > a.limits.Row {
		if run != nil {
			run.Opaque("a row's hidden part is too long")
		}
		return a.in.skip(left)
	}
	hidden, err := a.in.body(left)
	if err != nil {
		return err
	}
	a.decode(hidden, plan, run)
	return nil
}

// spool keeps bytes, in memory up to a limit and in a temporary file beyond.
type spool struct {
	limit int
	mem   []byte
	file  *os.File
}

// Write implements io.Writer.
func (s *spool) Write(p []byte) (int, error) {
	if s.file == nil && len(s.mem)+len(p) <= s.limit {
		s.mem = append(s.mem, p...)
		return len(p), nil
	}
	if s.file == nil {
		f, err := os.CreateTemp("", "wirecheck-row-")
		if err != nil {
			return 0, fmt.Errorf("spool row: %w", err)
		}
		s.file = f
		if err := os.Remove(f.Name()); err != nil { // it lives as long as it is open
			return 0, fmt.Errorf("spool row: %w", err)
		}
	}
	n, err := s.file.Write(p)
	if err != nil {
		return n, fmt.Errorf("spool row: %w", err)
	}
	return n, nil
}

func (s *spool) copyTo(w io.Writer) error {
	if _, err := w.Write(s.mem); err != nil {
		return err
	}
	if s.file == nil {
		return nil
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read spooled row: %w", err)
	}
	_, err := io.CopyBuffer(w, onlyReader{s.file}, make([]byte, bufferLen))
	return err
}

// onlyReader hides WriteTo, which would take a buffer of its own.
type onlyReader struct{ io.Reader }

func (s *spool) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
