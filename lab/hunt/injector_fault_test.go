// An injector makes a correct server look like one with a bug, on purpose and repeatably: it stands between a lab and the
// server, and spoils one statement of one execution of a case. The oracles' share of such faults that they find is the measure
// of their recall (docs/lab/mutation.md).
//
// An Injector wraps a backend's Connect, so everything that the lab executes goes through it. Armed, it knows the case's steps
// and picks one by its seed; disarmed, it passes everything on untouched. The same seed hits the same statement in
// the same way again, so what is found with a fault can be confirmed with it.

package hunt

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/product"
	"wirecheck/statement"
)

// Kind is a way in which the server misbehaves.
type Kind string

// The kinds.
const (
	LostWrite       Kind = "lost write"        // a write of a transaction that commits is answered as done, and undone
	RolledBackWrite Kind = "rolled-back write" // what a transaction wrote stays, although it was rolled back
	DirtyRead       Kind = "dirty read"        // a query sees what another transaction has not committed
	StaleRead       Kind = "stale read"        // a query sees the database as it was when the case began
	SkippedRow      Kind = "skipped row"       // an UPDATE of several rows leaves one of them as it was
	DroppedLock     Kind = "dropped lock"      // a statement of a transaction is executed on another connection, in autocommit
	WrongValue      Kind = "wrong value"       // one value of a query's result is another
	DuplicateInsert Kind = "duplicate insert"  // an INSERT is executed twice
	SwappedValues   Kind = "swapped values"    // after a write two rows of its table have exchanged their values of one column
)

// Kinds lists all.
func Kinds() []Kind {
	return []Kind{LostWrite, RolledBackWrite, DirtyRead, StaleRead, SkippedRow, DroppedLock, WrongValue, DuplicateInsert, SwappedValues}
}

// Step is a step of the case, in the order in which steps are submitted.
type Step struct {
	Session string // its name in the scenario
	SQL     string
}

// Injector stands between a lab and a server. Its connections may be used by several goroutines, one each; Arm and Disarm are
// called while none of them executes anything.
type Injector struct {
	engine   engine.Descriptor // without faults
	server   engine.Target
	describe func(sql string) ([]statement.Statement, error)

	mu    sync.Mutex
	conns []*conn // of sessions, in the order in which they were opened; guarded by mu
	fault *fault  // nil: disarmed; guarded by mu
	last  string  // the effect of the last fault; guarded by mu
}

// New makes an injector for a backend. server is where the connections lead that the injector needs for itself, whatever a lab's
// target leads through. describe takes a text apart, as the dialects of package rewrite do.
func New(d engine.Descriptor, server engine.Target, describe func(sql string) ([]statement.Statement, error)) *Injector {
	return &Injector{engine: d, server: server, describe: describe}
}

// Backend is the backend with faults. Only connections that say which session of a scenario they are (Target.Application,
// as lab.Config.Application makes it) have any.
func (in *Injector) Backend() engine.Descriptor {
	d := in.engine
	d.Connect = in.connect
	return d
}

// Arm makes the next execution of these steps, at this level, have a fault of this kind. It is false, and nothing is armed, if
// none of the statements can have it, by their texts; what comes of it is only seen when they are executed. The error says
// that a step cannot be taken apart.
func (in *Injector) Arm(kind Kind, seed uint64, level product.Level, steps []Step) (bool, error) {
	f := &fault{in: in, kind: kind, level: level, random: rand.New(rand.NewPCG(seed, uint64(slices.Index(Kinds(), kind))))}
	for _, st := range steps {
		list, err := in.describe(st.SQL)
		if err != nil {
			return false, fmt.Errorf("arm a fault: %w", err)
		}
		p := &planned{session: st.Session, sql: st.SQL}
		if len(list) == 1 && !list[0].Unparsed {
			p.statement = &list[0]
		}
		f.steps = append(f.steps, p)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.fault != nil {
		return false, errors.New("arm a fault: one is armed already")
	}
	in.last = ""
	if !f.choose() {
		return false, nil
	}
	for _, c := range in.conns {
		c.next, c.wrote = 0, nil
	}
	in.fault = f
	return true, nil
}

// Disarm ends what Arm began. The error is that of a connection of the injector's own: then nothing is known of the fault.
func (in *Injector) Disarm() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	f := in.fault
	if f == nil {
		return nil
	}
	in.fault, in.last = nil, f.effect
	return errors.Join(append(f.errs, f.close()...)...)
}

// Effect says what the fault of the last execution did, for people; empty if it did nothing. Whether that shows in anything
// is known only by comparison with an execution without it.
func (in *Injector) Effect() string {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.last
}

// Fired reports whether the last execution had its fault.
func (in *Injector) Fired() bool { return in.Effect() != "" }

// fault is one that is armed.
type fault struct {
	in    *Injector
	kind  Kind
	level product.Level
	steps []*planned

	mu       sync.Mutex
	random   *rand.Rand  // guarded by mu
	taken    bool        // a statement is being spoiled, or was; guarded by mu
	effect   string      // guarded by mu
	begun    bool        // the first step was sent; guarded by mu
	errs     []error     // guarded by mu
	asides   []*aside    // guarded by mu
	snapshot engine.Conn // of the case's beginning, for StaleRead; guarded by mu
	tables   []table     // guarded by mu
}

// planned is a step and what its statement is; nil if it is not a single one that is understood.
type planned struct {
	session, sql string
	statement    *statement.Statement
	candidate    bool
}

// choose finds the steps that may have the fault, and chooses one; it is false if there is none.
func (f *fault) choose() bool {
	var candidates []int
	for i, p := range f.steps {
		if p.statement != nil && p.statement.Control.Verb == statement.ControlAutocommit {
			return false // what is in a transaction cannot be told any more
		}
		if p.candidate = p.statement != nil && f.suits(i); p.candidate {
			candidates = append(candidates, i)
		}
	}
	if len(candidates) == 0 {
		return false
	}
	// If the chosen one cannot have it after all, a later one has it.
	for i := range candidates[f.random.IntN(len(candidates))] {
		f.steps[i].candidate = false
	}
	return true
}

// suits reports whether the step can have the fault, by its text and the steps around it.
func (f *fault) suits(i int) bool {
	st := f.steps[i].statement
	query := st.Verb == "select" && st.Locking.Lock == statement.LockNone && !writes(st)
	switch f.kind {
	case LostWrite:
		return writes(st) && f.end(i) != statement.ControlRollback
	case RolledBackWrite:
		return st.Control.Verb == statement.ControlRollback && !st.Control.Chain && f.wrote(i)
	case DirtyRead, StaleRead:
		return query && len(st.Reads()) > 0 && !st.Variables
	case SkippedRow:
		return st.Verb == "update" && len(st.Main()) == 1 && !st.Limit && st.Clauses.OrderBy == "" && st.AssignAt > 0
	case DroppedLock:
		return writes(st) || st.Locking.Lock != statement.LockNone
	case WrongValue:
		return st.Verb == "select" || st.Returning
	case DuplicateInsert:
		return st.Insert != nil && st.Verb == "insert" && !st.Insert.Conflict && !st.Ignore
	case SwappedValues:
		return writes(st)
	}
	return false
}

// writes reports whether a statement changes rows.
func writes(st *statement.Statement) bool { return !st.DDL && len(st.Targets()) > 0 }

// end is how the transaction of a step ends by the plan: ControlNone if the steps do not say.
func (f *fault) end(i int) statement.ControlVerb {
	for _, p := range f.steps[i+1:] {
		if p.session != f.steps[i].session || p.statement == nil {
			continue
		}
		switch v := p.statement.Control.Verb; v {
		case statement.ControlCommit, statement.ControlRollback:
			return v
		case statement.ControlBegin:
			return statement.ControlNone
		}
	}
	return statement.ControlNone
}

// wrote reports whether the transaction that a step ends has a write by the plan.
func (f *fault) wrote(i int) bool {
	for _, p := range slices.Backward(f.steps[:i]) {
		if p.session != f.steps[i].session || p.statement == nil {
			continue
		}
		if writes(p.statement) {
			return true
		}
		switch p.statement.Control.Verb {
		case statement.ControlCommit, statement.ControlRollback, statement.ControlBegin:
			return false
		}
	}
	return false
}

// intn chooses a number in [0, n).
func (f *fault) intn(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.random.IntN(n)
}

// take gives the fault to one statement; it is false if another one has it. give puts it back.
func (f *fault) take() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.taken
	f.taken = true
	return !was
}

// give says what was done with what was taken; an empty text puts it back, for the next candidate.
func (f *fault) give(effect string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.effect, f.taken = effect, effect != ""
}

// trouble keeps an error of a connection of the injector's own for Disarm.
func (f *fault) trouble(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs = append(f.errs, err)
}

// enter finds the step that a session's text is, and prepares the case when it is the first.
func (in *Injector) enter(ctx context.Context, c *conn, sql string) (*fault, *planned) {
	in.mu.Lock()
	defer in.mu.Unlock()
	f := in.fault
	if f == nil || c.session == "" {
		return nil, nil
	}
	for i := c.next; i < len(f.steps); i++ {
		if f.steps[i].session == c.session && f.steps[i].sql == sql {
			c.next = i + 1
			f.begin(ctx, c)
			return f, f.steps[i]
		}
	}
	return nil, nil // not a step: what the lab itself executes
}

// left notes what a session's open transaction has written.
func (in *Injector) left(c *conn, p *planned, a answer.Answer) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if a.After != answer.Open {
		c.wrote = nil
		return
	}
	if a.Err != nil || p.statement == nil {
		return
	}
	for _, u := range p.statement.Targets() {
		if affected(a) > 0 {
			c.wrote = append(c.wrote, strings.ToLower(u.Name))
		}
	}
}

// writers lists the other sessions whose open transactions have written tables that a statement reads.
func (in *Injector) writers(c *conn, st *statement.Statement) (list []*conn) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, other := range in.conns {
		reads := func(table string) bool {
			return slices.ContainsFunc(st.Reads(), func(u statement.TableUse) bool { return strings.EqualFold(u.Name, table) })
		}
		if other != c && slices.ContainsFunc(other.wrote, reads) {
			list = append(list, other)
		}
	}
	slices.SortFunc(list, func(a, b *conn) int { return strings.Compare(a.session, b.session) })
	return list
}

// affected counts the rows that a step changed.
func affected(a answer.Answer) (n int64) {
	for _, r := range a.Results {
		n += r.Affected
	}
	return n
}
