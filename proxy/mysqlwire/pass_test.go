package mysqlwire_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"wirecheck/internal/testserver"
	"wirecheck/proxy"
	"wirecheck/proxy/mysqlwire"
)

// TestMain also looks for goroutines of sessions that outlived their proxy: Serve waits for its sessions, and they for
// their goroutines.
func TestMain(m *testing.M) {
	status := testserver.Run(m)
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	if strings.Contains(string(stacks), "wirecheck/proxy/mysqlwire.") {
		fmt.Fprintf(os.Stderr, "goroutines are left:\n%s", stacks)
		status = 1
	}
	os.Exit(status)
}

// startProxy runs a proxy in front of d and gives the same database as it is reached through it.
func startProxy(t testing.TB, d testserver.Database, c proxy.Config, o *mysqlwire.Observer) testserver.Database {
	t.Helper()
	c.Listen = proxy.Address{Network: "tcp", Addr: "127.0.0.1:0"}
	if c.Upstream.Addr == "" {
		c.Upstream = proxy.Address{Network: "tcp", Addr: d.Address()}
	}
	addr := serve(t, c, o)
	return d.At("127.0.0.1", addr.(*net.TCPAddr).Port)
}

// serve runs a proxy until the test ends.
func serve(t testing.TB, c proxy.Config, o *mysqlwire.Observer) net.Addr {
	t.Helper()
	return serveBy(t, c, mysqlwire.New(o))
}

func serveBy(t testing.TB, c proxy.Config, h proxy.Handler) net.Addr {
	t.Helper()
	c.Protocol = proxy.MySQL
	log := zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.WarnLevel)
	p, err := proxy.Listen(t.Context(), log, func(proxy.Config) (proxy.Handler, error) { return h, nil }, c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("proxy: %v", err)
		}
	})
	return p.Addrs()[0]
}

func TestPassLogins(t *testing.T) {
	d := testserver.Family(t).Database(t)
	own := proxy.ClientTLS{}
	own.Cert, own.Key = certFiles(t)
	for name, c := range map[string]proxy.Config{
		"end to end": {Mode: proxy.Pass},
		"terminated": {Mode: proxy.Pass, ClientTLS: own},
		"required":   {Mode: proxy.Pass, UpstreamTLS: proxy.UpstreamTLS{Mode: proxy.Require, RootCA: d.Server.CAFile, Verify: proxy.VerifyFull, ServerName: "localhost"}},
		"plain up":   {Mode: proxy.Pass, ClientTLS: own, UpstreamTLS: proxy.UpstreamTLS{Mode: proxy.Plain}},
	} {
		t.Run(name, func(t *testing.T) { testLogins(t, startProxy(t, d, c, nil), name) })
	}
}

func testLogins(t *testing.T, through testserver.Database, name string) {
	if testserver.IsMySQL() {
		t.Skip("other accounts and another client: TestCachingSHA2OnMySQL")
	}
	for _, user := range []string{testserver.App, testserver.AppEd25519} {
		for _, encrypted := range []string{"--skip-ssl", "--ssl"} {
			d := through.As(user)
			out, err := mariadb(d, encrypted, "--skip-ssl-verify-server-cert", "-e", "SELECT 40 + 2, VARIABLE_VALUE <> '' FROM information_schema.session_status WHERE VARIABLE_NAME = 'SSL_CIPHER'")
			want := "42\t0\n"
			if encrypted == "--ssl" && name != "plain up" || name == "required" {
				want = "42\t1\n"
			}
			if err != nil || out != want {
				t.Errorf("user %s %s: got %q, %v; want %q", user, encrypted, out, err, want)
			}
		}
	}
	through.Password = "wrong"
	if out, err := mariadb(through, "-e", "SELECT 1"); err == nil || !strings.Contains(out, "ERROR 1045 (28000)") {
		t.Errorf("wrong password: got %q, %v; want error 1045", out, err)
	}
}

// mariadb runs the command line client without column names.
func mariadb(d testserver.Database, args ...string) (string, error) {
	cmd := exec.Command("mariadb", append([]string{"--no-defaults", "-N", "-B", "-h", d.Host, "-P", portOf(d), "-u", d.User, d.Name}, args...)...)
	cmd.Env = append(cmd.Environ(), "MYSQL_PWD="+d.Password)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
