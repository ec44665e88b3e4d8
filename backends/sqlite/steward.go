package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"wirecheck/answer"
)

// steward is a connection without a database. SQLite has no statements about databases, so it understands these, in the words that
// other products have; all else goes to an empty database in memory:
//
//	CREATE DATABASE name     DROP DATABASE name     SHOW DATABASES
//	TAKE LOCK name           ASK LOCK name
//
// A lock is a locked file in the folder: the operating system lets go of it when the connection ends, however it ends.
type steward struct {
	*conn
	held map[string]*os.File // guarded by conn.use
}

// Do implements engine.Conn.
func (s *steward) Do(ctx context.Context, sql string) (answer.Answer, error) {
	words := strings.Fields(sql)
	if len(words) < 2 || !slices.Contains([]string{"CREATE DATABASE", "DROP DATABASE", "SHOW DATABASES", "TAKE LOCK", "ASK LOCK"}, words[0]+" "+words[1]) {
		return s.conn.Do(ctx, sql)
	}
	s.use.Lock()
	defer s.use.Unlock()
	if err := s.usable(); err != nil {
		return answer.Answer{}, err
	}
	rows, err := s.manage(words[0]+" "+words[1], strings.Join(words[2:], " "))
	if err != nil {
		return answer.Answer{Err: &answer.Error{Code: "SQLITE_ERROR", Message: err.Error()}}, nil
	}
	r := answer.Result{Columns: []answer.Column{{Name: "answer", Type: "text"}}}
	for _, row := range rows {
		r.Rows = append(r.Rows, []answer.Value{answer.Value(row)})
	}
	return answer.Answer{Results: []answer.Result{r}}, nil
}

func (s *steward) manage(command, name string) (rows []string, err error) {
	switch command {
	case "CREATE DATABASE":
		return nil, s.create(name)
	case "DROP DATABASE":
		return nil, s.drop(name)
	case "SHOW DATABASES":
		files, err := filepath.Glob(filepath.Join(s.of.path, "*.db"))
		for _, file := range files {
			rows = append(rows, strings.TrimSuffix(filepath.Base(file), ".db"))
		}
		return rows, err
	}
	path := filepath.Join(s.of.path, name+".lock")
	file, got, err := lockFile(path)
	if err != nil {
		return nil, err
	}
	if command == "TAKE LOCK" && got {
		s.held[path] = file
		return []string{"1"}, nil
	}
	if command == "ASK LOCK" && got { // nobody has it: its owner is dead
		return []string{"0"}, errors.Join(os.Remove(path), file.Close())
	}
	return []string{strconv.Itoa(map[string]int{"TAKE LOCK": 0, "ASK LOCK": 1}[command])}, nil
}

// lockFile locks a file, which it makes if it must.
func lockFile(path string) (file *os.File, got bool, err error) {
	if file, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, false, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, false, file.Close()
	case err != nil:
		return nil, false, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	return file, true, nil
}

// create makes an empty database in the folder's journal mode.
func (s *steward) create(name string) error {
	path, err := s.of.file(name)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil || s.of.mode == modeRollback {
		return err
	}
	h, err := open(path)
	if err != nil {
		return err
	}
	defer h.close()
	results, refused := h.execute("PRAGMA journal_mode = " + s.of.mode)
	if refused != nil {
		return refused
	}
	if got := string(results[0].Rows[0][0]); got != s.of.mode {
		return fmt.Errorf("make %s: its journal mode is %s, not %s", path, got, s.of.mode)
	}
	return nil
}

// drop ends this process's connections to a database and removes it.
func (s *steward) drop(name string) error {
	path, err := s.of.file(name)
	if err != nil {
		return err
	}
	for _, other := range s.of.find(func(_ uint64, o session) bool { return o.database() == path }) {
		other.kill()
	}
	for _, suffix := range []string{"", "-journal", "-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// kill ends the connection and lets go of its locks.
func (s *steward) kill() { _ = s.release(false) }

// Close implements engine.Conn. The files of its locks go, too.
func (s *steward) Close() error { return s.release(true) }

func (s *steward) release(remove bool) error {
	s.conn.kill()
	s.use.Lock()
	defer s.use.Unlock()
	var errs []error
	for path, file := range s.held {
		if remove {
			errs = append(errs, os.Remove(path))
		}
		errs = append(errs, file.Close())
	}
	clear(s.held)
	return errors.Join(errs...)
}
