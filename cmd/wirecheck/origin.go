package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"wirecheck/lab/explore"
)

// originFlags are the flags of the commands that execute a trace: where the database comes from, as it was before the first statement, and how.
type originFlags struct{ inPlace, reset string }

func (f *originFlags) flags(flags *pflag.FlagSet, o *explore.Options) {
	flags.StringVar(&o.Engine, "engine", "", "where to execute it: a name (private server) or a URL (default: a private server of the trace's product)")
	flags.StringVar(&o.Product, "product", "", "product that the trace is of, if its sessions do not say: postgres, mariadb, mysql, tidb")
	flags.BoolVar(&o.InferSchema, "infer-schema", false, "first execute the trace's own definitions (CREATE, ALTER), whoever sent them and when")
	flags.StringVar(&o.Database, "database", "", "database of the trace to replay (default: the one with the most statements)")
	flags.StringArrayVar(&o.Session, "session-sql", nil, "statement that each session begins with, as in 'SET search_path = shop'; repeatable")
	flags.DurationVar(&o.UnitGap, "unit-gap", 0, "transactions without tags that follow each other in a session within this time are one request; 0: they are not")
	flags.DurationVar(&o.Limit, "limit", time.Minute, "how long one statement, or one interleaving, may take")
	flags.StringVar(&o.Snapshot, "snapshot", "", "dump of the database before the first statement, of pg_dump (any format), mysqldump or mariadb-dump (also gzip), or a folder of mariadb-backup (default: an empty database)")
	flags.StringVar(&o.Template, "template", "", "database of the server to copy, in place of a dump (PostgreSQL: CREATE DATABASE ... TEMPLATE)")
	flags.StringVar(&f.inPlace, "in-place", "", "execute in this database itself and change its rows for good; DATABASE=may-be-changed")
	flags.StringVar(&f.reset, "reset", "", "with --in-place: shell command that brings its rows back, before each replay")
}

// read takes the flags over.
func (f *originFlags) read(o *explore.Options) (err error) {
	if f.reset != "" {
		o.Reset = func(ctx context.Context) error {
			if said, err := exec.CommandContext(ctx, "sh", "-c", f.reset).CombinedOutput(); err != nil {
				return fmt.Errorf("--reset %q: %w\n%s", f.reset, err, strings.TrimSpace(string(said)))
			}
			return nil
		}
	}
	o.InPlace, err = explore.ParseInPlace(f.inPlace)
	return err
}
