package main

import (
	"fmt"
	"net"

	"github.com/rs/zerolog"

	"wirecheck/configs"
	"wirecheck/proxy"
)

// proxyConfig makes the proxy's own form of a listener of a valid configuration.
func proxyConfig(c configs.Config, l configs.Listener) (proxy.Config, error) {
	protocol, listen, err := proxyAddress(l.Listen)
	if err != nil {
		return proxy.Config{}, err
	}
	_, upstream, err := proxyAddress(l.Upstream)
	if err != nil {
		return proxy.Config{}, err
	}
	client, server := l.TLS.Client, l.TLS.Upstream
	return proxy.Config{
		Name:      l.Name,
		Listen:    listen,
		Protocol:  protocol,
		Upstream:  upstream,
		Mode:      proxy.Mode(l.Mode),
		ClientTLS: proxy.ClientTLS{Cert: client.Cert, Key: client.Key, ClientCA: client.CA},
		UpstreamTLS: proxy.UpstreamTLS{
			Mode: proxy.UpstreamMode(server.Mode), Verify: proxy.Verify(server.Verify),
			RootCA: server.CA, ServerName: server.ServerName, Cert: server.Cert, Key: server.Key,
		},
		Timeouts: proxy.Timeouts{Dial: c.Timeouts.Connect, Startup: c.Timeouts.Handshake, Grace: c.Timeouts.Shutdown},
		Limits: proxy.Limits{
			Sessions: c.Limits.Sessions, Logins: c.Limits.Logins, Text: int(c.Limits.Statement), Row: int(c.Limits.Row), Prepared: c.Limits.Prepared,
		},
	}, nil
}

func proxyAddress(url string) (proxy.Protocol, proxy.Address, error) {
	protocol, address, socket := configs.SplitAddress(url)
	if socket {
		return proxy.Protocol(protocol), proxy.Address{Network: "unix", Addr: address}, nil
	}
	parsed, err := proxy.ParseAddress(address)
	if err != nil {
		return "", proxy.Address{}, fmt.Errorf("%s: %w", configs.Redact(url), err)
	}
	return proxy.Protocol(protocol), parsed, nil
}

// warnOpen says where passwords and data may be read or changed on their way.
func warnOpen(log zerolog.Logger, list []proxy.Config) {
	var unverified, open []string
	for _, c := range list {
		if up := c.UpstreamTLS; c.Upstream.Network == "tcp" && up.Verify == proxy.VerifyNone && up.Mode != proxy.Plain {
			unverified = append(unverified, c.Name)
		}
		if host, _, _ := net.SplitHostPort(c.Listen.Addr); c.Listen.Network == "tcp" && !loopback(host) && !c.ClientTLS.Configured() {
			open = append(open, c.Name)
		}
	}
	if len(unverified) > 0 {
		log.Warn().Strs("listeners", unverified).Str("instead", "tls.upstream.verify: full").Msg("TLS with the server does not verify its certificate")
	}
	if len(open) > 0 {
		log.Warn().Strs("listeners", open).Str("instead", "tls.client.cert and key, or an address of this machine alone").
			Msg("other machines can connect, and clients cannot verify who answers")
	}
}

// loopback reports whether an address is reached from this machine alone.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
