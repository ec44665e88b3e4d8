package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"wirecheck/backends/engine"
)

const (
	superuser    = "postgres"
	connectLimit = 5 * time.Second // for one attempt to see whether the private server answers
	usersLimit   = time.Minute     // for making its users, on a busy machine
	scram        = "scram-sha-256"
)

// Start starts a private PostgreSQL server. The superuser is called postgres.
func Start(ctx context.Context, o engine.Options) (*engine.Server, error) {
	bin, err := binaries(o.Bin)
	if err != nil {
		return nil, err
	}
	account, err := engine.AccountFor("postgres", "nobody") // PostgreSQL refuses to run as root
	if err != nil {
		return nil, err
	}
	return engine.Launch(ctx, o, engine.Program{
		Engine: "postgres", Path: filepath.Join(bin, "postgres"), Account: account, User: superuser, Folders: []string{"data", "socket"},
		Prepare: func(ctx context.Context, f *engine.Folder, _ *engine.Server) error { return prepare(ctx, f, bin, o) },
		Args: func(f *engine.Folder, port int) []string {
			return []string{"-D", f.Join("data"), "-p", strconv.Itoa(port)}
		},
		Socket:    "socket",
		Alike:     true,
		Stop:      syscall.SIGQUIT, // immediate shutdown: ends the children too, and nothing needs to be kept
		PortTaken: "Address already in use",
		Ready:     ready,
		Finish:    func(ctx context.Context, s *engine.Server) error { return createUsers(ctx, s, o.Users) },
	})
}

// Find lists the servers on the machine: Debian's, newest first, and that of the initdb in PATH.
func Find() []engine.Found {
	var found []engine.Found
	matches, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return nil
	}
	for _, m := range matches {
		dir := filepath.Dir(m)
		found = append(found, engine.Found{Name: filepath.Base(filepath.Dir(dir)), Bin: dir, Version: []string{m, "--version"}})
	}
	slices.SortFunc(found, func(a, b engine.Found) int { return version(b.Name) - version(a.Name) })
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			dir := filepath.Dir(path)
			if !slices.ContainsFunc(found, func(f engine.Found) bool { return f.Bin == dir }) {
				found = append(found, engine.Found{Bin: dir, Version: []string{filepath.Join(dir, "postgres"), "--version"}})
			}
		}
	}
	return found
}

// version reads the number that Debian's folders are named by.
func version(name string) int {
	v, err := strconv.Atoi(name)
	if err != nil {
		return 0
	}
	return v
}

// binaries finds the folder of the server's programs: dir if given, else the first that Find finds.
func binaries(dir string) (string, error) {
	if dir == "" {
		found := Find()
		if len(found) == 0 {
			return "", fmt.Errorf("find a PostgreSQL server: neither in /usr/lib/postgresql nor in PATH; install it with: %s", Install)
		}
		dir = found[0].Bin
	}
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return "", fmt.Errorf("find a PostgreSQL server: %w; install it with: %s", err, Install)
		}
	}
	return dir, nil
}

func prepare(ctx context.Context, f *engine.Folder, bin string, o engine.Options) error {
	// The C locale is on every machine and makes sorting the same on all of them.
	err := engine.Output(ctx, f, filepath.Join(bin, "initdb"), "-D", f.Join("data"), "-U", superuser,
		"--auth=reject", "--no-sync", "--encoding=UTF8", "--locale=C")
	if err != nil {
		return err
	}
	if err := f.Write("data/postgresql.auto.conf", settings(f, o)); err != nil {
		return err
	}
	hba, err := accessRules(o.Users)
	if err != nil {
		return err
	}
	return f.Write("data/pg_hba.conf", hba)
}

// settings makes the configuration. What is lost when the machine loses power need not be written; everything else is
// as a server in production has it.
func settings(f *engine.Folder, o engine.Options) []byte {
	set := map[string]string{
		"listen_addresses":           "127.0.0.1",
		"unix_socket_directories":    f.Join("socket"),
		"fsync":                      "off",
		"full_page_writes":           "off",
		"dynamic_shared_memory_type": "mmap", // files in the data folder, so that nothing stays in /dev/shm after a crash
		"log_line_prefix":            "%m [%p] %q%u@%d ",
		"logging_collector":          "off", // the log goes to stderr, which is the folder's log file
	}
	if o.TLS {
		set["ssl"] = "on"
		set["ssl_ca_file"] = f.Join("tls/ca.pem")
		set["ssl_cert_file"] = f.Join("tls/server.pem")
		set["ssl_key_file"] = f.Join("tls/server.key")
	}
	maps.Copy(set, o.Settings)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(set)) {
		fmt.Fprintf(&b, "%s = '%s'\n", name, strings.ReplaceAll(set[name], "'", "''"))
	}
	return []byte(b.String())
}

// accessRules makes pg_hba.conf. The socket's folder is closed to all but the server's account and root, so it asks for
// no password.
func accessRules(users []engine.User) ([]byte, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "local all all trust\n")
	for _, u := range users {
		kind, method := "host", u.Method
		switch method {
		case "":
			method = scram
		case "cert":
			kind, method = "hostssl", "cert"
		case scram, "md5", "password", "trust":
		default:
			return nil, fmt.Errorf("user %s: unknown method %q", u.Name, u.Method)
		}
		fmt.Fprintf(&b, "%s all %s 127.0.0.1/32 %s\n", kind, pgx.Identifier{u.Name}.Sanitize(), method)
	}
	fmt.Fprintf(&b, "host all all 127.0.0.1/32 %s\n", scram)
	fmt.Fprintf(&b, "host replication all 127.0.0.1/32 %s\n", scram)
	return []byte(b.String()), nil
}

func ready(ctx context.Context, s *engine.Server) error {
	attempt, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	conn, err := connectLocal(attempt, s)
	if err != nil {
		return err
	}
	s.Version = conn.PgConn().ParameterStatus("server_version")
	return conn.Close(ctx)
}

// connectLocal connects as the superuser through the socket.
func connectLocal(ctx context.Context, s *engine.Server) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(fmt.Sprintf("host=%s port=%d user=%s dbname=postgres sslmode=disable", s.Socket, s.Port, superuser))
	if err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, cfg)
}

// createUsers sets the superuser's password and makes the other users. The stored form of a password decides which
// methods work with it: md5 needs the md5 form, all others take either (manual, 21.5).
func createUsers(ctx context.Context, s *engine.Server, users []engine.User) (err error) {
	ctx, cancel := context.WithTimeout(ctx, usersLimit)
	defer cancel()
	conn, err := connectLocal(ctx, s)
	if err != nil {
		return fmt.Errorf("create users: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	stmts := []string{"ALTER ROLE " + superuser + " PASSWORD " + quote(s.Password)}
	for _, u := range users {
		encryption := scram
		if u.Method == "md5" {
			encryption = "md5"
		}
		stmts = append(stmts,
			"SET password_encryption = '"+encryption+"'",
			"CREATE ROLE "+pgx.Identifier{u.Name}.Sanitize()+" LOGIN PASSWORD "+quote(u.Password))
	}
	for _, stmt := range stmts {
		if _, err := conn.Exec(ctx, stmt); err != nil {
			return fmt.Errorf("create users: %w", err)
		}
	}
	return nil
}

// quote makes a string literal; standard_conforming_strings is on.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
