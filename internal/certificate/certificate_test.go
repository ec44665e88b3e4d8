package certificate

import (
	"crypto/tls"
	"net"
	"testing"
)

// TestHandshake lets both sides check each other, and a stranger's certificate be refused.
func TestHandshake(t *testing.T) {
	ca, err := NewAuthority("ours")
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := NewAuthority("ours") // the same name, another key
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name       string
		serverName string
		client     *Authority
		ok         bool
	}{
		{"by name", "localhost", ca, true},
		{"by address", "127.0.0.1", ca, true},
		{"another name", "example.com", ca, false},
		{"stranger's client", "localhost", stranger, false},
	}
	for _, test := range tests {
		serverCert, clientCert := issue(t, ca, "server", "localhost", "127.0.0.1"), issue(t, test.client, "somebody")
		a, b := net.Pipe()
		server := tls.Server(a, &tls.Config{Certificates: []tls.Certificate{serverCert}, ClientCAs: ca.Pool(), ClientAuth: tls.RequireAndVerifyClientCert})
		client := tls.Client(b, &tls.Config{Certificates: []tls.Certificate{clientCert}, RootCAs: ca.Pool(), ServerName: test.serverName})
		answered := make(chan error, 1)
		go func() {
			answered <- server.HandshakeContext(t.Context())
			a.Close()
		}()
		errClient := client.HandshakeContext(t.Context())
		b.Close()
		errServer := <-answered
		if ok := errClient == nil && errServer == nil; ok != test.ok {
			t.Errorf("%s: client %v, server %v; want success: %v", test.name, errClient, errServer, test.ok)
		}
		if got := server.ConnectionState().PeerCertificates; test.ok && got[0].Subject.CommonName != "somebody" {
			t.Errorf("%s: the server sees %s", test.name, got[0].Subject)
		}
	}
}

func issue(t *testing.T, a *Authority, name string, hosts ...string) tls.Certificate {
	t.Helper()
	pair, err := a.Issue(name, hosts...)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
