// Package configs holds the configuration of wirecheck: one struct, its defaults, how it is read from a YAML file, and
// what must hold of it. The files beside it are examples.
package configs

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Config is what wirecheck proxy can be told.
type Config struct {
	Listeners []Listener `yaml:"listeners"`
	Record    string     `yaml:"record"` // trace file (.wct), or history file; empty: none
	Recording Recording  `yaml:"recording"`
	Log       string     `yaml:"log"`       // file of the log; empty: stderr
	LogLevel  string     `yaml:"log_level"` // lowest level that is logged
	Report    string     `yaml:"report"`    // file of findings for people; empty: none
	Stream    string     `yaml:"stream"`    // file of findings as JSON lines, "-" for stdout; empty: none
	HTTP      string     `yaml:"http"`      // address of the page and the metrics, as in 127.0.0.1:9090; empty: none
	Strict    bool       `yaml:"strict"`    // also report anomalies that need session order or real time
	Unit      string     `yaml:"unit"`      // what must be serializable: auto, transaction, request
	// ExplainCoverage shows at the end which statements were not seen exactly, and why.
	ExplainCoverage bool `yaml:"explain_coverage"`
	// RequestTags are the keys of the tags that name a request; empty: the usual ones.
	RequestTags []string `yaml:"request_tags"`
	Possible    bool     `yaml:"possible"` // also report what may be an anomaly between requests
	// ShowOthers lets warnings quote the statements of other users' sessions.
	ShowOthers bool `yaml:"show_others"`
	// Values lets findings show what answers and parameters said, and what statements assigned.
	Values Switch `yaml:"values"`
	// Predicates judges what statements asked, besides the rows that they found.
	Predicates Switch `yaml:"predicates"`
	// MinCoverage is the share of the statements that must be seen exactly, from 0 to 1.
	MinCoverage float64  `yaml:"min_coverage"`
	Publish     Publish  `yaml:"publish"`
	Control     Control  `yaml:"control"` // of the listener in mode control
	Limits      Limits   `yaml:"limits"`
	Timeouts    Timeouts `yaml:"timeouts"`
}

// Listener is one address and the server behind it.
type Listener struct {
	Name     string `yaml:"name"`     // for the log; empty: the address
	Listen   string `yaml:"listen"`   // URL: the scheme is the protocol, the rest the address
	Upstream string `yaml:"upstream"` // URL of the server
	Mode     string `yaml:"mode"`
	// Sample is the share of the sessions that mode observe observes; the others pass.
	Sample  float64 `yaml:"sample"`
	Capture string  `yaml:"capture"`
	Warn    Switch  `yaml:"warn"` // tell clients about anomalies in their sessions
	TLS     TLS     `yaml:"tls"`
	// UnitGap is a pause that ends a request without tags. 0: requests without tags are not told apart.
	UnitGap time.Duration `yaml:"unit_gap"`
}

// TLS is how a listener encrypts on both sides.
type TLS struct {
	Client   ClientTLS   `yaml:"client"`
	Upstream UpstreamTLS `yaml:"upstream"`
}

// ClientTLS names PEM files. Without a certificate one is made up at the start.
type ClientTLS struct {
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
	CA   string `yaml:"ca"` // of client certificates; set: clients must show one
}

// UpstreamTLS says when the server is spoken to with TLS, and what of its certificate is checked.
type UpstreamTLS struct {
	Mode       string `yaml:"mode"`
	Verify     string `yaml:"verify"`
	CA         string `yaml:"ca"`
	ServerName string `yaml:"server_name"`
	Cert       string `yaml:"cert"` // what wirecheck shows to the server
	Key        string `yaml:"key"`
}

// TraceSuffix is how the names of trace files end.
const TraceSuffix = ".wct"

// Recording says what is put into a trace file.
type Recording struct {
	Rows     int           `yaml:"rows"`      // of each result; a digest tells of all
	PartSize Size          `yaml:"part_size"` // a part of this size is followed by another one; 0: there is only one
	PartAge  time.Duration `yaml:"part_age"`  // the same by age
	Redact   Switch        `yaml:"redact"`    // put tokens in place of values
}

// Publish says where the history goes besides, to be judged together with those of other proxies.
type Publish struct {
	To     string `yaml:"to"`     // address of NATS, or embedded:DIR; empty: nowhere
	Fleet  string `yaml:"fleet"`  // name of the fleet
	Buffer Size   `yaml:"buffer"` // what waits while NATS is away or slow; what has no room is lost
}

// Control says how mode control decides who goes next.
type Control struct {
	Schedule string        `yaml:"schedule"` // random, pct, pct:DEPTH, or a file that a run has saved
	Sessions int           `yaml:"sessions"` // how many sessions must have a statement before the first decision
	Think    time.Duration `yaml:"think"`    // a client that sends nothing for longer is not waited for
	Locks    string        `yaml:"locks"`    // URL of the server for somebody who may look at its locks; empty: nobody
	Save     string        `yaml:"save"`     // file for the schedule; empty: it is printed only
}

// Limits bound what is held in memory.
type Limits struct {
	Sessions     int  `yaml:"sessions"`     // client connections of one listener at a time
	Logins       int  `yaml:"logins"`       // of them, those that have not logged in
	Statement    Size `yaml:"statement"`    // a longer statement passes as it is, opaque
	Row          Size `yaml:"row"`          // of one row out of which hidden columns must be cut; a longer one makes its statement opaque
	Prepared     int  `yaml:"prepared"`     // prepared statements remembered of one session
	Accesses     int  `yaml:"accesses"`     // row versions kept of one statement; with more it is approximate
	Transactions int  `yaml:"transactions"` // ended transactions kept while an older one stays open
	Window       int  `yaml:"window"`       // ended transactions kept in any case: how old a stale read may be
}

// Timeouts bound waits. There is none for idle sessions: that is the server's affair.
type Timeouts struct {
	Connect   time.Duration `yaml:"connect"`   // to the server
	Handshake time.Duration `yaml:"handshake"` // from accepting a client to the end of its authentication
	Shutdown  time.Duration `yaml:"shutdown"`  // for sessions to finish their transactions at the end
}

// Size is a number of bytes, written as 65536, 64KiB, 1MiB or 1GiB.
type Size int

// Switch is on or off.
type Switch bool

// The values that settings may have, the default first.
var (
	modes          = []string{"observe", "pass", "control"}
	captures       = []string{"auto", "columns", "native"}
	upstreamModes  = []string{"mirror", "require", "off"}
	verifications  = []string{"none", "ca", "full"}
	schemes        = []string{"postgres", "postgresql", "mysql", "mariadb", "tidb"} // of listeners and of their upstreams
	serverProtocol = map[string]string{"postgres": "postgres", "postgresql": "postgres", "mysql": "mysql", "mariadb": "mysql", "tidb": "mysql"}
)

// Units are what can be asked to be serializable, the default first: auto stands for requests where tags or pauses tell them apart.
var Units = []string{"auto", "transaction", "request"}

// LogLevels are the lowest levels that can be logged.
var LogLevels = []string{"debug", "info", "warn", "error", "off"}

// DefaultMinCoverage is the share of the statements that must be seen exactly where nothing else is asked for: of an application of which less than half is
// seen, "nothing found" would say little.
const DefaultMinCoverage = 0.5

// Default is what holds where nothing is said. It has no listeners: they have no default address.
func Default() Config {
	return Config{
		Recording: Recording{Rows: 10},
		LogLevel:  "info", MinCoverage: DefaultMinCoverage,
		Values: true, Predicates: true,
		Unit: Units[0], RequestTags: []string{},
		Publish: Publish{Fleet: "default", Buffer: 64 << 20},
		Control: Control{Schedule: "random", Sessions: 2, Think: time.Second},
		Limits: Limits{
			Sessions: 10_000, Logins: 100, Statement: 1 << 20, Row: 1 << 20, Prepared: 10_000,
			Accesses: 10_000, Transactions: 100_000, Window: 2000,
		},
		Timeouts: Timeouts{Connect: 10 * time.Second, Handshake: time.Minute, Shutdown: 10 * time.Second},
	}
}

// DefaultListener is what holds of a listener where nothing is said.
func DefaultListener() Listener {
	return Listener{
		Mode: modes[0], Sample: 1, Capture: captures[0], Warn: true,
		TLS: TLS{Upstream: UpstreamTLS{Mode: upstreamModes[0], Verify: verifications[0]}},
	}
}

// UnmarshalYAML fills in the defaults of a listener.
func (l *Listener) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Listener // without this method
	p := plain(DefaultListener())
	if err := unmarshal(&p); err != nil {
		return err
	}
	*l = Listener(p)
	return nil
}

// Load makes the configuration: the defaults, over them the file (none if path is empty), over that the environment's
// URLs, and over all of them the flags, which set changes. The result is valid.
func Load(path string, getenv func(string) string, set func(*Config) error) (Config, error) {
	c, file := Default(), &source{path: path}
	own := map[problem]bool{} // what is wrong with the file by itself
	if path != "" {
		if err := c.read(file); err != nil {
			return Config{}, err
		}
		for _, one := range c.validate().list {
			own[one] = true
		}
	}
	if err := c.SetURLs(fields(getenv("WIRECHECK_LISTEN")), fields(getenv("WIRECHECK_UPSTREAM"))); err != nil {
		return Config{}, fmt.Errorf("WIRECHECK_LISTEN and WIRECHECK_UPSTREAM: %w", err)
	}
	if set != nil {
		if err := set(&c); err != nil {
			return Config{}, err
		}
	}
	if err := c.validate().err(func(one problem) string {
		if own[one] {
			return file.where(one)
		}
		return ""
	}); err != nil {
		return Config{}, fmt.Errorf("configuration:\n%w", err)
	}
	return c, nil
}

func (c *Config) read(file *source) error {
	f, err := os.Open(file.path)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	defer f.Close()
	if err := file.read(f, c); err != nil {
		return fmt.Errorf("configuration:\n%w", err)
	}
	return nil
}

// SetURLs puts listeners in place of those that c has: one for each URL of listen, in front of the upstream of the same
// protocol. With upstreams alone, they take the places of those of c's listeners of the same protocol. It is what
// --listen and --upstream do.
func (c *Config) SetURLs(listen, upstream []string) error {
	for _, u := range slices.Concat(listen, upstream) {
		if !strings.Contains(u, "://") && !strings.Contains(u, "@") { // one with a name or a password is not repeated
			return fmt.Errorf("%q has no protocol in front: write postgres://%s or mysql://%s", u, u, u)
		}
	}
	if len(listen) == 0 {
		for _, u := range upstream {
			found := false
			for i := range c.Listeners {
				if protocol(c.Listeners[i].Listen) == protocol(u) {
					c.Listeners[i].Upstream, found = u, true
				}
			}
			if !found {
				return fmt.Errorf("no listener speaks the protocol of upstream %s", Redact(u))
			}
		}
		return nil
	}
	var listeners []Listener
	used := make([]bool, len(upstream))
	for _, url := range listen {
		l := DefaultListener()
		l.Listen = url
		i := slices.IndexFunc(upstream, func(u string) bool { return protocol(u) == protocol(url) })
		if i >= 0 {
			l.Upstream, used[i] = upstream[i], true
		}
		listeners = append(listeners, l)
	}
	if i := slices.Index(used, false); i >= 0 {
		return fmt.Errorf("no listener for upstream %s: each listener takes the first upstream of its protocol", Redact(upstream[i]))
	}
	c.Listeners = listeners
	return nil
}

// UnmarshalYAML reads a size.
func (s *Size) UnmarshalYAML(unmarshal func(any) error) error {
	var text string
	if err := unmarshal(&text); err != nil {
		return err
	}
	return s.Set(text)
}

// String gives the number of bytes.
func (s Size) String() string { return strconv.Itoa(int(s)) }

// Type is what the help says of the flag.
func (s Size) Type() string { return "size" }

// Set makes Size a flag.
func (s *Size) Set(text string) error {
	digits, factor := text, 1
	for unit, n := range map[string]int{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if d, ok := strings.CutSuffix(text, unit); ok {
			digits, factor = strings.TrimSpace(d), n
		}
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || n > math.MaxInt/factor {
		return fmt.Errorf("%q is no size: write 65536, 64KiB, 1MiB or 1GiB", text)
	}
	*s = Size(n * factor)
	return nil
}

// UnmarshalYAML reads on or off.
func (s *Switch) UnmarshalYAML(unmarshal func(any) error) error {
	var text string
	if err := unmarshal(&text); err != nil {
		return err
	}
	return s.Set(text)
}

// Set makes Switch a flag.
func (s *Switch) Set(text string) error {
	switch text {
	case "on", "true":
		*s = true
	case "off", "false":
		*s = false
	default:
		return fmt.Errorf("%q is neither on nor off", text)
	}
	return nil
}

// String gives on or off.
func (s Switch) String() string {
	if s {
		return "on"
	}
	return "off"
}

// Type is what the help says of the flag.
func (s Switch) Type() string { return "on|off" }

func fields(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}
