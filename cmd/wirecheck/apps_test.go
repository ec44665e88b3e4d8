package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wirecheck/internal/testserver"
)

// appsVariable names the example applications that TestApps runs besides the one in Go: "node python". What one needs must be there then:
// Node's libraries in bin/apps (make test-apps), Debian's packages for Python (.ci/install test).
const appsVariable = "WIRECHECK_TEST_APPS"

// app is an example application with a race, in testdata/apps.
type app struct {
	name, engine, scheme string
	env                  []string // explore's and ci's --env
	reset                []string
	finding              string
	file, line           string // where the statement is that writes, and the line's text
	command              func(t *testing.T, root string) []string
}

func apps() []app {
	return []app{
		{
			name: "go", engine: "mariadb", scheme: "mysql", env: []string{"--env", "DSN={user}:{password}@tcp({host}:{port})/{database}"},
			reset: []string{"--reset", "true"}, finding: "LOST UPDATE", file: "coupon.go", line: "UPDATE coupon SET uses_left = ? WHERE",
			command: func(t *testing.T, root string) []string {
				program := filepath.Join(t.TempDir(), "coupon.test")
				if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", program, "wirecheck/testdata/apps/go").CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				return []string{program}
			},
		},
		{
			name: "node", engine: "postgres", scheme: "postgres", finding: "LOST UPDATE", file: "booking.js", line: "train.save",
			command: func(t *testing.T, root string) []string {
				t.Setenv("NODE_PATH", filepath.Join(root, "bin/apps/node_modules"))
				return []string{"node", filepath.Join(root, "testdata/apps/node/booking.test.js")}
			},
		},
		{
			name: "python", engine: "postgres", scheme: "postgresql", finding: "WRITE SKEW", file: "account.py", line: "session.flush()",
			command: func(_ *testing.T, root string) []string {
				return []string{"/usr/bin/python3", "-B", filepath.Join(root, "testdata/apps/python/test_account.py")} // Debian's packages belong to Debian's python3
			},
		},
	}
}

// TestApps: ci and explore name the race of each application with its code line, and the fixed version is green.
func TestApps(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range apps() {
		if a.name != "go" && !slices.Contains(strings.Fields(os.Getenv(appsVariable)), a.name) {
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			server := testserver.Postgres(t)
			if a.engine == "mariadb" {
				server = testserver.MariaDB(t)
			}
			url := server.Database(t).As(server.User).URL()
			_, rest, _ := strings.Cut(url, "://")
			url, _, _ = strings.Cut(a.scheme+"://"+rest, "?")
			test := append([]string{"--"}, a.command(t, root)...)
			flags := append([]string{"--upstream", url}, a.env...)
			place := fmt.Sprintf("code.lineno=%d", lineOf(t, filepath.Join(root, "testdata/apps", a.name, a.file), a.line))
			check := func(status, want exitStatus, out string) {
				t.Helper()
				found := strings.Contains(out, a.finding) && strings.Contains(out, a.file) && strings.Contains(out, place)
				if status != want || found != (want != exitClean) {
					t.Errorf("exit status %d, want %d; %s at %s %s: %v\n%s", status, want, a.finding, a.file, place, found, out)
				}
			}
			explore := slices.Concat([]string{"explore", "--seed", "94", "--shrink-runs", "0", "--save-schedule", filepath.Join(t.TempDir(), "s")}, flags, a.reset)
			out, said, status := command(t, slices.Concat(explore, test)...)
			check(status, exitFound, out+said)
			t.Setenv("APP_ROUNDS", "50")
			out, said, status = command(t, slices.Concat([]string{"ci"}, flags, test)...)
			check(status, exitFound, out+said)
			t.Setenv("APP_FIXED", "yes")
			out, said, status = command(t, slices.Concat([]string{"ci"}, flags, test)...)
			check(status, exitClean, out+said)
			t.Setenv("APP_ROUNDS", "")
			out, said, status = command(t, slices.Concat(explore, []string{"--runs", "2"}, test)...)
			check(status, exitClean, out+said)
		})
	}
}

// lineOf is the number of the first line with a text.
func lineOf(t *testing.T, file, text string) int {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, _, ok := bytes.Cut(source, []byte(text))
	if !ok {
		t.Fatalf("%s has no line with %q", file, text)
	}
	return bytes.Count(before, []byte("\n")) + 1
}
