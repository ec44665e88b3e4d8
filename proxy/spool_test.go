package proxy

import (
	"bytes"
	"testing"
)

// TestSpool: what is written comes back, whether it fits in memory or not, and a spool in memory has no file.
func TestSpool(t *testing.T) {
	for _, size := range []int{0, 1, spoolMemory, spoolMemory + 1, 3*spoolMemory + 7} {
		var s Spool
		var want bytes.Buffer
		for i := 0; want.Len() < size; i++ {
			piece := bytes.Repeat([]byte{byte(i)}, min(10_000, size-want.Len()))
			want.Write(piece)
			if _, err := s.Write(piece); err != nil {
				t.Fatal(err)
			}
		}
		var got bytes.Buffer
		if err := s.CopyTo(&got); err != nil {
			t.Fatal(err)
		}
		if s.Size() != size || !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("%d bytes: got %d, size %d", size, got.Len(), s.Size())
		}
		if inFile := s.file != nil; inFile != (size > spoolMemory) {
			t.Errorf("%d bytes: in a file: %v", size, inFile)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
