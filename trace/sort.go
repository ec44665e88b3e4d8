package trace

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// order is a record's place among those of the same time: as the source shows it, sessions first.
func (r *Record) order() uint64 {
	switch r.Kind {
	case KindStatement:
		if r.Statement.From != 0 {
			return r.Statement.From
		}
		return r.Statement.To
	case KindWait:
		return r.Wait.Tick
	case KindEnd:
		return r.End.Tick
	}
	return 0
}

// Compare orders records by when they began (At), and by their source's own order where that is the same. It is no order of what
// happened if the source's clock is coarse: then Statement.From, To and ID tell more.
func Compare(a, b *Record) int {
	return cmp.Or(cmp.Compare(a.At(), b.At()), cmp.Compare(a.order(), b.order()))
}

// sortBytes is about how much memory Sort takes.
const sortBytes = 64 << 20

// Sort hands on the records of a trace in the order of Compare. What does not fit into memory goes to temporary files in dir (empty: the
// system's), which only their owner may read. out owns the records.
func Sort(r *Reader, dir string, out func(*Record) error) error {
	return sortRecords(r, dir, sortBytes, out)
}

func sortRecords(r *Reader, dir string, room int, out func(*Record) error) (err error) {
	var runs []*run
	defer func() {
		for _, u := range runs {
			err = errors.Join(err, u.close())
		}
	}()
	for {
		batch, end, err := readBatch(r, room)
		if err != nil {
			return err
		}
		slices.SortStableFunc(batch, Compare)
		if end && len(runs) == 0 {
			for _, rec := range batch {
				if err := out(rec); err != nil {
					return err
				}
			}
			return nil
		}
		u := &run{n: len(runs)}
		runs = append(runs, u)
		if end {
			u.batch = batch
			break
		}
		if err := u.spill(dir, batch); err != nil {
			return err
		}
	}
	return merge(runs, out)
}

// readBatch reads records until they take the room.
func readBatch(r *Reader, room int) (batch []*Record, end bool, err error) {
	for used := 0; used < room; {
		rec := &Record{}
		if err := r.Next(rec); errors.Is(err, io.EOF) {
			return batch, true, nil
		} else if err != nil {
			return nil, false, err
		}
		batch = append(batch, rec)
		used += rec.size()
	}
	return batch, false, nil
}

// size is about how much memory a record takes.
func (r *Record) size() int {
	n := 100
	if s := r.Statement; s != nil {
		n += 300 + len(s.SQL) + len(s.Prepared) + 64*len(s.Params) + 64*len(s.Tags)
		for i := range s.Params {
			n += len(s.Params[i].Value)
		}
		for i := range s.Results {
			n += 200 + 64*len(s.Results[i].Columns)
			for _, row := range s.Results[i].Rows {
				for _, v := range row {
					n += 24 + len(v.Text)
				}
			}
		}
	}
	if e := r.History; e != nil {
		n += 500 + len(e.SQL) + 250*len(e.Accesses)
	}
	return n
}

// run is a sorted part of a trace: in a file, but for the last one.
type run struct {
	n     int
	file  *os.File
	in    *Reader
	batch []*Record
	head  *Record
}

func (u *run) spill(dir string, batch []*Record) error {
	f, err := os.CreateTemp(dir, "wirecheck-sort-*")
	if err != nil {
		return fmt.Errorf("make room for sorting: %w", err)
	}
	u.file = f
	w, err := NewWriter(f, Header{})
	if err != nil {
		return err
	}
	for _, rec := range batch {
		if err := w.Write(rec); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("sort: %w", err)
	}
	u.in, err = NewReader(f, f.Name(), ReadOptions{})
	return err
}

// next makes the next record the head; it is nil at the end.
func (u *run) next() error {
	u.head = nil
	if u.in == nil {
		if len(u.batch) > 0 {
			u.head, u.batch = u.batch[0], u.batch[1:]
		}
		return nil
	}
	rec := &Record{}
	if err := u.in.Next(rec); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return err
	}
	u.head = rec
	return nil
}

func (u *run) close() error {
	var err error
	if u.in != nil {
		err = u.in.Close()
	}
	if u.file != nil {
		err = errors.Join(err, u.file.Close(), os.Remove(u.file.Name()))
	}
	return err
}

func merge(runs []*run, out func(*Record) error) error {
	var h runHeap
	for _, u := range runs {
		if err := u.next(); err != nil {
			return err
		}
		if u.head != nil {
			h = append(h, u)
		}
	}
	heap.Init(&h)
	for len(h) > 0 {
		u := h[0]
		if err := out(u.head); err != nil {
			return err
		}
		if err := u.next(); err != nil {
			return err
		}
		if u.head == nil {
			heap.Pop(&h)
		} else {
			heap.Fix(&h, 0)
		}
	}
	return nil
}

// runHeap has the run with the least record first.
type runHeap []*run

func (h runHeap) Len() int { return len(h) }
func (h runHeap) Less(i, j int) bool {
	if c := Compare(h[i].head, h[j].head); c != 0 {
		return c < 0
	}
	return h[i].n < h[j].n
}
func (h runHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *runHeap) Push(x any)   { *h = append(*h, x.(*run)) }
func (h *runHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
