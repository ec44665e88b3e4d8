package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/product"
)

func TestEnginesList(t *testing.T) {
	out, said, status := command(t, "engines", "list", "--format", "json")
	var list []engineInfo
	if err := json.Unmarshal([]byte(out), &list); err != nil || status != exitClean {
		t.Fatalf("%v, exit status %d, said %q", err, status, said)
	}
	for _, name := range []string{"postgres", "mariadb"} {
		i := slices.IndexFunc(list, func(e engineInfo) bool { return e.Name == name })
		if i < 0 || len(list[i].Programs) == 0 || list[i].Programs[0].Version == "" || !slices.Contains(list[i].Levels, "repeatable read") {
			t.Errorf("%s: %+v", name, list)
		}
	}
	if len(list) != len(backends.All()) {
		t.Errorf("%d products, want %d", len(list), len(backends.All()))
	}
	out, _, status = command(t, "engines", "list")
	if status != exitClean || !strings.Contains(out, "PostgreSQL\n  levels   read uncommitted, read committed, repeatable read, serializable (default: read committed)\n  start    postgres") {
		t.Errorf("exit status %d, printed:\n%s", status, out)
	}
}

// TestEnginesMissing: what is not installed is said plainly, with what installs it.
func TestEnginesMissing(t *testing.T) {
	var b bytes.Buffer
	printEngines(&b, listEngines([]engine.Descriptor{{
		Product: &product.Product{Name: "none", Title: "None", Default: "SERIALIZABLE", Levels: []product.Level{{SQL: "SERIALIZABLE"}}},
		Install: "get it", Find: func() []engine.Found { return nil },
	}}))
	if want := "None\n  levels   serializable (default: serializable)\n  start    not on this machine; install it with: get it\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
	for _, args := range [][]string{{"engines", "start", "nosuch"}, {"engines", "start", "postgres:1"}, {"engines", "start"}} {
		if out, said, status := command(t, args...); status != exitFailed || out != "" || said == "" {
			t.Errorf("%v: exit status %d, printed %q, said %q", args, status, out, said)
		}
	}
}

// TestEnginesStart: the server serves until SIGTERM, and nothing is left of it.
func TestEnginesStart(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			p := startProgram(t, "engines", "start", name, "--format", "json")
			p.until(t, "the server is there", func() bool { return strings.HasSuffix(p.stdout.String(), "\n") })
			var s startedServer
			if err := json.Unmarshal(p.stdout.Bytes(), &s); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(s.Folder); err != nil {
				t.Error(err)
			}
			connect := exec.Command("sh", "-c", s.Connect)
			connect.Stdin = strings.NewReader("SELECT 40 + 2;\n")
			if out, err := connect.CombinedOutput(); err != nil || !strings.Contains(string(out), "42") {
				t.Errorf("%s: %v\n%s", s.Connect, err, out)
			}
			if status := p.end(t); status != int(exitClean) {
				t.Errorf("exit status %d; it said: %s", status, p.stderr.String())
			}
			if _, err := os.Stat(s.Folder); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the folder is still there: %v", err)
			}
		})
	}
}
