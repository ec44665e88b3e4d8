package inferred

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"wirecheck/history"
	"wirecheck/history/observed"
)

// parse reads a history in a short form: a line for each transaction, "[session] [!|?] operations". ! says that it was rolled back, ? that its
// outcome is unknown. Operations are a x 1 (append), w x 1 (write), r x 1 2 (read of a list), r x = 1 (of a register), r x (nothing), r x _ (result
// not known); they end with a comma. A history that begins with "seq" has its transactions one after the other in real time; otherwise all overlap.
func parse(t *testing.T, text string) *observed.History {
	t.Helper()
	h := &observed.History{Ordered: true}
	seq := strings.HasPrefix(text, "seq")
	lines := strings.Split(strings.TrimSpace(strings.TrimPrefix(text, "seq")), "\n")
	for i, line := range lines {
		x := observed.Transaction{ID: uint64(i), Outcome: history.OutcomeCommitted, Begin: 1, End: uint64(i + 2)}
		if seq {
			x.Begin, x.End = uint64(2*i+1), uint64(2*i+2)
		}
		words := strings.Fields(line)
		if n, err := strconv.Atoi(words[0]); err == nil {
			x.Session, words = uint64(n), words[1:]
		}
		switch words[0] {
		case "!":
			x.Outcome, words = history.OutcomeAborted, words[1:]
		case "?":
			x.Outcome, x.End, words = history.OutcomeUnknown, 0, words[1:]
		}
		for _, part := range strings.Split(strings.Join(words, " "), ",") {
			f := strings.Fields(part)
			op := observed.Op{Key: f[1]}
			switch {
			case f[0] == "a":
				op.Kind, op.Value = observed.Append, f[2]
			case f[0] == "w":
				op.Kind, op.Value = observed.Write, f[2]
			case len(f) == 2:
				op.Initial = true
			case f[2] == "_":
				op.Unknown = true
			case f[2] == "=":
				op.Value = f[3]
			default:
				op.IsList, op.List = true, f[2:]
			}
			x.Ops = append(x.Ops, op)
		}
		h.Transactions = append(h.Transactions, x)
	}
	return h
}

// classes are those of the findings, each once.
func classes(r Result) string {
	var out []string
	for i := range r.Findings {
		out = append(out, string(r.Findings[i].Class))
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), " ")
}

// TestHistories has histories of Adya's thesis, of Berenson et al., of Elle's paper and of the anomalies' definitions, each with what Elle reports of
// it ("" is valid, and "unknown" that nothing can be said), and near misses.
func TestHistories(t *testing.T) {
	for _, tt := range []struct {
		name, text, want string
		data             bool // data dependencies only
	}{
		// Write cycles and dirty reads (Adya 1999, 4.2).
		{name: "G0", text: "a x 1, a y 1\na x 2, a y 2\nr x 1 2, r y 2 1", want: "G0"},
		{name: "no G0", text: "a x 1, a y 1\na x 2, a y 2\nr x 1 2, r y 1 2", want: ""},
		{name: "G1a", text: "! a x 1\nr x 1", want: "G1a"},
		{name: "G1a in the middle of a list", text: "! a x 1\na x 2\nr x 1 2", want: "G1a dirty-update"},
		{name: "an aborted append that nobody read", text: "! a x 1\na x 2\nr x 2", want: ""},
		{name: "a read of unknown outcome commits", text: "? a x 1\nr x 1", want: ""},
		{name: "G1b", text: "a x 1, a x 2\nr x 1", want: "G-single G1b"},
		{name: "both of an intermediate pair", text: "a x 1, a x 2\nr x 1 2", want: ""},
		{name: "own intermediate read", text: "a x 1, r x 1, a x 2\nr x 1 2", want: ""},
		{name: "G1c by wr", text: "a x 1, r y 1\na y 1, r x 1", want: "G1c"},
		{name: "G1c by ww and wr", text: "a x 1, r y 1\na x 2, a y 1\nr x 1 2", want: "G1c"},
		{name: "dirty update over an unknown one", text: "! a x 1\n? a x 2\na x 3\nr x 1 2 3", want: "G1a dirty-update"},
		// Anti-dependencies (Adya 1999, 4.3; Berenson et al. 1995).
		{name: "read skew", text: "a x 1, a y 1\nr x 1, r y", want: "G-single"},
		{name: "read skew, near miss", text: "a x 1, a y 1\nr x, r y\nr x 1, r y 1", want: ""},
		{name: "G-single by ww", text: "a x 1, a y 1\na x 2, r y\nr x 1 2", want: "G-single"},
		{name: "write skew", text: "a x 1, r y\na y 1, r x", want: "G2-item"},
		{name: "write skew, near miss", text: "a x 1, r y\na y 1, r x 1", want: ""},
		{name: "lost update", text: "a x 0\nr x 0, a x 1\nr x 0, a x 2", want: "G2-item lost-update"},
		{name: "lost update, order known", text: "a x 0\nr x 0, a x 1\nr x 0, a x 2\nr x 0 1 2", want: "G-single lost-update"},
		{name: "lost update, near miss", text: "a x 0\nr x 0, a x 1\nr x 0 1, a x 2", want: ""},
		{name: "lost update, though it read again before the write", text: "w x 0\nr x = 0, w x 1\nr x = 0, r x = 1, w x 2", want: "G2-item internal lost-update"},
		{name: "one transaction writes twice", text: "r x, a x 1, a x 2\nr x 1 2", want: ""},
		{name: "long fork", text: "a x 1\nr x 1, r y\na y 1\nr y 1, r x", want: "G-nonadjacent"},
		{name: "long fork, near miss", text: "a x 1\nr x 1, r y\na y 1\nr y 1, r x 1", want: ""},
		{name: "edges that do not close", text: "r x 5, a y 1\nr y, a z 2\nr z, a t 3\nr t 3, a u 4\nr u, a x 5", want: ""},
		{name: "two of three rw edges are adjacent", text: "r x 5, r y\na y 1, r z\na z 2, r t\na t 3, a x 5", want: "G2-item"},
		{name: "read-only anomaly (Fekete et al. 2004)", text: "r x, r y, a x 1\na y 1\nr x, r y 1", want: "G2-item"},
		{name: "three-way G2", text: "r x, a y 1\nr y, a z 1\nr z, a x 1", want: "G2-item"},
		// What reads alone show.
		{name: "internal: own append not seen", text: "a x 6, r x", want: "internal"},
		{name: "internal: more than its own append", text: "r x 1, a x 2, r x 1 2 3\na x 1\na x 3", want: "G1c internal"},
		{name: "own appends at the end of an unknown list", text: "a x 1\na x 2, r x 1 2", want: ""},
		{name: "future read", text: "r x 1, a x 1", want: "future-read"},
		{name: "duplicate elements", text: "a x 1\na x 2\nr x 1 2 1", want: "duplicate-elements"},
		{name: "incompatible order", text: "a x 1\na x 2\na x 3\nr x 1 3\nr x 1 2 3", want: "incompatible-order"},
		{name: "contradictory orders and a cycle", text: "a x 1, r y 1\na x 2\na x 3, a y 1\nr x 1 3\nr x 1 2 3", want: "G1c incompatible-order"},
		{name: "an append that nobody read comes last", text: "a x 1, a y 1\na x 2, a y 2\na x 3, a y 3\nr x 1 2\nr y 2", want: "G-single G0"},
		{name: "appends of one transaction in another order", text: "a x 1, a x 2\nr x 2 1", want: "G1b cyclic-versions"},
		{name: "garbage", text: "a x 1\nr x 1 7\nr x 1", want: "garbage-read"},
		{name: "a value from before the history", text: "a x 1\nr x 7\nr x 7 1", want: ""},
		// Session order and real time.
		{name: "stale read, real time", text: "seq a x 1\na x 2\nr x 1\nr x 1 2", want: "G-single-realtime"},
		{name: "stale read, real time not asked for", text: "seq a x 1\na x 2\nr x 1\nr x 1 2", want: "", data: true},
		{name: "stale read of one's own session", text: "seq 1 a x 1\n2 a x 2\n2 r x 1\n3 r x 1 2", want: "G-single-process"},
		{name: "concurrent: not stale", text: "1 a x 1\n2 a x 2\n3 r x 1\n4 r x 1 2", want: ""},
		{name: "G1c-process", text: "seq 1 r x 1, a y 1\n2 r y 1\n2 a x 1", want: "G1c-process"},
		{name: "G0-realtime", text: "seq a x 1\na x 2\nr x 2 1", want: "G0-realtime"},
		{name: "G-nonadjacent-process", text: "1 r x, r z 1\n2 a x 1\n2 r z\n3 a z 1", want: "G-nonadjacent-process"},
		{name: "write skew in sequence is a stale read, too", text: "seq a x 1, r y\na y 1, r x", want: "G-single-realtime G2-item"},
		// Registers.
		{name: "register: G1a", text: "! w x 1\nr x = 1", want: "G1a"},
		{name: "register: G1b", text: "w x 1, w x 2\nr x = 1", want: "G1b"},
		{name: "register: G1c", text: "w x 1, r y = 1\nw y 1, r x = 1", want: "G1c"},
		{name: "register: initial state", text: "r x, r y = 1\nw y 1, w x 2", want: "G-single"},
		{name: "register: initial state, near miss", text: "r x, r y\nw y 1, w x 2", want: ""},
		{name: "register: a write follows its read", text: "r y = 1, w x 1, w y 2\nr x = 1, r y = 1\nw y 1", want: "G-single"},
		{name: "register: internal", text: "w x 1\nr x = 1, w x 2, r x = 1", want: "internal"},
		{name: "register: read twice", text: "w x 1\nw x 2\nr x = 1, r x = 2", want: "internal"},
		{name: "register: lost update of a value from before", text: "r x = 0, w x 1\nr x = 0, w x 2", want: "G2-item lost-update"},
		{name: "register: write skew", text: "w x 1, w y 1\nr x = 1, r y = 1, w y 2\nr x = 1, r y = 1, w x 2", want: "G2-item"},
		{name: "register: write skew from the initial state", text: "r x, w y 1\nr y, w x 1", want: "G2-item"},
		{name: "register: cyclic versions", text: "r x = 2, w x 1\nr x = 1, w x 2", want: "G1c cyclic-versions"},
		{name: "register: serial chain", text: "r x, w x 1\nr x = 1, w x 2\nr x = 2", want: ""},
		{name: "register: no order fits", text: "w x 1\nw x 2\n1 r x = 1\n1 r x = 2\n2 r x = 2\n2 r x = 1", want: "PL-SS-cycle-exists"},
		{name: "register: no order fits, near miss", text: "w x 1\nw x 2\n1 r x = 1\n1 r x = 2\n2 r x = 1\n2 r x = 2", want: ""},
		{name: "register: orders that cross", text: "w x 1, w y 1\nw x 2, w y 2\nr x = 1, r y = 2", want: "PL-3-cycle-exists"},
		{name: "register: garbage", text: "w x 1\nr x\nr x = 7\nr x = 1", want: "garbage-read"},
		// What says nothing.
		{name: "blind writes alone", text: "w x 1\nw y 1", want: "unknown"},
		{name: "a value written twice", text: "w x 1\nw x 1\nr x = 1", want: "unknown"},
		{name: "an element appended twice", text: "a x 1\na x 1\nr x 1", want: "unknown"},
		{name: "appended and overwritten", text: "a x 1\nw x 2\nr x = 2", want: "unknown"},
		{name: "unknown reads say nothing", text: "? a x 2, r y _\na x 1, a y 1\nr x 1 2, r y 1", want: ""},
	} {
		r := Check(parse(t, tt.text), Options{Order: !tt.data})
		got := classes(r)
		if got == "" && r.Undecided != "" {
			got = "unknown"
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q (undecided: %q)\n%s", tt.name, got, tt.want, r.Undecided, tt.text)
			for _, f := range r.Findings {
				for _, e := range f.Edges {
					t.Logf("  %s: %s", f.Class, e.Text)
				}
			}
		}
	}
}
