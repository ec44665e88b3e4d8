package sieve

import (
	"fmt"
	"testing"

	"wirecheck/history"
)

// endless plays so many transactions of a session, each of which reads and writes one of few rows, to all parts and a center. Every 1000th one loses an
// update to the one before. It gives how many transactions were kept at most, and how many rounds had something to judge.
func endless(t *testing.T, txns, parts int, stays bool) (kept, rounds int, c *Center, list []*Part) {
	c = NewCenter(CenterOptions{Parts: parts, Keep: 50, MaxTxns: 2000})
	for i := range parts {
		list = append(list, NewPart(PartOptions{Number: i, Parts: parts, Keep: 100, MaxTxns: 2000, Session: func(s uint64) uint64 { return s },
			Name: func(txn uint64) ID { return ID{Txn: txn} }, Mine: func(id ID) bool { return id.Txn%uint64(parts) == uint64(i) }}))
	}
	message, tick := uint64(1), uint64(0)
	add := func(e history.Event) {
		tick += 2
		e.From, e.To = tick-1, tick
		for _, p := range list {
			p.Add(&e, message, message, false)
		}
	}
	if stays {
		add(history.Event{Kind: history.EventBegin, Session: 99, Txn: 1 << 40, Tokens: []string{"long"}})
	}
	var rows [7]int
	for i := 1; i <= txns; i++ {
		k := i % len(rows)
		lost := 0
		if i%1000 == 0 && rows[k] > 1 {
			lost = 1
		}
		row := history.Row{Table: "t", Key: fmt.Sprint(k)}
		version := func(n int) (string, uint64) { return fmt.Sprintf("v%d.%d", k, n), uint64(n) + 10 }
		e := history.Event{Kind: history.EventBegin, Session: 1, Txn: uint64(i), Tokens: []string{fmt.Sprint("T", i)}}
		add(e)
		read := history.Access{Op: history.OpRead, Row: row}
		read.Version, read.Order = version(rows[k] - lost)
		write := history.Access{Op: history.OpUpdate, Row: row}
		write.Prev, write.PrevOrder = version(rows[k])
		rows[k]++
		write.Version, write.Order = version(rows[k])
		for n, a := range []history.Access{read, write} {
			add(history.Event{Kind: history.EventStmt, Session: 1, Txn: uint64(i), N: n + 1, Accesses: []history.Access{a}})
		}
		add(history.Event{Kind: history.EventEnd, Session: 1, Txn: uint64(i), Outcome: history.OutcomeCommitted})
		if i%100 == 0 {
			for n, p := range list {
				s, err := ReadShare(p.Share().Append(nil))
				if err != nil {
					t.Fatal(err)
				}
				c.Add(n, s, message, false, message)
				kept = max(kept, p.Kept())
			}
			r := c.Round()
			if kept = max(kept, c.Kept()); len(r.Judge) > 0 {
				rounds++
			}
			message++
		}
	}
	return kept, rounds, c, list
}

// TestForgetting: parts and the center keep as much of a history as of one that is four times as long, and find what is new in either. What stays open holds
// them back to their limits, and they say so.
func TestForgetting(t *testing.T) {
	for _, parts := range []int{1, 3} {
		for _, txns := range []int{5000, 20_000} {
			kept, rounds, c, list := endless(t, txns, parts, false)
			if kept > 1000 || rounds != txns/1000 || c.Forgotten > 0 || list[0].Forgotten > 0 || len(list[0].waiting) > 1000 {
				t.Errorf("%d parts, %d transactions: %d kept, %d rounds with suspects", parts, txns, kept, rounds)
			}
			if needed := c.Needed(); needed+30 < uint64(txns/100) {
				t.Errorf("another center would read from share %d of %d", needed, txns/100)
			}
			if needed := list[0].Needed(); needed < uint64(4*txns)-8000 {
				t.Errorf("another part would read from event %d of %d", needed, 4*txns)
			}
		}
		kept, rounds, c, list := endless(t, 20_000, parts, true)
		if kept > 5000 || rounds != 20 || c.Forgotten == 0 || list[0].Forgotten == 0 {
			t.Errorf("%d parts, one transaction stays open: %d kept, %d rounds, %d and %d forgotten early", parts, kept, rounds, c.Forgotten, list[0].Forgotten)
		}
	}
}

// TestShareDamaged: what is cut off or of another form is refused, whatever it is.
func TestShareDamaged(t *testing.T) {
	s := &Share{Runs: map[uint32]string{0: "run"}, Oldest: 7, Said: []byte("said"), Ended: []Ended{{ID: ID{0, 5}, Begin: 3, End: 4, Last: 4, Messages: []uint64{3, 4}, requests: []uint64{9}}},
		edges: [][2]ID{{{0, 5}, {0, 9}}}, special: []ID{{0, 9}}, groups: []group{{key: 3, members: []ID{{0, 5}, {0, 9}}}}}
	whole := s.Append(nil)
	if got, err := ReadShare(whole); err != nil || fmt.Sprint(got) != fmt.Sprint(s) {
		t.Errorf("%v, %v; want %v", got, err, s)
	}
	for n := range whole {
		if _, err := ReadShare(whole[:n]); err == nil {
			t.Errorf("%d bytes of %d are read", n, len(whole))
		}
	}
	if _, err := ReadShare(append([]byte{shareFormat + 1}, whole[1:]...)); err == nil {
		t.Error("another form is read")
	}
}

// TestPartContext: a part tells what a Checker needs to know of an UPDATE's columns (the image of what it replaced) and of an INSERT (what it found), as a
// sieve of the whole history gives it along.
func TestPartContext(t *testing.T) {
	row := history.Row{Table: "t", Key: "x"}
	write := func(op history.Op, v string, order uint64, prev string) history.Access {
		a := history.Access{Op: op, Row: row, Version: v, Order: order, Prev: prev}
		if prev != "" {
			a.PrevOrder = order - 1
		}
		return a
	}
	image := func(a history.Access) history.Access { a.Image = "a 1"; return a }
	for _, tt := range []struct {
		name string
		list []history.Access // of a transaction each
		want string
	}{
		{"an image of what was replaced", []history.Access{image(write(history.OpUpdate, "b", 2, "a")), image(write(history.OpUpdate, "c", 3, "b"))}, "lead [1 2]"},
		{"no images", []history.Access{write(history.OpUpdate, "b", 2, "a"), write(history.OpUpdate, "c", 3, "b")}, ""},
		{"an INSERT that does not say what it found", []history.Access{write(history.OpUpdate, "b", 2, "a"), write(history.OpInsert, "c", 3, "")}, "all [2 1]"},
		{"an INSERT that says it", []history.Access{write(history.OpUpdate, "b", 2, "a"), write(history.OpInsert, "c", 3, "b")}, ""},
		{"who comes later does not matter to an INSERT", []history.Access{write(history.OpInsert, "b", 2, ""), write(history.OpUpdate, "c", 3, "b")}, ""},
	} {
		p := NewPart(PartOptions{Parts: 1, Session: func(s uint64) uint64 { return s }, Name: func(txn uint64) ID { return ID{Txn: txn} }, Mine: func(ID) bool { return true }})
		s := New(Options{})
		add := func(e history.Event) {
			p.Add(&e, 1, 1, false)
			s.Add(&e)
		}
		for i, a := range tt.list {
			n := uint64(i + 1)
			add(history.Event{Kind: history.EventBegin, Session: n, Txn: n, Tokens: []string{fmt.Sprint("T", n)}})
			add(history.Event{Kind: history.EventStmt, Session: n, Txn: n, N: 1, Accesses: []history.Access{a}})
			add(history.Event{Kind: history.EventEnd, Session: n, Txn: n, Outcome: history.OutcomeCommitted})
		}
		got := ""
		for _, g := range p.Share().groups {
			got = map[bool]string{true: "lead ", false: "all "}[g.lead]
			var members []uint64
			for _, id := range g.members {
				members = append(members, id.Txn)
			}
			got += fmt.Sprint(members)
		}
		if got != tt.want {
			t.Errorf("%s: the part tells %q, want %q", tt.name, got, tt.want)
		}
		along := 0
		for _, r := range s.parts {
			r.context(s.images, func(n uint32) bool { return n == 1 }, func(n uint32) {
				if n == 0 {
					along = 1
				}
			})
		}
		if (along > 0) != (tt.want != "") {
			t.Errorf("%s: the first transaction goes along with the second one: %v", tt.name, along > 0)
		}
	}
}
