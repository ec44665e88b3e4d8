package spool

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestStalled: nobody waits for a file that takes nothing. What finds no room is counted, and the count is given when the
// file moves again. What was queued arrives whole and in order.
func TestStalled(t *testing.T) {
	r, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	moved := make(chan int, 1)
	w := To(pipe, Options{Most: 1 << 20, Moved: func(n int) { moved <- n }})
	const lines = 100_000
	for i := range lines {
		if _, err := fmt.Fprintf(w, "line %06d %s\n", i, strings.Repeat("x", 40)); err != nil {
			t.Fatal(err)
		}
	}
	dropped := w.Dropped()
	if dropped == 0 || dropped == lines {
		t.Fatalf("dropped: %d of %d", dropped, lines)
	}
	var got []string
	for in := bufio.NewScanner(r); len(got) < lines-dropped && in.Scan(); {
		got = append(got, in.Text())
	}
	if n := <-moved; n != dropped {
		t.Errorf("told of %d, want %d", n, dropped)
	}
	for i := range got {
		if !strings.HasPrefix(got[i], fmt.Sprintf("line %06d ", i)) {
			t.Fatalf("line %d is %q", i, got[i])
		}
	}
	if err := w.Close(time.Minute); err != nil || w.Dropped() != dropped {
		t.Errorf("close: %v, dropped %d, want %d", err, w.Dropped(), dropped)
	}
}

// TestCloseGivesUp: the end does not wait for a pipe that nobody reads, be it open or not, and counts what is lost.
func TestCloseGivesUp(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	unread, full, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer unread.Close()
	for name, open := range map[string]func() (io.Writer, error){
		"never opened": func() (io.Writer, error) { return os.OpenFile(fifo, os.O_WRONLY, 0) },
		"full":         func() (io.Writer, error) { return full, nil },
	} {
		w := New(open, Options{})
		for range 3 {
			if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<20)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(time.Millisecond); err == nil || w.Dropped() == 0 {
			t.Errorf("%s: close: %v, dropped %d", name, err, w.Dropped())
		}
	}
	// lets the goroutine that opens the pipe end
	if r, err := os.OpenFile(fifo, os.O_RDWR, 0); err != nil {
		t.Error(err)
	} else {
		defer r.Close()
	}
}

// gate is a file that takes what it is let take.
type gate struct {
	free chan struct{}
	got  bytes.Buffer
}

func (g *gate) Write(b []byte) (int, error) {
	<-g.free
	return g.got.Write(b)
}

// TestWhole: nothing follows a hole where a file must have none. A file that only pauses gets everything.
func TestWhole(t *testing.T) {
	g := &gate{free: make(chan struct{})}
	w := To(g, Options{Most: 4, Whole: true, Patience: time.Nanosecond})
	var failed error
	for failed == nil {
		_, failed = w.Write([]byte("abc\n"))
	}
	close(g.free)
	if e := (ErrDropped{}); !errors.As(failed, &e) {
		t.Errorf("got %v", failed)
	}
	if _, err := w.Write([]byte("d\n")); err == nil {
		t.Error("what follows the hole was taken")
	}
	if err := w.Close(time.Minute); err != nil || strings.ReplaceAll(g.got.String(), "abc\n", "") != "" {
		t.Errorf("%v: %q", err, g.got.String())
	}

	g = &gate{free: make(chan struct{})}
	w = To(g, Options{Most: 4, Whole: true, Patience: time.Hour})
	wrote := make(chan error)
	go func() {
		var err error
		for range 100 {
			_, e := w.Write([]byte("abc\n"))
			err = errors.Join(err, e)
		}
		wrote <- err
	}()
	close(g.free)
	if err := errors.Join(<-wrote, w.Close(time.Minute)); err != nil || g.got.Len() != 400 {
		t.Errorf("%v, %d bytes", err, g.got.Len())
	}
}

// TestBroken: the error of a file is told once to whoever writes next, and nothing is queued any more.
func TestBroken(t *testing.T) {
	r, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	w := To(pipe, Options{})
	for err == nil {
		_, err = w.Write([]byte("x\n"))
	}
	if !errors.Is(err, syscall.EPIPE) || !errors.Is(w.Close(time.Minute), syscall.EPIPE) {
		t.Errorf("got %v", err)
	}
}

// TestFlush: what was written before stands in the file afterwards, and a file that takes nothing is not waited for.
func TestFlush(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := To(file, Options{})
	var want bytes.Buffer
	for i := range 1000 {
		fmt.Fprintf(io.MultiWriter(&want, w), "line %d\n", i)
		if i%100 == 0 {
			w.Flush(time.Minute)
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want.Bytes()) {
				t.Fatalf("after line %d the file has %d bytes of %d, %v", i, len(got), want.Len(), err)
			}
		}
	}
	if err := w.Close(time.Minute); err != nil {
		t.Error(err)
	}
	unread, full, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer unread.Close()
	stalled := To(full, Options{})
	if _, err := stalled.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	stalled.Flush(time.Millisecond)
	if err := stalled.Close(time.Millisecond); err == nil {
		t.Error("a pipe that nobody reads was written")
	}
}
