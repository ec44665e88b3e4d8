package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wirecheck/configs"
	"wirecheck/oracle/isolation"
	"wirecheck/proxy"
	"wirecheck/proxy/record"
)

func TestProxyConfig(t *testing.T) {
	c := configs.Default()
	l := configs.DefaultListener()
	l.Name, l.Listen, l.Upstream, l.Mode = "shop", "mysql:///run/wirecheck.sock", "mariadb://[::1]", "pass"
	l.TLS = configs.TLS{
		Client:   configs.ClientTLS{Cert: "c", Key: "k", CA: "a"},
		Upstream: configs.UpstreamTLS{Mode: "require", Verify: "full", CA: "ua", ServerName: "n", Cert: "uc", Key: "uk"},
	}
	got, err := proxyConfig(c, l)
	if err != nil {
		t.Fatal(err)
	}
	want := proxy.Config{
		Name:        "shop",
		Listen:      proxy.Address{Network: "unix", Addr: "/run/wirecheck.sock"},
		Protocol:    proxy.MySQL,
		Upstream:    proxy.Address{Network: "tcp", Addr: "[::1]:3306"},
		Mode:        proxy.Pass,
		ClientTLS:   proxy.ClientTLS{Cert: "c", Key: "k", ClientCA: "a"},
		UpstreamTLS: proxy.UpstreamTLS{Mode: proxy.Require, Verify: proxy.VerifyFull, RootCA: "ua", ServerName: "n", Cert: "uc", Key: "uk"},
		Timeouts:    proxy.Timeouts{Dial: 10 * time.Second, Startup: time.Minute, Grace: 10 * time.Second},
		Limits:      proxy.Limits{Sessions: 10_000, Logins: 100, Text: 1 << 20, Row: 1 << 20, Prepared: 10_000},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDefaultLimits: the configuration's defaults are those of the parts that they are for.
func TestDefaultLimits(t *testing.T) {
	l := configs.Default().Limits
	if l.Accesses != record.DefaultAccesses || l.Transactions != isolation.DefaultMaxTxns || l.Window != isolation.DefaultKeep {
		t.Errorf("got %+v, want accesses %d, transactions %d and window %d", l, record.DefaultAccesses, isolation.DefaultMaxTxns, isolation.DefaultKeep)
	}
}
