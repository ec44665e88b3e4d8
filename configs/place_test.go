package configs

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPlaces: each line that is wrong is named, with its key and what is allowed, and no other line is. A comment #! says what is wanted of a line;
// that of a missing key stands where its section begins.
func TestPlaces(t *testing.T) {
	for name, text := range map[string]string{
		"values": `
# a comment
log_level: loud  #! log_level: "loud" is not one of debug, info, warn, error, off
unit: session  #! unit: "session" is not one of auto, transaction, request
min_coverage: 2  #! min_coverage: 2: expected a share from 0 to 1
http: nowhere:http  #! http: "nowhere:http": expected HOST:PORT
listeners:
  - name: first
    listen: http://127.0.0.1:1  #! listeners[0].listen: http://127.0.0.1:1: the scheme is not one of postgres, postgresql, mysql, mariadb
    upstream: postgres://db
    sample: 3  #! listeners[0].sample: it is a share of the sessions: more than 0 and at most 1
    tls:
      client:  #! listeners[0].tls.client: cert and key go together
        cert: a.pem
      upstream:
        mode: perhaps  #! listeners[0].tls.upstream.mode: "perhaps" is not one of mirror, require, off

  - listen: mysql://127.0.0.1:2  #! listeners[1].upstream: it is missing
    capture: magic  #! listeners[1].capture: "magic" is not one of auto, columns, native
limits:
  sessions: 0  #! limits.sessions: it must be more than 0
timeouts:
  connect: -1s  #! timeouts.connect: it must be more than 0
`,
		"forms": `
strict: perhaps  #! strict: "perhaps": it takes true or false
record: [a, b]  #! record: there is a list, and it takes a text
report: {a: b}  #! report: there are keys, and it takes a text
values: maybe  #! values: "maybe" is neither on nor off
request_tags: one  #! request_tags: "one": it takes a list
min_coverage: much  #! min_coverage: "much": it takes a number
control: random  #! control: "random": it takes the keys schedule, sessions, think, locks, save
limits:
  sessions: 1.5  #! limits.sessions: "1.5": it takes a whole number
  row: 5MB  #! limits.row: "5MB" is no size: write 65536, 64KiB, 1MiB or 1GiB
timeouts:
  connect: soon  #! timeouts.connect: "soon": it takes a duration, as in 500ms, 10s or 1h
  shutdwn: 1s  #! timeouts.shutdwn: there is no such key; there are connect, handshake, shutdown
listeners:
  - listen: postgres://:1
    mode: [observe]  #! listeners[0].mode: there is a list, and it takes a text
    tls: {client: {certificate: x}}  #! listeners[0].tls.client.certificate: there is no such key; there are cert, key, ca
  - postgres://:2  #! listeners[1]: "postgres://:2": it takes the keys name, listen,
"a\tb\e[31m": 1  #! there is no such key
`,
		"with an anchor": `
listeners:
  - &first
    listen: postgres://:1
    upstream: postgres://db
    mode: watch  #! listeners[0].mode: "watch" is not one of observe, pass, control
`,
		"in a line":         `listeners: [{listen: "postgres://:1", upstream: "postgres://db", mode: watch}]  #! listeners[0].mode: "watch"`,
		"no listeners":      "record: x.jsonl  #! listeners: there are none: say --listen and --upstream",
		"a list":            "- listen: x  #! the file: there is a list, and it takes the keys listeners, record,",
		"a word":            "proxy  #! the file: \"proxy\": it takes the keys listeners, record,",
		"a bracket":         "record: x\nlisteners: [  #! ']' not found",
		"a tab":             "limits:\n\tsessions: 1  #! ",
		"two documents":     "record: x\n---\nrecord: y  #! there is more than one document in it",
		"a password":        "listeners:\n  - postgres://app:secret@db  #! listeners[0]: ",
		"an unknown anchor": "record: *nowhere  #! ",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "c.yaml")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Load(path, noenv, nil)
			if err == nil {
				t.Fatal("it was accepted")
			}
			said := err.Error()
			if strings.Contains(said, "secret") || strings.Contains(said, "\x1b") {
				t.Errorf("it shows what it must not: %q", said)
			}
			want, got := map[int]string{}, map[int]string{}
			for n, line := range strings.Split(text, "\n") {
				if _, wanted, ok := strings.Cut(line, "  #! "); ok {
					want[n+1] = wanted
				}
			}
			for _, m := range regexp.MustCompile(`(?m)^  (.+?):(\d+): (.*)$`).FindAllStringSubmatch(said, -1) {
				if n, _ := strconv.Atoi(m[2]); m[1] == path {
					got[n] += m[3]
				}
			}
			if d := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); d != "" {
				t.Fatalf("lines (-want +got):\n%s%s", d, said)
			}
			for n, w := range want {
				if !strings.Contains(got[n], w) {
					t.Errorf("line %d: got %s, want %s", n, got[n], w)
				}
			}
		})
	}
}

// TestPlaceOfAFlag: what a flag says instead of the file has no line there.
func TestPlaceOfAFlag(t *testing.T) {
	path := file(t, "unit: transaction\nlisteners: [{listen: 'postgres://:1', upstream: 'postgres://db'}]\nlog_level: loud\n")
	_, err := Load(path, noenv, func(c *Config) error { c.Unit = "session"; return nil })
	if want := fmt.Sprintf("  unit: \"session\" is not one of auto, transaction, request\n  %s:3: log_level: ", path); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestPlacesOfKnown: the file of --baseline has the same.
func TestPlacesOfKnown(t *testing.T) {
	for text, want := range map[string]string{
		"ignore:\n  - id: WC-1\n    reason: x\n":                         ":2: ignore[0].id: id \"WC-1\": it should look like WC-a75b12",
		"ignore:\n  - id: WC-a75b12\n    reason: x\n    until: tomorrow": ":4: ignore[0].until: until \"tomorrow\": it should look like 2027-01-31",
		"ignore:\n  - id: WC-a75b12\n  - {class: G2}\n":                  ":2: ignore[0].reason: it has no reason\n  %s:3: ignore[1].reason: it has no reason",
		"ignore:\n  - reson: x\n":                                        ":2: ignore[0].reson: there is no such key; there are id, class, table, statements, reason, until",
		"ignored: []\n":                                                  ":1: ignored: there is no such key; there are ignore",
	} {
		path := file(t, text)
		if _, err := LoadKnown(path, false); err == nil || !strings.Contains(err.Error(), path+strings.ReplaceAll(want, "%s", path)) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}
