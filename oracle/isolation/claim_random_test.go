package isolation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"wirecheck/oracle/schedule"
)

// worker is a request that looks for a job without an owner and takes it, in autocommit, or one that does something like it.
type worker struct {
	name      string
	kind      int
	free, did bool
	read, txn int // the version that it read, and where
	left      int
}

// The kinds of workers.
const (
	claimsJob   = iota // asks for the job WHERE owner IS NULL, and then sets its owner
	claimsAgain        // the same, with owner IS NULL in its UPDATE
	takesJob           // sets the owner without a look
	givesBack          // sets the owner to NULL
	notesJob           // sets another column
	kindsOfWorkers
)

// jobs is a table of one row in which each statement runs at once.
type jobs struct {
	owner        string
	version, txn int
	order        []string // who set the owner
	text         strings.Builder
}

func (j *jobs) write(w *worker, what string) {
	j.txn++
	fmt.Fprintf(&j.text, "s%d t%d begin \"read committed\" implicit\nt%d %s request %s\nt%d commit\n", w.name[0]-'A'+1, j.txn, j.txn, what, w.name, j.txn)
}

func (j *jobs) set(w *worker, owner, how string) {
	w.did, j.owner = true, owner
	j.order = append(j.order, w.name)
	j.update(w, how)
}

func (j *jobs) update(w *worker, how string) {
	j.version++
	j.write(w, fmt.Sprintf("w x %d>%d equal id=1 %s", j.version-1, j.version, how))
}

// step does the worker's next step, and reports whether it was the last one.
func (w *worker) step(j *jobs) bool {
	claims := w.kind == claimsJob || w.kind == claimsAgain
	if claims && w.left == 0 {
		j.write(w, fmt.Sprintf("r x@%d", j.version))
		w.left, w.free, w.read, w.txn = 1, j.owner == "", j.version, j.txn
		return !w.free
	}
	how := fmt.Sprintf("set owner=%s", w.name)
	if claims {
		how += fmt.Sprintf(" derived owner:x@%d:%d.1:asked::", w.read, w.txn)
	}
	switch {
	case w.kind == claimsAgain && j.owner != "":
	case w.kind == claimsAgain:
		j.set(w, w.name, how+" checked owner")
	case w.kind == givesBack:
		j.set(w, "", "computed owner")
	case w.kind == notesJob:
		j.update(w, "set note="+w.name)
	default:
		j.set(w, w.name, how)
	}
	return true
}

func workersDid(j *jobs, list []*worker) string {
	var b strings.Builder
	for _, w := range list {
		fmt.Fprint(&b, w.free, w.did, " ")
	}
	return b.String() + strings.Join(j.order, "")
}

// TestRequestClaimsRandom compares random histories of requests that claim a row with all serial orders of these requests: what was found did happen.
func TestRequestClaimsRandom(t *testing.T) {
	counts := map[string]int{}
	for seed := range *predicateRuns / 2 {
		rng := rand.New(rand.NewPCG(seed, 15))
		list := make([]*worker, 2+rng.IntN(3))
		for i := range list {
			list[i] = &worker{name: string(rune('A' + i)), kind: max(0, rng.IntN(kindsOfWorkers+2)-2)}
		}
		j := &jobs{}
		for left := slices.Clone(list); len(left) > 0; {
			if i := rng.IntN(len(left)); left[i].step(j) {
				left = slices.Delete(left, i, i+1)
			}
		}
		got, fits := workersDid(j, list), false
		for order := range schedule.Permutations([]int{0, 1, 2, 3}[:len(list)]) {
			s, again := &jobs{}, make([]*worker, len(list))
			for _, i := range order {
				again[i] = &worker{name: list[i].name, kind: list[i].kind}
				for !again[i].step(s) {
				}
			}
			fits = fits || workersDid(s, again) == got
		}
		events := parse(t, j.text.String())
		found, c := run(Options{}, events)
		if later, _ := run(Options{}, toldLater(events, rng.IntN)); (len(found) > 0) != (len(later) > 0) {
			t.Errorf("seed %d: found %s, told later %s\n%s", seed, briefs(found), briefs(later), j.text.String())
		}
		switch {
		case c.Broken() != "":
			t.Fatal(c.Broken())
		case fits && len(found) > 0:
			t.Fatalf("seed %d: found %s, and a serial order gives the same:\n%s", seed, briefs(found), j.text.String())
		case fits:
			counts["serializable"]++
		case len(found) > 0:
			counts["found"]++
		default:
			counts["missed"]++
		}
	}
	t.Log(counts)
	if counts["found"] < 200 || counts["serializable"] < 200 {
		t.Errorf("%v: the histories prove little", counts)
	}
}
