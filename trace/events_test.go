package trace

import (
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
)

// TestEvents: an event is the same after it was in a file, whatever repeats in it.
func TestEvents(t *testing.T) {
	read := func(table, key, name, version, writer string) history.Access {
		return history.Access{Op: history.OpRead, Row: history.Row{Table: table, Key: key}, Name: name, Version: version, Writer: writer}
	}
	for _, ev := range []history.Event{
		{Kind: history.EventStmt, Session: 3, Txn: 9, N: 1, SQL: "SELECT n FROM t", Verb: "select", Params: "1 7", Accesses: []history.Access{
			{Op: history.OpRead, Row: history.Row{Table: "t", Key: "1"}, Version: "v", Values: "n 5"}, {Op: history.OpRead, Row: history.Row{Table: "t", Key: "2"}, Version: "v"}}},
		{Kind: history.EventBegin, Session: 3, Txn: 9, From: 77, Level: "serializable", Implicit: true, Tokens: []string{"x1"}},
		{Kind: history.EventEnd, Session: 3, Txn: 9, Outcome: history.OutcomeAborted},
		{Kind: history.EventStmt, Session: 3, Txn: 9, N: 2, SQL: "SELECT '\xff'", Verb: "select", Error: &history.ServerError{Code: "1", Message: "m"}},
		{Kind: history.EventStmt, Session: 3, Txn: 9, N: 2, Verb: "select", Coverage: history.CoverageExact, Accesses: []history.Access{
			read("public.t", "1", "id=1", "v", "w"), read("public.t", "22", "id=22", "v", "w"), read("public.t", "22", "other=22", "v2", ""), read("public.t", "", "", "", ""),
			read("public.u", "a'b", "s='a'b'", "v2", "w"), read("public.u", "\xff", "s='\xff'", "v2", "w"), read("public.u", "x", "", "", "w"), read("public.u", "x", "y", "", "w"),
			{Op: history.OpUpdate, Row: history.Row{Table: "public.u", Key: "x"}, Version: "v", Prev: "u", PrevWriter: "w", Order: 7, PrevOrder: 6},
			{Op: history.OpUpdate, Row: history.Row{Table: "public.u", Key: "x"}, AsOf: 9, Approx: true}, {Op: history.OpDelete, Row: history.Row{Table: "public.u", Key: "x"}, AsOf: 9},
		}},
		{Kind: history.EventStmt, Session: 3, Txn: 9, N: 3, Verb: "update", Accesses: []history.Access{filled(t)}},
		{Kind: history.EventStmt, Session: 3, Txn: 9, N: 3, Verb: "update", Accesses: []history.Access{{Op: history.OpUpdate, Image: "n 5"}, {Op: history.OpUpdate, Was: "n 4"}, {Op: history.OpInsert}}},
	} {
		b := appendRecord(nil, &Record{Kind: KindHistory, Session: ev.Session, History: &ev}, 0)
		var got Record
		if err := decodeRecord(b, &got, 0); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(&ev, got.History); d != "" {
			t.Errorf("-written +read:\n%s", d)
		}
		for n := range b { // no damage brings it down
			if err := decodeRecord(b[:n], &got, 0); err == nil && n == 0 {
				t.Error("nothing was taken for a record")
			}
			for _, x := range []byte{0x80, 0xff} {
				bad := []byte(strings.Clone(string(b)))
				bad[n] ^= x
				_ = decodeRecord(bad, &got, 0) // an error or another event
			}
		}
	}
}

// filled is an access in which no field is empty, so that a field that is not packed does not go unnoticed.
func filled(t *testing.T) (a history.Access) {
	var fill func(reflect.Value)
	fill = func(v reflect.Value) {
		for i := range v.NumField() {
			switch f := v.Field(i); f.Kind() {
			case reflect.Struct:
				fill(f)
			case reflect.String:
				f.SetString(strconv.Itoa(i) + "x")
			case reflect.Uint64:
				f.SetUint(uint64(i) + 1)
			case reflect.Bool:
				f.SetBool(true)
			default:
				t.Fatalf("a field of kind %v", f.Kind())
			}
		}
	}
	fill(reflect.ValueOf(&a).Elem())
	a.Op = history.OpUpdate
	return a
}
