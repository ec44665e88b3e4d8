package postgres

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
	"wirecheck/rewrite"
)

func horizon(xid uint64) *rewrite.Horizon {
	h := &rewrite.Horizon{}
	h.Learn(xid)
	return h
}

func decodeParts() (plain, child part) {
	rel := &rewrite.Relation{RelationName: rewrite.RelationName{Schema: "public", Name: "t"}, Kind: "table", OID: 16400}
	root := &rewrite.Relation{RelationName: rewrite.RelationName{Schema: "public", Name: "p"}, Kind: "partitioned", OID: 16500, Partitions: []uint32{16501}}
	plain = part{rel: rel, op: history.OpRead, lsn: true, key: true, horizon: horizon(1000)}
	child = part{rel: root, op: history.OpRead, lsn: true, key: true, horizon: horizon(1000)}
	return plain, child
}

func TestDecode(t *testing.T) {
	plain, child := decodeParts()
	with := func(p part, f func(*part)) part {
		f(&p)
		return p
	}
	row := history.Row{Table: "public.t", Key: "a b"}
	for _, f := range []struct {
		name string
		p    part
		in   string
		want []history.Access // nil: an error
	}{
		{"read", plain, "0/10 16400 (0,1) 1001 a b", []history.Access{{Op: "read", Row: row, Version: "(0,1)/1001", Writer: "x1001", AsOf: 17}}},
		{"initial", plain, "1/10 16400 (0,1) 999 a b", []history.Access{{Op: "read", Row: row, Version: "(0,1)/999", Order: 1, AsOf: 1<<32 | 17}}},
		{"frozen", plain, "0/10 16400 (0,1) 2 a b", []history.Access{{Op: "read", Row: row, Version: "(0,1)/2", Order: 1, AsOf: 17}}},
		{"before the wrap", plain, "0/10 16400 (0,1) 4294967295 a b", []history.Access{{Op: "read", Row: row, Version: "(0,1)/4294967295", Order: 1, AsOf: 17}}},
		{"no row", plain, "0/10", []history.Access{}},
		{"another file", plain, "0/10 17000 16400 (0,1) 1001 a b", []history.Access{{Op: "read", Row: row, Version: "(0,1)/1001/17000", Writer: "x1001", AsOf: 17}}},
		{"linked in another file", with(plain, func(p *part) { p.op, p.linked = history.OpUpdate, true }), "0/10 14 (0,1) 1001 a b 17000 16400 (0,2) 1002 a b", []history.Access{
			{Op: "update", Row: row, Version: "(0,2)/1002/17000", Writer: "x1002", Order: 16, Prev: "(0,1)/1001/17000", PrevWriter: "x1001"}}},
		{"two files", plain, "0/10 17000 17001 16400 (0,1) 1001 a b", nil},
		{"standby", with(plain, func(p *part) { p.lsn = false }), "16400 (0,1) 1001 a b", []history.Access{{Op: "read", Row: row, Version: "(0,1)/1001", Writer: "x1001"}}},
		{"insert", with(plain, func(p *part) { p.op = history.OpInsert }), "0/10 16400 (0,1) 1001 a b", []history.Access{{Op: "insert", Row: row, Version: "(0,1)/1001", Writer: "x1001", Order: 16}}},
		{"delete", with(plain, func(p *part) { p.op = history.OpDelete }), "0/10 16400 (0,1) 999 a b", []history.Access{{Op: "delete", Row: row, Prev: "(0,1)/999", Order: 16, PrevOrder: 1}}},
		{"upsert inserts", with(plain, func(p *part) { p.op, p.upsert = history.OpInsert, true }), "0/10 0 16400 (0,1) 1001 a b", []history.Access{{Op: "insert", Row: row, Version: "(0,1)/1001", Writer: "x1001", Order: 16}}},
		{"upsert updates", with(plain, func(p *part) { p.op, p.upsert = history.OpInsert, true }), "0/10 1001 16400 (0,1) 1001 a b", []history.Access{{Op: "update", Row: row, Version: "(0,1)/1001", Writer: "x1001", Order: 16}}},
		{"linked", with(plain, func(p *part) { p.op, p.linked = history.OpUpdate, true }), "0/10 14 (0,1) 1001 a b 16400 (0,2) 1002 a b", []history.Access{
			{Op: "update", Row: row, Version: "(0,2)/1002", Writer: "x1002", Order: 16, Prev: "(0,1)/1001", PrevWriter: "x1001"}}},
		{"linked, another key", with(plain, func(p *part) { p.op, p.linked = history.OpUpdate, true }), "0/10 11 (0,1) 999 1 16400 (0,2) 1002 2", []history.Access{
			{Op: "delete", Row: history.Row{Table: "public.t", Key: "1"}, Prev: "(0,1)/999", PrevOrder: 1, Order: 16},
			{Op: "insert", Row: history.Row{Table: "public.t", Key: "2"}, Version: "(0,2)/1002", Writer: "x1002", Order: 16}}},
		{"group", with(plain, func(p *part) { p.group = true }), `0/10 ["16400 (0,1) 1001 a b","","16400 (0,2) 1001 a b"]`, []history.Access{
			{Op: "read", Row: row, Version: "(0,1)/1001", Writer: "x1001", AsOf: 17}, {Op: "read", Row: row, Version: "(0,2)/1001", Writer: "x1001", AsOf: 17}}},
		{"partition", child, "0/10 16501 (0,1) 1001 a b", []history.Access{{Op: "read", Row: history.Row{Table: "public.p", Key: "a b"}, Version: "16501:(0,1)/1001", Writer: "x1001", AsOf: 17}}},
		{"transaction id of 64 bits", with(child, func(p *part) { p.op, p.top = history.OpInsert, true }), "0/10 16501 (0,1) 4294968297 a b", []history.Access{
			{Op: "insert", Row: history.Row{Table: "public.p", Key: "a b"}, Writer: "x1001", Order: 16, Approx: true}}},
		{"another table", plain, "0/10 16501 (0,1) 1001 a b", nil},
		{"unknown partition", child, "0/10 16502 (0,1) 1001 a b", nil},
		{"no position", plain, "16400 (0,1) 1001 a b", nil},
		{"empty", plain, "", nil},
		{"cut", plain, "0/10 16400 (0,1)", nil},
		{"large xid", plain, "0/10 16400 (0,1) 4294967296 a", nil},
		{"no tid", plain, "0/10 16400 0,1 1001 a", nil},
		{"no JSON", with(plain, func(p *part) { p.group = true }), `0/10 [`, nil},
		{"link too long", with(plain, func(p *part) { p.op, p.linked = history.OpUpdate, true }), "0/10 99 (0,1) 999 1 16400 (0,2) 1002 2", nil},
		{"odd hex", with(plain, func(p *part) { p.hex = true }), "0/10 16400 (0,1) 1001 616", nil},
	} {
		got, err := decoder([]part{f.p})([]history.Access{}, [][]byte{[]byte(f.in)})
		if (err != nil) != (f.want == nil) {
			t.Errorf("%s: %v", f.name, err)
		} else if d := cmp.Diff(f.want, got); err == nil && d != "" {
			t.Errorf("%s (-want +got):\n%s", f.name, d)
		}
	}
	grouped := with(plain, func(p *part) { p.group = true })
	if _, err := decoder([]part{grouped})(nil, [][]byte{nil}); !errors.Is(err, rewrite.ErrPartial) {
		t.Errorf("too many versions: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("0/10 16400 (0,1) 1001 a b"), uint8(0))
	f.Add([]byte("0/10 11 (0,1) 999 1 16400 (0,2) 1002 2"), uint8(1))
	f.Add([]byte(`0/10 ["16400 (0,1) 1001 a b",""]`), uint8(2))
	f.Add([]byte("0/10 0 16400 (0,1) 1001 6162"), uint8(12))
	f.Add([]byte("1 16400 (0,1) 1001 a"), uint8(32))
	plain, child := decodeParts()
	f.Fuzz(func(t *testing.T, in []byte, flags uint8) {
		p := plain
		if flags&64 != 0 {
			p = child
		}
		p.linked, p.group, p.upsert, p.hex, p.top = flags&1 != 0, flags&2 != 0, flags&4 != 0, flags&8 != 0, flags&16 != 0
		decode := decoder([]part{p})
		if flags&32 != 0 {
			_, decode = armDecoder([][]part{{}, {p}}, nil)
		}
		acc, err := decode(nil, [][]byte{in})
		if err != nil {
			return
		}
		for _, a := range acc {
			if a.Row.Table == "" || a.Version == "" && a.Prev == "" && !a.Approx {
				t.Errorf("%q gives %+v", in, a)
			}
		}
	})
}

// TestHorizonNotKnown: where nobody knows which transactions came before a judgement, a version is of an unknown writer, and not initial.
func TestHorizonNotKnown(t *testing.T) {
	for _, p := range []part{{}, {horizon: &rewrite.Horizon{}}} {
		if p.initial(5) || p.initial(1<<31+5) || !p.initial(2) {
			t.Errorf("without a horizon, transaction 5 is initial: %v, 2^31 + 5: %v, the frozen one: %v", p.initial(5), p.initial(1<<31+5), p.initial(2))
		}
	}
	if p := (part{horizon: horizon(1000)}); !p.initial(999) || p.initial(1000) {
		t.Errorf("with horizon 1000, transaction 999 is initial: %v, 1000: %v", p.initial(999), p.initial(1000))
	}
}
