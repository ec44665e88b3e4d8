package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// goSuite is the tests of a Go module, without those whose names match skip. with gives the environment, and the tests' own flags.
func goSuite(name, engine, module, skip string, prepare []string, with func(at place) (env, flags []string), packages ...string) suite {
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
			source := filepath.Join(folder, "source")
			if err := os.RemoveAll(filepath.Join(source, "go.work")); err != nil { // the archive of a module does not have its neighbours
				return err
			}
			if err := without(ctx, source); err != nil {
				return err
			}
			_, err = fetch(ctx, source, "go", "mod", "download")
			return err
		},
		run: func(ctx context.Context, folder string, at place, only []string) (outcomes, error) {
			if err := at.prepare(ctx, prepare...); err != nil {
				return nil, err
			}
			env, flags := with(at)
			args := append(append([]string{"test", "-json", "-count=1", "-p=1", "-mod=mod", "-timeout=20m", "-skip=" + skip}, packages...), flags...)
			if only != nil {
				args = append(args, "-run", goPattern(only))
			}
			out, err := at.command(ctx, filepath.Join(folder, "source"), env, "go", args...)
			if err != nil {
				return nil, err
			}
			return goOutcomes(out)
		},
	}
}

// unavailable are modules that the mirrors refuse, and that a suite imports for the sake of another DBMS alone.
var unavailable = []string{"gitee.com/travelliu/dm"}

// without gives the module in a folder empty packages in place of those that are unavailable.
func without(ctx context.Context, source string) error {
	text, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return err
	}
	for _, module := range unavailable {
		if !bytes.Contains(text, []byte(module+" ")) {
			continue
		}
		name := path.Base(module)
		dir := filepath.Join(source, "unavailable", name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for file, content := range map[string]string{"go.mod": "module " + module + "\n", name + ".go": "package " + name + "\n"} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
				return err
			}
		}
		if _, err := fetch(ctx, source, "go", "mod", "edit", "-replace="+module+"=./unavailable/"+name); err != nil {
			return err
		}
	}
	return nil
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
