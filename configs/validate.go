package configs

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"wirecheck/fleet/bus"
	"wirecheck/fleet/stream"
)

// Validate says everything that is wrong with c, one problem a line.
func (c *Config) Validate() error { return c.validate().err(func(problem) string { return "" }) }

func (c *Config) validate() *problems {
	p := &problems{}
	if len(c.Listeners) == 0 {
		p.add("listeners", "there are none: say --listen and --upstream, or list them in the configuration")
	}
	seen, controlled := map[string]int{}, 0
	for i, l := range c.Listeners {
		at := fmt.Sprintf("listeners[%d]", i)
		l.validate(p, at)
		if l.Sample < 1 && c.Unit == "request" {
			p.add(at+".sample", "parts of a request may be in sessions that are not observed: unit: request needs all of them")
		}
		if first, ok := seen[l.Listen]; ok && l.Listen != "" && !strings.HasSuffix(l.Listen, ":0") {
			p.add(at+".listen", "%s is that of listeners[%d] too", Redact(l.Listen), first)
		}
		seen[l.Listen] = i
		if l.Mode == "control" {
			if controlled++; controlled > 1 {
				p.add(at+".mode", "only one listener can be in mode control")
			}
			c.Control.validate(p, l.Upstream)
		}
	}
	p.oneOf("unit", c.Unit, Units)
	p.oneOf("log_level", c.LogLevel, LogLevels)
	if err := CheckShare(c.MinCoverage); err != nil {
		p.add("min_coverage", "%v", err)
	}
	if c.HTTP != "" {
		if _, err := HTTPAddress(c.HTTP); err != nil {
			p.add("http", "%v", err)
		}
	}
	if c.Publish.To != "" {
		if err := bus.Check(c.Publish.To); err != nil {
			p.add("publish.to", "%v", err)
		}
	}
	if err := stream.CheckFleet(c.Publish.Fleet); err != nil {
		p.add("publish.fleet", "%v", err)
	}
	c.Recording.validate(p, c.Record)
	files := map[string]string{}
	for _, f := range []struct{ at, path string }{{"record", c.Record}, {"log", c.Log}, {"report", c.Report}, {"stream", c.Stream}} {
		if other, ok := files[f.path]; ok && f.path != "" {
			p.add(f.at, "%s is the file of %s too", f.path, other)
		}
		files[f.path] = f.at
	}
	for _, n := range []struct {
		at    string
		value int
	}{
		{"publish.buffer", int(c.Publish.Buffer)}, {"limits.sessions", c.Limits.Sessions}, {"limits.logins", c.Limits.Logins}, {"limits.statement", int(c.Limits.Statement)}, {"limits.row", int(c.Limits.Row)},
		{"limits.prepared", c.Limits.Prepared}, {"limits.accesses", c.Limits.Accesses}, {"limits.transactions", c.Limits.Transactions}, {"limits.window", c.Limits.Window},
		{"timeouts.connect", int(c.Timeouts.Connect)}, {"timeouts.handshake", int(c.Timeouts.Handshake)}, {"timeouts.shutdown", int(c.Timeouts.Shutdown)},
	} {
		if n.value <= 0 {
			p.add(n.at, "it must be more than 0")
		}
	}
	return p
}

// HTTPAddress reads HOST:PORT, :PORT or PORT. Without a host it is this machine's loopback address.
func HTTPAddress(text string) (string, error) {
	if !strings.Contains(text, ":") {
		text = ":" + text
	}
	host, port, err := net.SplitHostPort(text)
	if _, e := strconv.ParseUint(port, 10, 16); err != nil || e != nil {
		return "", fmt.Errorf("%q: expected HOST:PORT, as in 127.0.0.1:9090", text)
	}
	return net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port), nil
}

// CheckShare refuses a number that is no share.
func CheckShare(share float64) error {
	if !(share >= 0 && share <= 1) { // nor is NaN one
		return fmt.Errorf("%v: expected a share from 0 to 1, as in 0.95", share)
	}
	return nil
}

func (l *Listener) validate(p *problems, at string) {
	listen := p.address(at+".listen", l.Listen, schemes)
	upstream := p.address(at+".upstream", l.Upstream, schemes)
	if listen && upstream && protocol(l.Listen) != protocol(l.Upstream) {
		p.add(at+".upstream", "%s speaks another protocol than %s", Redact(l.Upstream), Redact(l.Listen))
	}
	p.oneOf(at+".mode", l.Mode, modes)
	p.oneOf(at+".capture", l.Capture, captures)
	switch sampled := l.Sample != 1; {
	case !(l.Sample > 0 && l.Sample <= 1):
		p.add(at+".sample", "it is a share of the sessions: more than 0 and at most 1")
	case sampled && l.Mode != "observe":
		p.add(at+".sample", "it is for mode observe")
	case sampled && l.UnitGap > 0:
		p.add(at+".sample", "parts of a request may be in sessions that are not observed: unit_gap needs all of them")
	case sampled && l.Capture == "columns" && protocol(l.Upstream) == "postgres":
		p.add(at+".sample", "a session that is not observed would see the hidden columns: use capture native")
	}
	if l.UnitGap < 0 {
		p.add(at+".unit_gap", "it must not be less than 0")
	}
	if l.Capture == "native" && protocol(l.Upstream) == "mysql" {
		p.add(at+".capture", "MariaDB and MySQL have no native capture: use auto or columns")
	}
	p.pair(at+".tls.client", l.TLS.Client.Cert, l.TLS.Client.Key)
	p.pair(at+".tls.upstream", l.TLS.Upstream.Cert, l.TLS.Upstream.Key)
	p.oneOf(at+".tls.upstream.mode", l.TLS.Upstream.Mode, upstreamModes)
	p.oneOf(at+".tls.upstream.verify", l.TLS.Upstream.Verify, verifications)
}

func (r *Recording) validate(p *problems, file string) {
	if r.Rows < 0 {
		p.add("recording.rows", "it must not be less than 0")
	}
	if r.PartSize < 0 {
		p.add("recording.part_size", "it must not be less than 0")
	}
	if r.PartAge < 0 {
		p.add("recording.part_age", "it must not be less than 0")
	}
	if *r != Default().Recording && file != "" && !strings.HasSuffix(file, TraceSuffix) {
		p.add("recording", "%s is no trace file but a history, which is one file with all values: name one that ends with %s", file, TraceSuffix)
	}
}

func (c *Control) validate(p *problems, upstream string) {
	if c.Schedule == "" {
		p.add("control.schedule", "it is empty: say random, pct, pct:DEPTH or the name of a file")
	}
	if c.Sessions < 1 {
		p.add("control.sessions", "it must be more than 0")
	}
	if c.Think <= 0 {
		p.add("control.think", "it must be more than 0")
	}
	if c.Locks != "" && protocol(c.Locks) != protocol(upstream) {
		p.add("control.locks", "%s speaks another protocol than %s", Redact(c.Locks), Redact(upstream))
	}
}

func (p *problems) oneOf(at, value string, known []string) {
	if !slices.Contains(known, value) {
		p.add(at, "%q is not one of %s", value, strings.Join(known, ", "))
	}
}

func (p *problems) pair(at, cert, key string) {
	if (cert == "") != (key == "") {
		p.add(at, "cert and key go together")
	}
}

// address checks a URL and reports whether it is one.
func (p *problems) address(at, raw string, schemes []string) bool {
	if raw == "" {
		p.add(at, "it is missing")
		return false
	}
	u, err := url.Parse(raw)
	if err != nil {
		p.add(at, "it is no URL: it should look like %s://127.0.0.1:6432", schemes[0]) // the error would show a password
		return false
	}
	before := len(p.list)
	if !slices.Contains(schemes, u.Scheme) {
		p.add(at, "%s: the scheme is not one of %s", shown(u), strings.Join(schemes, ", "))
	}
	if u.User != nil {
		p.add(at, "%s: leave the user out: clients authenticate themselves with the server", shown(u))
	}
	switch _, _, socket := SplitAddress(raw); {
	case socket && u.Host != "":
		p.add(at, "%s: a host or a path of a socket, not both", shown(u))
	case !socket && u.Hostname() == "" && u.Port() == "":
		p.add(at, "%s: the address is missing", shown(u))
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n > 65535 {
			p.add(at, "%s: there is no port %s", shown(u), port)
		}
	}
	if u.RawQuery != "" || u.Fragment != "" {
		p.add(at, "%s: it takes no parameters: TLS has settings of its own", shown(u))
	}
	return len(p.list) == before
}

// ports are those that are meant where a URL names none.
var ports = map[string]string{"postgres": "5432", "mysql": "3306"}

// SplitAddress gives the protocol ("postgres" or "mysql") and the address of a valid URL: host:port, or, for
// postgres:///run/postgresql/.s.PGSQL.5432, the path of a socket.
func SplitAddress(raw string) (proto, address string, socket bool) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", "", false
	}
	proto = serverProtocol[u.Scheme]
	if u.Host == "" && len(u.Path) > 1 {
		return proto, u.Path, true
	}
	if u.Port() != "" {
		return proto, u.Host, false
	}
	return proto, u.Host + ":" + ports[proto], false
}

func protocol(raw string) string {
	p, _, _ := SplitAddress(raw)
	return p
}

// Redact hides the password of a URL.
func Redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return noURL
	}
	return shown(u)
}

const noURL = "(no URL)"

// shown is a URL without its password. Of me:secret@host, which has no protocol, url takes the user's name for one.
func shown(u *url.URL) string {
	if strings.Contains(u.Opaque, "@") {
		return noURL
	}
	return u.Redacted()
}
