package foreign

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
	"wirecheck/history/observed"
	"wirecheck/oracle/inferred"
)

// samples has one history of each form, as its own checker writes it.
var samples = []struct{ name, format, text string }{
	{"lines of EDN", Elle, `{:type :invoke, :f :txn, :value [[:append 11 1] [:r 11 nil] [:r 11 nil]], :process 10, :time 14532933, :index 0}
{:type :info, :f :start, :process :nemesis, :value {:a [1 2], [3] 4}, :index 1}
{:type :ok, :f :txn, :value [[:append 11 1] [:r 11 [1]] [:r 11 [1]]], :process 10, :time 31076248, :index 2}
`},
	{"a vector of EDN", Elle, `; a comment
[{:type :invoke :process 0 :value [[:w :x 1] [:r "y" nil]]} #_{:dropped 1}
 {:type :ok :process 0 :value [[:w :x 1] [:r "y" nil]] :error #{1 [2]} :at #inst "2020-01-01T00:00:00Z"}]`},
	{"records of EDN", Elle, `#jepsen.history.Op{:index 0, :time 1, :type :invoke, :process 3, :f :txn, :value [[:r :x nil]]}
#jepsen.history.Op{:index 1, :time 2, :type :fail, :process 3, :f :txn, :value [[:r :x nil]], :error :conflict}`},
	{"what Clojure prints and EDN does not have", Elle, `{:type :invoke, :process 0, :value [[:w :x 1/2]], :at ##Inf}
{:type :info, :process 0, :value [[:w :x 1/2]], :error #object[java.net.SocketException 0x3f4a "a \" 0x1 ; [B@3f4"]} ; 1/2 "
{:type :ok, :process 1, :value [[:r :x 1/2] [:r :y \;]], :node #:jepsen.db{:a [-3/4 0x1F]}}`},
	{"JSON", JepsenJSON, `[{"index":0,"type":"invoke","process":0,"f":"txn","value":[["append",253,1],["r",253,null]]},
 {"index":1,"type":"ok","process":0,"f":"txn","value":[["append",253,1],["r",253,[1,3,4]]]},
 {"index":2,"type":"info","process":"nemesis","f":"kill","value":{"n1":"killed"}}]`},
	{"lines of JSON", JepsenJSON, `{"type":"invoke","process":0,"value":[["w","x",1]]}
{"type":"info","process":0,"value":[["w","x",1]]}`},
	{"PolySI's Galera history", Plume, galera},
	{"AWDIT's long fork", Plume, "w 0 0\nw 1 0\n=====\nw 0 1\n-----\nr 0 1\nr 1 0\n=====\nw 1 1\n-----\nr 1 1\nr 0 0\n"},
	{"dbcop", DBCop, `{"params":{"id":0,"n_node":2,"n_variable":1,"n_transaction":1,"n_event":2},"info":"","start":"2020-01-01T00:00:00Z","end":"2020-01-01T00:00:00Z",
 "data":[[{"events":[{"Write":{"variable":0,"version":1}},{"Read":{"variable":0,"version":1}}],"committed":true}],[{"events":[{"Read":{"variable":0,"version":null}}],"committed":true},
 {"events":[{"Write":{"variable":0,"version":2}}],"committed":false}]]}`},
	{"old dbcop", DBCop, `[[{"events":[{"write":true,"variable":0,"value":1,"success":true},{"write":false,"variable":0,"value":1,"success":true}],"success":true}]]`},
	{"TimeKiller", TimeKiller, `[{"tid":67,"sid":19,"sts":{"p":1691420095436341,"l":61},"cts":{"p":1691420095436350,"l":18},"ops":[{"t":"w","k":7,"v":2},{"t":"r","k":8,"v":null}]},
 {"tid":68,"sid":20,"sts":{"p":1691420095436351,"l":0},"cts":{"p":1691420095436351,"l":0},"ops":[{"t":"r","k":7,"v":2}]}]`},
	{"TimeKiller's lists", TimeKiller, `[{"tid":1,"sid":1,"sts":{"p":1,"l":0},"cts":{"p":2,"l":0},"ops":[{"t":"a","k":3,"v":1},{"t":"r","k":6,"v":[4,5,9]}]}]`},
}

// galera is a history of PolySI's collection: a lost update.
const galera = `w(0,1,1,1)
w(0,2,1,1)
w(0,3,1,2)
w(0,4,1,2)
r(0,4,1,3)
w(0,5,1,3)
r(0,5,1,4)
r(0,5,1,4)
r(0,4,2,8)
w(0,10,2,8)
w(0,11,2,9)
w(0,12,2,9)
w(0,13,2,10)
w(0,14,2,10)
`

func TestDetect(t *testing.T) {
	for _, s := range samples {
		if got := Detect([]byte(s.text)); got != s.format {
			t.Errorf("%s: detected %q, want %q", s.name, got, s.format)
		}
	}
	for _, other := range []string{"", `{"wirecheck":"history","version":1}` + "\n", "wct\x00\x01", "{}", "[]", "SELECT 1", "\x1f\x8b"} {
		if got := Detect([]byte(other)); got != "" {
			t.Errorf("%q: detected %q, want none", other, got)
		}
	}
}

func read(t testing.TB, format, text string) *observed.History {
	t.Helper()
	h, err := Read(strings.NewReader(text), format, "h")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestJepsen(t *testing.T) {
	h := read(t, Elle, `{:type :invoke, :process 0, :index 3, :value [[:append :x 1] [:r :y nil]]}
{:type :invoke, :process 1, :index 7, :value [[:append :x 2]]}
{:type :ok, :process 0, :index 9, :value [[:append :x 1] [:r :y [ 5,  6 ]]]}
{:type :info, :process 1, :index 12, :error :timeout}
{:type :invoke, :process 2, :index 13, :value [[:r :x]]}
{:type :fail, :process 2, :index 14, :value [[:r :x nil]]}
{:type :invoke, :process 3, :index 15, :value [[:w :z nil-is-a-symbol]]}`)
	want := []observed.Transaction{
		{ID: 9, Session: 1, Outcome: history.OutcomeCommitted, Begin: 1, End: 3, Ops: []observed.Op{{Kind: observed.Append, Key: ":x", Value: "1"},
			{Key: ":y", IsList: true, Value: "[5 6]", List: []string{"5", "6"}}}},
		{ID: 12, Session: 2, Outcome: history.OutcomeUnknown, Begin: 2, Ops: []observed.Op{{Kind: observed.Append, Key: ":x", Value: "2"}}},
		{ID: 14, Session: 3, Outcome: history.OutcomeAborted, Begin: 5, End: 6, Ops: []observed.Op{{Key: ":x", Unknown: true}}},
		{ID: 15, Session: 4, Outcome: history.OutcomeUnknown, Begin: 7, Ops: []observed.Op{{Kind: observed.Write, Key: ":z", Value: "nil-is-a-symbol"}}},
	}
	if d := cmp.Diff(want, h.Transactions); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestIncomplete has histories with something missing. None is judged valid, and none is accused.
func TestIncomplete(t *testing.T) {
	const good = `{:type :invoke :process 0 :value [[:append :x 1]]} {:type :ok :process 0 :value [[:append :x 1]]}
{:type :invoke :process 1 :value [[:r :x nil]]} {:type :ok :process 1 :value [[:r :x [1]]]} `
	for _, tt := range []struct{ name, format, text string }{
		{"nothing", Elle, ""},
		{"the nemesis alone", Elle, `{:type :info :process :nemesis :value 1}`},
		{"no operations", JepsenJSON, `[]`},
		{"no transactions", Elle, `{:type :invoke :process 0 :f :read :value nil} {:type :ok :process 0 :f :read :value 3}`},
		{"other operations besides", Elle, good + `{:type :ok :process 4 :value 17}`},
		{"an unknown micro-operation", Elle, good + `{:type :ok :process 4 :value [[:cas :x 1]]}`},
		{"an unknown type", Elle, good + `{:type :maybe :process 4 :value [[:r :x [1]]]}`},
		{"a completed read without a result", Elle, good + `{:type :ok :process 4 :value [[:r :x]]}`},
		{"a completion without a value", Elle, good + `{:type :ok :process 4}`},
		{"a completion that wrote something else", Elle, good + `{:type :invoke :process 4 :value [[:append :x 2]]} {:type :ok :process 4 :value [[:append :x 3]]}`},
		{"dbcop without outcome", DBCop, `[[{"events":[{"Write":{"variable":0,"version":1}}]}],[{"events":[{"Read":{"variable":0,"version":1}}],"committed":true}]]`},
		{"Plume's transaction in two places", Plume, "w(0,1,1,1)\nr(1,0,1,2)\nw(1,2,1,1)\nr(0,1,2,3)"},
		{"TimeKiller's stamps are reversed", TimeKiller, `[{"tid":1,"sid":1,"sts":{"p":2,"l":0},"cts":{"p":1,"l":0},"ops":[{"t":"w","k":3,"v":1}]}]`},
	} {
		r := inferred.Check(read(t, tt.format, tt.text), inferred.Options{Order: true})
		if len(r.Findings) > 0 || r.Undecided == "" {
			t.Errorf("%s: %d findings, undecided %q", tt.name, len(r.Findings), r.Undecided)
		}
	}
	if r := inferred.Check(read(t, Elle, good), inferred.Options{Order: true}); len(r.Findings) > 0 || r.Undecided != "" {
		t.Errorf("the complete history: %d findings, undecided %q", len(r.Findings), r.Undecided)
	}
}

func TestRefused(t *testing.T) {
	for _, tt := range []struct{ format, text, want string }{
		{Elle, "{:type :ok", "h: operation 1: "},
		{Elle, "17", "h: operation 1: is no operation"},
		{Elle, strings.Repeat("[", 100_000), "h: byte 200: brackets nest more than 200 deep"},
		{JepsenJSON, "[{}", "h: "},
		{JepsenJSON, strings.Repeat("[", 100_000), "h: "},
		{Plume, "w(0,1,1,1)\nw 0 1\n", `h: line 2: "w 0 1" is not`},
		{Plume, "w(0,x,1,1)", `h: line 1: "w(0,x,1,1)" is not`},
		{DBCop, `[[{"events":[{"Erase":{}}],"committed":true}]]`, "h: session 1, transaction 1: event 1: is neither a read nor a write"},
		{DBCop, `[[{"events":[{"Write":{"variable":0}}],"committed":true}]]`, "h: session 1, transaction 1: event 1: writes no version"},
		{DBCop, `{"n_node":1}`, `h: has no "data"`},
		{"cobra", "", "unknown format"},
	} {
		_, err := Read(strings.NewReader(tt.text), tt.format, "h")
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s %.40q: %v, want %s", tt.format, tt.text, err, tt.want)
		}
	}
}

// TestDBCopZero reads version 0, which is the initial one where nobody wrote it.
func TestDBCopZero(t *testing.T) {
	const two = `[[{"events":[%s{"Read":{"variable":7,"version":0}},{"Write":{"variable":7,"version":1}}],"committed":true}],[{"events":[{"Read":{"variable":7,"version":%s}},{"Write":{"variable":8,"version":0}}],"committed":true}]]`
	for _, tt := range []struct{ before, second, want string }{
		{"", "0", ""},
		{"", "1", ""},
		{"", "2", "garbage-read "},
		{`{"Write":{"variable":7,"version":0}},`, "0", "G1b "}, // somebody wrote it
		{`{"Write":{"variable":7,"version":0}},`, "null", ""},
	} {
		if got := verdict(read(t, DBCop, fmt.Sprintf(two, tt.before, tt.second)), false); !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%q, then version %s: %q, want %q", tt.before, tt.second, got, tt.want)
		}
	}
}

// TestEmpty reads files with nothing in them: histories without transactions, of which nothing is known.
func TestEmpty(t *testing.T) {
	for _, format := range Formats {
		texts := []string{"", "\n \n"}
		if format != Plume {
			texts = append(texts, "[]")
		}
		for _, text := range texts {
			if got := verdict(read(t, format, text), true); got != "no dependency between the transactions can be inferred" {
				t.Errorf("%s %q: %q", format, text, got)
			}
		}
	}
	if got := verdict(read(t, DBCop, `{"data":[[],[]]}`), true); got == "" {
		t.Error("sessions without transactions are judged as satisfied")
	}
}

// verdict is what a history's judgement is, whatever the names of its keys and values.
func verdict(h *observed.History, order bool) string {
	r := inferred.Check(h, inferred.Options{Order: order})
	var b strings.Builder
	for _, f := range r.Findings {
		b.WriteString(string(f.Class) + " ")
	}
	return b.String() + r.Undecided
}

// TestRoundTrip writes each history in each form that can say it, and reads it again: the verdict stays.
func TestRoundTrip(t *testing.T) {
	written := 0
	for _, s := range samples {
		h := read(t, s.format, s.text)
		for _, format := range Formats {
			var b bytes.Buffer
			if err := Write(&b, h, format); err != nil {
				if format == s.format {
					if h.Lists() || strings.Contains(err.Error(), "unknown outcome") {
						continue
					}
					t.Errorf("%s as %s: %v", s.name, format, err)
				}
				continue
			}
			written++
			again, err := Read(bytes.NewReader(b.Bytes()), format, "again")
			if err != nil {
				t.Errorf("%s as %s: %v\n%s", s.name, format, err, b.String())
				continue
			}
			if len(again.Transactions) == 0 {
				continue // the form has only committed transactions
			}
			if got := Detect(b.Bytes()); got != format {
				t.Errorf("%s as %s is detected as %q", s.name, format, got)
			}
			if got, want := verdict(again, false), verdict(h, false); got != want {
				t.Errorf("%s as %s: %q, want %q\n%s", s.name, format, got, want, b.String())
			}
			if format == s.format && format != Plume {
				var second bytes.Buffer
				if err := Write(&second, again, format); err != nil || second.String() != b.String() {
					t.Errorf("%s as %s is written in another way the second time (%v):\n%s%s", s.name, format, err, b.String(), second.String())
				}
			}
		}
	}
	if written < 25 {
		t.Errorf("only %d were written", written)
	}
}

func TestGalera(t *testing.T) {
	if got := verdict(read(t, Plume, galera), false); !strings.Contains(got, "lost-update") {
		t.Errorf("got %q, want a lost update", got)
	}
}
