package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestIsolationTesterFormat runs the specs in testdata/isolationtester and compares what is printed with what PostgreSQL 15's
// isolationtester printed of them, byte for byte. To make the outputs anew:
//
//	go test ./cmd/wirecheck -run TestIsolationSpecs -specs $PWD/testdata/isolationtester -specs-out $PWD/testdata/isolationtester
func TestIsolationTesterFormat(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../testdata/isolationtester/*.spec")
	if err != nil || len(files) == 0 {
		t.Fatalf("no specs: %v", err)
	}
	server := specServer(t)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want, err := os.ReadFile(strings.TrimSuffix(file, ".spec") + ".out")
			if errors.Is(err, os.ErrNotExist) {
				t.Fatalf("%s has no output to compare with", file)
			}
			if err != nil {
				t.Fatal(err)
			}
			got, _ := byWirecheck(t, server, file)
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
				t.Errorf("-want +got\n%s\n%s", diff, got)
			}
		})
	}
}
