package mysql

import (
	"context"
	"io"
	"strconv"

	"wirecheck/backends/engine"
)

// schema has mysqldump or mariadb-dump write the definitions of a database.
func schema(ctx context.Context, t engine.Target) (io.ReadCloser, error) {
	program, err := FindProgram("", "mariadb-dump", "mysqldump")
	if err != nil {
		return nil, err
	}
	return engine.Piped(ctx, []string{"MYSQL_PWD=" + t.Password}, program, "--no-defaults", "--no-data", "--routines", "--triggers", "--skip-lock-tables",
		"--protocol=tcp", "--host="+t.Host, "--port="+strconv.Itoa(t.Port), "--user="+t.User, "--", t.Database)
}
