package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"wirecheck/answer"
	"wirecheck/history/prose"
)

// LabPrefix begins the names of all lab databases: prefix, the owner's run id in 8 hexadecimal digits, a number.
const LabPrefix = "wirecheck_lab_"

var (
	labName  = regexp.MustCompile(`^` + LabPrefix + `([0-9a-f]{8})_[0-9]+$`)
	labNames = regexp.MustCompile(`\b` + LabPrefix + `[0-9a-f]{8}_[0-9]+\b`)
)

// RenameLabs puts a name in the place of those of lab databases in a text.
func RenameLabs(text, name string) string { return labNames.ReplaceAllLiteralString(text, name) }

// Lab is what making, filling and removing lab databases needs to know of a product. Statements that answer a question
// give one row with one value, which begins with t or 1 for yes.
type Lab struct {
	Maintenance string // the database that the owner connects to if the target names none
	// Lock takes the owner's lock, which the server lets go of when the owner's connection ends, however it ends; Alive asks whether
	// somebody has it. Both are given the run id.
	Lock, Alive func(run uint32) string
	// List gives the names of the databases that look like labs.
	List         string
	Create, Drop func(database string) string
	// Copying makes copies of databases; nil: the product makes none.
	Copying *Copying
	// Schema gives the definitions of a database, without rows, as plain SQL (by the vendor's program). Archive gives the plain SQL of a dump that
	// is in a format of the vendor's own, of the database of that name where it may have several; nil: there is none.
	Schema  func(ctx context.Context, t Target) (io.ReadCloser, error)
	Archive func(ctx context.Context, path, database string) (io.ReadCloser, error)
	// Expel gives the statements that end the connections to a database, one a row; nil: Drop does it.
	Expel func(database string) string
	// Guests lists the other sessions that are connected to a database, one a row, for people.
	Guests func(database string) string
	// Clear makes a database empty again, in the quickest way. It runs on a connection to that database.
	Clear func(database string) string
	// Prepare is executed on a connection that reads and resets tables. It changes that session's settings only.
	Prepare string
	// Columns lists the columns of all tables, in order: the table for people, the table as SELECT, INSERT and TRUNCATE take it, as
	// DELETE and SELECT take it without its children, the column's name, its type, whether it is generated (t or 1).
	Columns string
	// Expression reads a column without loss; Literal writes a value of it. Both are given the type.
	Expression func(column, kind string) string
	Literal    func(to []byte, v answer.Value, kind string) []byte
	Identifier func(name string) string
	// Insert stands between the columns and VALUES.
	Insert string
	// Truncate empties tables thoroughly: nothing is left of earlier rows.
	Truncate func(tables []string) string
	// Before and After stand around the statements that delete and insert rows: no foreign keys, no triggers. Blocks asks whether
	// something makes that impossible, so that only Clear and setting up anew remain.
	Before, After, Blocks string
	// Counters gives the statements that set sequences and AUTO_INCREMENT to where they are now.
	Counters func(ctx context.Context, c Conn) ([]string, error)
	// CountersTell says that Counters shows each step of a counter. Then Reset sets only those that have moved: to set one is a change of definition on
	// the MySQL family, which takes longer than all else. TiDB shows what it has reserved only.
	CountersTell bool
	// Numbered lists the columns whose values come from sequences and AUTO_INCREMENT, a row each: the table, the column. Empty: it is not
	// known which they are.
	Numbered string
	// Keys lists the columns of unique keys, a row each: the schema, the table, the key, the column. A table with children by inheritance has none: its
	// keys do not reach them (PostgreSQL manual, 5.10.1). Empty: they are not known.
	Keys string
	// Pin begins a transaction that keeps the server from clearing away row versions that nobody needs any more, which it does at
	// moments of its own choosing; COMMIT ends it. Empty: that shows in nothing that a scenario sees.
	Pin string
	// Restores says that a watching proxy's database is reset by rows in front of each case, since definitions are dear: who wrote a row stands in the
	// row. Up to 4 of 100 statements fewer are exact than behind a setup through the proxy.
	Restores bool
	// Undisturbed is executed on a private server on which definitions only change while no transaction is open; it makes that
	// quicker. Empty: there is nothing to be done.
	Undisturbed string
	// Fingerprint gives a text that changes when the definition of anything in the database does.
	Fingerprint func(ctx context.Context, c Conn) (string, error)
}

// Labs makes and drops lab databases on one server. Its methods may be called from several goroutines. It never touches a
// database that it or a dead owner did not make.
type Labs struct {
	engine Descriptor
	target Target
	run    uint32
	Swept  []string // databases of dead owners that OpenLabs removed

	mu    sync.Mutex
	owner Conn            // guarded by mu, except its ID
	next  int             // guarded by mu
	made  map[string]bool // guarded by mu
}

// OpenLabs connects as the owner of labs to come, and removes those whose owners are dead.
func OpenLabs(ctx context.Context, d Descriptor, t Target) (*Labs, error) {
	l, err := OpenPrivateLabs(ctx, d, t)
	if err != nil {
		return nil, err
	}
	if err := l.sweepAll(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open labs: %w", err), l.owner.Close())
	}
	return l, nil
}

// OpenPrivateLabs connects as the owner of labs to come on a server that ends with its owner, so that nobody has left any there. To ask whether
// another owner lives takes TiDB a second, since its GET_LOCK waits for no less.
func OpenPrivateLabs(ctx context.Context, d Descriptor, t Target) (*Labs, error) {
	t.Database = cmp.Or(t.Database, d.Lab.Maintenance)
	owner, err := d.Connect(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("open labs: %w", err)
	}
	var b [4]byte
	rand.Read(b[:]) // never fails (crypto/rand, since Go 1.24)
	l := &Labs{engine: d, target: t, run: binary.BigEndian.Uint32(b[:]), owner: owner, made: map[string]bool{}}
	if err := l.begin(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open labs: %w", err), owner.Close())
	}
	return l, nil
}

func (l *Labs) begin(ctx context.Context) error {
	got, err := yes(ctx, l.owner, l.engine.Lab.Lock(l.run))
	if err != nil {
		return fmt.Errorf("take the owner's lock: %w", err)
	}
	if !got {
		return fmt.Errorf("take the owner's lock: another run has id %08x; start again", l.run)
	}
	return nil
}

// sweepAll removes the labs whose owners are dead.
func (l *Labs) sweepAll(ctx context.Context) error {
	alive := map[uint32]bool{}
	names, err := l.databases(ctx)
	if err != nil {
		return fmt.Errorf("look for abandoned labs: %w", err)
	}
	for _, name := range names {
		if err := l.sweep(ctx, name, alive); err != nil {
			return fmt.Errorf("remove abandoned lab %s: %w", name, err)
		}
	}
	return nil
}

// databases lists all of the server.
func (l *Labs) databases(ctx context.Context) (names []string, err error) {
	rows, err := Query(ctx, l.owner, l.engine.Lab.List)
	for _, row := range rows {
		names = append(names, string(row[0]))
	}
	return names, err
}

// sweep drops a database if it is a lab and its owner is dead. Owners that live are asked about once.
func (l *Labs) sweep(ctx context.Context, name string, alive map[uint32]bool) error {
	m := labName.FindStringSubmatch(name)
	if m == nil {
		return nil
	}
	n, err := strconv.ParseUint(m[1], 16, 32)
	if err != nil {
		return nil // not a name of ours
	}
	run := uint32(n)
	if !alive[run] {
		alive[run], err = yes(ctx, l.owner, l.engine.Lab.Alive(run))
	}
	if err != nil || alive[run] {
		return err
	}
	if names, err := l.databases(ctx); err != nil || !slices.Contains(names, name) { // its owner has dropped it and ended meanwhile
		return err
	}
	l.Swept = append(l.Swept, name)
	return l.remove(ctx, name)
}

// yes asks a question.
func yes(ctx context.Context, c Conn, sql string) (bool, error) {
	rows, err := Query(ctx, c, sql)
	if err != nil {
		return false, err
	}
	if len(rows) != 1 || len(rows[0]) != 1 {
		return false, fmt.Errorf("execute %s: no answer", prose.Line(sql, prose.Width))
	}
	v := string(rows[0][0])
	return v == "t" || v == "true" || v == "1", nil
}

// Create makes an empty database and gives it as a target.
func (l *Labs) Create(ctx context.Context) (Target, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	return l.make(ctx, fmt.Sprintf("%s%08x_%d", LabPrefix, l.run, l.next), l.engine.Lab.Create, createLimit)
}

// Make makes an empty database of that name, which must not be there yet. If its owner is killed, nobody removes it: it is
// for servers that go with their owners.
func (l *Labs) Make(ctx context.Context, name string) (Target, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.make(ctx, name, l.engine.Lab.Create, createLimit)
}

// createLimit is how long a server may take to make a database.
const createLimit = 20 * time.Second

// make makes a database by a statement. mu is held.
func (l *Labs) make(ctx context.Context, name string, create func(name string) string, limit time.Duration) (Target, error) {
	t := l.target
	t.Database = name
	l.made[t.Database] = true // before it is there: a failure half way leaves something to drop
	// Interrupted half way it would cut off the connection that is to drop it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if err := Exec(ctx, l.owner, create(t.Database)); err != nil {
		return Target{}, fmt.Errorf("make lab: %w", err)
	}
	return t, nil
}

// Drop removes a database that Create made, whoever is still connected to it.
func (l *Labs) Drop(ctx context.Context, t Target) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.made[t.Database] {
		return fmt.Errorf("drop lab: %q is none of this run's", t.Database)
	}
	return l.drop(ctx, t.Database)
}

// remove drops a database and ends the connections to it.
func (l *Labs) remove(ctx context.Context, name string) error {
	if l.engine.Lab.Expel != nil {
		kills, err := Query(ctx, l.owner, l.engine.Lab.Expel(name))
		if err != nil {
			return err
		}
		for _, row := range kills {
			if _, err := l.owner.Do(ctx, string(row[0])); err != nil { // it may have left by itself
				return err
			}
		}
	}
	return Exec(ctx, l.owner, l.engine.Lab.Drop(name))
}

func (l *Labs) drop(ctx context.Context, name string) error {
	if err := l.remove(ctx, name); err != nil {
		return fmt.Errorf("drop lab: %w", err)
	}
	delete(l.made, name)
	return nil
}

// Owner is the server's number of the connection that holds the owner's lock.
func (l *Labs) Owner() uint64 { return l.owner.ID() }

// Close drops what is left and lets go of the lock. What cannot be dropped, because the server is gone, the next OpenLabs
// finds.
func (l *Labs) Close(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(l.made)) {
		errs = append(errs, l.drop(ctx, name))
	}
	return errors.Join(append(errs, l.owner.Close())...)
}
