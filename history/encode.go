package history

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"unicode/utf8"
)

// FormatVersion is the version of the JSON-lines form that this package writes and reads (docs/reference/history-format.md).
const FormatVersion = 1

// Header is the first line of a history file.
type Header struct {
	Engine  string // of the upstream, as Event.Engine; empty if there are several
	Started int64  // wall clock in nanoseconds since 1970, for people only
	Run     string // unique name of the recording process
	Closes  bool   // the end of every session is recorded: a history that lacks one is cut off
}

// Writer writes a history. It is safe for concurrent use; the lines appear in the order of the calls.
type Writer struct {
	mu    sync.Mutex
	buf   *bufio.Writer
	line  []byte
	close io.Closer
	err   error // the first error: what follows it would leave a gap, so nothing is written any more
}

// NewWriter writes the header to w and returns a Writer for the events.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	hw := &Writer{buf: bufio.NewWriterSize(w, 64<<10)}
	b := appendHeader(hw.line, h, "")
	if _, err := hw.buf.Write(b); err != nil {
		return nil, fmt.Errorf("write history header: %w", err)
	}
	hw.line = b
	return hw, nil
}

// appendHeader appends the first line.
func appendHeader(b []byte, h Header, form string) []byte {
	b = append(b, `{"wirecheck":"history","version":`...)
	b = strconv.AppendInt(b, FormatVersion, 10)
	b = appendText(b, `,"engine":`, h.Engine)
	if h.Started != 0 {
		b = append(b, `,"started":`...)
		b = strconv.AppendInt(b, h.Started, 10)
	}
	b = appendText(b, `,"run":`, h.Run)
	if h.Closes {
		b = append(b, `,"closes":true`...)
	}
	return append(appendText(b, `,"form":`, form), '}', '\n')
}

// Create makes a new history file that only its owner may read, since statements can hold personal data. A file that
// exists is an error: the numbers of a second run would be mixed up with those of the first.
func Create(path string, h Header) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create history: %w", err)
	}
	w, err := NewWriter(f, h)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	w.close = f
	return w, nil
}

// Write appends one event. It is buffered, see Flush.
func (w *Writer) Write(e *Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	w.line = append(AppendEvent(w.line[:0], e), '\n')
	if _, err := w.buf.Write(w.line); err != nil {
		w.err = fmt.Errorf("write history: %w", err)
	}
	if cap(w.line) > maxKeptLine {
		w.line = nil
	}
	return w.err
}

// maxKeptLine is the largest line buffer that is kept for the next line.
const maxKeptLine = 1 << 20

// Flush hands everything written so far to the underlying writer.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		if err := w.buf.Flush(); err != nil {
			w.err = fmt.Errorf("write history: %w", err)
		}
	}
	return w.err
}

// Close flushes and, for a Writer made by Create, closes the file.
func (w *Writer) Close() error {
	err := w.Flush()
	if w.close != nil {
		err = errors.Join(err, w.close.Close())
	}
	return err
}

// AppendEvent appends e in its JSON form, without a line end. Fields with zero values are left out, as the json tags of
// Event say; encoding/json reads the result as well.
func AppendEvent(b []byte, e *Event) []byte {
	b = append(b, `{"e":`...)
	b = appendString(b, string(e.Kind))
	b = appendUint(b, `,"s":`, e.Session)
	b = appendUint(b, `,"t":`, e.Txn)
	b = appendUint(b, `,"from":`, e.From)
	b = appendUint(b, `,"to":`, e.To)
	if e.At != 0 {
		b = append(b, `,"at":`...)
		b = strconv.AppendInt(b, e.At, 10)
	}
	b = appendText(b, `,"engine":`, e.Engine)
	b = appendText(b, `,"server":`, e.Server)
	b = appendText(b, `,"db":`, e.Database)
	b = appendText(b, `,"user":`, e.User)
	b = appendText(b, `,"client":`, e.Client)
	b = appendUint(b, `,"backend":`, e.Backend)
	b = appendText(b, `,"level":`, e.Level)
	b = appendBool(b, `,"implicit":true`, e.Implicit)
	if e.N != 0 {
		b = append(b, `,"n":`...)
		b = strconv.AppendInt(b, int64(e.N), 10)
	}
	b = appendText(b, `,"sql":`, e.SQL)
	b = appendText(b, `,"verb":`, e.Verb)
	if len(e.Accesses) > 0 {
		b = append(b, `,"acc":[`...)
		for i := range e.Accesses {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendAccess(b, &e.Accesses[i])
		}
		b = append(b, ']')
	}
	b = appendText(b, `,"coverage":`, string(e.Coverage))
	b = appendText(b, `,"why":`, e.Why)
	b = appendBool(b, `,"current_read":true`, e.CurrentRead)
	b = appendBool(b, `,"predicate":true`, e.Predicate)
	if len(e.Reads) > 0 {
		b = append(b, `,"reads":[`...)
		for i := range e.Reads {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendRead(b, &e.Reads[i])
		}
		b = append(b, ']')
	}
	b = appendText(b, `,"unread":`, e.Unread)
	if e.UndoesFrom != 0 {
		b = append(b, `,"undoes_from":`...)
		b = strconv.AppendInt(b, int64(e.UndoesFrom), 10)
	}
	b = appendList(b, `,"tokens":[`, e.Tokens)
	if e.Error != nil {
		b = append(b, `,"error":{"code":`...)
		b = appendString(b, e.Error.Code)
		b = appendText(b, `,"message":`, e.Error.Message)
		b = append(b, '}')
	}
	b = appendRequest(b, e)
	b = appendText(b, `,"outcome":`, string(e.Outcome))
	b = appendUint(b, `,"sent":`, e.Sent)
	b = appendBool(b, `,"pending":true`, e.Pending)
	return append(b, '}')
}

func appendAccess(b []byte, a *Access) []byte {
	b = append(b, `{"op":`...)
	b = appendString(b, string(a.Op))
	b = append(b, `,"row":{"table":`...)
	b = appendString(b, a.Row.Table)
	b = append(b, `,"key":`...)
	b = appendString(b, a.Row.Key)
	b = append(b, '}')
	b = appendText(b, `,"name":`, a.Name)
	b = appendText(b, `,"version":`, a.Version)
	b = appendText(b, `,"writer":`, a.Writer)
	b = appendText(b, `,"prev":`, a.Prev)
	b = appendText(b, `,"prev_writer":`, a.PrevWriter)
	b = appendUint(b, `,"order":`, a.Order)
	b = appendUint(b, `,"prev_order":`, a.PrevOrder)
	b = appendUint(b, `,"as_of":`, a.AsOf)
	b = appendBool(b, `,"approx":true`, a.Approx)
	b = appendText(b, `,"image":`, a.Image)
	b = appendText(b, `,"was":`, a.Was)
	b = appendText(b, `,"values":`, a.Values)
	return append(b, '}')
}

func appendList(b []byte, key string, list []string) []byte {
	if len(list) == 0 {
		return b
	}
	for i, s := range list {
		b = appendString(append(b, begin(i, key)...), s)
	}
	return append(b, ']')
}

func appendText(b []byte, key, s string) []byte {
	if s == "" {
		return b
	}
	return appendString(append(b, key...), s)
}

func appendUint(b []byte, key string, n uint64) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendUint(append(b, key...), n, 10)
}

func appendBool(b []byte, pair string, v bool) []byte {
	if !v {
		return b
	}
	return append(b, pair...)
}

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. A byte that is not UTF-8 (a binary key, SQL in another encoding) becomes the
// lone surrogate \udc80 to \udcff, as in Python's surrogateescape, so that different strings stay different; decoders
// that do not know it show a replacement character.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
		}
		b = append(b, s[start:i]...)
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\t':
			b = append(b, '\\', 't')
		case c == '\r':
			b = append(b, '\\', 'r')
		case c < 0x20:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			b = append(b, '\\', 'u', 'd', 'c', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}
