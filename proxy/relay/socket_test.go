package relay_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"wirecheck/proxy/relay"
)

// TestSocket does with a Socket what a connection promises: bytes of any length to a slow reader, deadlines, ends and resets.
func TestSocket(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		plain, other := sockets(t, network)
		s := relay.Socket(plain)
		if n, err := s.Read(nil); n != 0 || err != nil {
			t.Errorf("%s: read nothing: %d, %v", network, n, err)
		}
		sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
		written := make(chan error)
		go func() {
			_, err := s.Write(sent)
			written <- err
		}()
		got := make([]byte, len(sent))
		if _, err := io.ReadFull(other, got); err != nil || !bytes.Equal(sent, got) {
			t.Errorf("%s: other bytes, %v", network, err)
		}
		if err := <-written; err != nil {
			t.Errorf("%s: write: %v", network, err)
		}
		say(t, other, "answer")
		hear(t, s, "answer")
		past := time.Unix(1, 0)
		if err := s.SetDeadline(past); err != nil {
			t.Fatal(err)
		}
		say(t, other, "late")
		if _, err := s.Read(got); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: read behind the deadline: %v", network, err)
		}
		if _, err := s.Write(sent); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: write behind the deadline: %v", network, err)
		}
		waiting := make(chan error)
		if err := s.SetDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		hear(t, s, "late")
		go func() {
			_, err := s.Read(make([]byte, 1))
			waiting <- err
		}()
		if err := plain.SetReadDeadline(past); err != nil {
			t.Fatal(err)
		}
		if err := <-waiting; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: a deadline that comes during the wait: %v", network, err)
		}
		if err := s.SetDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		other.Close()
		if _, err := s.Read(got); err != io.EOF {
			t.Errorf("%s: read the end: %v", network, err)
		}
		s.Close()
		if _, err := s.Read(got); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: read what is closed: %v", network, err)
		}
		if _, err := s.Write(sent); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: write to what is closed: %v", network, err)
		}
	}
	plain, other := sockets(t, "tcp")
	s := relay.Socket(plain)
	reset(t, other)
	var op *net.OpError
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) || !errors.As(err, &op) {
		t.Errorf("read after a reset: %v", err)
	}
	if _, err := s.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("write after a reset: %v", err)
	}
	if a, b := net.Pipe(); relay.Socket(a) != a {
		t.Error("a pipe was taken for a socket")
		b.Close()
	}
}
