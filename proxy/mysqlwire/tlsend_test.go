package mysqlwire_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/internal/testserver"
	"wirecheck/proxy"
)

// TestEndOfTLS leaves a session over TLS by COM_QUIT, and has one killed: the connection must end as the server ends it.
func TestEndOfTLS(t *testing.T) {
	d := testserver.Family(t).Database(t)
	end := func(at testserver.Database, killed bool) string {
		c := dialRaw(t, at, baseCaps|uint64(mysql.CLIENT_SSL))
		text := ""
		if killed {
			text = c.query("KILL CONNECTION_ID()").String()
		} else {
			c.write(0, []byte{mysql.COM_QUIT})
		}
		before := c.below.n
		rest, err := io.ReadAll(c.r)
		return fmt.Sprintf("%s%q, %v, %d bytes of TLS", text, rest, err, c.below.n-before)
	}
	cert, key := certFiles(t)
	for _, killed := range []bool{false, true} {
		want := end(d, killed)
		t.Logf("directly: %q", want)
		for _, mode := range []proxy.Mode{proxy.Pass, proxy.Observe} {
			through := startProxy(t, d, proxy.Config{Mode: mode, ClientTLS: proxy.ClientTLS{Cert: cert, Key: key}}, observer(&sink{}))
			if got := end(through, killed); got != want {
				t.Errorf("mode %s, killed %v: the session ends with %q, directly with %q", mode, killed, got, want)
			}
		}
	}
}
