package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"wirecheck/backends"
	"wirecheck/proxy"
)

// TestPasswordPlaces: a password on the command line is warned of and never shown; the variable wins over the file, and a
// URL's own password over both.
func TestPasswordPlaces(t *testing.T) {
	_, said, status := command(t, "instrument", "status", "postgres://u:hush@127.0.0.1:1/d")
	if status != exitFailed || !strings.Contains(said, backends.PasswordVariable) || strings.Contains(said, "hush") {
		t.Errorf("%d: %s", status, said)
	}
	if _, said, _ := command(t, "instrument", "status", "postgres://u@127.0.0.1:1/d"); strings.Contains(said, backends.PasswordVariable) {
		t.Errorf("warned of no password: %s", said)
	}
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("of the file\r\nmore"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(backends.PasswordFileVariable, file)
	password := func(url, want string) {
		t.Helper()
		if s, err := backends.At(url); err != nil || s.Target.Password != want {
			t.Errorf("%s: %q, %v, want %q", url, s.Target.Password, err, want)
		}
	}
	password("mysql://u@h/d", "of the file")
	password("mysql://u:own@h/d", "own")
	t.Setenv(backends.PasswordVariable, "of the variable")
	password("mysql://u@h/d", "of the variable")
	os.Unsetenv(backends.PasswordVariable)
	t.Setenv(backends.PasswordFileVariable, file+".missing")
	if _, err := backends.At("mysql://u@h/d"); err == nil || !strings.Contains(err.Error(), backends.PasswordFileVariable) {
		t.Errorf("a missing file: %v", err)
	}
}

// TestWarnOpen: one line says which listeners do not verify the server, another one which can be reached and not verified.
func TestWarnOpen(t *testing.T) {
	tcp := func(address string) proxy.Address { return proxy.Address{Network: "tcp", Addr: address} }
	none, full := proxy.UpstreamTLS{Mode: proxy.Mirror, Verify: proxy.VerifyNone}, proxy.UpstreamTLS{Mode: proxy.Require, Verify: proxy.VerifyFull}
	for _, tt := range []struct {
		c    proxy.Config
		want []string
	}{
		{proxy.Config{Listen: tcp("127.0.0.1:1"), Upstream: tcp("db:1"), UpstreamTLS: none}, []string{"verify: full"}},
		{proxy.Config{Listen: tcp("localhost:1"), Upstream: tcp("db:1"), UpstreamTLS: full}, nil},
		{proxy.Config{Listen: tcp("[::1]:1"), Upstream: proxy.Address{Network: "unix", Addr: "/s"}, UpstreamTLS: none}, nil},
		{proxy.Config{Listen: tcp(":1"), Upstream: tcp("db:1"), UpstreamTLS: none}, []string{"verify: full", "tls.client.cert"}},
		{proxy.Config{Listen: tcp("0.0.0.0:1"), Upstream: tcp("db:1"), UpstreamTLS: full, ClientTLS: proxy.ClientTLS{Cert: "c", Key: "k"}}, nil},
	} {
		var out bytes.Buffer
		warnOpen(zerolog.New(&out), []proxy.Config{tt.c})
		if got := strings.Count(out.String(), "\n"); got != len(tt.want) {
			t.Errorf("%+v: %s", tt.c, out.String())
		}
		for _, want := range tt.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s is not in %s", want, out.String())
			}
		}
	}
}
