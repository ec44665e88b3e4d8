// Package foreign reads and writes the histories of other checkers: Elle and Jepsen (EDN and JSON), Plume, PolySI, IsoVista and
// AWDIT (text), dbcop (JSON) and TimeKiller (JSON). docs/reference/foreign-formats.md describes them.
package foreign

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"wirecheck/history"
	"wirecheck/history/observed"
)

// The formats.
const (
	Elle       = "elle"
	JepsenJSON = "jepsen-json"
	Plume      = "plume"
	DBCop      = "dbcop"
	TimeKiller = "timekiller"
)

// Formats are the names that Read and Write know.
var Formats = []string{Elle, JepsenJSON, Plume, DBCop, TimeKiller}

// maxSize is the largest file that is read: all of a history is in memory, several times over.
const maxSize = 4 << 30

// Read reads a history in one of Formats. The name is used in errors. A file with nothing in it is a history without transactions.
func Read(r io.Reader, format, name string) (h *observed.History, err error) {
	read, ok := map[string]func([]byte) (*observed.History, error){
		Elle: readEDN, JepsenJSON: readJepsenJSON, Plume: readPlume, DBCop: readDBCop, TimeKiller: readTimeKiller,
	}[format]
	if !ok {
		return nil, fmt.Errorf("unknown format %q: known are %s", format, strings.Join(Formats, ", "))
	}
	data, err := io.ReadAll(io.LimitReader(r, maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(data) > maxSize {
		return nil, fmt.Errorf("%s: is larger than %d GiB", name, maxSize>>30)
	}
	if h, err = read(data); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	h.Format = format
	return h, nil
}

// Write writes a history in one of Formats. What the format cannot say is an error.
func Write(w io.Writer, h *observed.History, format string) error {
	write, ok := map[string]func(*observed.History) ([]byte, error){
		Elle: writeEDN, JepsenJSON: writeJepsenJSON, Plume: writePlume, DBCop: writeDBCop, TimeKiller: writeTimeKiller,
	}[format]
	if !ok {
		return fmt.Errorf("unknown format %q: known are %s", format, strings.Join(Formats, ", "))
	}
	var data []byte
	err := fits(h, format)
	if err == nil {
		data, err = write(told(h))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", format, err)
	}
	_, err = w.Write(data)
	return err
}

// told is a history without the reads of committed transactions of which no result is known: no format has them, and a nil would say that there was nothing.
func told(h *observed.History) *observed.History {
	lacks := func(op observed.Op) bool { return op.Unknown }
	out := *h
	out.Transactions = slices.Clone(h.Transactions)
	for i := range out.Transactions {
		if t := &out.Transactions[i]; t.Outcome == history.OutcomeCommitted && slices.ContainsFunc(t.Ops, lacks) {
			t.Ops = slices.DeleteFunc(slices.Clone(t.Ops), lacks)
		}
	}
	return &out
}

// fits refuses what would be judged otherwise in a format.
func fits(h *observed.History, format string) error {
	unwritten, rolledBack := h.Strays()
	switch {
	case unwritten && h.KnownInitial != (format == Plume || format == DBCop):
		return observed.ErrUnwritten
	case rolledBack && format == TimeKiller:
		return errors.New("the form has no transactions that were rolled back, and a committed one read of such")
	case (format == Elle || format == JepsenJSON) && h.Ordered && overlap(h):
		return errors.New("in the form a session has one transaction after the other, and here one begins before, or when, the one before it ends, or the time of that is not known")
	}
	return nil
}

// overlap reports whether a session has a transaction that begins while the one before it is not certain to have ended.
func overlap(h *observed.History) bool {
	last := map[uint64]*observed.Transaction{}
	for i := range h.Transactions {
		t := &h.Transactions[i]
		if t.Session == 0 || t.Outcome == history.OutcomeUnknown {
			continue
		}
		if p := last[t.Session]; p != nil && (p.End == 0 || cmp.Or(t.Begin, t.End, p.End) <= p.End) {
			return true
		}
		last[t.Session] = t
	}
	return false
}

// Detect recognises a format by a file's beginning; empty: none of them.
func Detect(begin []byte) string {
	text := strings.TrimLeft(string(bytes.TrimPrefix(begin, []byte("\ufeff"))), " \t\r\n,")
	for strings.HasPrefix(text, ";") {
		_, rest, _ := strings.Cut(text, "\n")
		text = strings.TrimLeft(rest, " \t\r\n,")
	}
	flat := strings.Join(strings.Fields(text), "")
	switch {
	case strings.HasPrefix(flat, "{:") || strings.HasPrefix(flat, "[{:") || strings.HasPrefix(flat, "({:") || strings.HasPrefix(flat, "#jepsen.history"),
		strings.HasPrefix(flat, "[#jepsen.history"):
		return Elle
	case plumeLine.MatchString(firstLine(text)), testLine.MatchString(firstLine(text)):
		return Plume
	case strings.HasPrefix(flat, `{"wirecheck"`):
		return ""
	case strings.HasPrefix(flat, `[{`) || strings.HasPrefix(flat, `{`) || strings.HasPrefix(flat, `[[`):
		return detectJSON(flat)
	}
	return ""
}

// detectJSON looks for the key that only one of the JSON forms has.
func detectJSON(flat string) string {
	best, at := "", len(flat)
	for _, k := range []struct{ key, format string }{
		{`"process":`, JepsenJSON}, {`"type":`, JepsenJSON}, {`"sts":`, TimeKiller}, {`"cts":`, TimeKiller}, {`"tid":`, TimeKiller},
		{`"events":`, DBCop}, {`"params":`, DBCop}, {`"committed":`, DBCop}, {`"n_node":`, DBCop},
	} {
		if i := strings.Index(flat, k.key); i >= 0 && i < at {
			best, at = k.format, i
		}
	}
	return best
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSpace(line)
}

// maxDepth bounds the nesting of brackets: a parser that follows them by recursion must not run out of stack.
const maxDepth = 200

// checkDepth refuses a text that nests deeper. comment begins a comment that ends with its line; 0: there are none.
func checkDepth(data []byte, comment byte) error {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch c := data[i]; c {
		case '(', '[', '{':
			if depth++; depth > maxDepth {
				return fmt.Errorf("byte %d: brackets nest more than %d deep", i, maxDepth)
			}
		case ')', ']', '}':
			depth = max(depth-1, 0)
		case '\\': // EDN: a character
			i++
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case comment:
			if comment == 0 {
				continue
			}
			for i < len(data) && data[i] != '\n' {
				i++
			}
		}
	}
	return nil
}
