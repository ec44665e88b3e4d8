// Package testserver gives tests private database servers: one of each product for the whole test binary, started when
// the first test asks for it, and a fresh database for each test. A server that is not installed fails the test; it
// never skips it.
//
// A package that uses it has
//
//	func TestMain(m *testing.M) { testserver.Main(m) }
package testserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"

	"wirecheck/backends/engine"
	"wirecheck/backends/mariadb"
	"wirecheck/backends/mysql"
	"wirecheck/backends/postgres"
	"wirecheck/backends/tidb"
)

// startLimit bounds the start of a server on a busy machine.
const startLimit = 2 * time.Minute

// The accounts that every server has besides its superuser. App owns the tests' databases; the others are its members
// on PostgreSQL and have its rights on MariaDB.
const (
	App         = "app"         // PostgreSQL: scram-sha-256; MariaDB: mysql_native_password; MySQL: caching_sha2_password
	AppMD5      = "app_md5"     // PostgreSQL
	AppClear    = "app_clear"   // PostgreSQL: cleartext password
	AppTrust    = "app_trust"   // PostgreSQL: no password asked
	AppCert     = "app_cert"    // PostgreSQL: client certificate (Server.Authority issues it)
	AppEd25519  = "app_ed25519" // MariaDB
	AppPassword = "app secret"  // of all of them
)

// Server is a private server shared by the tests of one binary.
type Server struct {
	*engine.Server
}

// shared are the servers of this test binary. They are the one piece of state that tests of a package share; Run owns
// its end.
type shared struct {
	running   atomic.Bool
	postgres  slot
	mariadb   slot
	mysql     slot
	tidb      slot
	databases atomic.Int64
}

var servers shared

// slot holds one server, started at most once.
type slot struct {
	mu     sync.Mutex
	server *Server
	err    error
}

// Run runs the package's tests and then ends the servers. It returns the status for os.Exit.
func Run(m *testing.M) int {
	servers.running.Store(true)
	status := m.Run()
	servers.running.Store(false)
	if err := errors.Join(servers.postgres.close(), servers.mariadb.close(), servers.mysql.close(), servers.tidb.close()); err != nil {
		fmt.Fprintf(os.Stderr, "testserver: %v\n", err)
		return 1
	}
	return status
}

// Main is Run and os.Exit in one.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Postgres gives the PostgreSQL server.
func Postgres(t testing.TB) *Server {
	t.Helper()
	return servers.postgres.get(t, postgres.Start, engine.Options{
		TLS:      true,
		Settings: map[string]string{"max_connections": "500", "jit": "off"}, // for tests that run side by side, on tables without statistics
		Users: []engine.User{
			{Name: App, Password: AppPassword},
			{Name: AppMD5, Password: AppPassword, Method: "md5"},
			{Name: AppClear, Password: AppPassword, Method: "password"},
			{Name: AppTrust, Password: AppPassword, Method: "trust"},
			{Name: AppCert, Password: AppPassword, Method: "cert"},
		},
	})
}

// MariaDB gives the MariaDB server.
func MariaDB(t testing.TB) *Server {
	t.Helper()
	return servers.mariadb.get(t, mariadb.Start, engine.Options{
		TLS:      true,
		Settings: map[string]string{"max_connections": "1000"},
		Users: []engine.User{
			{Name: App, Password: AppPassword},
			{Name: AppEd25519, Password: AppPassword, Method: "ed25519"},
		},
	})
}

// The environment variables of MySQL: Debian has no package of it, so only those who have it test with it (make
// test-engines).
const (
	// FamilyVariable names the product that Family gives: mariadb (also if it is empty), mysql or tidb.
	FamilyVariable = "WIRECHECK_TEST_FAMILY"
	// BinVariable names the folder of mysqld; empty means the folder wirecheck-engines/mysql/bin in the user's cache
	// folder, if there is one, or PATH.
	BinVariable = "WIRECHECK_MYSQL_BIN"
	// TiDBVariable names the folder of tidb-server; empty means that of the newest one on the machine.
	TiDBVariable = "WIRECHECK_TIDB_BIN"
)

// Family gives the server of the MySQL family that the tests of this run are about: MariaDB, or MySQL if the
// environment asks for it.
func Family(t testing.TB) *Server {
	t.Helper()
	switch product := os.Getenv(FamilyVariable); product {
	case "", "mariadb":
		return MariaDB(t)
	case "mysql":
		return MySQL(t)
	case "tidb":
		return TiDB(t)
	default:
		t.Fatalf("testserver: %s=%s: only mariadb, mysql and tidb are known", FamilyVariable, product)
		return nil
	}
}

// IsMySQL reports whether Family gives MySQL.
func IsMySQL() bool { return os.Getenv(FamilyVariable) == "mysql" }

// IsTiDB reports whether Family gives TiDB.
func IsTiDB() bool { return os.Getenv(FamilyVariable) == "tidb" }

// TiDB gives the TiDB server.
func TiDB(t testing.TB) *Server {
	t.Helper()
	return servers.tidb.get(t, tidb.Start, engine.Options{
		Bin: os.Getenv(TiDBVariable), Users: []engine.User{{Name: App, Password: AppPassword}},
		Settings: map[string]string{"tidb_stats_load_sync_wait": "0"}, // else a busy machine makes a warning: sync load stats timeout
	})
}

// MySQL gives the MySQL server.
func MySQL(t testing.TB) *Server {
	t.Helper()
	bin := os.Getenv(BinVariable)
	if cache, err := os.UserCacheDir(); bin == "" && err == nil {
		if dir := filepath.Join(cache, "wirecheck-engines", "mysql", "bin"); isDir(dir) {
			bin = dir
		}
	}
	return servers.mysql.get(t, mysql.Start, engine.Options{
		Bin: bin, TLS: true,
		Users:    []engine.User{{Name: App, Password: AppPassword}},
		Settings: map[string]string{"local_infile": "ON", "log_bin_trust_function_creators": "ON", "innodb_buffer_pool_size": "64M", "performance_schema": "ON", "max_connections": "2000"},
	})
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (sl *slot) get(t testing.TB, start func(context.Context, engine.Options) (*engine.Server, error), o engine.Options) *Server {
	t.Helper()
	if !servers.running.Load() {
		t.Fatal("testserver: the package's TestMain must call testserver.Main, which ends the servers")
	}
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.server == nil && sl.err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), startLimit)
		defer cancel()
		var s *engine.Server
		if s, sl.err = start(ctx, o); sl.err == nil {
			sl.server = &Server{s}
			sl.err = sl.server.setUp(ctx)
		}
	}
	if sl.err != nil {
		t.Fatalf("testserver: %v", sl.err)
	}
	return sl.server
}

func (sl *slot) close() error {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.server == nil {
		return nil
	}
	return sl.server.Close()
}

// setUp does what is needed once per server.
func (s *Server) setUp(ctx context.Context) error {
	if s.Engine != "postgres" {
		return nil
	}
	return s.admin(ctx, fmt.Sprintf("GRANT %s TO %s, %s, %s, %s", App, AppMD5, AppClear, AppTrust, AppCert))
}

// admin executes statements as the superuser.
func (s *Server) admin(ctx context.Context, stmts ...string) error {
	d := Database{Server: s, Host: s.Host, Port: s.Port, User: s.User, Password: s.Password}
	if s.Engine == "postgres" {
		d.Name = "postgres"
	}
	return d.exec(ctx, stmts...)
}

// Database makes an empty database that belongs to App, and drops it after the test.
func (s *Server) Database(t testing.TB) Database {
	t.Helper()
	d := Database{
		Server: s, Host: s.Host, Port: s.Port, User: App, Password: AppPassword,
		Name: fmt.Sprintf("test_%d", servers.databases.Add(1)),
	}
	create := []string{fmt.Sprintf("CREATE DATABASE %s OWNER %s", d.Name, App)}
	drop := fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", d.Name)
	if s.Engine != "postgres" {
		create = []string{
			"CREATE DATABASE " + d.Name,
			fmt.Sprintf("GRANT ALL ON %s.* TO %s@'%%'", d.Name, App),
		}
		if s.Engine == "mariadb" {
			create = append(create, fmt.Sprintf("GRANT ALL ON %s.* TO %s@'%%'", d.Name, AppEd25519))
		}
		drop = "DROP DATABASE " + d.Name
	}
	if err := s.admin(t.Context(), create...); err != nil {
		t.Fatalf("testserver: create database: %v", err)
	}
	t.Cleanup(func() {
		select {
		case <-s.Done(): // a test ended the server
			return
		default:
		}
		if err := s.admin(context.Background(), drop); err != nil {
			t.Errorf("testserver: drop database: %v", err)
		}
	})
	return d
}

// Database says how to reach one database. The fields may be changed: a copy with Host and Port of a proxy, or with
// another User, is a Database too.
type Database struct {
	Server         *Server
	Host           string
	Port           int
	User, Password string
	Name           string
	// TLS encrypts the connection and checks the server's certificate.
	TLS bool
}

// At is the same database reached at another address.
func (d Database) At(host string, port int) Database {
	d.Host, d.Port = host, port
	return d
}

// As is the same database as another user; all have the same password, except the superuser.
func (d Database) As(user string) Database {
	d.User, d.Password = user, AppPassword
	if user == d.Server.User {
		d.Password = d.Server.Password
	}
	return d
}

// Address is host:port.
func (d Database) Address() string { return fmt.Sprintf("%s:%d", d.Host, d.Port) }

// URL names the database with user and password: postgres:// (as libpq and pgx take it) or mariadb://.
func (d Database) URL() string {
	u := url.URL{Scheme: d.Server.Engine, User: url.UserPassword(d.User, d.Password), Host: d.Address(), Path: "/" + d.Name}
	if d.Server.Engine == "postgres" {
		q := url.Values{"sslmode": {"disable"}}
		if d.TLS {
			q = url.Values{"sslmode": {"verify-full"}, "sslrootcert": {d.Server.CAFile}}
		}
		u.RawQuery = q.Encode()
	}
	return u.String()
}

// MySQLConfig is the configuration of go-sql-driver for the database (MariaDB).
func (d Database) MySQLConfig() *driver.Config {
	cfg := driver.NewConfig()
	cfg.User, cfg.Passwd, cfg.Net, cfg.Addr, cfg.DBName = d.User, d.Password, "tcp", d.Address(), d.Name
	if d.TLS {
		cfg.TLS = d.Server.tlsConfig()
	}
	return cfg
}

// Postgres connects with pgx (PostgreSQL). The connection is closed after the test.
func (d Database) Postgres(t testing.TB) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), d.URL())
	if err != nil {
		t.Fatalf("connect to %s: %v", d.Address(), err)
	}
	t.Cleanup(func() {
		if err := conn.Close(context.Background()); err != nil {
			t.Logf("close connection to %s: %v", d.Address(), err)
		}
	})
	return conn
}

// MariaDB gives a pool of connections with go-sql-driver (MariaDB, MySQL). It is closed after the test.
func (d Database) MariaDB(t testing.TB) *sql.DB {
	t.Helper()
	db, err := d.pool()
	if err != nil {
		t.Fatalf("open %s: %v", d.Address(), err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Logf("close %s: %v", d.Address(), err)
		}
	})
	return db
}

// Exec executes statements on one connection, of either product.
func (d Database) Exec(t testing.TB, stmts ...string) {
	t.Helper()
	if err := d.exec(t.Context(), stmts...); err != nil {
		t.Fatal(err)
	}
}

// enginesVariable names further engines to test on: "mysql tidb:2025-11". Each must be on the machine.
const enginesVariable = "WIRECHECK_TEST_ENGINES"

// Engines are those on which tests execute cases: PostgreSQL and MariaDB, and those that the environment names.
func Engines() []string {
	return append([]string{"postgres", "mariadb"}, strings.Fields(os.Getenv(enginesVariable))...)
}
