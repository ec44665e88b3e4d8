package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wirecheck/backends/engine"
	"wirecheck/backends/postgres"
)

// PostgreSQL's own specs are not part of this repository. With these flags they, or any others, are run by its
// isolationtester and by wirecheck on the same server, and the outputs are compared:
//
//	go test ./cmd/wirecheck -run TestIsolationSpecs -specs .../src/test/isolation/specs -specs-out /tmp/out
var (
	specsDir     = flag.String("specs", "", "folder of isolation specs to compare with isolationtester")
	specsOut     = flag.String("specs-out", "", "folder for the outputs that were compared")
	specsPattern = flag.String("specs-pattern", "*.spec", "which files of the folder")
)

const (
	isolationtester = "/usr/lib/postgresql/*/lib/pgxs/src/test/isolation/isolationtester"
	specLimit       = 1 * time.Minute // for one file, by one of the two
)

// TestIsolationSpecs compares with isolationtester, byte for byte. What that prints on stderr belongs to its result.
func TestIsolationSpecs(t *testing.T) {
	if *specsDir == "" {
		t.Skip("not run: no folder is given with -specs")
	}
	tools, err := filepath.Glob(isolationtester)
	if err != nil || len(tools) == 0 {
		t.Skipf("not run: no isolationtester (%v); apt-get install -y postgresql-server-dev-15", err)
	}
	files, err := filepath.Glob(filepath.Join(*specsDir, *specsPattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no specs in %s: %v", *specsDir, err)
	}
	server := specServer(t)
	var theirs, ours time.Duration
	same, different := 0, 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".spec")
		t.Run(name, func(t *testing.T) {
			want, took := byIsolationTester(t, tools[len(tools)-1], server, name, file)
			theirs += took
			got, took2 := byWirecheck(t, server, file)
			ours += took2
			saveBoth(t, name, want, got)
			t.Logf("isolationtester %.2fs, wirecheck %.2fs", took.Seconds(), took2.Seconds())
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
				different++
				t.Errorf("-isolationtester +wirecheck\n%s", diff)
				return
			}
			same++
		})
	}
	t.Logf("%d files: %d agree, %d do not; isolationtester %.1fs, wirecheck %.1fs", len(files), same, different, theirs.Seconds(), ours.Seconds())
}

// specServer starts a server as wirecheck run does, with what the specs need on top.
func specServer(t *testing.T) *engine.Server {
	t.Helper()
	settings := postgres.LabSettings()
	settings["max_prepared_transactions"] = "10"
	settings["datestyle"], settings["timezone"] = "Postgres, MDY", "PST8PDT" // as pg_regress has them
	s, err := postgres.Start(t.Context(), engine.Options{Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func byIsolationTester(t *testing.T, tool string, s *engine.Server, name, file string) ([]byte, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), specLimit)
	defer cancel()
	target := s.Target()
	target.Database = "postgres"
	conn, err := postgres.Connect(ctx, target)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(engine.Exec(t.Context(), conn, "DROP DATABASE IF EXISTS isolation_regression WITH (FORCE)"), conn.Close()); err != nil {
			t.Error(err)
		}
	}()
	if err := engine.Exec(ctx, conn, "CREATE DATABASE isolation_regression TEMPLATE template0"); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, tool, fmt.Sprintf("dbname=isolation_regression host=%s port=%d user=%s", s.Socket, s.Port, s.User))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &out
	cmd.Env = append(os.Environ(), "PGAPPNAME=isolation/"+name, "LC_ALL=C")
	begun := time.Now()
	if err := cmd.Run(); err != nil {
		t.Logf("isolationtester: %v", err)
	}
	return out.Bytes(), time.Since(begun)
}

func byWirecheck(t *testing.T, s *engine.Server, file string) ([]byte, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), specLimit)
	defer cancel()
	u := url.URL{Scheme: "postgres", User: url.UserPassword(s.User, s.Password), Host: s.Address(), Path: "/postgres"}
	var out, said bytes.Buffer
	begun := time.Now()
	status := run(ctx, []string{"run", file, "--engine", u.String(), "--format", "isolationtester", "--oracle", "none"}, &out, &said)
	if status != exitClean || said.Len() > 0 {
		t.Logf("exit status %d: %s", status, said.Bytes())
	}
	return out.Bytes(), time.Since(begun)
}

// saveBoth keeps isolationtester's output, and wirecheck's if it is another one.
func saveBoth(t *testing.T, name string, want, got []byte) {
	t.Helper()
	if *specsOut == "" {
		return
	}
	outputs := map[string][]byte{".out": want}
	if !bytes.Equal(want, got) {
		outputs[".got"] = got
	}
	for suffix, text := range outputs {
		if err := os.WriteFile(filepath.Join(*specsOut, name+suffix), text, 0o644); err != nil {
			t.Error(err)
		}
	}
}
