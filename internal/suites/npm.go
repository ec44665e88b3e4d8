package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// npmPackage fetches a package of npm that has its tests, most of the time an old version: newer ones leave them out. What else the tests need is named
// too, since what the package names itself does not all run any more.
func npmPackage(archive string, install ...string) func(context.Context, string) error {
	return modules(func(ctx context.Context, folder string) error {
		return once(folder, "source", func(to string) error {
			if _, err := fetch(ctx, folder, "npm", "pack", "--silent", archive); err != nil {
				return err
			}
			return unpack(ctx, folder, "*.tgz", "tar", "--strip-components=1", "-C", to, "-xf")
		})
	}, install...)
}

// modules fetches what a source in JavaScript needs, and these packages.
func modules(get func(context.Context, string) error, install ...string) func(context.Context, string) error {
	return func(ctx context.Context, folder string) error {
		if err := get(ctx, folder); err != nil {
			return err
		}
		source := filepath.Join(folder, "source")
		if _, err := os.Stat(filepath.Join(source, "node_modules")); err == nil {
			return nil
		}
		if err := os.RemoveAll(filepath.Join(source, "package-lock.json")); err != nil {
			return err
		}
		if _, err := fetch(ctx, source, "npm", "pkg", "delete", "devDependencies"); err != nil {
			return err
		}
		_, err := fetch(ctx, source, "npm", append([]string{"install", "--silent", "--ignore-scripts", "--no-save"}, install...)...)
		return err
	}
}

// npmSuite is the tests of an npm package. mocha runs them, or node alone where a test is a program.
func npmSuite(name, engine string, get func(context.Context, string) error, tests, mocha string, prepare []string, with func(at place) (env []string)) suite {
	return suite{
		name: name, engine: engine, get: get,
		run: func(ctx context.Context, folder string, at place, only []string) (outcomes, error) {
			if err := at.prepare(ctx, prepare...); err != nil {
				return nil, err
			}
			dir := filepath.Join(folder, "source")
			files, err := filepath.Glob(filepath.Join(dir, tests))
			if err != nil || len(files) == 0 {
				return nil, fmt.Errorf("no tests in %s", dir)
			}
			script := `if timeout 60 node "$0"; then echo "ok 1"; else echo "not ok 1"; fi`
			if mocha != "" {
				script = `timeout 120 node node_modules/mocha/bin/_mocha --no-opts --opts /dev/null --reporter tap ` + mocha + ` "$0"`
			}
			all, output := outcomes{}, bytes.Buffer{}
			for _, f := range files {
				test := filepath.Base(f)
				if only != nil && !strings.Contains(strings.Join(only, "\n"), test+" ") {
					continue
				}
				out, err := at.command(ctx, dir, append(with(at), "NODE_PATH=node_modules"), "sh", "-c", script, f)
				if err != nil {
					return nil, err
				}
				fmt.Fprintf(&output, "== %s\n%s", test, out)
				tapOutcomes(all, test, out)
			}
			return all, os.WriteFile(filepath.Join(folder, "output-"+at.mode+".txt"), output.Bytes(), 0o644)
		},
	}
}
