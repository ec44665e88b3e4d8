package backends_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/internal/testserver"
	"wirecheck/product"
)

// childVariable makes this test binary a process that starts a server and waits to be killed.
const childVariable = "WIRECHECK_TEST_START"

func TestMain(m *testing.M) {
	if name := os.Getenv(childVariable); name != "" {
		os.Exit(startAndWait(name))
	}
	testserver.Main(m)
}

// startAndWait starts a server, says where it is, and waits for the end of stdin, which does not come.
func startAndWait(name string) int {
	d, err := backends.ByName(name)
	if err == nil {
		var s *engine.Server
		if s, err = d.Start(context.Background(), engine.Options{}); err == nil {
			fmt.Println(s.PID(), s.Port, s.Folder())
			bufio.NewReader(os.Stdin).ReadByte()
			err = s.Close()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// installed are the products whose servers these tests start.
var installed = []string{"postgres", "mariadb"}

func start(t *testing.T, name string, o engine.Options) (*engine.Server, error) {
	t.Helper()
	d, err := backends.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return d.Start(t.Context(), o)
}

// checkGone checks that nothing of a server is left.
func checkGone(t *testing.T, pid, port int, folder string) {
	t.Helper()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) && !zombie(pid) {
		t.Errorf("process %d: got %v, want that it is gone", pid, err)
	}
	if conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second); err == nil {
		conn.Close()
		t.Errorf("port %d is still open", port)
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("folder %s: got %v, want that it is gone", folder, err)
	}
	if pids := processesIn(t, folder); len(pids) > 0 {
		t.Errorf("processes %v are still in %s", pids, folder)
	}
}

// zombie reports whether a process has ended and only waits for whoever adopted it.
func zombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(b), ") Z ")
}

func processesIn(t *testing.T, folder string) (pids []string) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if cwd, err := os.Readlink(link); err == nil && strings.HasPrefix(cwd, folder) {
			pids = append(pids, strings.Split(link, "/")[2])
		}
	}
	return pids
}

func TestNothingIsLeft(t *testing.T) {
	for _, name := range installed {
		s, err := start(t, name, engine.Options{TLS: true})
		if err != nil {
			t.Fatal(err)
		}
		if s.Version == "" || s.Engine != name || len(processesIn(t, s.Folder())) == 0 {
			t.Errorf("%s: got version %q of %q with processes %v", name, s.Version, s.Engine, processesIn(t, s.Folder()))
		}
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		checkGone(t, s.PID(), s.Port, s.Folder())
	}
}

func TestNothingIsLeftOfAKilledServer(t *testing.T) {
	for _, name := range installed {
		s, err := start(t, name, engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Kill(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		select {
		case <-s.Done():
		default:
			t.Errorf("%s: not done after Kill", name)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		checkGone(t, s.PID(), s.Port, s.Folder())
	}
}

// TestNothingIsLeftOfAKilledParent kills a process that has a server: the kernel ends the server, and the next server's
// start removes its folder.
func TestNothingIsLeftOfAKilledParent(t *testing.T) {
	for _, name := range installed {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), childVariable+"="+name)
		cmd.Stderr = os.Stderr
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer stdin.Close()
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(stdout).ReadString('\n')
		f := strings.Fields(line)
		if err != nil || len(f) != 3 {
			t.Fatalf("%s: the child said %q: %v", name, line, err)
		}
		pid, errPID := strconv.Atoi(f[0])
		port, errPort := strconv.Atoi(f[1])
		if err := errors.Join(errPID, errPort, cmd.Process.Kill()); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Errorf("%s: the child ended by itself", name)
		}
		if _, err := os.Stat(f[2]); err != nil {
			t.Errorf("%s: the folder of the killed process: %v", name, err)
		}
		next, err := start(t, name, engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		checkGone(t, pid, port, f[2])
		if err := next.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestStartFails(t *testing.T) {
	temp, err := os.MkdirTemp("", "wirecheck-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(temp)
	if err := os.Chmod(temp, 0o755); err != nil { // servers run as somebody else
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temp)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name, engine string
		ctx          context.Context
		options      engine.Options
		want         []string
	}{
		{"not installed", "postgres", t.Context(), engine.Options{Bin: "/nowhere"}, []string{"/nowhere", "apt-get install -y postgresql"}},
		{"not installed", "mariadb", t.Context(), engine.Options{Bin: "/nowhere"}, []string{"/nowhere", "apt-get install -y mariadb-server"}},
		{"not installed", "mysql", t.Context(), engine.Options{Bin: "/nowhere"}, []string{"/nowhere", "apt-get install -y mysql-server"}},
		{"unknown setting", "postgres", t.Context(), engine.Options{Settings: map[string]string{"no_such": "x"}}, []string{"the server ended", "no_such"}},
		{"unknown setting", "mariadb", t.Context(), engine.Options{Settings: map[string]string{"no_such": "x"}}, []string{"the server ended", "no-such"}},
		{"unknown method", "postgres", t.Context(), engine.Options{Users: []engine.User{{Name: "u", Method: "magic"}}}, []string{`unknown method "magic"`}},
		{"unknown method", "mariadb", t.Context(), engine.Options{Users: []engine.User{{Name: "u", Method: "md5"}}}, []string{`unknown method "md5"`}},
		{"cancelled", "postgres", cancelled, engine.Options{}, []string{"context canceled"}},
		{"cancelled", "mariadb", cancelled, engine.Options{}, []string{"context canceled"}},
	}
	for _, test := range tests {
		d, err := backends.ByName(test.engine)
		if err != nil {
			t.Fatal(err)
		}
		s, err := d.Start(test.ctx, test.options)
		if err == nil {
			t.Errorf("%s, %s: it started", test.engine, test.name)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %s: %q is not in: %v", test.engine, test.name, want, err)
			}
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestMariaDBIsNotMySQL: where only MariaDB is installed, its mysqld must not be taken for MySQL's.
func TestMariaDBIsNotMySQL(t *testing.T) {
	path, err := exec.LookPath("/usr/sbin/mariadbd")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(path, filepath.Join(dir, "mysqld")); err != nil {
		t.Fatal(err)
	}
	s, err := start(t, "mysql", engine.Options{Bin: dir})
	if err == nil {
		err = s.Close()
		t.Fatalf("it started: %v", err)
	}
	if !strings.Contains(err.Error(), "is MariaDB") {
		t.Errorf("got %v", err)
	}
}

func TestByName(t *testing.T) {
	for name, want := range map[string]string{"postgres": "postgres", "postgresql": "postgres", "mysql": "mysql", "mariadb": "mariadb", "tidb": "tidb", "sqlite": "sqlite", "sqlite:wal": "sqlite"} {
		if d, err := backends.ByName(name); err != nil || d.Name != want {
			t.Errorf("%s: got %q, %v; want %q", name, d.Name, err, want)
		}
	}
	if _, err := backends.ByName("Postgres "); err == nil {
		t.Error("a name with a space was found")
	}
	p, err := backends.ByName("postgres")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range p.Find() {
		if d, err := backends.ByName("postgres:" + f.Name); err != nil || d.Name != "postgres" {
			t.Errorf("version %s: %v", f.Name, err)
		}
	}
	if _, err := backends.ByName("postgres:7.1"); err == nil || !strings.Contains(err.Error(), "there is postgres:") {
		t.Errorf("a version that is not there: %v", err)
	}
}

// TestLevels asks each server for its levels and its default.
func TestLevels(t *testing.T) {
	for _, d := range backends.All() {
		if !slices.ContainsFunc(d.Levels, func(l product.Level) bool { return l.SQL == d.Default }) {
			t.Errorf("%s: its default %q is none of its levels", d.Name, d.Default)
		}
		for _, l := range d.Levels {
			if set := d.SetLevel(l.SQL); !strings.Contains(set, "LEVEL "+l.SQL) && l.SQL != "SNAPSHOT" && !d.Embedded || l.History != strings.ToLower(l.SQL) {
				t.Errorf("%s: history calls %s %q", d.Name, l.SQL, l.History)
			}
		}
	}
	p, err := backends.ByName("postgres")
	if err != nil {
		t.Fatal(err)
	}
	conn := testserver.Postgres(t).Database(t).Postgres(t)
	var level string
	if err := conn.QueryRow(t.Context(), "SHOW default_transaction_isolation").Scan(&level); err != nil || level != strings.ToLower(p.Default) {
		t.Errorf("postgres: default level %q, %v", level, err)
	}
	for _, l := range p.Levels {
		if _, err := conn.Exec(t.Context(), "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL "+l.SQL); err != nil {
			t.Errorf("postgres: %v", err)
		}
		if err := conn.QueryRow(t.Context(), "SHOW default_transaction_isolation").Scan(&level); err != nil || level != l.History {
			t.Errorf("postgres: level %q, %v; want %q", level, err, l.History)
		}
	}
	m, err := backends.ByName("mariadb")
	if err != nil {
		t.Fatal(err)
	}
	db := testserver.MariaDB(t).Database(t).MariaDB(t)
	db.SetMaxOpenConns(1)
	ask := func() string {
		if err := db.QueryRowContext(t.Context(), "SELECT REPLACE(@@tx_isolation, '-', ' ')").Scan(&level); err != nil {
			t.Fatal(err)
		}
		return level
	}
	if got := ask(); got != m.Default {
		t.Errorf("mariadb: default level %q", got)
	}
	for _, l := range m.Levels {
		want := l.SQL
		if l.Setting != nil {
			want = "REPEATABLE READ"
		}
		for _, stmt := range strings.Split(m.SetLevel(l.SQL), "; ") {
			if _, err := db.ExecContext(t.Context(), stmt); err != nil {
				t.Fatalf("mariadb: %s: %v", stmt, err)
			}
		}
		if ask() != want {
			t.Errorf("mariadb: level %q, %v; want %q", level, err, l.SQL)
		}
	}
}

// TestMariaDBAborts provokes the errors that Aborts judges and asks the server whether the transaction is still open.
func TestMariaDBAborts(t *testing.T) {
	for _, setting := range []string{"OFF", "ON"} {
		t.Run("innodb_snapshot_isolation="+setting, func(t *testing.T) {
			s, err := start(t, "mariadb", engine.Options{
				Users:    []engine.User{{Name: "app", Password: "x"}},
				Settings: map[string]string{"innodb_snapshot_isolation": setting, "innodb_lock_wait_timeout": "1", "innodb_rollback_on_timeout": setting},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}()
			root := connect(t, s, s.User, s.Password, "")
			exec1(t, root, "CREATE DATABASE d", "GRANT ALL ON d.* TO app", "CREATE TABLE d.t (id int PRIMARY KEY, v int UNIQUE)", "INSERT INTO d.t VALUES (1, 1), (2, 2)")
			a, b := connect(t, s, "app", "x", "d"), connect(t, s, "app", "x", "d")
			on := setting == "ON"
			aborts := func(code string) bool { return product.Of("mariadb").Error(code, "").Aborts || on && code == "1205" }

			check := func(db *sql.DB, err error, wantCode string) {
				t.Helper()
				var e *driver.MySQLError
				if !errors.As(err, &e) || fmt.Sprint(e.Number) != wantCode {
					t.Errorf("got %v, want error %s", err, wantCode)
					return
				}
				var open bool
				if err := db.QueryRowContext(t.Context(), "SELECT @@in_transaction").Scan(&open); err != nil {
					t.Fatal(err)
				}
				if aborts(wantCode) == open {
					t.Errorf("after error %s: transaction open %v, but Aborts says %v", wantCode, open, aborts(wantCode))
				}
				exec1(t, db, "ROLLBACK")
			}
			// Duplicate key: the statement alone.
			exec1(t, a, "BEGIN", "UPDATE t SET v = 10 WHERE id = 1")
			_, err = a.ExecContext(t.Context(), "INSERT INTO t VALUES (1, 3)")
			check(a, err, "1062")
			// Lock wait timeout.
			exec1(t, b, "BEGIN", "UPDATE t SET v = 20 WHERE id = 2")
			exec1(t, a, "BEGIN", "UPDATE t SET v = 10 WHERE id = 1")
			_, err = a.ExecContext(t.Context(), "UPDATE t SET v = 11 WHERE id = 2")
			check(a, err, "1205")
			exec1(t, b, "ROLLBACK")
			// A row that changed behind the snapshot: error 1020 or, without the setting, none.
			exec1(t, a, "BEGIN", "SELECT * FROM t")
			exec1(t, b, "UPDATE t SET v = 21 WHERE id = 2")
			_, err = a.ExecContext(t.Context(), "UPDATE t SET v = 22 WHERE id = 2")
			if on {
				check(a, err, "1020")
			} else if err != nil {
				t.Errorf("update behind the snapshot: %v", err)
			}
			exec1(t, a, "ROLLBACK")
			// Deadlock: whoever waits second is refused at once.
			exec1(t, a, "SET innodb_lock_wait_timeout = 30", "BEGIN", "UPDATE t SET v = 10 WHERE id = 1")
			exec1(t, b, "SET innodb_lock_wait_timeout = 30", "BEGIN", "UPDATE t SET v = 20 WHERE id = 2")
			first := make(chan error, 1)
			go func() {
				_, err := a.ExecContext(t.Context(), "UPDATE t SET v = 11 WHERE id = 2")
				first <- err
			}()
			_, errB := b.ExecContext(t.Context(), "UPDATE t SET v = 12 WHERE id = 1")
			errA := <-first
			if (errA == nil) == (errB == nil) {
				t.Fatalf("deadlock: got %v and %v, want one victim", errA, errB)
			}
			if errA != nil {
				check(a, errA, "1213")
			} else {
				check(b, errB, "1213")
			}
		})
	}
}

func connect(t *testing.T, s *engine.Server, user, password, database string) *sql.DB {
	t.Helper()
	cfg := driver.NewConfig()
	cfg.User, cfg.Passwd, cfg.Net, cfg.Addr, cfg.DBName = user, password, "tcp", s.Address(), database
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Logf("close: %v", err)
		}
	})
	return db
}

func exec1(t *testing.T, db *sql.DB, stmts ...string) {
	t.Helper()
	for _, stmt := range stmts {
		if _, err := db.ExecContext(t.Context(), stmt); err != nil {
			t.Fatalf("%s: %v", stmt, err)
		}
	}
}
