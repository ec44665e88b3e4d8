package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"wirecheck/backends/engine"
)

// process is what a server's process is elsewhere: it knows the connections, so that one can end another.
type process struct {
	mu      sync.Mutex
	folders map[string]*folder // guarded by mu; by path
	next    uint64             // guarded by mu: the number of the last connection
}

// folder is where databases are, each a file NAME.db.
type folder struct {
	path string
	mode string // the journal mode of databases that are made

	mu    sync.Mutex
	dead  bool               // guarded by mu: the private server was killed
	conns map[uint64]session // guarded by mu
}

// session is a connection that can be ended.
type session interface {
	kill()
	database() string // the path of the file; empty: none
}

func (c *conn) database() string { return c.path }

var errDead = errors.New("the server has ended")

// start makes a folder of its own.
func (p *process) start(ctx context.Context, o engine.Options) (*engine.Server, error) {
	mode := cmp.Or(o.Bin, modeRollback)
	if !slices.Contains([]string{modeRollback, modeWAL}, mode) {
		return nil, fmt.Errorf("start sqlite server: journal mode %q: known are %s and %s", mode, modeRollback, modeWAL)
	}
	if len(o.Users) > 0 || o.TLS || len(o.Settings) > 0 {
		return nil, errors.New("start sqlite server: a library has no users, TLS or server settings")
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start sqlite server: %w", err)
	}
	private, err := engine.NewFolder("sqlite", engine.Account{})
	if err != nil {
		return nil, err
	}
	f := p.folder(private.Path, mode)
	return engine.Embed(private, &engine.Server{Engine: "sqlite", Version: Version(), Socket: private.Path}, f.die), nil
}

// folder gives a folder, known or not.
func (p *process) folder(path, mode string) *folder {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.folders[path]
	if f == nil {
		f = &folder{path: path, mode: mode, conns: map[uint64]session{}}
		p.folders[path] = f
	}
	return f
}

func (p *process) number() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	return p.next
}

// of gives the folder of a target.
func (p *process) of(t engine.Target) (*folder, error) {
	path, err := filepath.Abs(t.Socket)
	if err != nil || t.Socket == "" {
		return nil, errors.New("connect to sqlite: the target names no folder")
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("connect to sqlite: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("connect to sqlite: %s is a file; name the folder in which databases of wirecheck's own are to be made", path)
	}
	return p.folder(path, modeRollback), nil
}

// connect opens a connection to a database or, if the target names none, one that makes and removes databases.
func (p *process) connect(ctx context.Context, t engine.Target) (engine.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := p.of(t)
	if err != nil {
		return nil, err
	}
	if t.Database == "" {
		s := &steward{conn: &conn{id: p.number(), of: f}, held: map[string]*os.File{}}
		if s.conn.h, err = open(":memory:"); err != nil {
			return nil, err
		}
		return s, f.enter(s.id, s)
	}
	path, err := f.file(t.Database)
	if err != nil {
		return nil, err
	}
	c := &conn{id: p.number(), of: f, path: path}
	if c.h, err = openSet(path); err != nil {
		return nil, err
	}
	if err := f.enter(c.id, c); err != nil {
		c.h.close()
		return nil, err
	}
	return c, nil
}

// file is a database's path.
func (f *folder) file(database string) (string, error) {
	if database == "" || strings.HasPrefix(database, ".") || strings.ContainsAny(database, `/\`) {
		return "", fmt.Errorf("sqlite database %q: a name is a file's name in %s, without .db", database, f.path)
	}
	return filepath.Join(f.path, database+".db"), nil
}

func (f *folder) enter(id uint64, s session) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead {
		return errDead
	}
	f.conns[id] = s
	return nil
}

func (f *folder) leave(id uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, id)
}

// find gives the connections that match.
func (f *folder) find(match func(id uint64, s session) bool) (list []session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, s := range f.conns {
		if match(id, s) {
			list = append(list, s)
		}
	}
	return list
}

// die ends all connections, now and later.
func (f *folder) die() {
	f.mu.Lock()
	f.dead = true
	f.mu.Unlock()
	for _, s := range f.find(func(uint64, session) bool { return true }) {
		s.kill()
	}
}

// watch opens a watcher. Nothing waits, so it has little to tell.
func (p *process) watch(_ context.Context, t engine.Target) (engine.Watcher, error) {
	f, err := p.of(t)
	if err != nil {
		return nil, err
	}
	return &watcher{f}, nil
}

type watcher struct{ of *folder }

// Look implements engine.Watcher.
func (w *watcher) Look(_ context.Context, ids []uint64) ([]engine.Wait, error) {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	if w.of.dead {
		return nil, errDead
	}
	return make([]engine.Wait, len(ids)), nil
}

// Alive implements engine.Watcher.
func (w *watcher) Alive(_ context.Context, id uint64) (bool, error) {
	return len(w.of.find(func(other uint64, _ session) bool { return other == id })) > 0, nil
}

// Kill implements engine.Watcher.
func (w *watcher) Kill(_ context.Context, id uint64) error {
	for _, s := range w.of.find(func(other uint64, _ session) bool { return other == id }) {
		s.kill()
	}
	return nil
}

// Close implements engine.Watcher.
func (w *watcher) Close() error { return nil }
