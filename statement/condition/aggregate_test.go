package condition

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
)

// TestGroupsChange compares what a change of a group's rows means with the aggregates of the rows before and behind it, computed anew.
func TestGroupsChange(t *testing.T) {
	counts := map[Truth]int{}
	for seed := range uint64(20_000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		value := func() Value {
			if rng.IntN(5) == 0 {
				return nil
			}
			text := strconv.Itoa(rng.IntN(7)-2) + []string{"", ".5", ".50"}[rng.IntN(3)]
			return &text
		}
		room := "1"
		rows := func(n int) (list []Image) {
			for range n {
				list = append(list, Image{"room": &room, "hours": value()})
			}
			return list
		}
		g := &Groups{By: []string{"room"}, Of: []string{CountAll}, Fixed: rng.IntN(3) == 0}
		border := strconv.Itoa(rng.IntN(6) - 1)
		of := CountAll
		if fn := []string{"", "count", "sum", "min", "max"}[rng.IntN(5)]; fn != "" {
			of = g.Want(fn, "hours")
		}
		g.Having = Compare([]string{"=", "<", "<=", ">", ">=", "<>"}[rng.IntN(6)], Number, of, &border)
		before := rows(rng.IntN(4))
		leave, come := before[:rng.IntN(len(before)+1)], rows(rng.IntN(3))
		after := append(append([]Image{}, before[len(leave):]...), come...)
		if len(before) > 0 || g.Fixed {
			g.Known = [][]Value{append([]Value{&room}, computed(g.Of, before)...)}
		}
		again, err := ParseGroups(g.Text())
		if err != nil || again.Text() != g.Text() {
			t.Fatalf("%s: %v", g.Text(), err)
		}
		shown := func(rows []Image) bool {
			image := Image{"room": &room}
			for i, v := range computed(g.Of, rows) {
				image[g.Of[i]] = v
			}
			return (len(rows) > 0 || g.Fixed) && g.Having.Holds(image) == True
		}
		got := again.Changes([]Value{&room}, leave, come)
		if counts[got]++; got != Unsure && (got == True) != (shown(before) != shown(after)) {
			t.Errorf("seed %d: %s: %v leave, %v come: %v, but shown %v, then %v", seed, g.Text(), leave, come, got, shown(before), shown(after))
		}
		if got == Unsure && (len(leave) == 0 || of[0] != 'm') {
			t.Errorf("seed %d: %s: it is not certain", seed, g.Text())
		}
	}
	if counts[True] < 2000 || counts[False] < 2000 || counts[Unsure] < 100 {
		t.Error(counts)
	}
}

// computed are the aggregates of rows.
func computed(of []string, rows []Image) (values []Value) {
	for _, name := range of {
		fn, column := Aggregate(name)
		list, _ := valuesOf(rows, column)
		text := strconv.Itoa(len(list))
		v := &text
		if fn != "count" {
			v = nil
		}
		for i, one := range list {
			n, _ := strconv.ParseFloat(one, 64)
			was := 0.0
			if i > 0 && fn != "count" {
				was, _ = strconv.ParseFloat(*v, 64)
			}
			switch {
			case fn == "sum":
				n += was
			case fn == "min" && i > 0:
				n = min(n, was)
			case fn == "max" && i > 0:
				n = max(n, was)
			}
			if fn != "count" {
				sum := fmt.Sprint(n)
				v = &sum
			}
		}
		values = append(values, v)
	}
	return values
}

// TestGroupsShown: of a group that the answer shows with an aggregate, one row more changes the answer, and what is not known of a row is not certain.
func TestGroupsShown(t *testing.T) {
	g, err := ParseGroups(`(groups shows (by room day) (of "count(*)" "count(hours)" "sum(hours)") (> number "sum(hours)" 5) (1 monday 2 2 9) (2 null 1 0 null))`)
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) Value { return &s }
	monday := []Value{text("1"), text("monday")}
	for i, c := range []struct {
		key         []Value
		leave, come []Image
		want        Truth
	}{
		{monday, nil, []Image{{"hours": text("1")}}, True},
		{monday, nil, []Image{{"hours": nil}}, True},
		{monday, []Image{{"hours": text("1")}}, []Image{{"hours": text("1")}}, False},
		{monday, []Image{{"hours": text("4")}}, nil, True},
		{monday, nil, []Image{{}}, Unsure},
		{monday, nil, []Image{{"hours": text("many")}}, Unsure},
		{[]Value{text("2"), nil}, nil, []Image{{"hours": text("5")}}, False},
		{[]Value{text("2"), nil}, nil, []Image{{"hours": text("6")}}, True},
		{[]Value{text("2"), text("null")}, nil, []Image{{"hours": text("6")}}, True},
		{[]Value{text("3"), nil}, nil, []Image{{"hours": text("5.00")}}, False},
		{[]Value{text("3"), nil}, []Image{{"hours": text("5")}}, nil, Unsure},
	} {
		if got := g.Changes(c.key, c.leave, c.come); got != c.want {
			t.Errorf("%d: %v, want %v", i, got, c.want)
		}
	}
	for _, bad := range []string{"", "(groups)", `(groups (by) (of "sum(a)") (true))`, `(groups other (by) (of "count(*)") (true))`, `(groups (by a) (of "count(*)") (true) (1))`, `(groups (by a) (of "count(*)") (true) (1 2)) 3`, `(groups (by a) (of "count(*)") (what)`} {
		if _, err := ParseGroups(bad); err == nil {
			t.Errorf("%q is understood", bad)
		}
	}
}
