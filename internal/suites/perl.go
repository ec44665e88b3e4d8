package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// perlSuite is the tests of a Perl driver: Debian's package of it, and its source from a release that has the archive.
func perlSuite(name, engine, release, source, binary string, prepare []string, with func(at place) (env []string)) suite {
	return suite{
		name: name, engine: engine,
		get: func(ctx context.Context, folder string) error {
			if _, err := fetch(ctx, folder, "perl", "-MDBI", "-e", "1"); err != nil {
				return err
			}
			if err := debian(release, source, "sys")(ctx, folder); err != nil {
				return err
			}
			return packages(ctx, folder, "driver", "bookworm", binary)
		},
		run: func(ctx context.Context, folder string, at place, only []string) (outcomes, error) {
			if err := at.prepare(ctx, prepare...); err != nil {
				return nil, err
			}
			lib, _ := filepath.Glob(filepath.Join(folder, "driver", "usr/lib/*/perl5/*"))
			env := append(with(at), "PERL5LIB="+strings.Join(lib, ":"), "DBI_USER="+at.user, "DBI_PASS="+at.password)
			dir := filepath.Join(folder, "source")
			files, err := filepath.Glob(filepath.Join(dir, "t", "*.t"))
			if err != nil || len(files) == 0 {
				return nil, fmt.Errorf("no tests in %s", dir)
			}
			all, output := outcomes{}, bytes.Buffer{}
			for _, f := range files {
				test := filepath.Base(f)
				if only != nil && !strings.Contains(strings.Join(only, "\n"), test+" ") {
					continue
				}
				out, err := at.command(ctx, dir, env, "perl", "-It", filepath.Join("t", test))
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

var tapLine = regexp.MustCompile(`^(not )?ok (\d+)(?: -)?\s*(.*)$`)

// tapOutcomes adds what a file of tests printed: "ok 3 - name" (https://testanything.org).
func tapOutcomes(all outcomes, file string, out []byte) {
	for line := range bytes.Lines(out) {
		m := tapLine.FindSubmatch(bytes.TrimSpace(line))
		if m == nil || bytes.HasPrefix(line, []byte(" ")) { // a part of a test
			continue
		}
		text, directive, _ := strings.Cut(string(m[3]), " # ")
		outcome := passed
		switch directive = strings.ToLower(directive); {
		case strings.HasPrefix(directive, "skip"), strings.HasPrefix(strings.ToLower(text), "# skip"):
			outcome = skipped
		case strings.HasPrefix(directive, "todo"):
		case len(m[1]) > 0:
			outcome = failed
		}
		all[fmt.Sprintf("%s %s", file, m[2])] = outcome
	}
}
