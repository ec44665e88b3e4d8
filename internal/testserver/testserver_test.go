package testserver_test

import (
	"errors"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"wirecheck/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func TestPostgresUsers(t *testing.T) {
	d := testserver.Postgres(t).Database(t)
	d.Exec(t, "CREATE TABLE t (a int)", "INSERT INTO t VALUES (7)")
	for _, user := range []string{testserver.App, testserver.AppMD5, testserver.AppClear, testserver.AppTrust, d.Server.User} {
		for _, encrypted := range []bool{false, true} {
			d := d.As(user)
			d.TLS = encrypted
			conn := d.Postgres(t)
			var a int
			var isEncrypted bool
			err := conn.QueryRow(t.Context(), "SELECT a, (SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()) FROM t").Scan(&a, &isEncrypted)
			if err != nil || a != 7 || isEncrypted != encrypted {
				t.Errorf("user %s, TLS %v: got %d, TLS %v, %v; want 7", user, encrypted, a, isEncrypted, err)
			}
		}
	}
}

func TestMariaDBUsers(t *testing.T) {
	d := testserver.MariaDB(t).Database(t)
	d.Exec(t, "CREATE TABLE t (a int)", "INSERT INTO t VALUES (7)")
	for _, user := range []string{testserver.App, testserver.AppEd25519, d.Server.User} {
		for _, encrypted := range []bool{false, true} {
			d := d.As(user)
			d.TLS = encrypted
			var a int
			var name, cipher string
			row := d.MariaDB(t).QueryRowContext(t.Context(), "SELECT a, s.VARIABLE_NAME, s.VARIABLE_VALUE FROM t, information_schema.session_status s WHERE s.VARIABLE_NAME = 'SSL_CIPHER'")
			if err := row.Scan(&a, &name, &cipher); err != nil || a != 7 || (cipher != "") != encrypted {
				t.Errorf("user %s, TLS %v: got %d, cipher %q, %v; want 7", user, encrypted, a, cipher, err)
			}
		}
	}
}

func TestWrongPasswordIsRefused(t *testing.T) {
	p := testserver.Postgres(t).Database(t)
	p.Password = "wrong"
	conn, err := pgx.Connect(t.Context(), p.URL())
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "28P01" {
		t.Errorf("postgres: wrong password: got %v, %v, want error 28P01", conn, err)
	}
	m := testserver.MariaDB(t).Database(t)
	m.Password = "wrong"
	var denied *driver.MySQLError
	if err := m.MariaDB(t).PingContext(t.Context()); !errors.As(err, &denied) || denied.Number != 1045 {
		t.Errorf("mariadb: wrong password: got %v, want error 1045", err)
	}
}

func TestDatabasesAreSeparate(t *testing.T) {
	for _, s := range []*testserver.Server{testserver.Postgres(t), testserver.MariaDB(t)} {
		a, b := s.Database(t), s.Database(t)
		a.Exec(t, "CREATE TABLE t (a int)")
		b.Exec(t, "CREATE TABLE t (b text)", "INSERT INTO t VALUES ('x')")
	}
}

func TestMySQLUsers(t *testing.T) {
	if !testserver.IsMySQL() {
		t.Skip("make test-engines runs this")
	}
	d := testserver.MySQL(t).Database(t)
	d.Exec(t, "CREATE TABLE t (a int)", "INSERT INTO t VALUES (7)")
	for _, user := range []string{testserver.App, d.Server.User} {
		for _, encrypted := range []bool{false, true} {
			d := d.As(user)
			d.TLS = encrypted
			var a int
			var cipher string
			row := d.MariaDB(t).QueryRowContext(t.Context(), "SELECT a, VARIABLE_VALUE FROM t, performance_schema.session_status WHERE VARIABLE_NAME = 'Ssl_cipher'")
			if err := row.Scan(&a, &cipher); err != nil || a != 7 || (cipher != "") != encrypted {
				t.Errorf("user %s, TLS %v: got %d, cipher %q, %v; want 7", user, encrypted, a, cipher, err)
			}
		}
	}
}
