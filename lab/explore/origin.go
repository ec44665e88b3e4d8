package explore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"wirecheck/backends/engine"
	"wirecheck/backends/instrument"
	"wirecheck/lab/replay"
	"wirecheck/product"
)

// origin is where the database as it was before the first statement comes from, if not from a dump (Options.Snapshot): it is a copy of another
// database of the server (Options.Template), or a database of somebody else's, in which the trace is replayed itself (Options.InPlace).
type origin struct {
	hidden []string // tables of InPlace that have got hidden columns
}

// mayBeChanged is what a user must say of a database in which to replay.
const mayBeChanged = "may-be-changed"

// ParseInPlace reads "shop_clone=may-be-changed", and gives the name of the database.
func ParseInPlace(text string) (string, error) {
	name, word, _ := strings.Cut(text, "=")
	if text != "" && (name == "" || word != mayBeChanged) {
		return "", fmt.Errorf("--in-place %s: this changes the rows of the database itself, and nothing brings them back. Name a clone that nobody needs, and say so: --in-place %s=%s", text, name, mayBeChanged)
	}
	return name, nil
}

// check says what is wrong with the options on where the database comes from. name is that of the engine.
func (f *origin) check(r *replayer, name string) error {
	o, flag, given := &r.o, "--template", 0
	for _, text := range []string{o.Snapshot, o.Template, o.InPlace} {
		if text != "" {
			given++
		}
	}
	if o.InPlace != "" {
		flag = "--in-place"
	}
	switch {
	case given > 1:
		return errors.New("--snapshot, --template and --in-place say where the database comes from: give one of them")
	case o.Reset != nil && o.InPlace == "":
		return errors.New("--reset brings back the rows of the database that --in-place names: give --in-place, too")
	case o.Template == "" && o.InPlace == "":
		return nil
	case !strings.Contains(name, "://"):
		return fmt.Errorf("%s names a database of a server: name the server with --engine URL; a private server is empty", flag)
	case o.InPlace != "" && databaseOf(name) != o.InPlace:
		return fmt.Errorf("--in-place %s: the URL of --engine must name the same database; it names %q", o.InPlace, databaseOf(name))
	case o.Fleet != nil:
		return fmt.Errorf("processes with --join must begin with the same database, which wirecheck can compare of dumps only: give --snapshot in place of %s", flag)
	case r.advising != nil || o.Mode.Kind != "" || r.wanted != nil:
		return o.again()
	}
	return nil
}

// again says why the trace cannot be replayed a second time.
func (o *Options) again() error {
	if o.once() {
		return errors.New("this takes the rows as they were before the trace several times, and --in-place changes them: give --reset COMMAND, a shell command that brings them back")
	}
	return nil
}

// once reports whether the trace can be replayed only once.
func (o *Options) once() bool { return o.InPlace != "" && o.Reset == nil }

// databaseOf is the database that an engine's URL names.
func databaseOf(name string) string {
	u, err := url.Parse(name)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(u.Path, "/")
}

// home leaves the database of the server's URL, which may be the one to copy or to change: nobody may be in it.
func (f *origin) home(ctx context.Context, r *replayer) error {
	if r.o.Template == "" && r.o.InPlace == "" {
		return nil
	}
	r.instance.Target.Database = ""
	if r.o.InPlace != "" {
		return f.alone(ctx, r)
	}
	if in := r.instance.Engine; in.Lab.Copying == nil {
		return fmt.Errorf("--template %s: %s cannot copy a database: give a dump of it (%s %s), or restore a backup as a clone and name that with --in-place",
			r.o.Template, in.Title, product.Of(in.Name).Dump, r.o.Template)
	}
	return nil
}

// leaving is how long a session may take to leave a database. The server still shows one whose client has gone for a moment.
const leaving = 5 * time.Second

// alone makes sure that a database that is to be changed is nobody's: no other session is in it.
func (f *origin) alone(ctx context.Context, r *replayer) (err error) {
	if r.maintenance(r.o.InPlace) {
		return fmt.Errorf("--in-place %s: this database belongs to the server", r.o.InPlace)
	}
	conn, err := r.instance.Engine.Connect(ctx, maintenance(r.instance))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	limit, cancel := context.WithTimeout(ctx, leaving)
	defer cancel()
	again := time.NewTicker(leaving / 50)
	defer again.Stop()
	for {
		guests, err := engine.Query(ctx, conn, r.instance.Engine.Lab.Guests(r.o.InPlace))
		if err != nil {
			return fmt.Errorf("ask who is connected to %s: %w", r.o.InPlace, err)
		}
		if len(guests) == 0 {
			return nil
		}
		select {
		case <-again.C:
		case <-limit.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("--in-place %s: others are connected to it (%s): is it really a clone that nobody needs?", r.o.InPlace, guests[0][0])
		}
	}
}

// inPlace takes the clone as it is, or as --reset leaves it.
func (f *origin) inPlace(ctx context.Context, r *replayer) (err error) {
	r.target = r.instance.Target
	r.target.Database = r.o.InPlace
	if err := f.unwatch(ctx, r); err != nil {
		return err
	}
	if r.o.Reset != nil {
		if err := r.o.Reset(ctx); err != nil {
			return err
		}
	}
	if !r.postgres() {
		return nil
	}
	conn, err := r.instance.Engine.Connect(ctx, r.target)
	if err != nil {
		return err
	}
	a, err := conn.Do(ctx, "SET deadlock_timeout = '1s'")
	r.victims = err == nil && a.Err == nil
	return errors.Join(err, conn.Close())
}

// learn reads the definitions of a database that comes from no dump: scenarios are made of them.
func (f *origin) learn(ctx context.Context, r *replayer) error {
	from, err := r.instance.Engine.Lab.Schema(ctx, r.target)
	if err != nil {
		return fmt.Errorf("read the definitions of the database: %w", err)
	}
	s := replay.Snapshot{Dialect: r.dialect(), Confined: true}
	if err := errors.Join(s.Read(ctx, "the definitions of the database", from), from.Close()); err != nil {
		return err
	}
	r.defs = s.Definitions
	return nil
}

// watch adds hidden columns to the tables of a clone where the product needs them; unwatch takes them away again.
func (f *origin) watch(ctx context.Context, r *replayer) error {
	return f.eachTable(ctx, r, func(db *instrument.Database, t instrument.Table) instrument.Result {
		if t.State == instrument.StateAdded {
			return instrument.Result{}
		}
		f.hidden = append(f.hidden, t.String())
		return db.Add(ctx, t)
	})
}

func (f *origin) unwatch(ctx context.Context, r *replayer) error {
	if len(f.hidden) == 0 {
		return nil
	}
	hidden := f.hidden
	f.hidden = nil
	return f.eachTable(ctx, r, func(db *instrument.Database, t instrument.Table) instrument.Result {
		if !slices.Contains(hidden, t.String()) {
			return instrument.Result{}
		}
		return db.Remove(ctx, t)
	})
}

func (f *origin) eachTable(ctx context.Context, r *replayer, do func(*instrument.Database, instrument.Table) instrument.Result) error {
	t := r.target
	u := url.URL{Scheme: r.instance.Engine.Name, User: url.UserPassword(t.User, t.Password), Host: net.JoinHostPort(t.Host, strconv.Itoa(t.Port)), Path: "/" + t.Database}
	db, err := instrument.Open(ctx, u.String(), instrument.Options{})
	if err != nil {
		return err
	}
	if !db.Native() {
		for _, t := range db.Tables {
			if x := do(db, t); x.Error != "" {
				r.o.Judging.Log.Warn().Str("table", t.String()).Str("why", x.Error).Msg("the hidden columns of a table stay as they are")
			}
		}
	}
	return db.Close()
}
