package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"wirecheck/internal/certificate"
)

// ClientTLS is how TLS with the client is done where it ends at the proxy. Without files a certificate is generated in
// memory when the first client needs one.
type ClientTLS struct {
	Cert, Key string // PEM files
	ClientCA  string // PEM file; set: clients must show a certificate signed by it
}

// Configured reports whether a certificate was given.
func (t ClientTLS) Configured() bool { return t.Cert != "" }

// UpstreamMode says when the upstream connection uses TLS.
type UpstreamMode string

// The upstream modes. Mirror asks the server for TLS exactly when the client asks the proxy for it.
const (
	Mirror  UpstreamMode = "mirror"
	Require UpstreamMode = "require"
	Plain   UpstreamMode = "off"
)

// Verify says what is checked of the server's certificate.
type Verify string

// The verifications, in the words of libpq's sslmode: nothing (as sslmode=require), that it is signed by the
// authority, that it also names the host.
const (
	VerifyNone Verify = "none"
	VerifyCA   Verify = "ca"
	VerifyFull Verify = "full"
)

// UpstreamTLS is how TLS with the server is done.
type UpstreamTLS struct {
	Mode       UpstreamMode // default Mirror
	Verify     Verify       // default VerifyNone
	RootCA     string       // PEM file of the authorities; empty: the system's
	ServerName string       // default the host of the upstream address
	Cert, Key  string       // PEM files: the certificate that wirecheck shows to the server
}

// certificates holds what the TLS settings of one listener name.
type certificates struct {
	hosts    []string // for a generated certificate
	upstream *tls.Config
	clientCA *x509.CertPool

	mu     sync.Mutex
	client *tls.Certificate // nil until it is generated
}

func newCertificates(c *Config) (*certificates, error) {
	s := &certificates{hosts: []string{"localhost", "127.0.0.1", "::1"}}
	if host, _, err := net.SplitHostPort(c.Listen.Addr); err == nil && c.Listen.Network == "tcp" && host != "" {
		s.hosts = append(s.hosts, host)
	}
	if (c.ClientTLS.Cert == "") != (c.ClientTLS.Key == "") {
		return nil, errors.New("client TLS: certificate and key go together")
	}
	if c.ClientTLS.Configured() {
		pair, err := tls.LoadX509KeyPair(c.ClientTLS.Cert, c.ClientTLS.Key)
		if err != nil {
			return nil, fmt.Errorf("client TLS: %w", err)
		}
		s.client = &pair
	}
	if c.ClientTLS.ClientCA != "" {
		pool, err := pool(c.ClientTLS.ClientCA)
		if err != nil {
			return nil, fmt.Errorf("client TLS: %w", err)
		}
		s.clientCA = pool
	}
	upstream, err := upstreamTLS(c)
	if err != nil {
		return nil, fmt.Errorf("upstream TLS: %w", err)
	}
	s.upstream = upstream
	return s, nil
}

// generated is the certificate that was made up, if one was.
func (s *certificates) generated() *tls.Certificate {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

func pool(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", file)
	}
	return p, nil
}

func upstreamTLS(c *Config) (*tls.Config, error) {
	u := c.UpstreamTLS
	switch u.Mode {
	case "", Mirror, Require, Plain:
	default:
		return nil, fmt.Errorf("unknown mode %q (mirror, require or off)", u.Mode)
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: u.ServerName}
	if host, _, err := net.SplitHostPort(c.Upstream.Addr); err == nil && out.ServerName == "" && c.Upstream.Network == "tcp" {
		out.ServerName = host
	}
	if u.RootCA != "" {
		p, err := pool(u.RootCA)
		if err != nil {
			return nil, err
		}
		out.RootCAs = p
	}
	if u.Cert != "" {
		pair, err := tls.LoadX509KeyPair(u.Cert, u.Key)
		if err != nil {
			return nil, err
		}
		out.Certificates = []tls.Certificate{pair}
	}
	switch u.Verify {
	case "", VerifyNone:
		out.InsecureSkipVerify = true
	case VerifyCA:
		// crypto/tls checks chain and name together or nothing; so the chain is checked here, without the name.
		roots := out.RootCAs
		out.InsecureSkipVerify = true
		out.VerifyConnection = func(st tls.ConnectionState) error { return verifyChain(st, roots) }
	case VerifyFull:
		if out.ServerName == "" {
			return nil, errors.New("full verification needs a server name")
		}
	default:
		return nil, fmt.Errorf("unknown verification %q (none, ca or full)", u.Verify)
	}
	return out, nil
}

func verifyChain(st tls.ConnectionState, roots *x509.CertPool) error {
	if len(st.PeerCertificates) == 0 {
		return errors.New("the server showed no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range st.PeerCertificates[1:] {
		between.AddCert(c)
	}
	_, err := st.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
	return err
}

// Quiet reports whether the client is to get no warnings now.
func (s *Session) Quiet() bool { return s.Config.Quiet != nil && s.Config.Quiet.Load() }

// ClientTLS gives the settings for the TLS of which this session's client is the other end.
func (s *Session) ClientTLS() (*tls.Config, error) {
	s.tls.mu.Lock()
	defer s.tls.mu.Unlock()
	if s.tls.client == nil {
		authority, err := certificate.NewAuthority("wirecheck, this process only")
		if err != nil {
			return nil, err
		}
		pair, err := authority.Issue("wirecheck", s.tls.hosts...)
		if err != nil {
			return nil, err
		}
		cert, err := pair.TLS()
		if err != nil {
			return nil, fmt.Errorf("generated certificate: %w", err)
		}
		s.tls.client = &cert
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*s.tls.client}}
	if s.tls.clientCA != nil {
		out.ClientCAs, out.ClientAuth = s.tls.clientCA, tls.RequireAndVerifyClientCert
	}
	return out, nil
}

// UpstreamTLS gives the settings for the TLS of which this session's server is the other end.
func (s *Session) UpstreamTLS() *tls.Config { return s.tls.upstream.Clone() }
