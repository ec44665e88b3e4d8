package mariadb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"wirecheck/backends/engine"
	"wirecheck/backends/mysql"
)

// archive gives the plain SQL of a folder that mariadb-backup made: it copies the folder, prepares the copy, starts a server on it that nobody else reaches,
// and has mariadb-dump write the database. The folder itself does not change. (MariaDB manual, "Full Backup and Restore with mariadb-backup")
func archive(ctx context.Context, path, database string) (_ io.ReadCloser, err error) {
	dump, err := mysql.FindProgram("", "mariadb-dump", "mysqldump")
	if err != nil {
		return nil, err
	}
	tool, err := mysql.FindProgram("", "mariadb-backup", "mariabackup")
	if err != nil {
		return nil, fmt.Errorf("%w; install it with: apt-get install -y mariadb-backup", err)
	}
	server, err := startOn(ctx, engine.Options{}, func(ctx context.Context, f *engine.Folder, _, data string) error {
		if err := copyAll(f, path, data); err != nil {
			return fmt.Errorf("copy the backup: %w", err)
		}
		if err := engine.Output(ctx, f, tool, "--no-defaults", "--prepare", "--target-dir="+data); err != nil {
			return fmt.Errorf("prepare a copy of the backup: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, server.Close())
		}
	}()
	if database, err = backedUp(ctx, server, database); err != nil {
		return nil, err
	}
	out, err := engine.Piped(ctx, []string{"MYSQL_PWD=" + server.Password}, dump, "--no-defaults", "--single-transaction", "--routines", "--triggers", "--hex-blob", "--skip-lock-tables",
		"--protocol=tcp", "--host="+server.Host, "--port="+strconv.Itoa(server.Port), "--user="+server.User, "--", database)
	if err != nil {
		return nil, err
	}
	return &served{out, server}, nil
}

// served is what a program reads from a server of its own.
type served struct {
	io.ReadCloser
	server *engine.Server
}

// Close implements io.Closer.
func (s *served) Close() error { return errors.Join(s.ReadCloser.Close(), s.server.Close()) }

// copyAll copies a folder to a place in a server's folder. What mariadb-backup knows of it comes along.
func copyAll(f *engine.Folder, from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		switch {
		case name == ".":
			return nil
		case d.IsDir():
			err = os.Mkdir(target, 0o700)
		case !d.Type().IsRegular():
			return nil
		default:
			err = copyFile(path, target)
		}
		return errors.Join(err, f.Account.Own(target))
	})
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// backedUp chooses the database of a backup: the one that is named, or the only one.
func backedUp(ctx context.Context, server *engine.Server, database string) (_ string, err error) {
	conn, err := mysql.Connect(ctx, server.Target())
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	rows, err := engine.Query(ctx, conn, "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema') ORDER BY 1")
	if err != nil {
		return "", err
	}
	var names []string
	for _, row := range rows {
		if names = append(names, string(row[0])); names[len(names)-1] == database {
			return database, nil
		}
	}
	if len(names) == 1 {
		return names[0], nil
	}
	return "", fmt.Errorf("the backup has the databases %s: say which one with --database", strings.Join(names, ", "))
}
