package trace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
)

// listened is what a reader gave: each record as it is written, with times that count from 0.
type listened struct {
	Records []string
	Warning string
	Err     string
}

func listen(t *testing.T, in io.Reader, o ReadOptions) (l listened, records []*Record) {
	r, err := NewReader(in, "x.wct", o)
	if err == nil {
		for err == nil {
			rec := &Record{}
			if err = r.Next(rec); err == nil {
				l.Records, records = append(l.Records, string(appendRecord(nil, rec, 0))), append(records, rec)
			}
		}
		if l.Warning = r.Warning(); err == io.EOF {
			err = nil
		}
	}
	if err != nil {
		if l.Err = err.Error(); !strings.HasPrefix(l.Err, "x.wct: ") || len(l.Err) < len("x.wct: ")+10 {
			t.Fatalf("the error does not say where and what: %v", err)
		}
	}
	return l, records
}

// sameFile reads a file in all ways there are. What it reads is the same when it is written and read again, but for the passwords that are left out the
// first time. A reader that goes on behind damage gives what one gives that does not, and more.
func sameFile(t *testing.T, file []byte) {
	strict, records := listen(t, bytes.NewReader(file), ReadOptions{})
	if slowly, _ := listen(t, iotest.OneByteReader(bytes.NewReader(file)), ReadOptions{}); !cmp.Equal(strict, slowly) {
		t.Fatalf("byte by byte (-at once +so):\n%s", cmp.Diff(strict, slowly))
	}
	if skips, _ := listen(t, bytes.NewReader(file), ReadOptions{SkipDamaged: true}); len(skips.Records) < len(strict.Records) || !slices.Equal(skips.Records[:len(strict.Records)], strict.Records) {
		t.Fatalf("with damaged blocks left out (-all +so):\n%s", cmp.Diff(strict, skips))
	}
	again, records := listen(t, bytes.NewReader(writeRecords(t, records, 3)), ReadOptions{})
	if again.Err != "" || again.Warning != "" || len(again.Records) != len(strict.Records) {
		t.Fatalf("%d records are written, and %d read again: %s, %s", len(strict.Records), len(again.Records), again.Err, again.Warning)
	}
	if third, _ := listen(t, bytes.NewReader(writeRecords(t, records, 7)), ReadOptions{}); !cmp.Equal(again, third) {
		t.Fatalf("(-written once +written twice):\n%s", cmp.Diff(again, third))
	}
}

// fileOf makes a file with the right checksums of what stands in it.
func fileOf(t testing.TB, header, block []byte, records uint32, base int64, totals []byte) []byte {
	var b bytes.Buffer
	w, err := NewWriter(io.Discard, Header{})
	if err != nil {
		t.Fatal(err)
	}
	head := append([]byte(signature), FormatVersion, 0)
	head = append(binary.LittleEndian.AppendUint32(head, uint32(len(header))), header...)
	b.Write(binary.LittleEndian.AppendUint32(head, crc32.Checksum(head, castagnoli)))
	w.out.Reset(&b)
	w.records, w.base = records, base
	if err := w.writeBlock(blockMark, block); err != nil {
		t.Fatal(err)
	}
	w.records, w.base = 0, 0
	if err := w.writeBlock(endMark, totals); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// fuzzRecords are records of all kinds.
func fuzzRecords() []*Record {
	return append(sampleRecords(2),
		&Record{Kind: KindWait, Session: 2, Wait: &Wait{At: 5, Took: 9, Lock: "t", For: []uint64{1, 3}}},
		&Record{Kind: KindHistory, Session: 1, History: &history.Event{Kind: history.EventStmt, Session: 1, Txn: 7, N: 1, Accesses: []history.Access{
			{Op: history.OpRead, Row: history.Row{Table: "t", Key: "1"}, Name: "id=1", Version: "v"}, {Op: history.OpRead, Row: history.Row{Table: "t", Key: "2"}, Name: "id=2", Version: "v"}}}},
		&Record{Kind: KindNote, Note: &Note{At: 5, Text: "a note"}},
		&Record{Kind: KindEnd, Session: 1, End: &End{At: 15, Reason: "closed"}})
}

func FuzzReader(f *testing.F) {
	f.Add(writeRecords(f, sampleRecords(5), 2))
	f.Add([]byte(signature))
	f.Fuzz(sameFile)
}

// FuzzFile has the checksums right.
func FuzzFile(f *testing.F) {
	var block []byte
	for _, r := range fuzzRecords() {
		rec := appendRecord(nil, r, 3)
		block = append(binary.AppendUvarint(block, uint64(len(rec))), rec...)
	}
	f.Add([]byte(`{"run":"a","part":1}`), block, uint32(len(fuzzRecords())), int64(3), []byte(`{"records":7,"next":"b.wct"}`))
	f.Add([]byte(`{"carried":2}`), block, uint32(len(fuzzRecords())), int64(3), []byte(`{"records":7}`))
	f.Fuzz(func(t *testing.T, header, block []byte, records uint32, base int64, totals []byte) {
		sameFile(t, fileOf(t, header, block, records, base, totals))
	})
}

// FuzzRecord decodes anything: what can be read is the same when it is written and read again.
func FuzzRecord(f *testing.F) {
	for _, r := range fuzzRecords() {
		f.Add(appendRecord(nil, r, 3))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r, again Record
		if decodeRecord(b, &r, 3) != nil {
			return
		}
		once := appendRecord(nil, &r, 3)
		if err := decodeRecord(once, &again, 3); err != nil {
			t.Fatalf("%v: %+v", err, r)
		}
		if twice := appendRecord(nil, &again, 3); !bytes.Equal(once, twice) {
			t.Errorf("%q and %q", once, twice)
		}
		AppendText(nil, &r, TextOptions{Rows: 3, Date: true})
	})
}

// TestUnpacked: a few bytes cannot take any amount of memory.
func TestUnpacked(t *testing.T) {
	const few = 1000
	long := history.Access{Op: history.OpRead, Row: history.Row{Table: "t", Key: "1"}, Name: strings.Repeat("x", 3000) + "1"}
	for name, b := range map[string][]byte{"accesses": bytes.Repeat([]byte{0}, few), "names": appendAccesses(nil, []history.Access{long, long, long})} {
		if all, err := decodeAccesses(b, few*400); err != nil {
			t.Errorf("%s: %d with enough room: %v", name, len(all), err)
		}
		if _, err := decodeAccesses(b, 5000); err == nil || !strings.Contains(err.Error(), "2 GiB") {
			t.Errorf("%s: %v", name, err)
		}
	}
	values := make([]Value, few)
	write := coder{}
	list(&write, fieldValue, &values, Value{}, func(*coder, *Value) {})
	for room, ok := range map[int]bool{few * 64: true, few: false} {
		read, got := coder{b: write.b, reading: true, room: room}, []Value(nil)
		for read.next() {
			list(&read, fieldValue, &got, Value{}, func(*coder, *Value) {})
		}
		if ok != (read.err == nil && len(got) == few) {
			t.Errorf("room for %d bytes: %d values, %v", room, len(got), read.err)
		}
	}
}

// TestCarried: of a part that says that all its records are told again there are none, however many it has.
func TestCarried(t *testing.T) {
	rec := appendRecord(nil, &Record{Kind: KindNote, Note: &Note{At: 5}}, 3)
	const many = 1 << 19 // of which each took a frame of the stack
	block := bytes.Repeat(append(binary.AppendUvarint(nil, uint64(len(rec))), rec...), many)
	r, err := NewReader(bytes.NewReader(fileOf(t, []byte("{}"), block, many, 3, fmt.Appendf(nil, `{"records":%d}`, many))), "x.wct", ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.carry = many
	before := stackOf()
	if err := r.Next(&Record{}); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if grown := stackOf() - before; grown > 16<<20 {
		t.Errorf("it took %d MiB of stack", grown>>20)
	}
}

func stackOf() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}
