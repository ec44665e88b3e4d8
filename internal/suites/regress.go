package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// regression is PostgreSQL's regression tests as psql plays them, and its isolation tests as its isolationtester does.
func regression() []suite {
	create := []string{"CREATE DATABASE regression TEMPLATE template0"}
	for _, set := range []string{"lc_messages", "lc_monetary", "lc_numeric", "lc_time"} {
		create = append(create, "ALTER DATABASE regression SET "+set+" TO 'C'")
	}
	create = append(create, "ALTER DATABASE regression SET timezone_abbreviations TO 'Default'", "ALTER DATABASE regression SET bytea_output TO 'hex'")
	return []suite{
		played("PostgreSQL 15 regression, psql's output", "regress", "parallel_schedule", "sql/%s.sql", create,
			"psql", "-X", "-a", "-q", "-d", "regression", "-v", "HIDE_TABLEAM=on", "-v", "HIDE_TOAST_COMPRESSION=on"),
		// The program is in the package postgresql-server-dev-15.
		played("PostgreSQL 15 isolation, isolationtester's output", "isolation", "isolation_schedule", "specs/%s.spec", []string{"CREATE DATABASE isolation_regression TEMPLATE template0"},
			"/usr/lib/postgresql/15/lib/pgxs/src/test/isolation/isolationtester", "dbname=isolation_regression"),
	}
}

// played is tests of PostgreSQL's source that a program plays, one file after the other. A test passes if the program's output is that of the
// direct run, byte by byte: what should be there is not the question, since parts of the tests need a library that is not built here.
func played(name, folder, schedule, file string, create []string, program ...string) suite {
	const direct = "direct"
	return suite{
		name: name, engine: "postgres", get: debian("bookworm", "postgresql-15", "sys"),
		run: func(ctx context.Context, source string, at place, _ []string) (outcomes, error) {
			if _, err := exec.LookPath(program[0]); err != nil {
				return nil, err
			}
			tests := filepath.Join(source, "source", "src", "test", folder)
			list, err := os.ReadFile(filepath.Join(tests, schedule))
			if err != nil {
				return nil, err
			}
			out := filepath.Join(source, "output")
			for _, dir := range []string{filepath.Join(out, at.mode), filepath.Join(tests, "testtablespace"), filepath.Join(tests, "results")} {
				if err := os.RemoveAll(dir); err != nil { // what another server left there
					return nil, err
				}
				if err := os.MkdirAll(dir, 0o777); err != nil {
					return nil, err
				}
				if err := os.Chmod(dir, 0o777); err != nil { // the server writes there
					return nil, err
				}
			}
			if err := at.prepare(ctx, create...); err != nil {
				return nil, err
			}
			r := outcomes{}
			for line := range strings.Lines(string(list)) {
				names, ok := strings.CutPrefix(line, "test:")
				if !ok {
					continue
				}
				for _, name := range strings.Fields(names) {
					if err := at.play(ctx, tests, fmt.Sprintf(file, name), filepath.Join(out, at.mode, name+".out"), program); err != nil {
						return nil, err
					}
					want, err := os.ReadFile(filepath.Join(out, direct, name+".out"))
					if err != nil {
						return nil, err
					}
					got, err := os.ReadFile(filepath.Join(out, at.mode, name+".out"))
					if err != nil {
						return nil, err
					}
					if r[name] = passed; !bytes.Equal(want, got) {
						r[name] = failed
					}
				}
			}
			return r, nil
		},
	}
}

// play has a program play a file of PostgreSQL's tests, as pg_regress does.
func (p place) play(ctx context.Context, tests, file, output string, program []string) error {
	in, err := os.Open(filepath.Join(tests, file))
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(output)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.CommandContext(ctx, program[0], program[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = tests, in, out, out
	cmd.Env = append(os.Environ(), "PGHOST="+p.host, fmt.Sprintf("PGPORT=%d", p.port), "PGUSER="+p.user, "PGPASSWORD="+p.password,
		"PGTZ=PST8PDT", "PGDATESTYLE=Postgres, MDY", "PGAPPNAME=pg_regress/"+strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), "LC_MESSAGES=C",
		"PG_ABS_SRCDIR="+tests, "PG_ABS_BUILDDIR="+tests, "PG_LIBDIR=/usr/lib/postgresql/15/lib", "PG_DLSUFFIX=.so")
	if err := cmd.Run(); ctx.Err() != nil {
		return fmt.Errorf("%s did not end %s in time: %w", filepath.Base(program[0]), file, err)
	}
	return nil // psql fails where a test ends the session
}
