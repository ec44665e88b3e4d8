package foreign

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"wirecheck/anomaly"
	"wirecheck/oracle/inferred"
)

// jepsenOf makes a Jepsen history of a short text: a transaction in each word, with its process and its outcome where they are not its own process and ok
// ("2:ax1", "fail:ax1"). ax1 appends 1 to x, wx1 writes it, rx12 reads [1 2] of a list, and 1 of a register; rx and rx_ read nothing. "|" joins
// transactions at the same time.
func jepsenOf(text string, register bool) string {
	var b strings.Builder
	process := 100
	for _, word := range strings.Fields(text) {
		var begins, ends []string
		for _, txn := range strings.Split(word, "|") {
			parts := strings.Split(txn, ":")
			outcome, own := "ok", process
			process++
			for _, p := range parts[:len(parts)-1] {
				if _, err := fmt.Sscan(p, &own); err != nil {
					outcome = p
				}
			}
			ops := elleOps(parts[len(parts)-1], register)
			begins = append(begins, fmt.Sprintf("{:type :invoke, :f :txn, :process %d, :value %s}\n", own, ops))
			ends = append(ends, fmt.Sprintf("{:type :%s, :f :txn, :process %d, :value %s}\n", outcome, own, ops))
		}
		b.WriteString(strings.Join(begins, "") + strings.Join(ends, ""))
	}
	return b.String()
}

func elleOps(text string, register bool) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		k := i + 2
		for k < len(text) && strings.IndexByte("0123456789_", text[k]) >= 0 {
			k++
		}
		name, value := map[byte]string{'a': ":append", 'w': ":w", 'r': ":r"}[text[i]], text[i+2:k]
		switch {
		case value == "" || value == "_":
			value = "nil"
		case name == ":r" && !register:
			value = "[" + strings.Join(strings.Split(value, ""), " ") + "]"
		}
		fmt.Fprintf(&b, "[%s :%c %s] ", name, text[i+1], value)
		i = k
	}
	return "[" + strings.TrimSpace(b.String()) + "]"
}

// elleHistories are histories that the tests of Elle 0.2 judge (elle.list-append-test, elle.rw-register-test), with all anomalies that Elle finds in them under
// strict serializability, and some near misses. ordered are those in real time, if the test is of that. Where a comment says what Elle finds, or what it has
// to be asked for, docs/explain/inferred.md has a line for the difference.
var elleHistories = []struct {
	name, text, plain, ordered string
	register                   bool
}{
	{name: "G0", text: "ax1ay1 ax2ay2 rx12ry21", plain: "G0"},
	{name: "G1a", text: "fail:ax1 rx1", plain: "G1a"},
	{name: "two of G1a", text: "rx1ax2 rx12 fail:ax1", plain: "G1a dirty-update"},
	{name: "G1b and G-single", text: "ax1ax2 rx1", plain: "G1b G-single"},
	{name: "G1b of a longer list", text: "rx1 rx12 ax1ax2 ax3 rx123", plain: "G1b G-single"},
	{name: "its own intermediate version", text: "ax1rx1ax2"},
	{name: "G1c", text: "ax1ry1 ax2ay1 rx12ry1", plain: "G1c"},
	{name: "G-single", text: "ax1ay1 ax2ry rx12", plain: "G-single"},
	{name: "G2-item", text: "ax1ry ay1rx", plain: "G2-item"},
	{name: "G2-item of reads first", text: "rxay1 ryax1 rx1ry1", plain: "G2-item"},
	{name: "strong SI", text: "0:ax1 1:ax2 2:rx1 3:rx12", ordered: "G-single-realtime"},
	{name: "strong session SI", text: "0:ax1 1:ax2 1:rx1 2:rx12", ordered: "G-single-process"},
	{name: "wr and session order", text: "1:rx1ay1 2:ry1 2:ax1", ordered: "G1c-process"},
	{name: "G-nonadjacent in session order", text: "0:rxrz1 1:ax1 1:rz 2:az1", ordered: "G-nonadjacent-process G-single-realtime G1c-realtime"}, // Elle is asked for session order alone
	{name: "contradictory orders", text: "ax1ry1 ax2 ax3ay1 rx13 rx123", plain: "G1c incompatible-order"},
	{name: "an aborted append", text: "fail:ax1"},
	{name: "dirty update", text: "fail:ax1 ax2 rx12", plain: "G1a dirty-update"},
	{name: "dirty update by way of an info", text: "fail:ax1 info:ax2 ax3 rx123", plain: "G1a dirty-update"},
	{name: "duplicate elements", text: "ax1ry1 ax2ay1 rx121", plain: "G-single G1c duplicate-elements"},
	{name: "internal", text: "ax1ax2ax4 ax3rx1234", plain: "G0 internal"},
	{name: "internal: an append that the next read does not see", text: "ax6rx", plain: "internal"},
	{name: "internal: stale", text: "ax1ax2 rx12ax3rx12", plain: "internal"},
	{name: "internal: short", text: "ax1 ax2 rx12ax3rx1", plain: "G-single internal"},
	{name: "internal, near miss", text: "ay5 ay6 ax1 ax2 ry56ax3rx123ax4rx1234"},
	{name: "a write that nobody observed", text: "ax1ay1|ax2ay2|ax3ay3|rx12|ry2", plain: "G0 G-single"},
	{name: "repeatable read", text: "rxay1 ryax1", plain: "G2-item"},
	{name: "G-nonadjacent", text: "ax1 rx1ry ay1 ry1rx", plain: "G-nonadjacent"},
	{name: "two rw next to each other are no G-nonadjacent", text: "rx5ay1 ryaz2 rzat3 rt3au4 ruax5"},
	{name: "lost update", text: "ax0 rx0ax1 rx0ax2", plain: "G2-item lost-update"},
	{name: "lost update, near miss", text: "rxax1ax2 rx12"},
	{name: "G-single, of repeatable read", text: "ax1ay1 rx1ry", plain: "G-single"},
	{name: "G-nonadjacent, of repeatable read", text: "ax1at1 rx1ry ay1az2 rz2rt", plain: "G-nonadjacent"},
	{name: "future read", text: "rx1ax1", plain: "future-read"},
	{name: "future read of a part", text: "ax0 ax2 rx012ax1", plain: "G1c future-read"},
	{name: "an info's nil read tells nothing", text: "info:ax2ry ax1ay1 rx12ry1"},
	{name: "Adya's figure 3", text: "az1ax1ay1 rx1ay2 ry12az3 rz13"},
	{name: "empty, append, read", text: "rx ax1 rx1"},
	{name: "one append without reads", text: "rx ax1"},

	{register: true, name: "G1a of a register", text: "rx2 fail:wx2", plain: "G1a"},
	{register: true, name: "G1a, near miss", text: "wx1 rx1"},
	{register: true, name: "G1b of a register", text: "rx2 wx2wx1", plain: "G1b"},
	{register: true, name: "G1b, near miss", text: "wx1wx2 rx2"},
	{register: true, name: "G1c of registers", text: "wx1ry1|wy1rx1", plain: "G1c"},
	{register: true, name: "a chain over two registers", text: "rx0wy1|ry1wx0", plain: "G1c"},
	{register: true, name: "a chain over one register", text: "rx0wx1|rx1wx0", plain: "G1c cyclic-versions"}, // Elle: with :wfr-keys?
	{register: true, name: "write skew", text: "rx0ry0wx1|rx0ry0wy1", plain: "G2-item"},                      // Elle: with :wfr-keys?
	{register: true, name: "writes follow reads", text: "ry1wx1wy2|rx1ry1", plain: "G-single"},               // Elle: with :wfr-keys?
	{register: true, name: "lost update of a register", text: "rx0wx1|rx0wx2", plain: "G2-item lost-update"}, // Elle: with :wfr-keys?
	{register: true, name: "initial state", text: "rx_ry1|wy1wx2", plain: "G-single"},
	{register: true, name: "G2-item of registers", text: "rx1ry1 rx1wy2|ry1wx2", plain: "G2-item"},
	{register: true, name: "internal of a register", text: "wx1 rx1wx2rx1", plain: "internal"},
	{register: true, name: "internal of a register, near miss", text: "wy2 ry2wx2rx2wx1rx1"},
	{register: true, name: "a write cycle that nobody observed", text: "wx1wy2|wx2wy1"},
	{register: true, name: "sequential keys", text: "wx1wy2|wx2wy1 rx2 ry2", ordered: "PL-SS-cycle-exists"},     // Elle: G0 and cyclic-versions, with :sequential-keys?
	{register: true, name: "cyclic versions by time", text: "0:wx1 0:wx2 0:rx1", ordered: "PL-SS-cycle-exists"}, // Elle: G0 and cyclic-versions, with :sequential-keys?
	{register: true, name: "a value that nobody wrote", text: "wx1 rx2", ordered: "G-single-realtime"},          // Elle: valid, "this represents a bug"
}

// TestElleHistories compares with the verdicts of Elle's own tests.
func TestElleHistories(t *testing.T) {
	for _, test := range elleHistories {
		h := read(t, Elle, jepsenOf(test.text, test.register))
		classes := func(order bool) (list []string) {
			for _, f := range inferred.Check(h, inferred.Options{Order: order}).Findings {
				if !slices.Contains(list, string(f.Class)) {
					list = append(list, string(f.Class))
				}
			}
			slices.Sort(list)
			return list
		}
		want := strings.Fields(test.plain)
		if slices.Sort(want); !slices.Equal(classes(false), want) {
			t.Errorf("%s (%s): %v, Elle: %v", test.name, test.text, classes(false), want)
		}
		want = strings.Fields(test.ordered)
		if slices.Sort(want); len(want) > 0 && !slices.Equal(classes(true), want) {
			t.Errorf("%s (%s), in real time: %v, Elle: %v", test.name, test.text, classes(true), want)
		}
	}
}

// TestElleRing: a cycle with one rw over many transactions, each of which begins many cycles with two. Elle's search for it runs out of time, and it says that
// such a cycle exists.
func TestElleRing(t *testing.T) {
	const length, noise = 300, 8
	for _, closed := range []bool{true, false} {
		var b strings.Builder
		n := 0
		txn := func(format string, args ...any) {
			ops := fmt.Sprintf(format, args...)
			fmt.Fprintf(&b, "{:type :invoke, :f :txn, :process %d, :value [%s]}\n{:type :ok, :f :txn, :process %[1]d, :value [%[2]s]}\n", n, ops)
			n++
		}
		all := ""
		for i := range length {
			all += fmt.Sprint(i, " ")
			switch {
			case i == 0:
				txn("[:append :ring 0] [:append :anti 1]")
			case i == length-1 && closed:
				txn("[:append :ring %d] [:r :anti nil]", i)
			default:
				txn("[:append :ring %d] [:append %d 0]", i, i)
			}
		}
		txn("[:r :ring [%s]]", all)
		for i := 1; i < length-1; i++ {
			for k := 1; k < noise-2; k++ {
				txn("[:append %d %d]", i, k)
			}
			txn("[:r %d [0 1 2 3 4 5]] [:r :anti%[1]d nil]", i)
			txn("[:append :anti%d 0] [:r :ring nil]", i)
		}
		found := map[anomaly.Class]bool{}
		for _, f := range inferred.Check(read(t, Elle, b.String()), inferred.Options{}).Findings {
			found[f.Class] = true
		}
		if found[anomaly.GSingle] != closed || found[anomaly.G2Item] == closed {
			t.Errorf("closed %v: %v", closed, found)
		}
	}
}
