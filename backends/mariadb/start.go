package mariadb

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"wirecheck/backends/engine"
	"wirecheck/backends/mysql"
)

// Start starts a private MariaDB server. The superuser is called root; through the socket, the operating system's root
// is let in without a password, as Debian's server does.
func Start(ctx context.Context, o engine.Options) (*engine.Server, error) {
	return startOn(ctx, o, install)
}

// startOn starts one on a data folder that fill has filled.
func startOn(ctx context.Context, o engine.Options, fill func(ctx context.Context, f *engine.Folder, program, data string) error) (*engine.Server, error) {
	args := []string{
		"--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=OFF", // what is lost with the machine's power need not be written
		"--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci", // as Debian's server
	}
	if slices.ContainsFunc(o.Users, func(u engine.User) bool { return u.Method == "ed25519" }) {
		args = append(args, "--plugin-load-add=auth_ed25519")
	}
	return mysql.StartProduct(ctx, o, mysql.Product{
		Name: "mariadb",
		Find: func(dir string) (string, error) {
			path, err := mysql.FindProgram(dir, "mariadbd")
			if err != nil {
				return "", fmt.Errorf("find a MariaDB server: %w; install it with: %s", err, Install)
			}
			return path, nil
		},
		Install:    fill,
		Args:       args,
		Superuser:  superuser,
		CreateUser: createUser,
	})
}

// Find lists the servers on the machine.
func Find() []engine.Found {
	path, err := mysql.FindProgram("", "mariadbd")
	if err != nil {
		return nil
	}
	return []engine.Found{{Bin: filepath.Dir(path), Version: []string{path, "--no-defaults", "--version"}}}
}

func install(ctx context.Context, f *engine.Folder, _, data string) error {
	script, err := mysql.FindProgram("", "mariadb-install-db", "mysql_install_db")
	if err != nil {
		return fmt.Errorf("%w; install it with: %s", err, Install)
	}
	return engine.Output(ctx, f, script, "--no-defaults", "--datadir="+data, "--skip-test-db", "--skip-name-resolve",
		"--auth-root-authentication-method=normal")
}

func superuser(password string) []string {
	return []string{
		"DROP USER IF EXISTS ''@'localhost', ''@'127.0.0.1', ''@'::1', 'root'@'127.0.0.1', 'root'@'::1'",
		"CREATE OR REPLACE USER 'root'@'localhost' IDENTIFIED VIA unix_socket OR mysql_native_password USING PASSWORD(" + mysql.Quote(password) + ")",
		"GRANT ALL ON *.* TO 'root'@'localhost' WITH GRANT OPTION",
		"CREATE OR REPLACE USER 'root'@'%' IDENTIFIED BY " + mysql.Quote(password),
		"GRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION",
	}
}

func createUser(u engine.User) (string, error) {
	method := u.Method
	switch method {
	case "":
		method = "mysql_native_password"
	case "mysql_native_password", "ed25519":
	default:
		return "", fmt.Errorf("user %s: unknown method %q", u.Name, u.Method)
	}
	return fmt.Sprintf("CREATE USER %s@'%%' IDENTIFIED VIA %s USING PASSWORD(%s)", mysql.Quote(u.Name), method, mysql.Quote(u.Password)), nil
}
