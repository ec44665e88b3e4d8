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

type elleHistory struct {
	name, text, plain, ordered string
	register                   bool
}

// elleHistories are histories that the tests of Elle 0.2 judge (elle.list-append-test, elle.rw-register-test), with all anomalies that Elle finds in them under
// strict serializability, and some near misses. ordered are those in real time, if the test is of that. Where a comment says what Elle finds, or what it has
// to be asked for, docs/explain/inferred.md has a line for the difference.
var elleHistories = []elleHistory{
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

// definedHistories are made by the definitions of Adya, of Elle's paper and of Jepsen's manual. ordered "none" says that real time shows nothing more.
var definedHistories = []elleHistory{
	{name: "G0 over two lists", text: "ax1ay2 ax2ay1 rx12ry12", plain: "G0"},
	{name: "G0 of three", text: "ax1ay2 ay1az2 az1ax2 rx12ry12rz12", plain: "G0"},
	{name: "G0, near miss", text: "ax1ay1 ax2ay2 rx12ry12", ordered: "none"},
	{name: "G1c of three", text: "ax1ry1 ay1rz1 az1rx1", plain: "G1c"},
	{name: "G1b, near miss: the final version", text: "ax1ax2 rx12 ax3", ordered: "none"},
	{name: "G1b behind which another one appended", text: "ax1ax2 ax3 rx1 rx123", plain: "G1b G-single"},
	{name: "G-single of three", text: "ax1 rx1ay1 ry1rx", plain: "G-single"},
	{name: "a long fork", text: "ax1|ay1|rx1ry|rxry1", plain: "G-nonadjacent"},
	{name: "a long fork, near miss", text: "ax1|ay1|rx1ry|rx1ry1", ordered: "none"},
	{name: "G2-item of three", text: "rxay1|ryaz1|rzax1", plain: "G2-item"},
	{name: "G2-item, near miss", text: "rxay1|ryaz1|rz1ax1", ordered: "none"},
	{name: "lost update whose order was read", text: "rxax1|rxax2 rx12", plain: "G-single lost-update"},
	{name: "lost update, near miss", text: "rxax1 rx1ax2 rx12", ordered: "none"},
	{name: "a read of an info", text: "info:ax1 rx1", ordered: "none"},
	{name: "an info that comes late", text: "info:ax1 rx rx1", ordered: "none"},
	{name: "an info that goes away", text: "info:ax1 rx1 rx", ordered: "G-single-realtime"},
	{name: "an info that read what failed", text: "fail:ax1 info:rx1", ordered: "none"},
	{name: "G1a by way of an info that was read", text: "fail:ax1 info:rx1ay1 ry1", ordered: "none"},
	{name: "a failed read that would be a G-single", text: "ax1ay1 fail:rx1ry", ordered: "none"},
	{name: "duplicate elements of one append", text: "ax1 rx11", plain: "duplicate-elements"},
	{name: "incompatible orders of two readers", text: "ax1 ax2 ax3 rx12 rx13", plain: "incompatible-order"},
	{name: "its own append twice: the list ends with it", text: "ax1rx11", plain: "duplicate-elements"},
	{name: "internal: two reads", text: "ax1|rxrx1", plain: "G-single internal"},
	{name: "internal, near miss: a part behind its own", text: "ax1 rx1ax2rx12", ordered: "none"},
	{name: "dirty update, near miss: the failed one came behind", text: "ax1|fail:ax2|rx12", plain: "G1a"},
	{name: "G0 in real time", text: "0:ax1 1:ax2 2:rx21", ordered: "G0-realtime"},
	{name: "G0 in a session", text: "0:ax1 0:ax2 2:rx21", ordered: "G0-process"},
	{name: "G1c in real time", text: "0:rx1 1:ax1", ordered: "G1c-realtime"},
	{name: "G1c in a session", text: "0:rx1 0:ax1", ordered: "G1c-process"},
	{name: "a stale read", text: "0:ax1 1:rx", ordered: "G-single-realtime"},
	{name: "it does not read its session's write", text: "0:ax1 0:rx", ordered: "G-single-process"},
	{name: "reads that do not go on", text: "ax1|0:rx1 0:rx", ordered: "G-single-process"},
	{name: "a stale read, near miss: at the same time", text: "0:ax1|1:rx", ordered: "none"},
	{name: "a chain in real time", text: "0:ax1 1:rx1ay1 2:ry1rx", plain: "G-single"},
	{name: "two stale reads of two", text: "0:rx1ry|1:ax1 2:ay1|3:rxry1", plain: "G-nonadjacent"},

	{register: true, name: "a register's stale read", text: "wx1 rx_", ordered: "G-single-realtime"},
	{register: true, name: "a register's stale read, near miss", text: "wx1|rx_", ordered: "none"},
	{register: true, name: "a fractured read", text: "wx1wy1|rx1ry_", plain: "G-single"},
	{register: true, name: "a long fork of registers", text: "wx1|wy1|rx1ry_|rx_ry1", plain: "G-nonadjacent"},
	{register: true, name: "write skew from nothing", text: "rx_ry_wx1|rx_ry_wy1", plain: "G2-item"},
	{register: true, name: "a lost update from nothing", text: "rx_wx1|rx_wx2", plain: "G2-item lost-update"},
	{register: true, name: "a lost update, near miss", text: "rx_wx1 rx1wx2", ordered: "none"},
	{register: true, name: "a register of an info", text: "info:wx1 rx1", ordered: "none"},
	{register: true, name: "a register of an info goes away", text: "info:wx1 rx1 rx_", ordered: "G-single-realtime"},
	{register: true, name: "G1c of three registers", text: "wx1ry1|wy1rz1|wz1rx1", plain: "G1c"},
	{register: true, name: "G1b behind which it reads on", text: "wx1wx2|rx1|rx2", plain: "G1b"},
	{register: true, name: "internal of a write", text: "wx1rx_", plain: "internal"},
	{register: true, name: "G1a over an info", text: "fail:wx1 info:rx1wx2 rx2", ordered: "none"},
}

// TestElleHistories compares with the verdicts of Elle's own tests, and with those that follow from its rules.
func TestElleHistories(t *testing.T) {
	for _, test := range slices.Concat(elleHistories, definedHistories) {
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
		want = strings.Fields(strings.TrimPrefix(test.ordered, "none"))
		if slices.Sort(want); test.ordered != "" && !slices.Equal(classes(true), want) {
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
