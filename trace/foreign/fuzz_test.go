package foreign

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"wirecheck/anomaly"
	"wirecheck/history"
	"wirecheck/history/observed"
	"wirecheck/oracle/inferred"
	"wirecheck/oracle/isolation"
	"wirecheck/oracle/level"
)

var mutations = flag.Int("mutations", 3000, "mutated histories that TestMutated reads and judges")

func fuzz(f *testing.F, format string) {
	for _, s := range samples {
		if s.format == format {
			f.Add([]byte(s.text))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) { survive(t, format, data) })
}

// survive reads a history, judges it and writes it in all forms. What it writes it must read again, and judge in the same way. What it refuses it must say of
// which file.
func survive(t *testing.T, format string, data []byte) {
	Detect(data)
	h, err := Read(bytes.NewReader(data), format, "h")
	if err != nil {
		if !strings.HasPrefix(err.Error(), "h: ") {
			t.Fatalf("%s: the error does not name the file: %v", format, err)
		}
		return
	}
	inferred.Check(h, inferred.Options{Levels: true})
	ordered, timeless := judgement(h), judgement(withoutTime(h))
	for _, to := range Formats {
		var b bytes.Buffer
		if Write(&b, h, to) != nil || len(h.Transactions) == 0 {
			continue
		}
		text := b.String()
		again, err := Read(&b, to, "again")
		if err != nil {
			t.Fatalf("%s as %s is not read again: %v", format, to, err)
		}
		if len(h.Omitted) > 0 || len(again.Transactions) == 0 {
			continue // convert warns of it
		}
		want := ordered
		if !again.Ordered || !h.Ordered {
			want, again = timeless, withoutTime(again)
		}
		if got := judgement(again); got != want {
			t.Fatalf("%s as %s:\n%swant\n%s%s\nof\n%s", format, to, got, want, text, data)
		}
	}
}

// TestOddTexts has texts that are values of one form and not of another one, and texts that are not UTF-8.
func TestOddTexts(t *testing.T) {
	for _, odd := range []string{`"k\xd0?"`, `"k\xd1?"`, `"\u0007\u007f\u00a0\u2028😀"`, `{"t\xdd":1}`, `"a\\"b\\\\"`, `"\u00e9"`, "\"\x7f\"", `true`, `1e5`} {
		odd = strings.NewReplacer(`\xd0`, "\xd0", `\xd1`, "\xd1", `\xdd`, "\xdd").Replace(odd)
		survive(t, JepsenJSON, []byte(`[{"type":"ok","process":0,"value":[["w",`+odd+`,`+odd+`]]},{"type":"ok","process":1,"value":[["r",`+odd+`,`+odd+`]]}]`))
		survive(t, TimeKiller, []byte(`[{"tid":1,"sid":1,"sts":{"p":1,"l":0},"cts":{"p":2,"l":0},"ops":[{"t":"a","k":3,"v":`+odd+`}]},
			{"tid":2,"sid":1,"sts":{"p":3,"l":0},"cts":{"p":4,"l":0},"ops":[{"t":"r","k":3,"v":[`+odd+`]}]}]`))
	}
}

func FuzzElle(f *testing.F)       { fuzz(f, Elle) }
func FuzzJepsenJSON(f *testing.F) { fuzz(f, JepsenJSON) }
func FuzzPlume(f *testing.F)      { fuzz(f, Plume) }
func FuzzDBCop(f *testing.F)      { fuzz(f, DBCop) }
func FuzzTimeKiller(f *testing.F) { fuzz(f, TimeKiller) }

// versioned judges a history of rows and versions, in JSON lines or in the binary form; whole is false if not all of it could be read.
func versioned(t *testing.T, data []byte, binary bool) (said string, levels []level.Verdict, whole bool) {
	r, err := history.NewReader(bytes.NewReader(data), "h")
	if err != nil {
		return "", nil, false
	}
	if binary {
		var b bytes.Buffer
		w, err := history.NewBinaryWriter(&b, history.Header{})
		if err != nil {
			t.Fatal(err)
		}
		var e history.Event
		for r.Next(&e) == nil {
			if err := w.Write(&e); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if r, err = history.NewReader(&b, "h"); err != nil {
			t.Fatal(err)
		}
	}
	c := isolation.New(isolation.Options{Keep: -1, Levels: true})
	var e history.Event
	for err = r.Next(&e); err == nil; err = r.Next(&e) {
		c.Add(&e)
	}
	text, err2 := json.Marshal(c.Summary())
	if err2 != nil {
		t.Fatal(err2)
	}
	levels = isolation.Levels(c).Judge()
	coverage, _ := json.Marshal(c.Coverage())
	return fmt.Sprintf("%s\n%s\n%+v", text, coverage, levels), levels, errors.Is(err, io.EOF) && r.Warning() == ""
}

// nativeOf is a random history of rows and versions, in JSON lines.
func nativeOf(rng *rand.Rand) []byte {
	s := newStore(rng)
	s.lists = false
	for range 4 + s.rng.IntN(12) {
		s.step(1 + s.rng.IntN(3))
	}
	var b bytes.Buffer
	if observed.WriteNative(&b, s.h) != nil {
		return nil
	}
	return b.Bytes()
}

func readNative(data []byte) (*observed.History, error) {
	r, err := history.NewReader(bytes.NewReader(data), "h")
	if err != nil {
		return nil, err
	}
	h, err := observed.ReadNative(r.Next)
	if err == nil && r.Warning() != "" {
		h.Omit(r.Warning())
	}
	return h, err
}

func FuzzNative(f *testing.F) {
	for seed := range uint64(20) {
		if data := nativeOf(rand.New(rand.NewPCG(seed, 53))); data != nil {
			f.Add(data)
		}
	}
	f.Fuzz(sameNative)
}

// sameNative: the binary form of a history is judged as its lines are. What is converted of it is judged in the same way by both oracles, as far as
// the order of versions is known, and when it is read once more.
func sameNative(t *testing.T, data []byte) {
	said, _, whole := versioned(t, data, false)
	if again, _, _ := versioned(t, data, true); whole && said != again {
		t.Fatalf("lines\n%s\nbinary\n%s\n%s", said, again, data)
	}
	h, err := readNative(data)
	if err != nil || len(h.Omitted) > 0 || len(h.Transactions) == 0 || overlap(h) { // a session has one transaction after the other
		return
	}
	var b bytes.Buffer
	if observed.WriteNative(&b, h) != nil {
		return
	}
	text := b.Bytes()
	again, err := readNative(text)
	if err != nil {
		t.Fatal(err)
	}
	want := inferred.Check(h, inferred.Options{Order: true, Levels: true})
	if a, b := judgement(h), judgement(again); a != b && want.Coverage.Preloaded == 0 {
		t.Fatalf("%s\nconverted %s\n%s\nof %s", a, b, text, data)
	}
	if strings.Contains(judgement(h), string(anomaly.FutureRead)) { // the native form of a transaction has no times within it
		return
	}
	_, got, whole := versioned(t, text, false)
	if !whole {
		t.Fatalf("not read again: %s\nof %s", text, data)
	}
	for i, v := range want.Levels {
		if v.State != level.Unknown && got[i].State != v.State && h.Unordered() == 0 {
			t.Fatalf("%s: %s by the native form (%v), %s by the history (%v)\n%s\nof %s", v.Level, got[i].State, got[i].Witness, v.State, v.Witness, text, data)
		}
	}
}

// TestMutatedNative exchanges, drops and doubles lines and fields.
func TestMutatedNative(t *testing.T) {
	for seed := range uint64(*mutations) / 3 {
		rng := rand.New(rand.NewPCG(seed, 54))
		data := nativeOf(rng)
		if bytes.Count(data, []byte("\n")) < 4 {
			continue
		}
		lines := bytes.SplitAfter(data, []byte("\n"))
		lines = lines[:len(lines)-1]
		for range rng.IntN(4) {
			i, k := 1+rng.IntN(len(lines)-1), 1+rng.IntN(len(lines)-1)
			switch rng.IntN(5) {
			case 0:
				lines[i], lines[k] = lines[k], lines[i]
			case 1:
				lines = slices.Insert(lines, i, lines[k])
			case 2:
				if len(lines) > 3 {
					lines = slices.Delete(lines, i, i+1)
				}
			default: // a field of another line
				name := []string{"t", "s", "from", "to", "outcome", "version", "order", "writer", "prev", "porder", "pwriter", "op", "key"}[rng.IntN(13)]
				field := regexp.MustCompile(`"` + name + `":("[^"]*"|\d+)`)
				if got := field.Find(lines[k]); got != nil {
					lines[i] = field.ReplaceAllLiteral(lines[i], got)
				}
			}
		}
		sameNative(t, bytes.Join(lines, nil))
	}
}

// TestMutated changes histories in places chosen at random: what is read is judged, and nothing panics.
func TestMutated(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 15))
	pieces := []string{"nil", "null", "[", "]", "{", "}", "(", ")", ",", " ", "\n", ":", "\"", "\\", "-1", "0", "1", "2", "9223372036854775808", "1e400", "1.5", ":ok", ":info", ":fail", ":invoke",
		":append", ":r", ":w", "#", "#_", ";", "r", "w", "true", "\x00", "\xff", "[1 2]", "[1,2]", "{}", "-----\n", "=====\n"}
	read := 0
	for n := range *mutations {
		s := samples[n%len(samples)]
		data := []byte(s.text)
		for range 1 + rng.IntN(4) {
			at := rng.IntN(len(data) + 1)
			to := min(len(data), at+rng.IntN(6))
			switch rng.IntN(4) {
			case 0: // cut a piece out
				data = append(data[:at:at], data[to:]...)
			case 1: // put a piece in
				data = append(append(data[:at:at], pieces[rng.IntN(len(pieces))]...), data[at:]...)
			case 2: // exchange a piece
				data = append(append(data[:at:at], pieces[rng.IntN(len(pieces))]...), data[to:]...)
			case 3: // repeat a part
				far := min(len(data), at+rng.IntN(200))
				data = append(append(data[:far:far], data[at:far]...), data[far:]...)
			}
		}
		survive(t, s.format, data)
		if _, err := Read(bytes.NewReader(data), s.format, "h"); err == nil {
			read++
		}
	}
	if read < *mutations/20 {
		t.Errorf("only %d of %d mutated histories could be read", read, *mutations)
	}
}
