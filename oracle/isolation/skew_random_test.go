package isolation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"wirecheck/history"
	"wirecheck/oracle/schedule"
)

// booker is a request that checks whether a room is free and books it, in autocommit, or one that does something like it.
type booker struct {
	name        string
	kind        int
	room, other int
	free        bool // what its last check said
	saw         int  // hotel.came of its room at its last check
	did         bool // it wrote
}

// The kinds of bookers.
const (
	checks      = iota // checks a room and books it
	checksTwice        // checks it again before it books it
	atOnce             // the same in one transaction
	blind              // books without a check
	reads              // only checks
	elsewhere          // checks a room and books another one
	moves              // checks a room and moves the first booking there
	cancels            // deletes the first booking
	cancelsAny         // deletes a booking of the room
	kindsOfBookers
)

// hotel is a database of bookings in which each statement runs at once. It writes the history that a recorder would.
type hotel struct {
	rows map[string][2]int // room and version
	text *strings.Builder  // nil: nothing is written
	txn  int
	came map[int]int // for each room, how often a booking of it came or went
}

func (h *hotel) write(session int, request string, statements ...string) {
	if h.txn++; h.text == nil {
		return
	}
	fmt.Fprintf(h.text, "s%d t%d begin \"read committed\" implicit\n", session, h.txn)
	for _, s := range statements {
		fmt.Fprintf(h.text, "t%d %s request %s\n", h.txn, s, request)
	}
	fmt.Fprintf(h.text, "t%d commit\n", h.txn)
}

// ask gives the statement that asks for the bookings of a room, and whether there are none.
func (h *hotel) ask(room int) (statement string, free bool) {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(h.rows)) {
		if row := h.rows[name]; row[0] == room {
			found = append(found, fmt.Sprintf("r booking.%s@%d", name, row[1]))
		}
	}
	return strings.TrimSpace(fmt.Sprintf(`%s all booking "(= number room %d)"`, strings.Join(found, " , "), room)), len(found) == 0
}

func (h *hotel) book(name string, room int) string {
	h.came[room]++
	h.rows[name] = [2]int{room, 1}
	return fmt.Sprintf(`i booking.%s >1 image "room %d"`, name, room)
}

func (h *hotel) move(name string, room int) string {
	was := h.rows[name]
	if was[0] != room {
		h.came[was[0]]++
		h.came[room]++
	}
	h.rows[name] = [2]int{room, was[1] + 1}
	return fmt.Sprintf(`w booking.%s %d>%d image "room %d" was "room %d"`, name, was[1], was[1]+1, room, was[0])
}

func (h *hotel) cancel(name string) string {
	was := h.rows[name]
	h.came[was[0]]++
	delete(h.rows, name)
	return fmt.Sprintf(`d booking.%s %d>%d was "room %d"`, name, was[1], was[1]+1, was[0])
}

// steps are the statements of a booker, each a transaction.
func (b *booker) steps(session int) []func(*hotel) {
	check := func(h *hotel) {
		s, free := h.ask(b.room)
		b.free, b.saw = free, h.came[b.room]
		h.write(session, b.name, s)
	}
	act := func(write func(h *hotel) string) func(*hotel) {
		return func(h *hotel) {
			if b.free {
				b.did = true
				h.write(session, b.name, write(h))
			}
		}
	}
	book := act(func(h *hotel) string { return h.book(b.name, b.room) })
	const first = "first"
	switch b.kind {
	case checksTwice:
		return []func(*hotel){check, check, book}
	case atOnce:
		return []func(*hotel){func(h *hotel) {
			s, free := h.ask(b.room)
			b.saw = h.came[b.room]
			if b.did = free; free {
				h.write(session, b.name, s, h.book(b.name, b.room))
			} else {
				h.write(session, b.name, s)
			}
		}}
	case blind:
		b.free = true
		return []func(*hotel){book}
	case reads:
		return []func(*hotel){check, check}
	case elsewhere:
		return []func(*hotel){check, act(func(h *hotel) string { return h.book(b.name, b.other) })}
	case cancelsAny:
		return []func(*hotel){func(h *hotel) {
			for _, name := range slices.Sorted(maps.Keys(h.rows)) {
				if h.rows[name][0] == b.room {
					b.did = true
					h.write(session, b.name, h.cancel(name))
					return
				}
			}
		}}
	case moves, cancels:
		return []func(*hotel){check, func(h *hotel) {
			if _, there := h.rows[first]; !there || !b.free && b.kind == moves {
				return
			}
			if b.did = true; b.kind == moves {
				h.write(session, b.name, h.move(first, b.room))
			} else {
				h.write(session, b.name, h.cancel(first))
			}
		}}
	}
	return []func(*hotel){check, book}
}

// outcome is what the bookers did, on what check, and the bookings that they left. Two checks are the same if as much had come and gone
// before them: that a room is free again does not make a check of it another one's equal (Adya 1999, section 4.4).
func outcome(h *hotel, list []*booker) string {
	var b strings.Builder
	for _, k := range list {
		if k.did && k.kind != blind && k.kind != cancels && k.kind != cancelsAny {
			fmt.Fprint(&b, k.saw)
		}
		fmt.Fprint(&b, k.did, " ")
	}
	for _, name := range slices.Sorted(maps.Keys(h.rows)) {
		fmt.Fprint(&b, name, h.rows[name][0], " ")
	}
	return b.String()
}

// TestRequestSkewRandom compares random histories of requests with all serial orders of these requests: what was found did happen.
func TestRequestSkewRandom(t *testing.T) {
	counts := map[string]int{}
	for seed := range *predicateRuns / 2 {
		rng := rand.New(rand.NewPCG(seed, 14))
		var list []*booker
		for i := range 2 + rng.IntN(3) {
			list = append(list, &booker{name: string(rune('A' + i)), kind: max(0, rng.IntN(kindsOfBookers+4)-4), room: 1 + rng.IntN(2), other: 3 - rng.IntN(2)})
		}
		begin := map[string][2]int{}
		if rng.IntN(2) == 0 {
			begin["first"] = [2]int{1 + rng.IntN(3), 1}
		}
		h := &hotel{rows: maps.Clone(begin), came: map[int]int{}, text: &strings.Builder{}}
		left := make([][]func(*hotel), len(list))
		for i, b := range list {
			left[i] = b.steps(i + 1)
		}
		for n := 0; n < len(list); {
			i := rng.IntN(len(list))
			if len(left[i]) == 0 {
				continue
			}
			left[i][0](h)
			if left[i] = left[i][1:]; len(left[i]) == 0 {
				n++
			}
		}
		got, fits := outcome(h, list), false
		for order := range schedule.Permutations([]int{0, 1, 2, 3}[:len(list)]) {
			s := &hotel{rows: maps.Clone(begin), came: map[int]int{}}
			serial := make([]*booker, len(list))
			for _, i := range order {
				serial[i] = &booker{name: list[i].name, kind: list[i].kind, room: list[i].room, other: list[i].other}
				for _, step := range serial[i].steps(i + 1) {
					step(s)
				}
			}
			fits = fits || outcome(s, serial) == got
		}
		events := parse(t, h.text.String())
		found, c := run(Options{}, events)
		again, l := run(Options{}, toldLater(events, rng.IntN))
		spread := sessions.ReplaceAllStringFunc(h.text.String(), func(string) string { return fmt.Sprintf("s%d t", 1+rng.IntN(3)) }) // a pool for each statement
		if elsewhere, e := run(Options{}, parse(t, spread)); len(elsewhere) != len(found) || e.Coverage().Possible != c.Coverage().Possible {
			t.Errorf("seed %d: found %s, from other sessions %s\n%s", seed, briefs(found), briefs(elsewhere), spread)
		}
		if named, later := len(found)+c.Coverage().Possible > 0, len(again)+l.Coverage().Possible > 0; named != later || fits && len(again) > 0 {
			t.Errorf("seed %d: found %s, told later %s; %s\n%s", seed, briefs(found), briefs(again), l.Coverage(), h.text)
		}
		switch {
		case c.Broken() != "":
			t.Fatal(c.Broken())
		case fits && len(found) > 0:
			t.Fatalf("seed %d: found %s, and a serial order gives the same:\n%s", seed, briefs(found), h.text)
		case fits:
			counts["serializable"]++
		case len(found) > 0:
			counts["found"]++
		case c.Coverage().Possible > 0:
			counts["possible"]++
		default:
			counts["missed"]++
		}
	}
	t.Log(counts)
	if counts["found"] < 200 || counts["serializable"] < 200 {
		t.Errorf("%v: the histories prove little", counts)
	}
}

var sessions = regexp.MustCompile(`(?m)^s\d+ t`)

// toldLater has what transactions of one write did told later, in random order, but before the next statement of their session, as in the MySQL family.
func toldLater(events []history.Event, next func(int) int) (out []history.Event) {
	var left []history.Event
	tell := func(when func(*history.Event) bool) {
		left = slices.DeleteFunc(left, func(e history.Event) bool {
			if when(&e) {
				out = append(out, e)
				return true
			}
			return false
		})
	}
	statements := map[uint64][]history.Event{}
	for i := range events {
		if e := &events[i]; e.Kind == history.EventStmt {
			statements[e.Txn] = append(statements[e.Txn], *e)
		}
	}
	sole := func(txn uint64) bool {
		list := statements[txn]
		return len(list) == 1 && list[0].Verb != "select" && list[0].Error == nil
	}
	for _, e := range events {
		switch {
		case e.Kind == history.EventBegin:
			tell(func(o *history.Event) bool { return o.Session == e.Session })
		case e.Kind == history.EventStmt && sole(e.Txn):
			left = append(left, e)
			e.Accesses, e.Reads = nil, slices.Clone(e.Reads)
			for i := range e.Reads {
				e.Reads[i].Whole = false
			}
		case e.Kind == history.EventEnd && sole(e.Txn):
			e.Pending = true
		}
		out = append(out, e)
		tell(func(o *history.Event) bool { return next(16) == 0 && ended(out, o.Txn) })
	}
	tell(func(*history.Event) bool { return true })
	return out
}

// ended reports whether a transaction has its end among events.
func ended(events []history.Event, txn uint64) bool {
	return slices.ContainsFunc(events, func(e history.Event) bool { return e.Kind == history.EventEnd && e.Txn == txn })
}
