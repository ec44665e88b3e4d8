package main

import (
	"fmt"

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
			Sessions: c.Limits.Sessions, Text: int(c.Limits.Statement), Row: int(c.Limits.Row), Prepared: c.Limits.Prepared,
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
