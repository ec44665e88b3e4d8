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

// regression is PostgreSQL's regression tests as psql plays them, one file after the other. A test passes if psql's output is that of the
// direct run, byte by byte: what should be there is not the question, since parts of the tests need a library that is not built here.
func regression() suite {
	const direct = "direct"
	return suite{
		name: "PostgreSQL 15 regression, psql's output", engine: "postgres", get: debian("bookworm", "postgresql-15", "sys"),
		run: func(ctx context.Context, folder string, at place, _ []string) (outcomes, error) {
			tests := filepath.Join(folder, "source", "src", "test", "regress")
			schedule, err := os.ReadFile(filepath.Join(tests, "parallel_schedule"))
			if err != nil {
				return nil, err
			}
			out := filepath.Join(folder, "output")
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
			create := []string{"CREATE DATABASE regression TEMPLATE template0"}
			for _, set := range []string{"lc_messages", "lc_monetary", "lc_numeric", "lc_time"} {
				create = append(create, "ALTER DATABASE regression SET "+set+" TO 'C'")
			}
			if err := at.prepare(ctx, append(create, "ALTER DATABASE regression SET timezone_abbreviations TO 'Default'", "ALTER DATABASE regression SET bytea_output TO 'hex'")...); err != nil {
				return nil, err
			}
			r := outcomes{}
			for line := range strings.Lines(string(schedule)) {
				names, ok := strings.CutPrefix(line, "test:")
				if !ok {
					continue
				}
				for _, name := range strings.Fields(names) {
					if err := at.psql(ctx, tests, name, filepath.Join(out, at.mode, name+".out")); err != nil {
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

// psql plays a file of the regression tests, as pg_regress does.
func (p place) psql(ctx context.Context, tests, name, output string) error {
	sql, err := os.Open(filepath.Join(tests, "sql", name+".sql"))
	if err != nil {
		return err
	}
	defer sql.Close()
	out, err := os.Create(output)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.CommandContext(ctx, "psql", "-X", "-a", "-q", "-d", "regression", "-v", "HIDE_TABLEAM=on", "-v", "HIDE_TOAST_COMPRESSION=on")
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = tests, sql, out, out
	cmd.Env = append(os.Environ(), "PGHOST="+p.host, fmt.Sprintf("PGPORT=%d", p.port), "PGUSER="+p.user, "PGPASSWORD="+p.password,
		"PGTZ=PST8PDT", "PGDATESTYLE=Postgres, MDY", "PGAPPNAME=pg_regress/"+name, "LC_MESSAGES=C",
		"PG_ABS_SRCDIR="+tests, "PG_ABS_BUILDDIR="+tests, "PG_LIBDIR=/usr/lib/postgresql/15/lib", "PG_DLSUFFIX=.so")
	if err := cmd.Run(); ctx.Err() != nil {
		return fmt.Errorf("psql did not end %s in time: %w", name, err)
	}
	return nil // psql fails where a test ends the session
}
