package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"wirecheck/internal/testserver"
)

// appsVariable names the example applications that TestApps runs: "go node python". What they need must be there then (.ci/app).
const appsVariable = "WIRECHECK_TEST_APPS"

// app is an example application with a race, in testdata/apps.
type app struct {
	name, engine string
	finding      string
	file, line   string // where the statement is that writes, and the line's text
}

var apps = []app{
	{"go", "mariadb", "LOST UPDATE", "coupon.go", `Update("uses_left", coupon`},
	{"node", "postgres", "LOST UPDATE", "booking.js", "train.save"},
	{"python", "postgres", "WRITE SKEW", "account.py", "session.flush()"},
}

// TestApps types what docs/how-to/race-tests.md says of each application: explore and ci name its race with the code line, and the fixed version is
// green. ci takes the order of statements as it comes, so there the application's test sees to it that the transactions overlap (APP_MEET).
func TestApps(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	wanted := strings.Fields(os.Getenv(appsVariable))
	if len(wanted) == 0 {
		t.Skip("make test-apps runs the example applications: their libraries come from registries")
	}
	for _, a := range apps {
		if !slices.Contains(wanted, a.name) {
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			server := testserver.Postgres(t)
			if a.engine == "mariadb" {
				server = testserver.MariaDB(t)
			}
			_, address, _ := strings.Cut(server.Database(t).As(server.User).URL(), "://")
			address, _, _ = strings.Cut(address, "?")
			documented := appCommand(t, filepath.Join(root, "docs/how-to/race-tests.md"), a.name)
			explore := regexp.MustCompile(`://\S+`).ReplaceAllLiteralString(documented.input, "://"+address)
			ci := strings.NewReplacer(" explore ", " ci ", " --reset true", "").Replace(explore)
			place := fmt.Sprintf("code.lineno=%d", lineOf(t, filepath.Join(root, "testdata/apps", a.name, a.file), a.line))

			r := newDocReader(t, "race-tests.md")
			if err := os.CopyFS(filepath.Join(r.dir, "app"), os.DirFS(filepath.Join(root, "testdata/apps", a.name))); err != nil {
				t.Fatal(err)
			}
			// Debian's packages belong to Debian's python3.
			path := strings.Replace(strings.TrimPrefix(r.env[0], "PATH="), ":", ":/usr/bin:", 1)
			run := func(command string, want exitStatus, env ...string) (stdout string) {
				t.Helper()
				shell := exec.CommandContext(t.Context(), "sh", "-c", command)
				shell.Dir = filepath.Join(r.dir, "app")
				shell.Env = append(os.Environ(), append(env, "PATH="+path, "NODE_PATH="+filepath.Join(root, "bin/apps/node_modules"))...)
				var out, log bytes.Buffer
				shell.Stdout, shell.Stderr = &out, &log
				if err := shell.Run(); shell.ProcessState == nil {
					t.Fatal(err)
				}
				status, said := exitStatus(shell.ProcessState.ExitCode()), out.String()+log.String()
				found := strings.Contains(said, a.finding) && strings.Contains(said, a.file) && strings.Contains(said, place)
				if status != want || found != (want != exitClean) {
					t.Errorf("%s\nexit status %d, want %d; %s at %s %s: %v\n%s", command, status, want, a.finding, a.file, place, found, said)
				}
				return out.String()
			}
			// As documented, but with fewer runs for a smaller schedule, and patience with a busy machine.
			if out := run(strings.Replace(explore, " -- ", " --shrink-runs 3 --limit 10m -- ", 1), exitFound); !documented.matches(out) {
				t.Errorf("%s\nprints\n%s\nand the document has\n%s", explore, out, strings.Join(documented.output, "\n"))
			}
			run(ci, exitFound, "APP_MEET=yes")
			run(ci, exitClean, "APP_MEET=yes", "APP_FIXED=yes")
			run(strings.Replace(explore, " -- ", " --runs 2 --limit 10m -- ", 1), exitClean, "APP_FIXED=yes")
		})
	}
}

// appCommand is what a document types in the folder of an application.
func appCommand(t *testing.T, file, app string) docStep {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := docBlocks(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		if len(b.lines) > 0 && b.lines[0] == "$ cd testdata/apps/"+app {
			if steps, err := b.steps(); err == nil && len(steps) == 2 {
				return steps[1]
			}
		}
	}
	t.Fatalf("%s does not say how testdata/apps/%s is explored", file, app)
	return docStep{}
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
