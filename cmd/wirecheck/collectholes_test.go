package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"wirecheck/fleet"
	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/oracle/isolation"
)

// joined judges the histories of several proxies as wirecheck collect does, and keeps each occurrence of what is found.
type joined struct {
	join    *fleet.Join
	members map[string]*fleet.Member
	checker *isolation.Checker
	reader  history.BatchReader
	found   []oracle.Finding
}

func newJoined() *joined {
	j := &joined{join: fleet.NewJoin(), members: map[string]*fleet.Member{}}
	j.checker = isolation.New(isolation.Options{Repeats: true, Recorder: j.join.Recorder, Origin: j.join.Origin})
	return j
}

func (j *joined) member(run string) *fleet.Member {
	if j.members[run] == nil {
		j.members[run] = j.join.Member(run)
	}
	return j.members[run]
}

func (j *joined) add(e *history.Event) { j.found = append(j.found, j.checker.Add(e)...) }

// take judges a message.
func (j *joined) take(t *testing.T, run string, data []byte) {
	t.Helper()
	m := j.member(run)
	err := j.reader.Read(data, func(e *history.Event) {
		if m.Take(e) {
			j.add(e)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// hole says that messages of a run are gone.
func (j *joined) hole(run string) {
	for _, e := range j.member(run).Lost("a hole") {
		j.add(&e)
	}
}

// occurrence is what is equal of a finding whether or not something is missing: its class, its name and whose transactions take part.
func occurrence(f *oracle.Finding) string {
	var list []string
	for _, txn := range f.Transactions {
		list = append(list, fmt.Sprint(txn.Proxy, "/", txn.Number))
	}
	slices.Sort(list)
	return fmt.Sprint(f.Class, " ", f.Title(), " ", list)
}

// told reports whether the statements of all edges were captured. Where one is in a hole, its write is known by what its successor says of it, and is
// certain. Its text is not known, so it is not in the finding's id, which is then another one.
func told(f *oracle.Finding) bool {
	return !slices.ContainsFunc(f.Edges, func(e oracle.Edge) bool { return e.FromStatement == 0 || e.ToStatement == 0 })
}

// happened are the ids of all that is found where nothing is missing, by occurrence.
type happened map[string]string

func whatHappened(t *testing.T, runs map[string][]*nats.Msg) happened {
	t.Helper()
	j := newJoined()
	for _, run := range slices.Sorted(maps.Keys(runs)) {
		for _, m := range runs[run] {
			j.take(t, run, m.Data)
		}
	}
	all := happened{}
	for i := range j.found {
		all[occurrence(&j.found[i])] = j.found[i].ID
	}
	return all
}

// check reports findings that did not happen, and other ids of those whose statements are told.
func (all happened) check(t *testing.T, seed uint64, found []oracle.Finding) {
	t.Helper()
	for i := range found {
		f := &found[i]
		if id, did := all[occurrence(f)]; !did || told(f) && id != f.ID {
			t.Errorf("seed %d: %s %s is not there, but as %q", seed, f.ID, occurrence(f), id)
		}
	}
}

// singles cuts messages into one for each event, which announces its session, as each message of a publisher does.
func singles(t *testing.T, messages []*nats.Msg) (list [][]byte) {
	t.Helper()
	sessions := map[uint64]history.Event{}
	var reader history.BatchReader
	for _, m := range messages {
		err := reader.Read(m.Data, func(e *history.Event) {
			var b history.Batch
			s, announced := sessions[e.Session]
			switch {
			case e.Kind != history.EventSession:
				b.Add(&s)
			case announced:
				return
			default:
				s = *e
				s.Accesses, s.Tokens = nil, nil
				sessions[e.Session] = s
			}
			b.Add(e)
			list = append(list, b.Take())
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// mended are races that the rest of a transaction makes harmless: a read is made good by a locking one, a write is rolled back.
var mended = []interleaving{
	{steps: `
		1 begin
		2 begin
		1 select * from test where id = 1
		2 select * from test where id = 2
		1 update test set value = 21 where id = 2
		2 update test set value = 11 where id = 1
		2 commit
		1 select * from test where id = 1 for update
		1 commit`},
	{steps: `
		1 begin
		1 select * from test where id = 1
		2 update test set value = 11 where id = 1
		1 select * from test where id = 1 for update
		1 update test set value = 12 where id = 1
		1 commit`},
	{steps: `
		1 begin
		2 begin
		1 select * from test where id = 1
		2 select * from test where id = 2
		1 update test set value = 21 where id = 2
		2 update test set value = 11 where id = 1
		1 rollback
		2 commit`},
}

// inHoles makes two proxies of a product publish all the races, one after the other, and gives their messages.
func inHoles(t *testing.T, engine string) (*fleetOf, map[string][]*nats.Msg) {
	t.Helper()
	w := newWorld(t, engine, "CREATE TABLE test (id INT PRIMARY KEY, value INT)")
	w.clock = time.Now
	f := newFleet(t)
	publishInTurn(t, w, f)
	one, two := w.observe(t), w.observe(t)
	for _, in := range append(mended, repeatable(t)...) {
		across(t, w, "1 delete from test\n1 insert into test values (1, 10), (2, 20)\n"+in.steps, one.target, two.target)
	}
	for _, th := range []*through{one, two} {
		if err := th.end(); err != nil {
			t.Error(err)
		}
	}
	f.published(t)
	return f, f.messages(t)
}

// TestCollectHoles: whatever is missing of what proxies published, down to single events in the middle of transactions, what is found did happen: the same
// transactions have the same anomaly where nothing is missing, with the same id if all its statements are told.
func TestCollectHoles(t *testing.T) {
	t.Parallel()
	whole, untold, most := 0, 0, 0
	for _, engine := range []string{"mariadb", "postgres"} {
		_, runs := inHoles(t, engine)
		all := whatHappened(t, runs)
		whole += len(all)
		events := map[string][][]byte{}
		for run := range runs {
			events[run] = singles(t, runs[run])
		}
		for seed := range uint64(500) {
			found := withHoles(t, rand.New(rand.NewPCG(seed, 41)), events)
			all.check(t, seed, found)
			most = max(most, len(found))
			for i := range found {
				if !told(&found[i]) {
					untold++
				}
			}
		}
	}
	if whole < 6 || most < 4 || untold == 0 {
		t.Errorf("%d anomalies, %d of them found with holes, %d of these without a statement: the test shows little", whole, most, untold)
	}
}

// withHoles is what is found if some events are missing.
func withHoles(t *testing.T, rnd *rand.Rand, events map[string][][]byte) []oracle.Finding {
	t.Helper()
	j, rest, every := newJoined(), maps.Clone(events), 5<<rnd.IntN(6)
	for len(rest) > 0 {
		names := slices.Sorted(maps.Keys(rest))
		run := names[rnd.IntN(len(names))]
		for range 1 + rnd.IntN(30) {
			if len(rest[run]) == 0 {
				delete(rest, run)
				break
			}
			if rnd.IntN(every) == 0 {
				rest[run] = rest[run][min(1+rnd.IntN(5), len(rest[run])):]
				j.hole(run)
				continue
			}
			j.take(t, run, rest[run][0])
			rest[run] = rest[run][1:]
		}
	}
	return j.found
}

// TestCollectPartsHoles: with events missing as in TestCollectHoles, what two parts and the collector behind them find did happen, and is among what one
// collector finds. They may find less: what a third transaction says of those in a hole, the parts do not use. They say how many events are lost.
func TestCollectPartsHoles(t *testing.T) {
	t.Parallel()
	f, runs := inHoles(t, "mariadb")
	all := whatHappened(t, runs)
	n, wanted := 0, 0
	for seed := range uint64(6) {
		rnd := rand.New(rand.NewPCG(seed, 43))
		holed, lost := map[string][]*nats.Msg{}, 0
		for _, run := range slices.Sorted(maps.Keys(runs)) {
			every := 20 << rnd.IntN(4)
			for _, data := range singles(t, runs[run]) {
				m := nats.NewMsg("")
				m.Header.Set("Wirecheck-Batch", fmt.Sprint(len(holed[run])+1))
				if m.Data = data; rnd.IntN(every) == 0 {
					m.Data = nil
					m.Header.Set("Wirecheck-Lost", "1")
					lost++
				}
				holed[run] = append(holed[run], m)
			}
		}
		f.again(t, fmt.Sprint("holes", seed), holed, seed, 8)
		parts, said := f.parted(t, 2)
		all.check(t, seed, parts)
		out, _, _ := command(t, "collect", "--from", f.where, "--fleet", f.name, "--until-end", "--format", "json")
		want, got := occurrences(found(t, out)), occurrences(parts)
		for _, f := range got {
			if !slices.Contains(want, f) {
				t.Errorf("seed %d: the parts find %s, one collector %q\n%s", seed, f, want, said)
			}
		}
		wanted += len(want)
		n += len(got)
		if lost > 0 && !strings.Contains(said, "were lost") {
			t.Errorf("seed %d: %d events are lost, and nobody says so:\n%s", seed, lost, said)
		}
	}
	if n < 4 || n < wanted/2 {
		t.Errorf("%d anomalies are found, by one collector %d", n, wanted)
	}
}

// occurrences are the findings whose statements are told.
func occurrences(list []oracle.Finding) (all []string) {
	for i := range list {
		if told(&list[i]) {
			all = append(all, list[i].ID+" "+occurrence(&list[i]))
		}
	}
	slices.Sort(all)
	return all
}
