package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"wirecheck/backends/engine"
)

const (
	superuser    = "root"
	connectLimit = 5 * time.Second // for one attempt to connect to the private server
)

// Product is what starting a private server needs to know of a member of the MySQL family.
type Product struct {
	Name string
	// Find gives the path of the server's program; dir is where to look, or empty.
	Find func(dir string) (string, error)
	// Install fills a new data folder.
	Install func(ctx context.Context, f *engine.Folder, program, data string) error
	// Args are the product's own arguments.
	Args []string
	// Superuser are statements, one a line, that give the superuser the password on loopback; CreateUser makes another.
	Superuser  func(password string) []string
	CreateUser func(engine.User) (string, error)
}

// Start starts a private MySQL server. The superuser is called root. Tried on MySQL 9.7.4; no test does, since Debian has
// no package of it.
func Start(ctx context.Context, o engine.Options) (*engine.Server, error) {
	return StartProduct(ctx, o, Product{
		Name: "mysql",
		Find: find,
		Install: func(ctx context.Context, f *engine.Folder, program, data string) error {
			args := []string{"--no-defaults", "--initialize-insecure", "--datadir=" + data}
			if f.Account.Root() {
				args = append(args, "--user=root")
			}
			return engine.Output(ctx, f, program, args...)
		},
		Args: []string{"--mysqlx=OFF", "--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0"},
		Superuser: func(password string) []string {
			return []string{
				"CREATE USER 'root'@'%' IDENTIFIED BY " + Quote(password),
				"GRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION",
			}
		},
		CreateUser: CreateUser,
	})
}

// Find lists the servers on the machine: that in PATH, then one installed beside the packages.
func Find() []engine.Found {
	var found []engine.Found
	if path, err := FindProgram("", "mysqld"); err == nil && notMariaDB(path) == nil {
		found = append(found, engine.Found{Bin: filepath.Dir(path), Version: versionOf(path)})
	}
	dir := filepath.Join(engine.Installed(), "mysql", "bin")
	if path, err := FindProgram(dir, "mysqld"); err == nil && notMariaDB(path) == nil {
		found = append(found, engine.Found{Name: "installed", Bin: dir, Version: versionOf(path)})
	}
	return found
}

// find finds MySQL's own mysqld. Where MariaDB is installed, mysqld is MariaDB.
func find(dir string) (string, error) {
	if found := Find(); dir == "" && len(found) > 0 {
		dir = found[0].Bin
	}
	path, err := FindProgram(dir, "mysqld")
	if err == nil {
		err = notMariaDB(path)
	}
	if err != nil {
		return "", fmt.Errorf("find a MySQL server: %w; install it with: %s", err, Install)
	}
	return path, nil
}

func versionOf(path string) []string { return []string{path, "--no-defaults", "--version"} }

func notMariaDB(path string) error {
	ask := versionOf(path)
	version, err := exec.Command(ask[0], ask[1:]...).Output()
	if err != nil {
		return fmt.Errorf("ask %s for its version: %w", path, err)
	}
	if strings.Contains(string(version), "MariaDB") {
		return fmt.Errorf("%s is MariaDB", path)
	}
	return nil
}

// FindProgram looks for one of the names in dir, or, if that is empty, in PATH and /usr/sbin, which is not in
// everybody's PATH.
func FindProgram(dir string, names ...string) (string, error) {
	for _, name := range names {
		if dir != "" {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return path, nil
			}
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
		if path, err := exec.LookPath(filepath.Join("/usr/sbin", name)); err == nil {
			return path, nil
		}
	}
	dir = cmp.Or(dir, "PATH and /usr/sbin")
	return "", fmt.Errorf("no %s in %s", strings.Join(names, " or "), dir)
}

// CreateUser gives the statement that makes a user.
func CreateUser(u engine.User) (string, error) {
	switch u.Method {
	case "":
		return fmt.Sprintf("CREATE USER %s@'%%' IDENTIFIED BY %s", Quote(u.Name), Quote(u.Password)), nil
	case "caching_sha2_password", "sha256_password", "mysql_native_password":
		return fmt.Sprintf("CREATE USER %s@'%%' IDENTIFIED WITH %s BY %s", Quote(u.Name), u.Method, Quote(u.Password)), nil
	}
	return "", fmt.Errorf("user %s: unknown method %q", u.Name, u.Method)
}

// StartProduct starts a private server of a member of the family.
func StartProduct(ctx context.Context, o engine.Options, p Product) (*engine.Server, error) {
	program, err := p.Find(o.Bin)
	if err != nil {
		return nil, err
	}
	account, err := engine.AccountForProgram(program, "mysql", "nobody")
	if err != nil {
		return nil, err
	}
	return engine.Launch(ctx, o, engine.Program{
		Engine: p.Name, Path: program, Account: account, User: superuser, Folders: []string{"data", "run"},
		Prepare: func(ctx context.Context, f *engine.Folder, s *engine.Server) error {
			if err := p.Install(ctx, f, program, f.Join("data")); err != nil {
				return err
			}
			return WriteInit(f, p.Superuser(s.Password), o.Users, p.CreateUser)
		},
		Args:      func(f *engine.Folder, port int) []string { return arguments(f, port, o, p) },
		Socket:    "run/socket",
		Stop:      syscall.SIGKILL, // nothing needs to be kept, and nothing is left outside of the folder
		PortTaken: "Address already in use",
		Ready:     ready,
	})
}

// WriteInit writes the statements with which a server begins: those that are given, and those that make users.
func WriteInit(f *engine.Folder, stmts []string, users []engine.User, create func(engine.User) (string, error)) error {
	for _, u := range users {
		stmt, err := create(u)
		if err != nil {
			return err
		}
		stmts = append(stmts, stmt)
	}
	return f.Write("init.sql", []byte(strings.Join(stmts, ";\n")+";\n"))
}

// arguments makes the command line. As little as possible differs from the server's defaults.
func arguments(f *engine.Folder, port int, o engine.Options, p Product) []string {
	set := map[string]string{
		"datadir":      f.Join("data"),
		"tmpdir":       f.Join("tmp"),
		"socket":       f.Join("run/socket"),
		"pid-file":     f.Join("run/pid"),
		"port":         fmt.Sprint(port),
		"bind-address": "127.0.0.1",
		"init-file":    f.Join("init.sql"), // runs before the server takes connections
	}
	if o.TLS {
		set["ssl-ca"], set["ssl-cert"], set["ssl-key"] = f.Join("tls/ca.pem"), f.Join("tls/server.pem"), f.Join("tls/server.key")
	}
	for name, value := range o.Settings {
		set[strings.ReplaceAll(name, "_", "-")] = value
	}
	args := append([]string{"--no-defaults", "--skip-name-resolve"}, p.Args...)
	if f.Account.Root() {
		args = append(args, "--user=root") // it refuses unless told
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		args = append(args, "--"+name+"="+set[name])
	}
	return args
}

// ready asks over TCP, and asks for the data folder too: another server may have got the port.
func ready(ctx context.Context, s *engine.Server) (err error) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	cfg := driver.NewConfig()
	cfg.User, cfg.Passwd, cfg.Net, cfg.Addr = s.User, s.Password, "tcp", s.Address()
	cfg.Logger = &driver.NopLogger{} // refused connections are expected here
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer func() { err = errors.Join(err, db.Close()) }()
	var version, data string
	if err := db.QueryRowContext(ctx, "SELECT VERSION(), @@datadir").Scan(&version, &data); err != nil {
		return err
	}
	if filepath.Clean(data) != filepath.Join(s.Folder(), "data") {
		return fmt.Errorf("another server with data folder %s answers", data)
	}
	s.Version = version
	return nil
}

// Quote makes a string literal.
func Quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + "'"
}

// Identifier quotes a name.
func Identifier(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
