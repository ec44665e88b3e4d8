package mysqlwire_test

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"wirecheck/internal/testserver"
	"wirecheck/proxy"
)

// caching_sha2_password on all its ways (MySQL manual, "Caching SHA-2 Pluggable Authentication"), relayed: the full
// authentication with the server's RSA key, the same under TLS, and the fast one once the server knows the password.
func TestCachingSHA2OnMySQL(t *testing.T) {
	if !testserver.IsMySQL() {
		t.Skip("make test-engines runs this")
	}
	d := testserver.MySQL(t).Database(t)
	root := d.As(d.Server.User)
	own := proxy.ClientTLS{}
	own.Cert, own.Key = certFiles(t)
	require := proxy.UpstreamTLS{Mode: proxy.Require, RootCA: d.Server.CAFile, Verify: proxy.VerifyFull, ServerName: "localhost"}
	for _, test := range []struct {
		name      string
		config    proxy.Config
		encrypted bool
	}{
		{"pass, RSA", proxy.Config{Mode: proxy.Pass}, false},
		{"pass, TLS end to end", proxy.Config{Mode: proxy.Pass}, true},
		{"observe, RSA", proxy.Config{Mode: proxy.Observe}, false},
		{"observe, TLS on both sides", proxy.Config{Mode: proxy.Observe, ClientTLS: own, UpstreamTLS: require}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := observer(&sink{})
			if test.config.Mode == proxy.Pass {
				o = nil
			}
			through := startProxy(t, d, test.config, o)
			login := func(password string) error {
				cfg := through.MySQLConfig()
				cfg.Passwd = password
				if test.encrypted {
					cfg.TLS = &tls.Config{InsecureSkipVerify: true} // whose certificate it is other tests tell
				}
				connector, err := driver.NewConnector(cfg)
				if err != nil {
					t.Fatal(err)
				}
				db := sql.OpenDB(connector)
				defer db.Close()
				var n int
				if err := db.QueryRowContext(context.Background(), "SELECT 42").Scan(&n); err != nil {
					return err
				}
				if n != 42 {
					t.Errorf("got %d, want 42", n)
				}
				return nil
			}
			root.Exec(t, "FLUSH PRIVILEGES") // the server forgets the passwords that it has seen
			if err := login(testserver.AppPassword); err != nil {
				t.Errorf("full authentication: %v", err)
			}
			if err := login(testserver.AppPassword); err != nil {
				t.Errorf("fast authentication: %v", err)
			}
			var denied *driver.MySQLError
			if err := login("wrong"); !errors.As(err, &denied) || denied.Number != 1045 {
				t.Errorf("wrong password: got %v, want error 1045", err)
			}
		})
	}
}
