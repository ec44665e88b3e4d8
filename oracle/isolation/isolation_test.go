package isolation

import (
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
	"wirecheck/oracle"
)

// parse reads a history in text form. Lines are separated by line ends or semicolons. Without a session line, sessions
// are PostgreSQL's.
func parse(t testing.TB, text string) []history.Event {
	t.Helper()
	text = strings.ReplaceAll(text, ";", "\n")
	if !strings.Contains(text, "session") {
		text = "s1 session postgres \"15.4\"\ns2 session postgres \"15.4\"\ns3 session postgres \"15.4\"\ns4 session postgres \"15.4\"\n" + text
	}
	events, err := history.ParseText(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func run(opts Options, events []history.Event) ([]oracle.Finding, *Checker) {
	c := New(opts)
	var out []oracle.Finding
	for i := range events {
		out = append(out, c.Add(&events[i])...)
	}
	return out, c
}

// brief is a finding in one line.
func brief(f *oracle.Finding) string {
	var ids []int
	for _, t := range f.Transactions {
		ids = append(ids, int(t.ID))
	}
	sort.Ints(ids)
	s := fmt.Sprintf("%s %s %v", f.Class, f.Name, ids)
	if f.Kind != oracle.KindAnomaly {
		s = string(f.Kind) + ": " + s
	}
	return s
}

func briefs(fs []oracle.Finding) string {
	var out []string
	for i := range fs {
		out = append(out, brief(&fs[i]))
	}
	sort.Strings(out)
	return strings.Join(out, "\n")
}

const two = `s1 t1 begin "read committed"; s2 t2 begin "read committed"
`
const three = `s1 t1 begin "read committed"; s2 t2 begin "read committed"; s3 t3 begin "read committed"
`
const four = three + `s4 t4 begin "read committed"
`

const reading = `s1 t1 begin "read committed" tokens T1; s2 t2 begin "read committed"; s3 t3 begin "read committed"
`

const tokens = `s1 t1 begin "read committed" tokens T1; s2 t2 begin "read committed"
`

// TestAnomalies has for each anomaly a history that shows it and near misses that do not.
func TestAnomalies(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"dirty write", two + `t1 w x 0>1; t2 w x 1>2; t2 w y 0>1; t1 w y 1>2; t1 commit; t2 commit`, "violation: G0 dirty write [1 2]"},
		{"writes in one order", two + `t1 w x 0>1; t1 w y 0>1; t1 commit; t2 w x 1>2; t2 w y 1>2; t2 commit`, ""},
		{"dirty write, one aborted", two + `t1 w x 0>1; t2 w x 1>2; t2 w y 0>1; t1 w y 1>2; t1 abort; t2 commit`, "violation: dirty-update update of an aborted version [1 2]"},
		{"write after a rollback", two + `t1 w x 0>1; t1 abort; t2 w x 0>2; t2 commit`, ""},
		{"aborted write over an aborted version", two + `t1 w x 0>1; t2 w x 1>2; t2 abort; t1 abort`, ""},
		{"aborted version replaced, told before its end", two + `t1 w x 0>1; t2 w x 1>2; t2 commit; t1 abort`, "violation: dirty-update update of an aborted version [1 2]"},
		{"own undone version replaced", two + `t1 stmt; t1 w x 0>1; t1 undo 2; t1 w x 1>2; t1 commit`, ""},

		{"own write not seen", two + `t1 w x 0>1; t1 r x@0; t1 commit`, "violation: internal own write not seen [1]"},
		{"own write not seen, without keys", two + `t1 w _ a>b; t1 r _@a; t1 commit`, "violation: internal own write not seen [1]"},
		{"own write not seen, at a weak level", `s1 t1 begin "read uncommitted"; t1 w x 0>1; t1 r x@0; t1 commit`, "violation: internal own write not seen [1]"},
		{"older own write seen", two + `t1 w x 0>1; t1 w x 1>2; t1 r x@1; t1 commit`, "violation: internal own write not seen [1]"},
		{"older own write seen, the later one undone", two + `t1 w x 0>1; t1 stmt; t1 w x 1>2; t1 undo 3; t1 r x@1; t1 commit`, ""},
		{"older own write seen before the later one", two + `t1 w x 0>1; t1 r x@1; t1 w x 1>2; t1 commit`, ""},
		{"own write seen", two + `t1 r x@0; t1 w x 0>1; t1 r x@1; t1 commit`, ""},
		{"own write undone before the read", two + `t1 stmt; t1 w x 0>1; t1 undo 2; t1 r x@0; t1 commit`, ""},
		{"own write and read in one statement", two + `t1 w x 0>1, r x@0; t1 commit`, ""},
		{"own write not seen by a transaction that aborts", two + `t1 w x 0>1; t1 r x@0; t1 abort`, ""},
		{"version of unknown place after an own write", two + `t1 w x 0>1; t1 r x@b; t1 commit`, ""},

		{"read before it was written", two + `t2 r x@1; t1 w x 0>1; t1 commit; t2 commit`, "violation: future-read read before it was written [1 2]"},
		{"read after it was written", two + `t1 w x 0>1; t2 r x@1; t1 commit; t2 commit`, ""},
		{"read before it was written, both told late", two + `t1 stmt; t2 r x@1; t1 late 1 w x 0>1; t1 commit; t2 commit`, ""},

		{"aborted read", two + `t1 w x 0>1; t2 r x@1; t2 commit; t1 abort`, "violation: G1a aborted read [1 2]"},
		{"aborted read, writer first", two + `t1 w x 0>1; t2 r x@1; t1 abort; t2 commit`, "violation: G1a aborted read [1 2]"},
		{"aborted read, reader aborted too", two + `t1 w x 0>1; t2 r x@1; t1 abort; t2 abort`, ""},
		{"dirty read of what was committed", two + `t1 w x 0>1; t2 r x@1; t2 commit; t1 commit`, ""},
		{"read after rollback", two + `t1 w x 0>1; t1 abort; t2 r x@0; t2 commit`, ""},
		{"aborted read by token", `s1 t1 begin "read committed" tokens T1; s2 t2 begin "read committed"; t2 r x@1!T1; t2 commit; t1 abort`, "violation: G1a aborted read [1 2]"},
		{"session vanishes", two + `t1 w x 0>1; t2 r x@1; t2 commit; s1 close`, "violation: G1a aborted read [1 2]"},
		{"session goes on unobserved", two + `t1 w x 0>1; t2 r x@1; t2 commit; s1 close "recorder panicked"`, ""},
		{"undone by savepoint", two + `t1 stmt; t1 w x 0>1; t2 r x@1; t1 undo 2; t1 commit; t2 commit`, "violation: G1a aborted read [1 2]"},
		{"undone, then written again", two + `t1 stmt; t1 w x 0>1; t1 undo 2; t1 w x 0>1; t1 commit; t2 r x@1; t2 commit`, ""},
		{"before the savepoint", two + `t1 w x 0>1; t1 w y 0>1; t2 r x@1; t1 undo 2; t1 commit; t2 commit`, ""},
		{"refused statement", two + `t1 w x 0>1 error "23505"; t2 r x@1; t1 commit; t2 commit`, "violation: G1a aborted read [1 2]"},
		{"update of an aborted version", two + `t1 w x 0>1; t2 inc x 1>2; t1 abort; t2 commit`, "violation: G1a aborted read [1 2]"},

		{"aborted version, replaced before it was undone, has no successor", four + `t1 w x 0>1; t2 r x@1; t2 w y 0>1; t2 commit; t3 w x >2; t3 w z 0>1; t3 commit; t1 abort; t4 r z@1; t4 r y@0; t4 commit`, "violation: G1a aborted read [1 2]"},
		{"version undone by savepoint, replaced before that was told", four + `t1 stmt; t1 w x 0>1; t2 r x@1; t2 w y 0>1; t2 commit; t3 w x >2; t3 w z 0>1; t3 commit; t1 undo 2; t1 commit; t4 r z@1; t4 r y@0; t4 commit`, "violation: G1a aborted read [1 2]"},
		{"committed version, replaced before that was told", four + `t1 w x 0>1; t2 r x@1; t2 w y 0>1; t2 commit; t3 w x >2; t3 w z 0>1; t3 commit; t1 commit; t4 r z@1; t4 r y@0; t4 commit`, "G2-item  [2 3 4]"},

		{"garbage read", tokens + `t1 w x 0>1; t1 commit; t2 r x@5!T1; t2 commit`, "violation: garbage-read garbage read [1 2]"},
		{"garbage read, told before its writer ends", tokens + `t1 w x 0>1; t2 r x@5!T1; t2 commit; t1 commit`, "violation: garbage-read garbage read [1 2]"},
		{"garbage read of an aborted writer", tokens + `t1 w x 0>1; t1 abort; t2 r x@5!T1; t2 commit`, "violation: garbage-read garbage read [1 2]"},
		{"garbage read by a transaction that aborts", tokens + `t1 w x 0>1; t1 commit; t2 r x@5!T1; t2 abort`, ""},
		{"version of a writer that told nothing of the row", tokens + `t1 w y 0>1; t1 commit; t2 r x@5!T1; t2 commit`, ""},
		{"version of a writer with an opaque statement", tokens + `t1 w x 0>1; t1 stmt opaque; t1 commit; t2 r x@5!T1; t2 commit`, ""},
		{"version of a writer that called a function", tokens + `t1 w x 0>1; t1 stmt -- SELECT touch(1)` + "\n" + `t1 commit; t2 r x@5!T1; t2 commit`, ""},
		{"version of a writer that undid something", tokens + `t1 stmt; t1 w x 0>1; t1 undo 2; t1 w x 0>1; t1 commit; t2 r x@5!T1; t2 commit`, "violation: G1a aborted read [1 2]"},
		{"version of nobody", tokens + `t1 w x 0>1; t1 commit; t2 r x@5!T9; t2 commit`, ""},
		{"place in a table that was written anew", tokens + `t1 w x 0>(0,1)/7; t1 commit; t2 r x@(0,4)/7!T1; t2 commit`, ""},
		{"intermediate read", two + `t1 w x 0>1; t2 r x@1; t1 w x 1>2; t1 commit; t2 commit`, "violation: G1b intermediate read [1 2]"},
		{"intermediate read, writer last", two + `t1 w x 0>1; t2 r x@1; t1 w x 1>2; t2 commit; t1 commit`, "violation: G1b intermediate read [1 2]"},
		{"intermediate reads both ways", two + `t1 w x 0>1; t2 w y 0>1; t1 r y@1; t2 r x@1; t1 w x 1>2; t2 w y 1>2; t1 commit; t2 commit`, "violation: G1b intermediate read [1 2]\nviolation: G1b intermediate read [1 2]\nviolation: G1c circular information flow [1 2]"},
		{"intermediate read, then what came later", three + `t1 w x 0>1; t2 r x@1; t1 w x 1>2; t1 commit; t3 w y 0>1; t2 r y@1; t2 commit; t3 w x 2>3; t3 commit`, "G-single read skew [2 3]\nviolation: G1b intermediate read [1 2]"},
		{"intermediate read, then what came later, reader last", three + `t1 w x 0>1; t2 r x@1; t1 w x 1>2; t1 commit; t3 w y 0>1; t3 w x 2>3; t3 commit; t2 r y@1; t2 commit`, "G-single read skew [2 3]\nviolation: G1b intermediate read [1 2]"},
		{"intermediate read, without keys, then what came later", three + `t1 w _ a>b; t2 r _@b; t1 w _ b>c; t1 commit; t3 w y 0>1; t2 r y@1; t2 commit; t3 w _ c>d; t3 commit`, "G-single read skew [2 3]\nviolation: G1b intermediate read [1 2]"},
		{"intermediate read, and the final version too", three + `t1 w x 0>1; t2 r x@1; t1 w x 1>2; t1 commit; t3 w y 0>1; t3 commit; t2 r y@1; t2 commit`, "violation: G1b intermediate read [1 2]"},
		{"final read", two + `t1 w x 0>1; t1 w x 1>2; t2 r x@2; t1 commit; t2 commit`, ""},
		{"own intermediate", two + `t1 w x 0>1; t1 r x@1; t1 w x 1>2; t1 commit; t2 r x@2; t2 commit`, ""},
		{"deleted afterwards", two + `t1 i x >1; t2 r x@1; t1 d x 1>2; t1 commit; t2 commit`, "violation: G1b intermediate read [1 2]"},
		{"undone by savepoint, not captured", `s1 t1 begin "read committed" tokens T1; s2 t2 begin "read committed"; t1 stmt opaque; t2 r x@1!T1; t1 undo 1; t1 w x >2; t1 commit; t2 commit`, "violation: G1a aborted read [1 2]"},
		{"undone or replaced, not captured", `s1 t1 begin "read committed" tokens T1; s2 t2 begin "read committed"; t1 stmt opaque; t2 r x@1!T1; t1 stmt; t1 undo 2; t1 w x >2; t1 commit; t2 commit`, ""},
		{"its own, not captured, replaced by itself, both undone", reading + `t1 w y 0>1; t1 stmt approximate; t1 d x 5!T1>6; t1 undo 2; t1 commit; t2 r x@0; t2 r y@1; t2 commit`, ""},
		{"the same, committed last", reading + `t1 w y 0>1; t1 stmt approximate; t1 d x 5!T1>6; t1 undo 2; t2 r x@0; t2 r y@1; t2 commit; t1 commit`, ""},
		{"its own, not captured, replaced by itself", reading + `t1 w y 0>1; t1 stmt approximate; t1 w x 5!T1>6; t1 commit; t2 r x@0; t2 r y@1; t2 commit`, "G-single read skew [1 2]"},
		{"not captured, replaced by another", reading + `t1 w y 0>1; t1 stmt approximate; t1 stmt; t1 undo 3; t1 commit; t3 w x 5!T1>6; t3 commit; t2 r x@0; t2 r y@1; t2 commit`, "G-single read skew [1 2]"},
		{"replaced, not captured, nothing undone", `s1 t1 begin "read committed" tokens T1; s2 t2 begin "read committed"; t1 stmt opaque; t2 r x@1!T1; t1 w x >2; t1 commit; t2 commit`, "violation: G1b intermediate read [1 2]"},
		{"intermediate, known from two readers", `s1 t1 begin "read committed" tokens T1; s2 t2 begin "read committed"; t2 r x@1!T1; t2 commit; t1 commit; s3 t3 begin "read committed"; t3 r x@2!T1; t3 commit`,
			"violation: G1b intermediate read [1 2]"},

		{"circular information flow", two + `t1 w x 0>1; t2 w y 0>1; t1 r y@1; t2 r x@1; t1 commit; t2 commit`, "violation: G1c circular information flow [1 2]"},
		{"ww against wr", two + `t2 w x 0>1; t1 w x 1>2; t1 w y 0>1; t2 r y@1; t2 commit; t1 commit`, "violation: G1c circular information flow [1 2]"},
		{"one reads the other", two + `t1 w x 0>1; t1 commit; t2 r x@1; t2 w y 0>1; t2 commit`, ""},

		{"lost update", two + `t1 r x@0; t2 r x@0; t1 w x 0>1; t1 commit; t2 w x 1>2; t2 commit`, "G-single lost update [1 2]"},
		{"lost update over several writers", three + `t3 r x@0; t1 w x 0>1; t1 commit; t2 r x@1; t2 w x 1>2; t2 commit; t3 w x 2>3; t3 commit`, "G-single lost update [1 3]"},
		{"lost update over several writers, without keys", three + `t3 r _@a; t1 w _ a>b; t1 commit; t2 r _@b; t2 w _ b>c; t2 commit; t3 w _ c>d; t3 commit`, "G-single lost update [1 3]"},
		{"lost update over several writers, told late", three + `t3 r x@0; t1 w x 0>1; t2 r x@1; t2 w x 1>2; t3 w x 2>3; t3 commit; t2 commit; t1 commit`, "G-single lost update [2 3]"},
		{"one after the other", three + `t1 r x@0; t1 w x 0>1; t1 commit; t2 r x@1; t2 w x 1>2; t2 commit; t3 r x@2; t3 w x 2>3; t3 commit`, ""},
		{"lost update, both to the same value", two + `t1 r x@0; t2 r x@0; t1 w x 0>1; t1 commit; t2 match x@1; t2 commit`, "G-single lost update [1 2]"},
		{"lost update, counted on by the other", two + `t2 r x@0; t1 inc x 0>1; t1 commit; t2 match x@1; t2 commit`, "G-single lost update [1 2]"},
		{"same value written blindly", two + `t2 r x@0; t1 w x 0>1; t1 commit; t2 match x@1; t2 commit`, ""},
		{"same value written blindly, and the older one read again", two + `t2 r x@0; t1 w x 0>1; t1 commit; t2 match x@1; t2 r x@0; t2 commit`, "G-single lost update [1 2]"},
		{"same value written blindly, and read", two + `t1 w x 0>1; t1 commit; t2 match x@1; t2 r x@1; t2 commit`, ""},
		{"same value written blindly, the older one read before, another row later", two + `t2 r x@0; t1 w x 0>1; t1 w y 0>1; t1 commit; t2 match x@1; t2 r y@1; t2 commit`, "G-single read skew [1 2]"},
		{"same value written blindly, another row as it was", two + `t2 r x@0; t1 w x 0>1; t1 w y 0>1; t1 commit; t2 match x@1; t2 r y@0; t2 commit`, ""},
		{"same value written blindly and undone, and the older one read again", two + `t2 r x@0; t1 w x 0>1; t1 commit; t2 stmt; t2 match x@1; t2 undo 3; t2 r x@0; t2 commit`, ""},
		{"same value, read again", two + `t1 r x@0; t2 r x@0; t1 w x 0>1; t1 commit; t2 lock x@1; t2 match x@1; t2 commit`, ""},
		{"same value as before", two + `t1 r x@0; t2 r x@0; t2 match x@0; t2 commit; t1 w x 0>1; t1 commit`, ""},
		{"lost update, old version not told", two + `t1 r x@0; t2 r x@0; t1 w x >1; t1 commit; t2 w x >2; t2 commit`, "G-single lost update [1 2]"},
		{"lost update by delete", two + `t1 r x@0; t2 r x@0; t1 w x 0>1; t1 commit; t2 d x 1>2; t2 commit`, "G-single lost update [1 2]"},
		{"lost update without keys", two + `t1 r _@a; t2 r _@a; t1 w _ a>b; t1 commit; t2 w _ b>c; t2 commit`, "G-single lost update [1 2]"},
		{"lost update over an unseen writer", two + `t1 r x@0; t2 r x@0; t1 w x >3; t1 commit; t2 w x >5; t2 commit`, "G-single lost update [1 2]"},
		{"lost update, place bounded only", two + `t1 r x@a<5; t2 r x@a<4; t1 w x >b#5; t1 commit; t2 w x >c#6; t2 commit`, "G-single lost update [1 2]"},
		{"bound too late", two + `t2 r x@a<9; t1 w x >b#5; t1 commit; t2 w x >c#10; t2 commit`, ""},
		{"read of the current version", two + `t1 r x@0; t1 w x 0>1; t1 commit; t2 r x@1; t2 w x 1>2; t2 commit`, ""},
		{"atomic update", two + `t1 inc x 0>1; t1 commit; t2 inc x 1>2; t2 commit`, ""},
		{"stale read, then atomic update", two + `t2 r x@0; t1 inc x 0>1; t1 commit; t2 inc x 1>2; t2 commit`, ""},
		{"stale read, then atomic update, old version not told", two + `t2 r x@0; t1 inc x 0>1; t1 commit; t2 inc x >2; t2 commit`, ""},
		{"stale read, then locking read", two + `t2 r x@0; t1 w x 0>1; t1 commit; t2 lock x@1; t2 w x 1>2; t2 commit`, ""},
		{"stale read, then locking read, no keys", two + `t2 r _@a; t1 w _ a>b; t1 commit; t2 lock _@b; t2 w _ b>c; t2 commit`, ""},
		{"stale read, then atomic update, no keys", two + `t2 r _@a; t1 w _ a>b; t1 commit; t2 inc _ b>c; t2 commit`, ""},
		{"locking read after the write", two + `t1 r x@0; t2 r x@0; t1 w x 0>1; t1 commit; t2 w x 1>2; t2 lock x@2; t2 commit`, "G-single lost update [1 2]"},
		{"read again before the write", two + `t2 r x@0; t1 w x 0>1; t1 commit; t2 r x@1; t2 w x 1>2; t2 commit`, "G-single non-repeatable read [1 2]"},
		{"first writer aborted", two + `t1 r x@0; t2 r x@0; t1 w x 0>1; t1 abort; t2 w x 0>2; t2 commit`, ""},
		{"approximate read", two + `t1 r x@0; t2 r x@0?; t1 w x 0>1; t1 commit; t2 w x 1>2; t2 commit`, ""},
		{"blind writes", two + `t1 w x 0>1; t1 commit; t2 w x 1>2; t2 commit`, ""},
		{"two lost at once", three + `t3 r x@0; t1 w x 0>1; t1 commit; t2 w x 1>2; t2 commit; t3 w x 2>3; t3 commit`, "G-single lost update [1 3]"},
		{"different rows", two + `t1 r x@0; t2 r y@0; t1 w x 0>1; t1 commit; t2 w y 0>1; t2 commit`, ""},
		{"same key in another table", two + `t1 r a.x@0; t2 r b.x@0; t1 w a.x 0>1; t1 commit; t2 w b.x 0>1; t2 commit`, ""},

		{"non-repeatable read", two + `t1 r x@0; t2 w x 0>1; t2 commit; t1 r x@1; t1 commit`, "G-single non-repeatable read [1 2]"},
		{"repeated read", two + `t1 r x@0; t2 w x 0>1; t2 commit; t1 r x@0; t1 commit`, ""},
		{"read skew", two + `t1 r x@0; t2 w x 0>1; t2 w y 0>1; t2 commit; t1 r y@1; t1 commit`, "G-single read skew [1 2]"},
		{"snapshot", two + `t1 r x@0; t2 w x 0>1; t2 w y 0>1; t2 commit; t1 r y@0; t1 commit`, ""},
		{"all new", two + `t2 w x 0>1; t2 w y 0>1; t2 commit; t1 r x@1; t1 r y@1; t1 commit`, ""},
		{"read skew of three", three + `t1 r x@0; t2 w x 0>1; t2 w y 0>1; t2 commit; t3 r y@1; t3 w z 0>1; t3 commit; t1 r z@1; t1 commit`, "G-single read skew [1 2 3]"},
		{"vanishes", two + `t2 w x 0>1; t2 w y 0>1; t2 commit; t1 r y@1; t1 r x@0; t1 commit`, "violation: G-single observed transaction vanishes [1 2]"},
		{"read skew of deleted row", two + `t1 r x@0; t2 d x 0>1; t2 w y 0>1; t2 commit; t1 r y@1; t1 commit`, "G-single read skew [1 2]"},
		{"read-write skew", two + `t1 r x@0; t2 w x 0>1; t2 w y 0>1; t2 commit; t1 w y 1>2; t1 commit`, "G-single read-write skew [1 2]"},
		{"write after locked read", two + `t1 lock x@0; t1 w y 0>1; t1 commit; t2 w x 0>1; t2 w y 1>2; t2 commit`, ""},

		{"write skew", two + `t1 r x@0 y@0; t2 r x@0 y@0; t1 w x 0>1; t2 w y 0>1; t1 commit; t2 commit`, "G2-item write skew [1 2]"},
		{"write skew prevented by locks", two + `t1 lock x@0 y@0; t1 w x 0>1; t1 commit; t2 lock x@1 y@0; t2 w y 0>1; t2 commit`, ""},
		{"reads overlap, writes do not meet reads", two + `t1 r x@0; t2 r x@0; t1 w y 0>1; t2 w z 0>1; t1 commit; t2 commit`, ""},
		{"one direction", two + `t1 r y@0; t2 r x@0 y@0; t1 w x 0>1; t2 w z 0>1; t1 commit; t2 commit`, ""},
		{"write skew of three", three + `t1 r x@0; t2 r y@0; t3 r z@0; t1 w y 0>1; t2 w z 0>1; t3 w x 0>1; t1 commit; t2 commit; t3 commit`, "G2-item  [1 2 3]"},
		{"read-only anomaly", three + `t2 r x@0 y@0; t1 w y 0>1; t1 commit; t3 r x@0 y@1; t3 commit; t2 w x 0>1; t2 commit`, "G2-item  [1 2 3]"},
		{"long fork", `s1 t1 begin; s2 t2 begin; s3 t3 begin; s4 t4 begin; t1 w x 0>1; t2 w y 0>1; t1 commit; t2 commit; t3 r x@1 y@0; t4 r x@0 y@1; t3 commit; t4 commit`,
			"G-nonadjacent long fork [1 2 3 4]"},
		{"no fork", `s1 t1 begin; s2 t2 begin; s3 t3 begin; s4 t4 begin; t1 w x 0>1; t2 w y 0>1; t1 commit; t2 commit; t3 r x@1 y@0; t4 r x@1 y@0; t3 commit; t4 commit`, ""},

		{"deleted and inserted again", two + `t1 r x@0; t2 d x 0>1; t2 i x >2; t2 commit; t1 w x 2>3; t1 commit`, "G-single lost update [1 2]"},
		{"insert after delete", two + `t1 d x 0>1; t1 commit; t2 i x >2; t2 commit`, ""},
		{"key changed", two + `t1 r x@0; t2 r x@0; t1 w _ 0>1; t1 commit; t2 w y >2; t2 commit`, ""},

		{"insert not listed", `s1 t1 begin "read committed" tokens T1; s2 t2 begin "read committed"; t2 r y@0; t1 w y 0>1; t1 commit; t2 r x@1!T1; t2 commit`, "G-single read skew [1 2]"},
		{"writer told by the one who replaced it", `s1 t1 begin "read committed" tokens T1; s2 t2 begin "read committed"; t2 r y@0; t1 w y 0>1; t1 commit; t2 w x 1!T1>2; t2 commit`, "G-single read-write skew [1 2]"},
		{"token learnt late", two + `t2 r y@0; t2 r x@1!x9; t1 w y 0>1; t1 stmt tokens x9; t2 commit; t1 commit`, "G-single read skew [1 2]"},
		{"another client's token", two + `t2 r y@0; t2 r x@1!x8; t1 w y 0>1; t1 stmt tokens x9; t2 commit; t1 commit`, ""},

		{"unknown outcome, not seen", two + `t1 r x@0; t2 r x@0; t1 w x 0>1; t2 w x 1>2; t1 unknown; s2 close`, ""},
		{"unknown outcome, never seen", two + `t1 r x@0 y@0; t2 r x@0 y@0; t1 w x 0>1; t2 w y 0>1; t1 unknown; t2 commit`, ""},
		{"unknown outcome, replaced", two + `t1 r x@0; t2 r x@0; t1 w x 0>1; t1 unknown; t2 w x 1>2; t2 commit`, "G-single lost update [1 2]"},
		{"unknown outcome, read before", three + `t1 r x@0 y@0; t2 r x@0 y@0; t1 w x 0>1; t2 w y 0>1; t3 r x@1; t3 commit; t2 commit; t1 unknown`, "G2-item write skew [1 2]"},
		{"write told late", two + `t2 r x@0; t1 stmt; t1 commit pending; t2 w x 1>2; t2 commit; t1 late 1 w x 0>1`, "G-single lost update [1 2]"},
		{"write told late, then the next transaction", two + `t2 r x@0; t1 stmt; t1 commit pending; s1 t3 begin; t1 late 1 w x 0>1; t3 r y@0; t2 w x 1>2; t2 commit; t3 commit`, "G-single lost update [1 2]"},
		{"write told after it was replaced", two + `t1 stmt tokens T1; t2 r x@0; t1 commit pending; t2 w x 1!T1>2; t2 commit; t1 late 1 w x 0>1`, "G-single lost update [1 2]"},
		{"write never told, but replaced", two + `t1 stmt tokens T1; t2 r x@0; t1 commit pending; t2 w x 1!T1>2; t2 commit; s1 close`, "G-single lost update [1 2]"},
		{"write not told", two + `t2 r x@0; t1 r y@0; t1 commit pending; t2 w x 1>2; t2 commit; s1 close`, ""},
		{"told late inside", two + `t1 r x@0; t1 stmt; t1 r y@0; t1 late 2 inc x 1>2; t2 w x 0>1; t2 commit; t1 commit`, ""},
		{"open to the end", two + `t1 r x@0 y@0; t2 r x@0 y@0; t1 w x 0>1; t2 w y 0>1; t2 commit`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, keep := range []int{0, -1} {
				fs, _ := run(Options{Keep: keep}, parse(t, tt.text))
				if d := cmp.Diff(tt.want, briefs(fs)); d != "" {
					t.Errorf("(-want +got):\n%s\nin %s", d, tt.text)
				}
			}
		})
	}
}

// TestLevels checks who promised what.
func TestLevels(t *testing.T) {
	const ws = `t1 r x@0 y@0; t2 r x@0 y@0; t1 w x 0>1; t2 w y 0>1; t1 commit; t2 commit`
	const lu = `t1 r x@0; t2 r x@0; t1 w x 0>1; t1 commit; t2 w x 1>2; t2 commit`
	const anew = `t1 r x@0; t2 w x 0>1; t2 w y 0>1; t2 commit; t1 undo 1; t1 r y@1; t1 commit` // back to a savepoint before the first statement
	locked := strings.Replace(anew, "t1 r x", "t1 lock x", 1)                                  // as InnoDB's SERIALIZABLE reads
	for _, tt := range []struct{ engine, l1, l2, text, kind, level, by string }{
		{"postgres", "read committed", "read committed", ws, "anomaly", "read committed", "serializable"},
		{"postgres", "repeatable read", "repeatable read", ws, "anomaly", "repeatable read", "serializable"},
		{"postgres", "serializable", "serializable", ws, "violation", "serializable", "serializable"},
		{"postgres", "serializable", "repeatable read", ws, "anomaly", "mixed", "serializable"},
		{"postgres", "serializable", "", ws, "anomaly", "mixed", "serializable"},
		{"postgres", "repeatable read", "repeatable read", lu, "violation", "repeatable read", "repeatable read"},
		{"postgres", "repeatable read", "serializable", lu, "violation", "mixed", "repeatable read"},
		{"postgres", "read committed", "serializable", lu, "anomaly", "mixed", "repeatable read"},
		{"mariadb", "repeatable read", "repeatable read", lu, "anomaly", "repeatable read", "snapshot"},
		{"mariadb", "snapshot", "snapshot", lu, "violation", "snapshot", "snapshot"},
		{"mysql", "repeatable read", "repeatable read", lu, "anomaly", "repeatable read", "serializable"},
		{"mysql", "serializable", "serializable", lu, "violation", "serializable", "serializable"},
		{"newdb", "serializable", "serializable", lu, "anomaly", "serializable", ""},
		{"postgres", "serializable", "serializable", anew, "violation", "serializable", "repeatable read"},
		{"mariadb", "snapshot", "snapshot", anew, "", "", ""},
		{"mysql", "serializable", "serializable", anew, "", "", ""},
		{"mysql", "serializable", "serializable", locked, "", "", ""},
		{"mysql", "serializable", "serializable", "t1 r z@0; " + strings.Replace(locked, "undo 1", "undo 2", 1), "violation", "serializable", "serializable"},
		{"mariadb", "repeatable read", "repeatable read", anew, "anomaly", "repeatable read", "snapshot"},
		{"mariadb", "snapshot", "snapshot", "t1 r z@0; " + strings.Replace(anew, "undo 1", "undo 2", 1), "violation", "snapshot", "snapshot"},
	} {
		text := fmt.Sprintf("s1 session %s \"1\"; s2 session %s \"1\"; s1 t1 begin %q; s2 t2 begin %q; %s", tt.engine, tt.engine, tt.l1, tt.l2, tt.text)
		fs, _ := run(Options{}, parse(t, text))
		if tt.kind == "" && len(fs) == 0 {
			continue
		}
		if len(fs) != 1 {
			t.Errorf("%d findings in %s", len(fs), text)
			continue
		}
		if f := fs[0]; string(f.Kind) != tt.kind || f.Level != tt.level || f.PreventedBy != tt.by || f.Promised != (tt.kind == "violation") {
			t.Errorf("%s %q %q: got %s at %q, prevented by %q; want %s at %q, prevented by %q", tt.engine, tt.l1, tt.l2, f.Kind, f.Level, f.PreventedBy, tt.kind, tt.level, tt.by)
		}
	}
}

// TestSameID: the id of a finding does not depend on when a write of autocommit is told, for its transaction has one statement. Of a transaction
// with BEGIN it is not known which statement wrote before it is told.
func TestSameID(t *testing.T) {
	id := func(text string) string {
		t.Helper()
		fs, _ := run(Options{}, parse(t, text))
		if len(fs) != 1 {
			t.Fatalf("%d findings in %s", len(fs), text)
		}
		return fs[0].ID
	}
	for begin, same := range map[string]bool{`implicit`: true, ``: false} {
		begin := `s2 t2 begin "read committed"; t2 r x@0; s1 t1 begin "read committed" ` + begin
		const replace = `; t2 w x 1!T1>2; t2 commit`
		atOnce := id(begin + `; t1 w x 0>1 tokens T1 -- UPDATE x SET n = 1` + "\n" + `t1 commit` + replace)
		late := id(begin + `; t1 stmt tokens T1 -- UPDATE x SET n = 1` + "\n" + `t1 commit pending` + replace + `; t1 late 1 w x 0>1`)
		if (atOnce == late) != same {
			t.Errorf("begin %q: told at once %s, told late %s", begin, atOnce, late)
		}
	}
}

func TestFinding(t *testing.T) {
	fs, c := run(Options{}, parse(t, two+`t1 r public.stock.1@a<9!x8 -- SELECT n FROM stock WHERE id = 1
t2 r public.stock.1@a<9!x8 -- SELECT n FROM stock WHERE id = 1
t1 w public.stock.1 >b#10 -- UPDATE stock SET n = 8 WHERE id = 1
t1 commit
t2 w public.stock.1 >c#11 -- UPDATE stock SET n = 9 WHERE id = 1
t2 commit`))
	if len(fs) != 1 {
		t.Fatalf("%d findings", len(fs))
	}
	var got []string
	for _, e := range fs[0].Edges {
		got = append(got, e.Text)
	}
	want := []string{
		`T2 read version a of public.stock 1 in T2.1; T1 then wrote version b in T1.2`,
		`T1 wrote version b of public.stock 1 in T1.2; T2 then wrote version c in T2.2`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if fs[0].Session != 2 {
		t.Errorf("session %d completed it, want 2", fs[0].Session)
	}
	if want := "coverage: 4 exact, 0 approximate, 0 opaque\n  2 reads of unknown writers"; c.Coverage().String() != want {
		t.Errorf("got %s, want %s", c.Coverage(), want)
	}
}

// TestRepeats: the same statements with other values are one finding, seen more often.
func TestRepeats(t *testing.T) {
	text := ""
	for i := range 3 {
		text += fmt.Sprintf(`s1 t%[1]d begin "read committed"; s2 t%[2]d begin "read committed"
t%[1]d r x%[3]d@0 -- SELECT n FROM t WHERE id=%[3]d
t%[2]d r x%[3]d@0 -- select  n from t where id=%[3]d
t%[1]d w x%[3]d 0>1 -- UPDATE t SET n=%[3]d
t%[1]d commit
t%[2]d w x%[3]d 1>2 -- UPDATE t SET n='%[3]d'
t%[2]d commit
`, 2*i+1, 2*i+2, i)
	}
	fs, c := run(Options{}, parse(t, text))
	if len(fs) != 1 || len(c.Summary()) != 1 || c.Summary()[0].Seen != 3 {
		t.Errorf("%d findings, summary %+v", len(fs), c.Summary())
	}
	fs, _ = run(Options{Repeats: true}, parse(t, text))
	if len(fs) != 3 || fs[2].Seen != 3 || fs[2].ID != fs[0].ID {
		t.Errorf("with repeats: %d findings", len(fs))
	}
}

// TestStrict: cycles over session order and real time are reported only when asked for.
func TestStrict(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"own write not seen", `s1 t1 begin; t1 w x 0>1; t1 commit; s1 t2 begin; t2 r x@0; t2 commit`, "G-single-process  [1 2]"},
		{"own write seen", `s1 t1 begin; t1 w x 0>1; t1 commit; s1 t2 begin; t2 r x@1; t2 commit`, ""},
		{"stale read", `s1 t1 begin; t1 w x 0>1; t1 commit; s2 t2 begin; t2 r x@0; t2 commit`, "G-single-realtime  [1 2]"},
		{"concurrent", `s1 t1 begin; s2 t2 begin; t1 w x 0>1; t1 commit; t2 r x@0; t2 commit`, ""},
		{"stale read through a third", `s1 t1 begin; t1 w x 0>1; t1 commit; s3 t3 begin; t3 r z@0; t3 commit; s2 t2 begin; t2 r x@0; t2 commit`, "G-single-realtime  [1 2 3]"},
	} {
		text := `s1 session postgres "15"; s2 session postgres "15"; s3 session postgres "15"; ` + tt.text
		if fs, _ := run(Options{}, parse(t, text)); len(fs) != 0 {
			t.Errorf("%s, not strict: %s", tt.name, briefs(fs))
		}
		fs, _ := run(Options{Strict: true}, parse(t, text))
		if got := briefs(fs); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestOrders gives the events in every order that keeps each session's own: the findings must be the same.
func TestOrders(t *testing.T) {
	for _, text := range []string{
		`s1 t1 begin; t1 w x 0>1; t1 abort; s2 t2 begin; t2 r x@1; t2 commit`,
		`s1 t1 begin; t1 w x 0>1; t1 w x 1>2; t1 commit; s2 t2 begin; t2 r x@1; t2 commit`,
		`s1 t1 begin; t1 r x@0; t1 w x 0>1; t1 commit; s2 t2 begin; t2 r x@0; t2 w x 1>2; t2 commit`,
		`s1 t1 begin; t1 r x@0; t1 w x >1; t1 commit; s2 t2 begin; t2 r x@0; t2 w x >2; t2 commit`,
		`s1 t1 begin; t1 r x@a<9; t1 w x >b#10; t1 commit; s2 t2 begin; t2 r x@a<9; t2 w x >c#11; t2 commit`,
		`s1 t1 begin; t1 r _@a; t1 w _ a>b; t1 commit; s2 t2 begin; t2 r _@a; t2 w _ b>c; t2 commit`,
		`s1 t1 begin; t1 r x@0 y@0; t1 w x 0>1; t1 commit; s2 t2 begin; t2 r x@0 y@0; t2 w y 0>1; t2 commit`,
		`s1 t1 begin; t1 stmt tokens T1; t1 w y 0>1; t1 commit; s2 t2 begin; t2 r y@0; t2 r x@1!T1; t2 commit`,
		`s1 t1 begin; t1 w x 0>1 y 0>1; t1 commit; s2 t2 begin; t2 r y@1; t2 w z 0>1; t2 commit; s3 t3 begin; t3 r x@0 z@1; t3 commit`,
		`s1 t1 begin; t1 r x@0; t1 w y 0>1; t1 commit; s2 t2 begin; t2 r y@0; t2 w z 0>1; t2 commit; s3 t3 begin; t3 r z@0; t3 w x 0>1; t3 commit`,
		`s1 t1 begin; t1 r x@0; t1 inc x 1>2; t1 commit; s2 t2 begin; t2 inc x 0>1; t2 commit`,
		`s1 t1 begin; t1 r _@a; t1 inc _ b>c; t1 commit; s2 t2 begin; t2 inc _ a>b; t2 commit`,
		`s2 t2 begin; t2 w x 0>1; t2 commit; s1 t1 begin; t1 r x@0; t1 lock x@1; t1 w x 1>2; t1 commit`,
		`s1 t1 begin "read committed"; t1 r x@0 y@0; t1 w x 0>1; t1 unknown; s2 t2 begin "read committed"; t2 r x@0 y@0; t2 w y 0>1; t2 commit; s3 t3 begin "read committed"; t3 r x@1; t3 commit`,
	} {
		bySession := map[uint64][]history.Event{}
		var ids []uint64
		var first []history.Event
		all := parse(t, text)
		for _, e := range all {
			// Begins stay in front where there are three sessions, or there would be too many orders.
			if e.Kind == history.EventSession || e.Kind == history.EventBegin && all[len(all)-1].Txn == 3 {
				first = append(first, e)
				continue
			}
			if bySession[e.Session] == nil {
				ids = append(ids, e.Session)
			}
			bySession[e.Session] = append(bySession[e.Session], e)
		}
		want, n := "", 0
		interleave(bySession, ids, first, func(order []history.Event) {
			fs, _ := run(Options{}, order)
			got := briefs(fs)
			if n++; n == 1 {
				want = got
			}
			if got != want && !t.Failed() {
				var b []byte
				for i := range order {
					b = append(history.AppendEvent(b, &order[i]), '\n')
				}
				t.Errorf("got %q, want %q as in the first order, for\n%s", got, want, b)
			}
		})
		if strings.Contains(text, "inc") || strings.Contains(text, "lock") {
			if want != "" {
				t.Errorf("found %s in %s", want, text)
			}
		} else if want == "" {
			t.Errorf("nothing found in %s", text)
		}
	}
}

// interleave calls f with every merge of the sessions' events.
func interleave(left map[uint64][]history.Event, ids []uint64, done []history.Event, f func([]history.Event)) {
	over := true
	for _, id := range ids {
		if l := left[id]; len(l) > 0 {
			over = false
			left[id] = l[1:]
			interleave(left, ids, append(done, l[0]), f)
			left[id] = l
		}
	}
	if over {
		f(append([]history.Event(nil), done...))
	}
}

// TestContradictions: a history that contradicts itself must not hang or panic.
func TestContradictions(t *testing.T) {
	for _, text := range []string{
		two + `t1 w _ a>b; t1 commit; t2 w _ b>a; t2 commit`,
		two + `t1 w _ a>a; t1 commit; t2 w _ a>b; t2 r _@b; t2 commit`,
		two + `t1 w x a>b#5; t2 w x b>c#4; t1 commit; t2 commit`,
		three + `t1 w _ a>b; t2 w _ b>c; t3 w _ c>a; t1 commit; t2 commit; t3 commit`,
		three + `t1 w x 0>1; t2 w x 0>1; t3 r x@1; t1 commit; t2 commit; t3 commit`,
		`s1 t1 begin; s1 t2 begin; t1 commit; t1 commit; t2 commit; s1 close; s1 close`,
		two + `t1 w x a#9>b#3; t2 w _ b>c; t2 w x c>a#1; t1 r x@a x@b x@c; t1 commit; t2 commit`,
	} {
		_, c := run(Options{Strict: true}, parse(t, text))
		if v := c.Coverage(); len(v.Contradictions) == 0 || !strings.Contains(v.String(), "the history contradicts itself: ") {
			t.Errorf("no contradiction counted in %s: %s", text, v)
		}
	}
	_, c := run(Options{Strict: true}, parse(t, three+`t1 w _ a>b; t1 commit; t2 r _@b; t2 w _ b>c; t2 abort; t3 w _ b>d; t3 r _@d; t3 commit; s1 close; s2 close`))
	if v := c.Coverage(); len(v.Contradictions) > 0 {
		t.Errorf("near miss: %v", v.Contradictions)
	}
}

// TestShortened: what is left of a shortened cycle proves its class, and no rw is adjacent to another one in a G-nonadjacent.
func TestShortened(t *testing.T) {
	for _, tt := range []struct{ text, kinds string }{
		{three + `s4 t4 begin "read committed"; t1 r x@0; t2 w x 0>1; t2 commit; t3 w x 1>2; t3 r y@0; t3 commit; t4 w y 0>1; t4 w z 0>1; t4 commit; t1 r z@1; t1 commit`, "rw ww rw wr"},
		{three + `t1 r x@0; t2 w x 0>1; t2 commit; t3 w x 1>2; t3 w z 0>1; t3 commit; t1 r z@1; t1 commit`, "rw wr"},
	} {
		fs, _ := run(Options{}, parse(t, tt.text))
		if len(fs) == 0 {
			t.Errorf("nothing found in %s", tt.text)
		}
		for _, f := range fs {
			var kinds []string
			for _, e := range f.Edges {
				kinds = append(kinds, string(e.Kind))
			}
			if got := strings.Join(kinds, " "); got != tt.kinds {
				t.Errorf("%s: edges %s, want %s, in %s", f.Class, got, tt.kinds, tt.text)
			}
		}
	}
}
