// Package columnar writes a history and the dependencies between its transactions as Parquet files, for programs that ask questions in SQL or
// with data frames (DuckDB, Spark). The page docs/reference/columns.md describes the files.
package columnar

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"

	"wirecheck/history"
	"wirecheck/oracle/isolation"
)

// The names of the files.
const (
	EventsFile   = "events.parquet"
	AccessesFile = "accesses.parquet"
	EdgesFile    = "edges.parquet"
)

// unfinished is how a folder is named while it is written, as os.MkdirTemp has it.
const unfinished = ".unfinished-*"

// Writer writes the files of one folder. It holds one row group of each file in memory.
type Writer struct {
	dir, temp string
	events    *table[eventRow]
	accesses  *table[accessRow]
	edges     *table[edgeRow]
	count     Count
	err       error // the first one; nothing is written after it
}

// Count is how many rows the files have.
type Count struct{ Events, Accesses, Edges int64 }

// Create begins a folder, which must not exist or be empty. It has its name once Close succeeds; only the owner can read it.
func Create(dir string) (*Writer, error) {
	switch list, err := os.ReadDir(dir); {
	case err == nil && len(list) > 0:
		return nil, fmt.Errorf("%s is not empty, and nothing is written over: name a new folder", dir)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	dir = filepath.Clean(dir)
	temp, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+unfinished)
	if err != nil {
		return nil, err
	}
	w := &Writer{dir: dir, temp: temp}
	w.events, err = create[eventRow](temp, EventsFile)
	if err == nil {
		w.accesses, err = create[accessRow](temp, AccessesFile)
	}
	if err == nil {
		w.edges, err = create[edgeRow](temp, EdgesFile)
	}
	if err != nil {
		return nil, errors.Join(err, w.Discard())
	}
	return w, nil
}

// Event adds the next event of the history, which is one of the file with this number, from 1. The event is not kept.
func (w *Writer) Event(input int, e *history.Event) error {
	w.count.Events++
	row := w.eventOf(input, e)
	w.keep(w.events.add(row, eventBytes(e)))
	for i := range e.Accesses {
		a := &e.Accesses[i]
		w.count.Accesses++
		w.keep(w.accesses.add(w.accessOf(e, a), accessBytes(a)))
	}
	return w.err
}

// Edge adds a dependency. Event and Close return its error.
func (w *Writer) Edge(d isolation.Dependency) {
	w.count.Edges++
	w.keep(w.edges.add(w.edgeOf(d), edgeBytes))
}

// Close ends the files and gives the folder its name. If it fails there is no folder.
func (w *Writer) Close() (Count, error) {
	w.keep(errors.Join(w.events.close(), w.accesses.close(), w.edges.close()))
	if w.err == nil { // a folder that was there goes if it is empty still
		if err := os.Remove(w.dir); !errors.Is(err, os.ErrNotExist) {
			w.err = err
		}
	}
	if w.err == nil {
		w.err = os.Rename(w.temp, w.dir)
	}
	if w.err != nil {
		return Count{}, errors.Join(w.err, w.Discard())
	}
	return w.count, nil
}

// Discard ends the files and removes them.
func (w *Writer) Discard() error {
	// What they could not write does not matter any more.
	if w.events != nil {
		_ = w.events.file.Close()
	}
	if w.accesses != nil {
		_ = w.accesses.file.Close()
	}
	if w.edges != nil {
		_ = w.edges.file.Close()
	}
	return os.RemoveAll(w.temp)
}

func (w *Writer) keep(err error) {
	if w.err == nil {
		w.err = err
	}
}

// number is n in a column: Parquet has unsigned numbers, and Spark reads them as decimals.
func (w *Writer) number(n uint64) int64 {
	if n > math.MaxInt64 {
		w.keep(fmt.Errorf("event %d: the number %d is too large for a column (64 bits with a sign)", w.count.Events, n))
		return 0
	}
	return int64(n)
}

// text is s in a column, whose readers want UTF-8: a byte that is none is written as \x and two digits.
func text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, `\x%02x`, s[i])
		} else {
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}

// The sizes that bound memory: rows that wait for the encoder, and a row group, before compression.
const (
	batchRows  = 512
	batchBytes = 1 << 20
	groupRows  = 1 << 18
	groupBytes = 32 << 20

	dictionaryBytes = 4 << 20 // of one column; beyond it the values stand as they are
)

// table writes the rows of one file.
type table[T any] struct {
	file    *os.File
	out     *parquet.GenericWriter[T]
	rows    []T // not written yet
	waiting int // their bytes, by estimate
	written int // rows of the row group
	size    int // bytes of the row group
}

func create[T any](dir, name string) (*table[T], error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &table[T]{file: f, out: parquet.NewGenericWriter[T](f, parquet.Compression(&parquet.Zstd), parquet.DataPageVersion(1),
		parquet.DictionaryMaxBytes(dictionaryBytes), parquet.CreatedBy("wirecheck", "", ""))}, nil
}

// add adds a row of about so many bytes.
func (t *table[T]) add(row T, size int) error {
	t.rows, t.waiting = append(t.rows, row), t.waiting+size
	if len(t.rows) < batchRows && t.waiting < batchBytes {
		return nil
	}
	if err := t.write(); err != nil || t.written < groupRows && t.size < groupBytes {
		return err
	}
	t.written, t.size = 0, 0
	return t.named(t.out.Flush())
}

// write hands the waiting rows to the encoder.
func (t *table[T]) write() error {
	_, err := t.out.Write(t.rows)
	t.written, t.size = t.written+len(t.rows), t.size+t.waiting
	clear(t.rows)
	t.rows, t.waiting = t.rows[:0], 0
	return t.named(err)
}

func (t *table[T]) close() error {
	return errors.Join(t.write(), t.named(t.out.Close()), t.named(t.file.Sync()), t.file.Close())
}

// named says of which file an error is.
func (t *table[T]) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write %s: %w", filepath.Base(t.file.Name()), err)
}
