package trace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wirecheck/answer"
)

// drawRecord draws a record with anything in it.
func drawRecord(t *rapid.T) *Record {
	text := rapid.OneOf(rapid.String(), rapid.Just(""), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	at := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, 1<<62), rapid.Int64Range(1795000000e9, 1795000001e9))
	status := rapid.SampledFrom([]answer.State{answer.Unknown, answer.Idle, answer.Open, answer.Failed})
	r := &Record{Session: rapid.Uint64().Draw(t, "session")}
	switch r.Kind = rapid.SampledFrom([]Kind{KindSession, KindStatement, KindWait, KindEnd}).Draw(t, "kind"); r.Kind {
	case KindSession:
		r.Open = &Session{At: at.Draw(t, "at"), Joined: rapid.Bool().Draw(t, "b"), Product: text.Draw(t, "s"), Version: text.Draw(t, "s"), User: text.Draw(t, "s"),
			Database: text.Draw(t, "s"), Application: text.Draw(t, "s"), Client: text.Draw(t, "s"), Backend: text.Draw(t, "s"), Level: text.Draw(t, "s"), Encrypted: rapid.Bool().Draw(t, "b")}
	case KindWait:
		r.Wait = &Wait{At: at.Draw(t, "at"), Tick: rapid.Uint64().Draw(t, "n"), State: WaitState(rapid.IntRange(1, 4).Draw(t, "state")), Took: rapid.Int64().Draw(t, "took"),
			Lock: text.Draw(t, "s"), For: rapid.SliceOf(rapid.Uint64Min(1)).Draw(t, "for")}
	case KindEnd:
		r.End = &End{At: at.Draw(t, "at"), Tick: rapid.Uint64().Draw(t, "n"), Reason: text.Draw(t, "s")}
	case KindStatement:
		s := &Statement{SQL: text.Draw(t, "s"), Lost: rapid.Bool().Draw(t, "b"), Prepared: text.Draw(t, "s"), Name: text.Draw(t, "s"), Protocol: Protocol(rapid.IntRange(0, 4).Draw(t, "p")),
			NoParams: rapid.Bool().Draw(t, "b"), Start: at.Draw(t, "at"), End: at.Draw(t, "at"), Took: rapid.Int64().Draw(t, "took"), From: rapid.Uint64().Draw(t, "n"),
			To: rapid.Uint64().Draw(t, "n"), ID: rapid.Uint64().Draw(t, "n"), Late: rapid.Bool().Draw(t, "b"), Before: status.Draw(t, "st"), After: status.Draw(t, "st"),
			Txn: text.Draw(t, "s"), XID: rapid.Uint64().Draw(t, "n")}
		value := rapid.Custom(func(t *rapid.T) Value {
			return Value{Null: rapid.Bool().Draw(t, "b"), Binary: rapid.Bool().Draw(t, "b"), Text: text.Draw(t, "s")}
		})
		s.Params = rapid.SliceOf(rapid.Custom(func(t *rapid.T) Param {
			return Param{Type: text.Draw(t, "s"), Null: rapid.Bool().Draw(t, "b"), Binary: rapid.Bool().Draw(t, "b"), Value: text.Draw(t, "s")}
		})).Draw(t, "params")
		s.Results = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Result {
			return Result{Tag: text.Draw(t, "s"), Affected: rapid.Int64Range(-1, 1<<62).Draw(t, "n"), Count: rapid.Int64Range(-1, 1<<62).Draw(t, "n"),
				Columns: rapid.SliceOf(rapid.Custom(func(t *rapid.T) answer.Column { return answer.Column{Name: text.Draw(t, "s"), Type: text.Draw(t, "s")} })).Draw(t, "columns"),
				Rows:    rapid.SliceOf(rapid.SliceOf(value)).Draw(t, "rows"), Partial: rapid.Bool().Draw(t, "b"), Digest: text.Draw(t, "s")}
		}), 0, 3).Draw(t, "results")
		if rapid.Bool().Draw(t, "failed") {
			s.Error = &answer.Error{Code: text.Draw(t, "s"), SQLState: text.Draw(t, "s"), Message: text.Draw(t, "s")}
		}
		s.Tags = rapid.SliceOf(rapid.Custom(func(t *rapid.T) Tag { return Tag{text.Draw(t, "s"), text.Draw(t, "s")} })).Draw(t, "tags")
		s.Tables = rapid.SliceOf(rapid.Custom(func(t *rapid.T) Table { return Table{text.Draw(t, "s"), rapid.Bool().Draw(t, "b")} })).Draw(t, "tables")
		r.Statement = s
	}
	return r
}

func TestRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawRecord(t)
		base := rapid.Int64Range(0, 1<<62).Draw(t, "base")
		var got Record
		b := appendRecord(nil, want, base)
		if err := decodeRecord(b, &got, base); err != nil {
			t.Fatalf("%v in %+v", err, want)
		}
		// Written again it is the same, so nothing was lost; and what was read is what was written, seen as text.
		if again := appendRecord(nil, &got, base); !bytes.Equal(b, again) {
			t.Errorf("written again it differs:\n%q\n%q", b, again)
		}
		if g, w := fmt.Sprintf("%+v", flat(&got)), fmt.Sprintf("%+v", flat(want)); g != w {
			t.Errorf("got  %s\nwant %s", g, w)
		}
	})
}

// flat gives a record's parts without pointers.
func flat(r *Record) []any {
	out := []any{r.Kind, r.Session}
	if r.Open != nil {
		out = append(out, *r.Open)
	}
	if s := r.Statement; s != nil {
		c := *s
		if s.Error != nil {
			out = append(out, *s.Error)
			c.Error = nil
		}
		out = append(out, c)
	}
	if r.Wait != nil {
		out = append(out, *r.Wait)
	}
	if r.End != nil {
		out = append(out, *r.End)
	}
	return out
}

// sampleRecords makes n statements.
func sampleRecords(n int) []*Record {
	out := []*Record{{Kind: KindSession, Session: 1, Open: &Session{At: 5, Product: "postgres"}}}
	for i := range n {
		out = append(out, &Record{Kind: KindStatement, Session: 1, Statement: &Statement{SQL: fmt.Sprintf("SELECT %d", i), Start: int64(10 + i), End: int64(11 + i)}})
	}
	return out
}

// writeRecords writes records; a block ends after each flush records.
func writeRecords(t testing.TB, records []*Record, flush int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, Header{Sources: []Source{{Name: "x", Format: "test"}}})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range records {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
		if (i+1)%flush == 0 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// readRecords reads all there is.
func readRecords(b []byte, o ReadOptions) (records []*Record, r *Reader, err error) {
	if r, err = NewReader(bytes.NewReader(b), "x.wct", o); err != nil {
		return nil, nil, err
	}
	for {
		rec := &Record{}
		if err := r.Next(rec); errors.Is(err, io.EOF) {
			return records, r, nil
		} else if err != nil {
			return records, r, err
		}
		records = append(records, rec)
	}
}

func TestFile(t *testing.T) {
	want := sampleRecords(100)
	got, r, err := readRecords(writeRecords(t, want, 7), ReadOptions{})
	if err != nil || r.Warning() != "" || r.Header().Sources[0].Format != "test" {
		t.Fatal(err, r.Warning(), r.Header())
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if n := r.Totals(); n == nil || n.Records != 101 || n.Statements != 100 || n.Sessions != 1 {
		t.Errorf("totals: %+v", n)
	}
}

// TestFileCutOff cuts a file at every byte: what was complete is read, and the rest is said to be missing.
func TestFileCutOff(t *testing.T) {
	want := sampleRecords(20)
	whole := writeRecords(t, want, 3)
	seen := map[int]bool{}
	for n := range whole {
		got, r, err := readRecords(whole[:n], ReadOptions{})
		if r == nil { // within the header
			if err == nil || !strings.Contains(err.Error(), "x.wct") {
				t.Fatalf("cut at %d: %v", n, err)
			}
			continue
		}
		if err != nil || !strings.Contains(r.Warning(), "was not closed") || r.Totals() != nil || len(got)%3 != 0 {
			t.Fatalf("cut at %d: %d records, error %v, warning %q", n, len(got), err, r.Warning())
		}
		if d := cmp.Diff(want[:len(got)], got, cmp.Transformer("nil", func(r []*Record) []*Record { return append([]*Record{}, r...) })); d != "" {
			t.Fatalf("cut at %d: %s", n, d)
		}
		seen[len(got)] = true
	}
	if len(seen) != 8 { // 0, 3, ... 21
		t.Errorf("numbers of records seen: %v", seen)
	}
}

// TestFileDamaged changes each byte: either the reader says so, or, behind a damaged block with SkipDamaged, only that block is missing.
func TestFileDamaged(t *testing.T) {
	want := sampleRecords(20)
	whole := writeRecords(t, want, 3)
	skipped := 0
	for n := range whole {
		b := bytes.Clone(whole)
		b[n] ^= 0x40
		if got, r, err := readRecords(b, ReadOptions{}); err == nil {
			t.Fatalf("byte %d changed: no error, %d records, warning %q", n, len(got), r.Warning())
		}
		got, r, err := readRecords(b, ReadOptions{SkipDamaged: true})
		if err != nil {
			continue // the header of the file or of a block
		}
		skipped++
		if r.Damaged() != 1 || len(got) != len(want)-3 || !strings.Contains(r.Warning(), "damaged") {
			t.Fatalf("byte %d changed: %d records, %d damaged, warning %q", n, len(got), r.Damaged(), r.Warning())
		}
	}
	if skipped < 100 {
		t.Errorf("only %d damages could be skipped", skipped)
	}
}

// block writes a block with a right checksum around any content.
func block(mark string, content []byte, records, length uint32) []byte {
	w, err := NewWriter(io.Discard, Header{})
	if err != nil {
		panic(err)
	}
	packed := w.zip.EncodeAll(content, nil)
	h := []byte(mark)
	for _, v := range []uint32{uint32(len(packed)), length, records, 0, 0, crc32.Checksum(packed, castagnoli)} {
		h = binary.LittleEndian.AppendUint32(h, v)
	}
	h = binary.LittleEndian.AppendUint32(h, crc32.Checksum(h, castagnoli))
	return append(h, packed...)
}

func TestFileHostile(t *testing.T) {
	head := writeRecords(t, nil, 1)
	head = head[:bytes.Index(head, []byte(endMark))]
	version := bytes.Clone(head)
	version[len(signature)] = 9
	with := func(b []byte) []byte { return append(bytes.Clone(head), b...) }
	one := appendRecord(nil, sampleRecords(0)[0], 0)
	for _, tt := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "this is not a trace file"},
		{"a history", []byte(`{"wirecheck":"history","version":1}` + "\n"), "this is not a trace file"},
		{"newer version", version, "format version 9"},
		{"not a block", with(bytes.Repeat([]byte("x"), 100)), "header is damaged"},
		{"more records than there are", with(block(blockMark, append([]byte{byte(len(one))}, one...), 2, uint32(len(one)+1))), "in the middle of a field"},
		{"a record longer than its block", with(block(blockMark, []byte{200, 1, 2}, 1, 3)), "in the middle of a field"},
		{"unknown kind", with(block(blockMark, []byte{2, 77, 1}, 1, 3)), "kind 77"},
		{"unknown field", with(block(blockMark, []byte{4, byte(KindEnd), 1, 120, 1}, 1, 5)), "a field 60 that this version does not know"},
		{"field of another kind", with(block(blockMark, []byte{4, byte(KindEnd), 1, fieldXID << 1, 1}, 1, 5)), "stands where it does not belong"},
		{"wrong length", with(block(blockMark, []byte("hello"), 1, 4)), "damaged"},
		{"huge length", with(block(blockMark, []byte("hello"), 1, 1<<31)), "damaged"},
		{"missing blocks", with(block(endMark, []byte(`{"records":5}`), 0, 13)), "5 records were written and 0 read"},
		{"totals that are none", with(block(endMark, []byte(`[]`), 0, 2)), "read totals"},
	} {
		if _, _, err := readRecords(tt.file, ReadOptions{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; want %q", tt.name, err, tt.want)
		}
	}
	if _, r, err := readRecords(append(writeRecords(t, nil, 1), "more"...), ReadOptions{}); err != nil || !strings.Contains(r.Warning(), "behind its end") {
		t.Errorf("something behind the end: %v, %q", err, r.Warning())
	}
}

func TestCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.wct")
	w, err := Create(path, Header{})
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := Create(path, Header{}); !errors.Is(err, os.ErrExist) {
		t.Errorf("a file that exists: %v", err)
	}
	if err := w.Write(sampleRecords(0)[0]); err != nil {
		t.Fatal(err)
	}
	big := &Record{Kind: KindStatement, Session: 7, Statement: &Statement{SQL: strings.Repeat("x", maxRecord+1)}}
	if err := w.Write(big); err == nil || !strings.Contains(err.Error(), "record of session 7") {
		t.Errorf("a record that is too large: %v", err)
	}
	if err := w.Write(sampleRecords(1)[0]); err == nil {
		t.Error("the writer goes on behind an error")
	}
	if err := w.Close(); err == nil {
		t.Error("closing hides the error")
	}
	if r, err := Open(path, ReadOptions{}); err != nil {
		t.Error(err)
	} else if err := r.Next(&Record{}); err != nil {
		t.Errorf("what was written before the error is lost: %v", err)
	} else if err := r.Next(&Record{}); !errors.Is(err, io.EOF) || r.Warning() == "" {
		t.Errorf("%v, warning %q", err, r.Warning())
	}
}

// TestSort sorts with room for everything and for a few records only, and demands the order of Compare, ties in the order of the file.
func TestSort(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var records []*Record
		for i := range rapid.IntRange(0, 60).Draw(rt, "n") {
			start := rapid.Int64Range(1, 9).Draw(rt, "start")
			records = append(records, &Record{Kind: KindStatement, Session: 1, Statement: &Statement{SQL: fmt.Sprint(i), Start: start, From: rapid.Uint64Range(0, 2).Draw(rt, "from")}})
		}
		file := writeRecords(t, records, 5)
		for _, room := range []int{1, 2000, sortBytes} {
			r, err := NewReader(bytes.NewReader(file), "x", ReadOptions{})
			if err != nil {
				rt.Fatal(err)
			}
			dir := t.TempDir()
			var got []*Record
			if err := sortRecords(r, dir, room, func(r *Record) error { got = append(got, r); return nil }); err != nil {
				rt.Fatal(err)
			}
			if len(got) != len(records) {
				rt.Fatalf("%d records of %d", len(got), len(records))
			}
			for i := 1; i < len(got); i++ {
				a, b := got[i-1], got[i]
				var x, y int
				fmt.Sscan(a.Statement.SQL, &x)
				fmt.Sscan(b.Statement.SQL, &y)
				if c := Compare(a, b); c > 0 || c == 0 && x > y {
					rt.Fatalf("room %d: %v stands before %v", room, a.Statement, b.Statement)
				}
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				rt.Fatalf("files are left: %v, %v", left, err)
			}
		}
	})
}
