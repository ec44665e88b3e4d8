package postgres

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"

	"wirecheck/backends/engine"
)

// copySettings gives the statements that set for a copy what ALTER DATABASE and ALTER ROLE IN DATABASE have set for the original: the
// level, for example. CREATE DATABASE leaves that out (manual, CREATE DATABASE, notes). FROM CURRENT keeps lists as they are.
const copySettings = `SELECT format('SELECT pg_catalog.set_config(%%L, %%L, false); ', split_part(s, '=', 1), substr(s, strpos(s, '=') + 1)) ||
	CASE WHEN setrole = 0 THEN '' ELSE format('ALTER ROLE %%I IN DATABASE %[1]s SET %%I FROM CURRENT', pg_get_userbyid(setrole), split_part(s, '=', 1)) END ||
	CASE WHEN setrole <> 0 THEN '' ELSE format('ALTER DATABASE %[1]s SET %%I FROM CURRENT', split_part(s, '=', 1)) END
	FROM pg_catalog.pg_db_role_setting r JOIN pg_catalog.pg_database d ON d.oid = r.setdatabase, unnest(setconfig) s
	WHERE datname = %[2]s AND (setrole = 0 OR pg_get_userbyid(setrole) = current_user)`

// client finds one of PostgreSQL's client programs: the newest on the machine, since an older pg_dump refuses newer servers and formats.
func client(name string) (string, error) {
	for _, f := range Find() {
		if path, err := exec.LookPath(filepath.Join(f.Bin, name)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("find %s: neither in /usr/lib/postgresql nor in PATH; install PostgreSQL's client programs (postgresql-client)", name)
	}
	return path, nil
}

// schema has pg_dump write the definitions of a database.
func schema(ctx context.Context, t engine.Target) (io.ReadCloser, error) {
	program, err := client("pg_dump")
	if err != nil {
		return nil, err
	}
	host, env := t.Host, []string{"PGPASSWORD=" + t.Password, "PGDATABASE=" + t.Database, "PGCONNECT_TIMEOUT=10"}
	host = cmp.Or(host, t.Socket)
	return engine.Piped(ctx, env, program, "--schema-only", "--no-owner", "--no-privileges", "--no-password",
		"--host", host, "--port", strconv.Itoa(t.Port), "--username", t.User)
}

// archive has pg_restore write the plain SQL of a dump in pg_dump's custom, tar or directory format.
func archive(ctx context.Context, path, _ string) (io.ReadCloser, error) {
	program, err := client("pg_restore")
	if err != nil {
		return nil, err
	}
	return engine.Piped(ctx, nil, program, "--file=-", "--", path)
}
