package foreign

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"strings"
	"testing"

	"wirecheck/oracle/inferred"
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
			if err.Error() != "again: "+errEmpty.Error() {
				t.Fatalf("%s as %s is not read again: %v", format, to, err)
			}
			continue
		}
		if len(h.Omitted) > 0 {
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

func FuzzElle(f *testing.F)       { fuzz(f, Elle) }
func FuzzJepsenJSON(f *testing.F) { fuzz(f, JepsenJSON) }
func FuzzPlume(f *testing.F)      { fuzz(f, Plume) }
func FuzzDBCop(f *testing.F)      { fuzz(f, DBCop) }
func FuzzTimeKiller(f *testing.F) { fuzz(f, TimeKiller) }

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
