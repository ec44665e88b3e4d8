package proxy

import (
	"fmt"
	"io"
	"os"
)

// spoolMemory is how many bytes a Spool has in memory.
const spoolMemory = 64 << 10

// Spool keeps the bytes that are written to it: a few in memory, and more in a temporary file, which lives as long as the Spool is open.
type Spool struct {
	size int
	mem  []byte
	file *os.File
}

// Write implements io.Writer.
func (s *Spool) Write(p []byte) (int, error) {
	if s.file == nil && len(s.mem)+len(p) <= spoolMemory {
		s.mem = append(s.mem, p...)
		s.size += len(p)
		return len(p), nil
	}
	if s.file == nil {
		f, err := os.CreateTemp("", "wirecheck-row-")
		if err != nil {
			return 0, fmt.Errorf("spool: %w", err)
		}
		s.file = f
		if err := os.Remove(f.Name()); err != nil {
			return 0, fmt.Errorf("spool: %w", err)
		}
	}
	n, err := s.file.Write(p)
	s.size += n
	if err != nil {
		return n, fmt.Errorf("spool: %w", err)
	}
	return n, nil
}

// Size is how many bytes were written.
func (s *Spool) Size() int { return s.size }

// CopyTo writes all bytes to w.
func (s *Spool) CopyTo(w io.Writer) error {
	if _, err := w.Write(s.mem); err != nil || s.file == nil {
		return err
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read the spool: %w", err)
	}
	_, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{s.file}, make([]byte, spoolMemory)) // without WriteTo, which would take a buffer of its own
	return err
}

// Close ends it.
func (s *Spool) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
