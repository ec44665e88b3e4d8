package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// goSuite is the tests of a Go module, without those whose names match skip.
func goSuite(name, engine, module, skip string, prepare []string, env func(at place) []string, packages ...string) suite {
	return suite{
		name: name, engine: engine,
		get: func(ctx context.Context, folder string) error {
			if _, err := os.Stat(filepath.Join(folder, "source", "go.mod")); err == nil {
				return nil
			}
			out, err := fetch(ctx, folder, "go", "mod", "download", "-json", module)
			var got struct{ Dir string }
			if e := json.Unmarshal([]byte(out), &got); err == nil {
				err = e
			}
			if err != nil {
				return err
			}
			// The module cache cannot be written to, which some tests do.
			if err := os.CopyFS(filepath.Join(folder, "source"), os.DirFS(got.Dir)); err != nil {
				return err
			}
			_, err = fetch(ctx, filepath.Join(folder, "source"), "go", "mod", "download")
			return err
		},
		run: func(ctx context.Context, folder string, at place, only []string) (outcomes, error) {
			if err := at.prepare(ctx, prepare...); err != nil {
				return nil, err
			}
			args := append([]string{"test", "-json", "-count=1", "-p=1", "-mod=mod", "-skip=" + skip}, packages...)
			if only != nil {
				args = append(args, "-run", goPattern(only))
			}
			out, err := at.command(ctx, filepath.Join(folder, "source"), env(at), "go", args...)
			if err != nil {
				return nil, err
			}
			return goOutcomes(out)
		},
	}
}

// goPattern matches the top tests of which some are.
func goPattern(tests []string) string {
	var names []string
	for _, t := range tests {
		_, name, _ := strings.Cut(t, " ")
		top, _, _ := strings.Cut(name, "/")
		names = append(names, regexp.QuoteMeta(top))
	}
	return "^(" + strings.Join(names, "|") + ")$"
}

// goOutcomes reads what go test -json prints.
func goOutcomes(out []byte) (outcomes, error) {
	words := map[string]string{"pass": passed, "fail": failed, "skip": skipped}
	r := outcomes{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e struct{ Action, Package, Test string }
		if json.Unmarshal(lines.Bytes(), &e) == nil && words[e.Action] != "" && e.Test != "" {
			r[e.Package+" "+e.Test] = words[e.Action]
		}
	}
	if len(r) == 0 {
		return nil, fmt.Errorf("no test ran: %.300s", out)
	}
	return r, lines.Err()
}
