package foreign

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"olympos.io/encoding/edn"

	"wirecheck/history"
	"wirecheck/history/observed"
)

// ednOp is what matters of an operation. Other keys, whatever they hold, are passed over.
type ednOp struct {
	Index   *int64         `edn:"index"`
	Type    edn.RawMessage `edn:"type"`
	Process edn.RawMessage `edn:"process"`
	Value   edn.RawMessage `edn:"value"`
}

// readEDN reads a Jepsen history: one map for each operation, one after the other or in one vector or list.
func readEDN(data []byte) (*observed.History, error) {
	if err := checkDepth(data, ';'); err != nil {
		return nil, err
	}
	h, err := decodeEDN(data)
	if err != nil {
		if again, fails := decodeEDN(printed(data)); fails == nil {
			return again, nil
		}
	}
	return h, err
}

func decodeEDN(data []byte) (h *observed.History, err error) {
	number := 0
	defer func() {
		if r := recover(); r != nil { // the library promises no such thing, and fuzzing found none
			h, err = nil, fmt.Errorf("operation %d: %v", number+1, r)
		}
	}()
	var events []event
	d := edn.NewDecoder(bytes.NewReader(unwrap(data)))
	for ; ; number++ {
		var raw edn.RawMessage
		if err := d.Decode(&raw); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("operation %d: %w", number+1, err)
		}
		e, err := ednEvent(raw)
		if err != nil {
			return nil, fmt.Errorf("operation %d: %w", number+1, err)
		}
		events = append(events, e)
	}
	return jepsenHistory(events), nil
}

// lexemes are strings, comments, characters and words; odd are the words that Clojure prints and the library does not know: hexadecimal numbers
// (in #object[...]), ratios, ##Inf and ##NaN; and the name in front of a map whose keys all have it (#:name{...}).
var (
	lexemes = regexp.MustCompile(`(?s)"(?:[^"\\]|\\.)*"|;[^\n]*|\\.|[^\s,()\[\]{}";\\]+`)
	odd     = regexp.MustCompile(`^(?:[+-]?(?:0x[0-9a-fA-F]+|[0-9]+/[0-9]+)|##-?[A-Za-z]+|#::?\S+)$`)
)

// printed is a history in which odd words are strings. As a rule they stand in errors; as values they are equal where their texts are.
func printed(data []byte) []byte {
	return lexemes.ReplaceAllFunc(data, func(word []byte) []byte {
		switch {
		case !odd.Match(word):
			return word
		case bytes.HasPrefix(word, []byte("#:")):
			return nil
		}
		return fmt.Appendf(nil, "%q", word)
	})
}

// unwrap takes the brackets off that hold all operations.
func unwrap(data []byte) []byte {
	s := bytes.TrimPrefix(data, []byte("\ufeff"))
	for {
		s = bytes.TrimLeft(s, " \t\r\n,")
		if len(s) == 0 || s[0] != ';' {
			break
		}
		_, rest, _ := bytes.Cut(s, []byte("\n"))
		s = rest
	}
	if len(s) == 0 || s[0] != '[' && s[0] != '(' {
		return s
	}
	end := map[byte]byte{'[': ']', '(': ')'}[s[0]]
	if last := bytes.LastIndexByte(s, end); last > 0 {
		return append(bytes.Clone(s[1:last]), s[last+1:]...)
	}
	return s
}

func ednEvent(raw edn.RawMessage) (event, error) {
	raw = bytes.TrimLeft(raw, " \t\r\n,")
	if len(raw) > 0 && raw[0] == '#' { // #jepsen.history.Op{...}
		if i := bytes.IndexByte(raw, '{'); i > 0 {
			raw = raw[i:]
		}
	}
	var op ednOp
	if err := edn.Unmarshal(raw, &op); err != nil {
		return event{}, fmt.Errorf("is no operation: %w", err)
	}
	e := event{kind: keyword(op.Type)}
	if op.Index != nil {
		e.index, e.indexed = *op.Index, true
	}
	process := string(bytes.TrimSpace(op.Process))
	_, bad := strconv.ParseInt(process, 10, 64)
	if process != "nil" {
		e.session = process
	}
	e.client = process == "" || process == "nil" || bad == nil
	if !e.client {
		return e, nil
	}
	if v := bytes.TrimSpace(op.Value); len(v) == 0 || string(v) == "nil" {
		e.none = true
		return e, nil
	}
	e.ops, e.mops = ednNotation.mops(op.Value)
	return e, nil
}

var ednNotation = notation[edn.RawMessage]{none: "nil", lists: "[(", unmarshal: edn.Unmarshal, compact: compact, name: keyword}

// keyword is a keyword without its colon.
func keyword(raw edn.RawMessage) string {
	return strings.TrimPrefix(string(bytes.TrimSpace(raw)), ":")
}

// compact is the text of a value without needless blanks, so that equal values have equal texts.
func compact(raw edn.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if !bytes.ContainsAny(raw, " \t\r\n,;#") {
		return string(raw)
	}
	var b bytes.Buffer
	if err := edn.Compact(&b, raw); err != nil {
		return string(raw)
	}
	return b.String()
}

// writeEDN writes one operation a line, an invocation and a completion for each transaction.
func writeEDN(h *observed.History) ([]byte, error) {
	var b bytes.Buffer
	for _, e := range operations(h) {
		fmt.Fprintf(&b, "{:index %d, :type :%s, :process %d, :f :txn, :value [", e.index, e.kind, e.process)
		for i, op := range e.t.Ops {
			if i > 0 {
				b.WriteByte(' ')
			}
			name := map[observed.Kind]string{observed.Read: ":r", observed.Write: ":w", observed.Append: ":append"}[op.Kind]
			fmt.Fprintf(&b, "[%s %s %s]", name, ednWord(op.Key), ednValue(&op, e.kind == "ok"))
		}
		b.WriteString("]}\n")
	}
	return b.Bytes(), nil
}

func ednValue(op *observed.Op, completed bool) string {
	switch {
	case op.Kind != observed.Read:
		return ednWord(op.Value)
	case !completed || op.Unknown || op.Initial && !op.IsList:
		return "nil"
	case op.IsList:
		items := make([]string, len(op.List))
		for i, s := range op.List {
			items[i] = ednWord(s)
		}
		return "[" + strings.Join(items, " ") + "]"
	}
	return ednWord(op.Value)
}

// ednWord writes a text that is one EDN value as it is, and any other one as a string.
func ednWord(s string) string {
	if checkDepth([]byte(s), ';') == nil {
		d := edn.NewDecoder(strings.NewReader(s))
		var raw, more edn.RawMessage
		if d.Decode(&raw) == nil && errors.Is(d.Decode(&more), io.EOF) && compact(raw) == s {
			return s
		}
	}
	return ednString(s)
}

// ednString is an EDN string: it has no escapes but these. A byte that is not UTF-8 is a lone surrogate, as in a history's own form.
func ednString(s string) string {
	b := []byte{'"'}
	for i, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r >= ' ' && r <= '~':
			b = append(b, byte(r))
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(r)):
			b = fmt.Appendf(b, `\udc%02x`, s[i])
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				b = fmt.Appendf(b, `\u%04x`, unit)
			}
		}
	}
	return string(append(b, '"'))
}

// operation is an invocation or a completion that is written.
type operation struct {
	t       *observed.Transaction
	index   int
	kind    string
	process uint64
}

// operations gives the invocations and completions of a history in an order that shows its real time. Where the history shows none, the order
// keeps that of each session; what it seems to say of different sessions means nothing.
func operations(h *observed.History) []operation {
	var moments []moment
	last := uint64(0)
	turn := map[uint64]uint64{}
	for i := range h.Transactions {
		t := &h.Transactions[i]
		m := moment{begin: t.Begin, end: t.End, i: i}
		if !h.Ordered && t.Session != 0 {
			turn[t.Session] += 2
			m.begin, m.end = turn[t.Session]-1, turn[t.Session]
		}
		last = max(last, m.begin, m.end)
		moments = append(moments, m)
	}
	return paired(h, moments, last+1)
}

// moment is where a transaction stands.
type moment struct {
	begin, end uint64
	i          int
}

// paired puts beginnings and ends in order; where they meet, what begins comes first.
func paired(h *observed.History, list []moment, never uint64) []operation {
	type point struct {
		at  uint64
		end bool
		i   int
	}
	points := make([]point, 0, 2*len(list))
	for _, m := range list {
		if m.begin > 0 || !h.Ordered { // a completion without an invocation has no beginning in real time
			points = append(points, point{m.begin, false, m.i})
		}
		points = append(points, point{cmp.Or(m.end, never), true, m.i})
	}
	slices.SortStableFunc(points, func(a, b point) int {
		if c := cmp.Compare(a.at, b.at); c != 0 || a.end == b.end {
			return c
		}
		if a.end {
			return 1
		}
		return -1
	})
	free := uint64(0)
	for i := range h.Transactions {
		free = max(free, h.Transactions[i].Session)
	}
	process := make([]uint64, len(h.Transactions))
	out := make([]operation, 0, len(points))
	for _, m := range points {
		t := &h.Transactions[m.i]
		if process[m.i] == 0 {
			if process[m.i] = t.Session; t.Session == 0 || t.Outcome == history.OutcomeUnknown { // a process waits for its answer; no session orders what has none
				free++
				process[m.i] = free
			}
		}
		kind := "invoke"
		if m.end {
			kind = cmp.Or(map[history.Outcome]string{history.OutcomeCommitted: "ok", history.OutcomeAborted: "fail"}[t.Outcome], "info")
		}
		out = append(out, operation{t, len(out), kind, process[m.i]})
	}
	return out
}
