// Package spool puts a bounded queue in front of a file that may stall: a pipe that nobody reads, a terminal that is
// stopped, a disk that hangs. Whoever writes never waits for the file.
package spool

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Writer queues what is written, one message for each Write, and writes it in a goroutine of its own. It drops messages
// that find no room, and counts them.
type Writer struct {
	o    Options
	work chan struct{} // there is something in the queue, or it is closed
	done chan struct{} // the goroutine has returned
	tick chan struct{} // the file took something

	mu      sync.Mutex // guards what follows
	queue   []byte
	waiting int // messages in the queue
	flying  int // messages that the goroutine writes
	dropped int // messages
	untold  int // of them, those that Moved has not been called for
	err     error
	closed  bool
}

// Options are the bounds of a Writer.
type Options struct {
	// Most is how many bytes wait; 0: DefaultMost.
	Most int
	// Moved gets the number of messages that were dropped since the last call, when the file takes something again. It
	// may write to the Writer.
	Moved func(dropped int)
	// Whole says that what follows a dropped message has no meaning: the first drop ends the file.
	Whole bool
	// Patience is how long Write waits for room before it drops a message; 0: it does not wait.
	Patience time.Duration
}

// DefaultMost is how many bytes wait in a queue.
const DefaultMost = 4 << 20

// chunk is how much goes to the file at once, so that a slow reader is told from one that takes nothing. Pipes take as much
// in one piece (PIPE_BUF on Linux).
const chunk = 4 << 10

// New starts a Writer. open opens the file, in the goroutine: the opening of a named pipe waits for its reader.
func New(open func() (io.Writer, error), o Options) *Writer {
	o.Most = cmp.Or(o.Most, DefaultMost)
	w := &Writer{o: o, work: make(chan struct{}, 1), done: make(chan struct{}), tick: make(chan struct{}, 1)}
	go w.run(open)
	return w
}

// To starts a Writer to an open file.
func To(file io.Writer, o Options) *Writer {
	return New(func() (io.Writer, error) { return file, nil }, o)
}

// ErrDropped says that a message found no room.
type ErrDropped struct{ Messages int }

// Error implements error.
func (e ErrDropped) Error() string {
	return fmt.Sprintf("the file stalled, and what waited for it took too much memory (messages dropped: %d)", e.Messages)
}

// Write queues a message. The error is that of an earlier message, since this one is not written yet. A dropped message
// is an error only where the file has to be whole.
func (w *Writer) Write(message []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.o.Patience > 0 && !w.fits(message) && w.dropped == 0 {
		w.await(message)
	}
	switch {
	case w.err != nil:
		w.dropped++
		return 0, w.err
	case w.closed:
		return 0, os.ErrClosed
	case !w.fits(message) || w.o.Whole && w.dropped > 0:
		w.dropped++
		w.untold++
		if w.o.Whole {
			return 0, ErrDropped{w.dropped}
		}
		return len(message), nil
	}
	w.queue = append(w.queue, message...)
	w.waiting++
	wake(w.work)
	return len(message), nil
}

// fits reports whether there is room. An empty queue takes a message of any length.
func (w *Writer) fits(message []byte) bool {
	return len(w.queue) == 0 || len(w.queue)+len(message) <= w.o.Most
}

// await waits until there is room, for as long as the patience allows. w.mu is held.
func (w *Writer) await(message []byte) {
	over := time.NewTimer(w.o.Patience)
	defer over.Stop()
	for !w.fits(message) && w.err == nil && !w.closed {
		w.mu.Unlock()
		select {
		case <-w.tick:
		case <-w.done:
		case <-over.C:
			w.mu.Lock()
			return
		}
		w.mu.Lock()
	}
}

// Dropped is how many messages were dropped so far.
func (w *Writer) Dropped() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is awake
	}
}

// run is the goroutine.
func (w *Writer) run(open func() (io.Writer, error)) {
	defer close(w.done)
	file, err := open()
	var batch []byte
	for err == nil {
		w.mu.Lock()
		over := w.closed && len(w.queue) == 0
		w.queue, batch = batch[:0], w.queue
		w.waiting, w.flying = 0, w.waiting
		w.mu.Unlock()
		if over {
			break
		}
		if len(batch) == 0 {
			wake(w.tick)
			<-w.work
			continue
		}
		err = w.drain(file, batch)
		if cap(batch) > w.o.Most/4 {
			batch = nil
		}
	}
	if c, ok := file.(io.Closer); ok && file != os.Stdout && file != os.Stderr {
		if e := c.Close(); err == nil {
			err = e
		}
	}
	w.mu.Lock()
	w.err, w.queue = err, nil
	w.giveUp()
	w.mu.Unlock()
}

// giveUp counts what waits as dropped. w.mu is held.
func (w *Writer) giveUp() {
	w.dropped += w.waiting + w.flying
	w.waiting, w.flying = 0, 0
}

// drain writes a batch.
func (w *Writer) drain(file io.Writer, batch []byte) error {
	for len(batch) > 0 {
		size := min(chunk, len(batch))
		if end := bytes.LastIndexByte(batch[:size], '\n'); size < len(batch) && end >= 0 {
			size = end + 1 // lines of others may stand between whole lines only
		}
		n, err := file.Write(batch[:size])
		if err != nil {
			return err
		}
		batch = batch[n:]
		wake(w.tick)
	}
	w.mu.Lock()
	untold := w.untold
	w.untold = 0
	w.mu.Unlock()
	if untold > 0 && w.o.Moved != nil {
		w.o.Moved(untold)
	}
	return nil
}

// Flush waits until everything is written, and gives up on a file that takes nothing for the time of patience.
func (w *Writer) Flush(patience time.Duration) {
	quiet := time.NewTimer(patience)
	defer quiet.Stop()
	for {
		w.mu.Lock()
		written := w.waiting+w.flying == 0
		w.mu.Unlock()
		if written {
			return
		}
		select {
		case <-w.tick:
			quiet.Reset(patience)
		case <-quiet.C:
			return
		case <-w.done:
			return
		}
	}
}

// Close writes what waits and closes the file, unless it is one that the process was started with. It gives up on a file
// that takes nothing for the time of patience; Dropped then counts what still waited.
func (w *Writer) Close(patience time.Duration) error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	wake(w.work)
	quiet := time.NewTimer(patience)
	defer quiet.Stop()
	for {
		select {
		case <-w.tick:
			quiet.Reset(patience)
			continue
		case <-quiet.C:
			w.mu.Lock()
			defer w.mu.Unlock()
			w.giveUp()
			return errors.New("the file takes nothing")
		case <-w.done:
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.err
	}
}
