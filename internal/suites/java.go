package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// outcomesOf is a program that runs classes of tests for JUnit 4 and prints the outcome of each test.
//
//go:embed Outcomes.java
var outcomesOf []byte

// javaSuite is the JUnit tests of a driver: Debian's package of it, and its source, of which the classes run that match tests.
func javaSuite(name, engine, source, tests string, libraries []string, prepare []string, with func(at place) (flags []string)) suite {
	const jars = "driver/usr/share/java/*"
	return suite{
		name: name, engine: engine,
		get: func(ctx context.Context, folder string) error {
			if _, err := fetch(ctx, folder, "javac", "-version"); err != nil {
				return err
			}
			if err := packages(ctx, folder, "driver", "bookworm", libraries...); err != nil {
				return err
			}
			if err := debian("bookworm", source, "sys")(ctx, folder); err != nil {
				return err
			}
			return once(folder, "classes", func(to string) error {
				if err := os.WriteFile(filepath.Join(to, "Outcomes.java"), outcomesOf, 0o644); err != nil {
					return err
				}
				// What needs OSGi is left out.
				_, err := fetch(ctx, folder, "sh", "-c", `javac -nowarn -proc:none -cp "$1" -d "$0" "$0/Outcomes.java" $(find source/src/test/java -name '*.java' ! -ipath '*osgi*')`, to, jars)
				return err
			})
		},
		run: func(ctx context.Context, folder string, at place, only []string) (outcomes, error) {
			if err := at.prepare(ctx, prepare...); err != nil {
				return nil, err
			}
			classes, err := filepath.Glob(filepath.Join(folder, "classes", tests))
			if err != nil {
				return nil, err
			}
			args := append(with(at), "-cp", filepath.Join(folder, "classes")+":"+filepath.Join(folder, "source/src/test/resources")+":"+filepath.Join(folder, jars), "Outcomes")
			for _, c := range classes {
				c, _ = filepath.Rel(filepath.Join(folder, "classes"), c)
				c = strings.ReplaceAll(strings.TrimSuffix(c, ".class"), "/", ".")
				if !strings.Contains(c, "$") && (only == nil || strings.Contains(strings.Join(only, "\n")+"\n", "("+c+")\n")) {
					args = append(args, c)
				}
			}
			out, err := at.command(ctx, filepath.Join(folder, "source"), nil, "java", args...)
			if err != nil {
				return nil, err
			}
			all := outcomes{}
			for line := range bytes.Lines(out) {
				if outcome, test, ok := strings.Cut(strings.TrimSpace(string(line)), " \x01 "); ok {
					all[test] = outcome
				}
			}
			if len(all) == 0 {
				return nil, fmt.Errorf("no test ran: %s", tail(out))
			}
			return all, nil
		},
	}
}
