package history

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// said is what a reader gave: each event in its JSON form, which leaves nothing out, the warning and the error.
type said struct {
	Events  []string
	Warning string
	Err     string
}

// listen reads all events.
func listen(r *Reader) (s said) {
	var e Event
	for {
		if err := r.Next(&e); errors.Is(err, io.EOF) {
			s.Warning = r.Warning()
			return s
		} else if err != nil {
			s.Err = err.Error()
			return s
		}
		s.Events = append(s.Events, string(AppendEvent(nil, &e)))
	}
}

// eventsOf are the events again.
func eventsOf(t *testing.T, texts []string) []Event {
	out := make([]Event, len(texts))
	for i, text := range texts {
		var d Decoder
		if err := d.Decode([]byte(text), &out[i]); err != nil {
			t.Fatalf("an event that was read is refused: %v\n%s", err, text)
		}
	}
	return out
}

// whereAndWhat is how an error begins that says in which line of which file something is wrong.
var whereAndWhat = regexp.MustCompile(`^h(:\d+: .{10,}|: is empty: .+)`)

// sameHowever reads a history in all ways there are. Each says the same: from memory, byte by byte, with strings that are lent, and for the second time. What
// it says is the same when it is written and read again, in lines, in the binary form and in a batch. An error says where and what.
func sameHowever(t *testing.T, data []byte) {
	open := func(in io.Reader) *Reader {
		r, err := NewReader(in, "h")
		if err != nil {
			if !whereAndWhat.MatchString(err.Error()) {
				t.Fatalf("the error does not say where and what: %v", err)
			}
			return nil
		}
		return r
	}
	r := open(bytes.NewReader(data))
	if r == nil {
		return
	}
	all := listen(r)
	if all.Err != "" && !whereAndWhat.MatchString(all.Err) {
		t.Fatalf("the error does not say where and what: %s", all.Err)
	}
	if all.Warning != "" && !whereAndWhat.MatchString(all.Warning) {
		t.Fatalf("the warning does not say where and what: %s", all.Warning)
	}
	lent := open(bytes.NewReader(data))
	lent.Lend()
	for how, other := range map[string]*Reader{"byte by byte": open(iotest.OneByteReader(bytes.NewReader(data))), "lent": lent} {
		if d := cmp.Diff(all, listen(other)); d != "" {
			t.Fatalf("%s (-from memory +so):\n%s", how, d)
		}
	}
	events := eventsOf(t, all.Events)
	parts := 0 // of events, of which a file cannot hold more than it has bytes
	for i := range events {
		e := &events[i]
		parts += 1 + len(e.Accesses) + len(e.Tokens) + len(e.Reads) + len(e.Tags) + len(e.Operands) + len(e.Derived)
	}
	if parts > len(data) {
		t.Fatalf("%d parts of events in %d bytes", parts, len(data))
	}
	if all.Err == "" {
		readAgain(t, r, data, events, all)
	}
	for form, data := range map[string][]byte{"lines": encode(t, events), "binary": encodeBinary(t, events)} {
		if d := cmp.Diff(said{Events: all.Events}, listen(open(bytes.NewReader(data)))); d != "" {
			t.Fatalf("%s (-read +written and read):\n%s", form, d)
		}
	}
	var b Batch
	for i := range events {
		b.Add(&events[i])
	}
	sameBatch(t, b.Take(), all.Events)
}

// readAgain reads a history that could be read for the second time, without the transactions of odd numbers.
func readAgain(t *testing.T, r *Reader, data []byte, events []Event, all said) {
	even := func(txn uint64) bool { return txn%2 == 0 }
	want, passed := said{Warning: all.Warning}, 0
	for i, e := range events {
		if e.Txn == 0 || e.Kind == EventSession || e.Kind == EventClose || even(e.Txn) {
			want.Events = append(want.Events, all.Events[i])
		} else if e.Kind == EventBegin {
			passed++
		}
	}
	if err := r.Again(bytes.NewReader(data), even); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, listen(r)); d != "" || r.Passed() != passed {
		t.Fatalf("for the second time %d transactions were passed over, want %d (-want +got):\n%s", r.Passed(), passed, d)
	}
}

// sameBatch reads a batch and compares the events.
func sameBatch(t *testing.T, data []byte, want []string) {
	var r BatchReader
	var got []string
	if err := r.Read(data, func(e *Event) { got = append(got, string(AppendEvent(nil, e))) }); err != nil {
		t.Fatalf("own batch is refused: %v", err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("batch (-read +written and read):\n%s", d)
	}
}

func FuzzReader(f *testing.F) {
	f.Add(encode(f, full()))
	f.Add(encodeBinary(f, full()))
	f.Add([]byte("{\"wirecheck\":\"history\",\"version\":1}\r\n\n{ \"e\" : \"stmt\",\"s\":1,\"sql\":\"\\ud83d\\ude00\\udcff\\ud800\" }"))
	f.Fuzz(sameHowever)
}

// FuzzLines has the header right.
func FuzzLines(f *testing.F) {
	head := appendHeader(nil, Header{}, "")
	for _, events := range [][]Event{full(), compact()} {
		data := encode(f, events)
		f.Add(data[bytes.IndexByte(data, '\n')+1:])
	}
	f.Add([]byte(`{"e":"session","s":1,"t":7,"engine":"postgres"}` + "\n")) // of no transaction all the same
	f.Fuzz(func(t *testing.T, data []byte) { sameHowever(t, append(bytes.Clone(head), data...)) })
}

// FuzzBinary has the header right.
func FuzzBinary(f *testing.F) {
	head := appendHeader(nil, Header{}, formBinary)
	data := encodeBinary(f, append(full(), compact()...))
	f.Add(data[bytes.IndexByte(data, '\n')+1:])
	f.Fuzz(func(t *testing.T, data []byte) { sameHowever(t, append(bytes.Clone(head), data...)) })
}

// FuzzBatch reads anything as a batch: what can be read is the same when it is written and read again.
func FuzzBatch(f *testing.F) {
	var b Batch
	for _, e := range slices.Concat(full(), compact()) {
		b.Add(&e)
	}
	f.Add(b.Take())
	named := regexp.MustCompile(`^record \d+ of the batch(: .+| is cut off$)`)
	f.Fuzz(func(t *testing.T, data []byte) {
		var r BatchReader
		var got []string
		if err := r.Read(data, func(e *Event) { got = append(got, string(AppendEvent(nil, e))) }); err != nil && !named.MatchString(err.Error()) {
			t.Fatalf("the error does not name the record: %v", err)
		}
		var again Batch
		for _, e := range eventsOf(t, got) {
			again.Add(&e)
		}
		sameBatch(t, again.Take(), got)
	})
}
