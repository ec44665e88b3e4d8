package configs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func noenv(string) string { return "" }

// TestDefaultFile: the commented file says what holds without it.
func TestDefaultFile(t *testing.T) {
	got, err := Load("wirecheck.yaml", noenv, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	p, m := DefaultListener(), DefaultListener()
	p.Listen, p.Upstream = "postgres://127.0.0.1:6432", "postgres://127.0.0.1:5432"
	m.Listen, m.Upstream = "mysql://127.0.0.1:6033", "mysql://127.0.0.1:3306"
	want.Listeners = []Listener{p, m}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("wirecheck.yaml against the defaults (-want +got):\n%s", diff)
	}
}

// TestExamplesAreValid: whatever lies here as an example can be used.
func TestExamplesAreValid(t *testing.T) {
	files, err := filepath.Glob("*/wirecheck*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v, %v", files, err)
	}
	for _, f := range files {
		if _, err := Load(f, noenv, nil); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const oneListener = "listeners: [{listen: 'postgres://:6432', upstream: 'postgres://db'}]\n"

func TestLoadRefuses(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string // all of them, in one go
	}{
		{"nothing", "", []string{"listeners: there are none: say --listen and --upstream"}},
		{"unknown key", oneListener + "recrod: x\n", []string{"yaml:2: recrod: there is no such key; there are listeners, record,"}},
		{"unknown key inside", "listeners:\n  - listen: postgres://:6432\n    upstrem: x\n", []string{"yaml:3: listeners[0].upstrem: there is no such key; there are name, listen, upstream,"}},
		{"key twice", oneListener + "record: a\nrecord: b\n", []string{"yaml:3: ", "\"record\" already defined at [2:1]"}},
		{"no YAML", "listeners: [", []string{"yaml:1: "}},
		{"two documents", oneListener + "---\nrecord: x\n", []string{"more than one document"}},
		{"wrong type", oneListener + "limits:\n  sessions: many\n", []string{"yaml:3: limits.sessions: \"many\": it takes a whole number"}},
		{"no duration", oneListener + "timeouts:\n  connect: soon\n", []string{"yaml:3: timeouts.connect: \"soon\": it takes a duration, as in 500ms, 10s or 1h"}},
		{"no size", oneListener + "limits:\n  row: 5MB\n", []string{`"5MB" is no size`}},
		{"a size that is too large", oneListener + "limits:\n  row: 99999999999GiB\n", []string{"is no size"}},
		{"neither on nor off", "listeners: [{listen: 'postgres://:6432', upstream: 'postgres://db', warn: maybe}]\n", []string{`"maybe" is neither on nor off`}},
		{"many problems at once", `
listeners:
  - {listen: "http://:1", mode: watch, capture: magic}
  - {listen: "mysql://:1", upstream: "postgres://db", mode: control, tls: {client: {cert: x}, upstream: {mode: maybe, verify: hope, key: y}}}
  - {listen: "mysql://:1", upstream: "mariadb://root:secret@db/?tls=true", capture: native}
  - {listen: "postgres://:70000", upstream: "postgres://host/path", capture: columns, mode: control}
  - {listen: "postgres://", upstream: "://secret"}
record: x
report: x
limits: {sessions: 0}
control: {schedule: "", sessions: 0, think: 0s, locks: "mariadb://db"}
timeouts: {shutdown: -1s}
`, []string{
			"listeners[0].listen: http://:1: the scheme is not one of postgres, postgresql, mysql, mariadb",
			"listeners[0].upstream: it is missing",
			`listeners[0].mode: "watch" is not one of observe, pass, control`,
			`listeners[0].capture: "magic" is not one of auto, columns, native`,
			"listeners[1].upstream: postgres://db speaks another protocol than mysql://:1",
			"listeners[3].mode: only one listener can be in mode control",
			"control.schedule: it is empty: say random, pct",
			"control.sessions: it must be more than 0",
			"control.think: it must be more than 0",
			"control.locks: mariadb://db speaks another protocol than postgres://db",
			"listeners[1].tls.client: cert and key go together",
			"listeners[1].tls.upstream: cert and key go together",
			`listeners[1].tls.upstream.mode: "maybe" is not one of mirror, require, off`,
			`listeners[1].tls.upstream.verify: "hope" is not one of none, ca, full`,
			"listeners[2].listen: mysql://:1 is that of listeners[1] too",
			"listeners[2].upstream: mariadb://root:xxxxx@db/?tls=true: leave the user out",
			"listeners[2].upstream: mariadb://root:xxxxx@db/?tls=true: it takes no parameters",
			"listeners[2].capture: MariaDB and MySQL have no native capture",
			"listeners[3].listen: postgres://:70000: there is no port 70000",
			"listeners[4].listen: postgres:: the address is missing",
			"listeners[4].upstream: it is no URL",
			"report: x is the file of record too",
			"limits.sessions: it must be more than 0",
			"timeouts.shutdown: it must be more than 0",
		}},
		{"samples", `
unit: request
listeners:
  - {listen: "postgres://:1", upstream: "postgres://db", sample: 0}
  - {listen: "postgres://:2", upstream: "postgres://db", sample: 1.5}
  - {listen: "postgres://:3", upstream: "postgres://db", sample: .nan}
  - {listen: "postgres://:4", upstream: "postgres://db", sample: 0.5, mode: pass}
  - {listen: "postgres://:5", upstream: "postgres://db", sample: 0.5, mode: control}
  - {listen: "postgres://:6", upstream: "postgres://db", sample: 0.5, capture: columns}
  - {listen: "postgres://:7", upstream: "postgres://db", sample: 0.5, unit_gap: 1s}
`, []string{
			"listeners[0].sample: it is a share", "listeners[1].sample: it is a share", "listeners[2].sample: it is a share",
			"listeners[3].sample: it is for mode observe", "listeners[4].sample: it is for mode observe", "listeners[5].sample: a session that is not observed would see",
			"listeners[6].sample: parts of a request", "unit: request needs all of them",
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := file(t, test.text)
			_, err := Load(path, noenv, nil)
			if err == nil {
				t.Fatal("it was accepted")
			}
			if !strings.Contains(err.Error(), path) {
				t.Errorf("the error does not name the file: %v", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in:\n%v", want, err)
				}
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the error shows a password:\n%v", err)
			}
		})
	}
	if _, err := Load("no/such/file", noenv, nil); err == nil || !strings.Contains(err.Error(), "no/such/file") {
		t.Errorf("missing file: got %v", err)
	}
}

func TestFlagsWinOverEnvironmentWinsOverFile(t *testing.T) {
	path := file(t, "listeners: [{listen: 'postgres://:1', upstream: 'postgres://file', mode: pass}]\nrecord: file.jsonl\ntimeouts: {connect: 3s}\n")
	env := map[string]string{"WIRECHECK_UPSTREAM": "postgres://env"}
	c, err := Load(path, func(k string) string { return env[k] }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if l := c.Listeners[0]; l.Upstream != "postgres://env" || l.Mode != "pass" || c.Timeouts.Connect != 3*time.Second || c.Timeouts.Handshake != time.Minute {
		t.Errorf("environment over file: got %+v, %+v", l, c.Timeouts)
	}
	c, err = Load(path, func(k string) string { return env[k] }, func(c *Config) error {
		c.Record = "flag.jsonl"
		return c.SetURLs([]string{"mysql://:2", "postgres://:3"}, []string{"postgres://flag:1", "mariadb://flag:2"})
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Listeners) != 2 || c.Listeners[0].Upstream != "mariadb://flag:2" || c.Listeners[1].Upstream != "postgres://flag:1" || c.Record != "flag.jsonl" {
		t.Errorf("flags over all: got %+v", c)
	}
}

func TestSetURLsRefuses(t *testing.T) {
	c := Default()
	for _, test := range []struct{ listen, upstream []string }{
		{nil, []string{"postgres://a"}}, // for no listener
		{[]string{"postgres://:1"}, []string{"postgres://a", "mysql://u:secret@b"}},
	} {
		if err := c.SetURLs(test.listen, test.upstream); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v, %v: got %v, want an error without the password", test.listen, test.upstream, err)
		}
	}
}

// TestListenSchemes: a listener's URL may name the product, as its upstream's does, and only one that speaks a protocol of the proxy.
func TestListenSchemes(t *testing.T) {
	for scheme, ok := range map[string]bool{"mariadb": true, "mysql": true, "tidb": true, "postgresql": true, "postgres": true, "sqlite": false} {
		for _, upstream := range []string{"mariadb://b", "tidb://b", "postgres://b"} {
			c := Default()
			if err := c.SetURLs([]string{scheme + "://127.0.0.1:1"}, []string{upstream}); err != nil {
				continue // another protocol
			}
			if err := c.Validate(); (err == nil) != ok {
				t.Errorf("%s in front of %s: %v", scheme, upstream, err)
			}
		}
		c := Default()
		if err := c.SetURLs([]string{scheme + "://127.0.0.1:1"}, nil); err != nil {
			t.Fatal(err)
		}
		if err := c.Validate(); strings.Contains(err.Error(), "the scheme is not one of") == ok {
			t.Errorf("%s: %v", scheme, err)
		}
	}
}

func TestSplitAddress(t *testing.T) {
	tests := []struct {
		url, proto, address string
		socket              bool
	}{
		{"postgres://127.0.0.1:6432", "postgres", "127.0.0.1:6432", false},
		{"postgresql://db", "postgres", "db:5432", false},
		{"mariadb://[::1]:3307/", "mysql", "[::1]:3307", false},
		{"mysql://[::1]", "mysql", "[::1]:3306", false},
		{"mysql://:6033", "mysql", ":6033", false},
		{"postgres:///run/postgresql/.s.PGSQL.5432", "postgres", "/run/postgresql/.s.PGSQL.5432", true},
		{"http://x", "", "x:", false},
	}
	for _, test := range tests {
		proto, address, socket := SplitAddress(test.url)
		if proto != test.proto || address != test.address || socket != test.socket {
			t.Errorf("%s: got %q, %q, %v; want %q, %q, %v", test.url, proto, address, socket, test.proto, test.address, test.socket)
		}
	}
}

// TestControlLocks: who looks at the locks speaks the listener's protocol, whatever the product is called.
func TestControlLocks(t *testing.T) {
	for locks, want := range map[string]bool{"tidb://root@db:4000": true, "mariadb://root@db:3306": true, "postgres://db": false} {
		path := file(t, "listeners: [{listen: 'mysql://:6033', upstream: 'mysql://db', mode: control}]\ncontrol: {locks: '"+locks+"'}\n")
		if _, err := Load(path, noenv, nil); (err == nil) != want {
			t.Errorf("%s: %v, want accepted: %v", locks, err, want)
		}
	}
}

// TestBounds: no file costs the parser more than a moment. Each is refused with its place; what a configuration may be is
// not refused.
func TestBounds(t *testing.T) {
	many := func(s string, n int) string { return strings.Repeat(s, n) }
	for name, test := range map[string]struct{ text, want string }{
		"brackets":              {many("[", 200_000), "yaml:1: the line is longer"},
		"brackets on lines":     {many("[\n", 100_000), "yaml:101: it is nested more than 100 levels deep"},
		"braces":                {"listeners: " + many("{a: ", 101), "levels deep"},
		"closed in a comment":   {many("[[[[ # ]]]]\n", 26), "yaml:26: it is nested"},
		"closed in a text":      {many("['[', \"]]\", \n", 101), "yaml:101: it is nested"},
		"marks":                 {many("- ", 200), "yaml:1: "},
		"keys":                  {many("? ", 200), "yaml:1: "},
		"a large file":          {many("#\n", 200_000), "yaml:1: the file is larger than 256 KiB"},
		"many quotes":           {many(many("\"", 4000)+"\n", 60), "yaml:1: "},
		"brackets in a text":    {"record: '" + many("[", 500) + "'\nlisteners: []\n", "listeners: there are none"},
		"brackets in a comment": {"# " + many("[", 500) + "\nlisteners: []\n", "listeners: there are none"},
	} {
		_, err := Load(file(t, test.text), noenv, nil)
		if err == nil || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 20_000 {
			t.Errorf("%s: got %.300v, want %q", name, err, test.want)
		}
	}
	text := "listeners: [{listen: 'postgres://:1', upstream: 'postgres://a'}]\ncontrol:\n  locks: postgres://u:hush@h/d\n  nonsense: 1\n"
	if _, err := Load(file(t, text), noenv, nil); err == nil || strings.Contains(err.Error(), "hush") || !strings.Contains(err.Error(), "yaml:4: control.nonsense: there is no such key; there are schedule,") {
		t.Errorf("got %v, want an error without the password", err)
	}
}
