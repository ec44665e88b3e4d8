package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/spf13/pflag"

	"wirecheck/lab/explore"
)

// originFlags say where the database comes from, as it was before the first statement of a trace.
type originFlags struct{ inPlace, reset string }

func (f *originFlags) flags(flags *pflag.FlagSet, o *explore.Options) {
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
