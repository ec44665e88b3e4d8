package live_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"

	"wirecheck/history"
	"wirecheck/oracle/isolation"
	"wirecheck/oracle/schedule"
	"wirecheck/proxy/record"
	"wirecheck/rewrite"
	"wirecheck/statement"
)

// article is a table of one row with columns note and n, which requests read and write through a tracker.
type article struct {
	note, n  string
	by       map[string]string // who wrote a column last
	order    string            // of who wrote note and (in lower case) n
	version  int
	trackers map[string]*record.Tracker // nil: nothing is recorded
}

// editor is a request: it may read the row in autocommit; then, in one transaction, it may read it with a lock, and writes a column.
type editor struct {
	name                string
	first, lock         string // the columns that it reads: "note", "n", "note, n", "" for none; the lock's also "1" and "n - 1"
	column              string
	source              string            // of what it writes: first, lock, or neither
	word                string            // that it writes if the source is neither
	did                 string            // what the write rests on and who wrote that, and what it wrote
	knownFirst, knownAt map[string]string // values, and who wrote them as "by note"
	begun               bool
	saves               bool // it writes as TypeORM's save() does, which loads the row before
}

func pick(rng *rand.Rand, of ...string) string { return of[rng.IntN(len(of))] }

func newEditor(rng *rand.Rand, name string) *editor {
	e := &editor{name: name, column: pick(rng, "note", "note", "n"), source: pick(rng, "first", "first", "lock", "constant")}
	e.first, e.lock = pick(rng, "note, n", "note, n", e.column, "n", ""), pick(rng, "note, n", e.column, "1", "n - 1", "", "")
	e.saves = rng.IntN(3) == 0
	e.word = map[string]string{"note": pick(rng, "NULL", "new", "paid", "edited by "+name, "the note"), "n": pick(rng, "7", "100", "0")}[e.column]
	if !strings.Contains(e.first, e.column) && e.source == "first" || !strings.Contains(e.lock, e.column) && e.source == "lock" {
		e.source = "constant"
	}
	return e
}

// step does the next half of the request, and reports whether it was the last one.
func (e *editor) step(a *article) bool {
	if !e.begun {
		e.begun = true
		if e.first != "" {
			e.knownFirst = a.read(e, "SELECT "+e.first+" FROM t WHERE id = 1", e.first, false)
		}
		return false
	}
	within := e.saves && e.lock != "" // a transaction around save()
	if e.saves && !within {
		a.load(e, false)
	}
	a.send(e, &rewrite.Plan{Text: "BEGIN", Verb: "begin", Control: statement.Control{Verb: statement.ControlBegin}}, nil, nil, true)
	if e.lock != "" {
		e.knownAt = a.read(e, "SELECT "+e.lock+" FROM t WHERE id = 1 FOR UPDATE", e.lock, true)
	}
	if within {
		a.load(e, true)
	}
	rests, value := "", e.word
	switch e.source {
	case "first":
		rests, value = e.knownFirst["by "+e.column], a.from(e, e.knownFirst)
	case "lock":
		rests, value = e.knownAt["by "+e.column], a.from(e, e.knownAt)
	default:
		// The request overwrites what it saw last.
		for _, known := range []map[string]string{e.knownAt, e.knownFirst} {
			if v, ok := known["by "+e.column]; ok && rests == "" {
				rests = v
			}
		}
		if e.lock == "n - 1" { // it may stand for the column
			rests = ""
		}
	}
	e.did = rests + " > " + value
	a.version++
	a.by[e.column] = e.name
	if e.column == "note" {
		a.note = value
		a.order += e.name
	} else {
		a.n = value
		a.order += strings.ToLower(e.name)
	}
	text := fmt.Sprintf("UPDATE t SET %s = '%s' WHERE id = 1", e.column, value)
	if e.saves {
		text = fmt.Sprintf(`UPDATE "t" SET "%s" = '%s' WHERE "id" IN (1)`, e.column, value)
	}
	a.send(e, &rewrite.Plan{Text: strings.Replace(text, "'NULL'", "NULL", 1), Verb: "update", Coverage: history.CoverageExact},
		&history.Access{Op: history.OpUpdate, Version: fmt.Sprint(a.version), Prev: fmt.Sprint(a.version - 1)}, nil, true)
	a.send(e, &rewrite.Plan{Text: "COMMIT", Verb: "commit", Control: statement.Control{Verb: statement.ControlCommit}}, nil, nil, false)
	return true
}

// from is what the request makes of the column's value that it knows.
func (a *article) from(e *editor, known map[string]string) string {
	if e.column == "note" && known["note"] == "NULL" {
		return "note of " + e.name
	}
	if e.column == "note" {
		return known["note"] + "; " + e.name
	}
	n := 0
	fmt.Sscan(known["n"], &n)
	return fmt.Sprint(n - 1)
}

// load is what save() reads, and shows nobody.
func (a *article) load(e *editor, within bool) {
	a.read(e, `SELECT "T"."id" AS "T_id", "T"."note" AS "T_note", "T"."n" AS "T_n" FROM "t" "T" WHERE "T"."id" IN (1)`, "note, n", within)
}

// read reads columns of the row.
func (a *article) read(e *editor, sql, columns string, within bool) map[string]string {
	known, cells := map[string]string{}, []record.Cell(nil)
	for c := range strings.SplitSeq(columns, ", ") {
		v, ok := map[string]string{"note": a.note, "n": a.n}[c]
		if !ok {
			cells = append(cells, record.Cell{Text: "1"})
			continue
		}
		known[c], known["by "+c] = v, a.by[c]
		cells = append(cells, record.Cell{Table: "t", Column: c, Text: strings.TrimPrefix(v, "NULL"), Null: v == "NULL"})
	}
	op, open := history.OpRead, within
	if strings.HasSuffix(sql, "UPDATE") {
		op = history.OpLock
	}
	a.send(e, &rewrite.Plan{Text: sql, Verb: "select", Coverage: history.CoverageExact}, &history.Access{Op: op, Version: fmt.Sprint(a.version)}, cells, open)
	return known
}

// send records a statement. open says that a transaction is open behind it.
func (a *article) send(e *editor, p *rewrite.Plan, did *history.Access, cells []record.Cell, open bool) {
	t := a.trackers[e.name]
	if t == nil {
		return
	}
	p.Text += " /*request_id='" + e.name + "'*/"
	tk := t.Sending(p)
	t.From(tk, p.Text, nil)
	r := t.Answer(tk)
	if did != nil {
		did.Row = history.Row{Table: "t", Key: "1"}
		p.Decode = func(list []history.Access, _ [][]byte) ([]history.Access, error) { return append(list, *did), nil }
		if err := r.Decode(p, nil); err != nil {
			panic(err)
		}
		if cells != nil && r.WantsCells() {
			r.Cells(cells)
		}
	}
	t.Done(r, record.Result{})
	t.Status(open)
}

// editorsDid is what the requests depended on and did, with the order of writes of each column: a write that nobody saw is one, too.
func editorsDid(a *article, list []*editor) string {
	upper := func(r rune) rune { return map[bool]rune{true: r, false: -1}[unicode.IsUpper(r)] }
	lower := func(r rune) rune { return map[bool]rune{true: r, false: -1}[unicode.IsLower(r)] }
	did := strings.Join([]string{a.note, a.n, strings.Map(upper, a.order), strings.Map(lower, a.order)}, " ")
	for _, e := range list {
		did += "; " + e.did
	}
	return did
}

// flowRuns is how many random schedules TestValueFlowRandom judges: few in `make test`, many in `make soak`.
var flowRuns = flag.Uint64("flow-runs", 1500, "random requests that write what they had read")

// TestValueFlowRandom compares random requests, which read a row, lock it, and write what they had read before the lock, or with it, or neither, with all
// serial orders of these requests: what is found for certain did happen. What a request overwrote blindly rests on what it read of it last.
func TestValueFlowRandom(t *testing.T) {
	counts := map[string]int{}
	for seed := range *flowRuns {
		rng := rand.New(rand.NewPCG(seed, 131))
		var list []*editor
		for i := range 2 + rng.IntN(2) {
			list = append(list, newEditor(rng, string(rune('A'+i))))
		}
		again := func() (fresh []*editor) {
			for _, e := range list {
				fresh = append(fresh, &editor{name: e.name, first: e.first, lock: e.lock, column: e.column, source: e.source, word: e.word, saves: e.saves})
			}
			return fresh
		}
		c := isolation.New(isolation.Options{})
		found, text := 0, strings.Builder{}
		rec := record.NewRecorder("test", func(ev *history.Event) []record.Warning {
			if ev.Kind == history.EventStmt {
				fmt.Fprintf(&text, "%s %+v\n", ev.SQL, ev.Derived)
			}
			found += len(c.Add(ev))
			return nil
		})
		rec.Requests = record.NewRequests(nil)
		begin := func() article {
			return article{note: "the note", n: "10", by: map[string]string{"note": "setup", "n": "setup"}}
		}
		a := begin()
		a.trackers = map[string]*record.Tracker{}
		for _, e := range list {
			a.trackers[e.name] = record.NewTracker(rec, history.Event{Engine: "postgres"}, record.Limits{})
		}
		all := again()
		for left := slices.Clone(all); len(left) > 0; {
			if i := rng.IntN(len(left)); left[i].step(&a) {
				left = slices.Delete(left, i, i+1)
			}
		}
		got, fits := editorsDid(&a, all), false
		for order := range schedule.Permutations([]int{0, 1, 2}[:len(list)]) {
			s, serial := begin(), again()
			for _, i := range order {
				for !serial[i].step(&s) {
				}
			}
			fits = fits || editorsDid(&s, serial) == got
		}
		switch {
		case c.Broken() != "":
			t.Fatal(c.Broken())
		case fits && found > 0:
			t.Fatalf("seed %d: %d found, and a serial order gives the same:\n%s", seed, found, text.String())
		case fits:
			counts["serializable"]++
		case found > 0:
			counts["found"]++
		case c.Coverage().Possible > 0:
			counts["possible"]++
		default:
			counts["missed"]++
			if testing.Verbose() && counts["missed"] < 4 {
				t.Logf("seed %d: missed\n%s", seed, text.String())
			}
		}
	}
	t.Log(counts)
	if few := int(*flowRuns) / 20; counts["found"] < few || counts["serializable"] < few {
		t.Errorf("%v: the histories prove little", counts)
	}
}
