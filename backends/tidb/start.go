package tidb

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"wirecheck/backends/engine"
	"wirecheck/backends/mysql"
)

const (
	superuser    = "root"
	program      = "tidb-server"
	connectLimit = 5 * time.Second // for one attempt to connect to the private server
)

// Find lists the servers on the machine: that in PATH, then those installed beside the packages (tidb-2025-11), newest first.
func Find() []engine.Found {
	var found []engine.Found
	if path, err := exec.LookPath(program); err == nil {
		found = append(found, engine.Found{Bin: filepath.Dir(path), Version: []string{path, "-V"}})
	}
	paths, err := filepath.Glob(filepath.Join(engine.Installed(), "tidb-*", program))
	if err != nil {
		return found
	}
	slices.Sort(paths)
	slices.Reverse(paths)
	for _, path := range paths {
		if _, err := exec.LookPath(path); err == nil {
			dir := filepath.Dir(path)
			found = append(found, engine.Found{Name: strings.TrimPrefix(filepath.Base(dir), "tidb-"), Bin: dir, Version: []string{path, "-V"}})
		}
	}
	return found
}

func find(dir string) (string, error) {
	if dir == "" {
		found := Find()
		if len(found) == 0 {
			return "", fmt.Errorf("find a TiDB server: no %s in PATH and %s; install it with: %s", program, engine.Installed(), Install)
		}
		dir = found[0].Bin
	}
	path, err := exec.LookPath(filepath.Join(dir, program))
	if err != nil {
		return "", fmt.Errorf("find a TiDB server: %w; install it with: %s", err, Install)
	}
	return path, nil
}

// Start starts a private TiDB server: one process that keeps its data in a folder by itself. The superuser is called root.
// Options.Settings are global system variables.
func Start(ctx context.Context, o engine.Options) (*engine.Server, error) {
	path, err := find(o.Bin)
	if err != nil {
		return nil, err
	}
	account, err := engine.AccountForProgram(path, "tidb", "nobody")
	if err != nil {
		return nil, err
	}
	return engine.Launch(ctx, o, engine.Program{
		Engine: "tidb", Path: path, Account: account, User: superuser, Folders: []string{"data", "run"},
		Prepare:   func(_ context.Context, f *engine.Folder, s *engine.Server) error { return prepare(f, s, o) },
		Args:      arguments,
		Stop:      syscall.SIGKILL, // nothing needs to be kept, and nothing is left outside of the folder
		PortTaken: "address already in use",
		Ready:     ready,
		Finish:    func(ctx context.Context, s *engine.Server) error { return set(ctx, s, o.Settings) },
	})
}

// asyncCommit makes definitions wait for no other server's clock: without metadata locks each step of one sleeps for the sum of the
// two (2.5 s), so that transactions committed asynchronously are over by then (TiDB docs, "TiDB Configuration File",
// tikv-client.async-commit). unistore has no asynchronous commit, and there is one clock.
const asyncCommit = "[tikv-client.async-commit]\nsafe-window = \"1ms\"\nallowed-clock-drift = \"0s\"\n"

func prepare(f *engine.Folder, s *engine.Server, o engine.Options) error {
	// Telemetry was on by default until 7.4, and would send facts about this server to its makers.
	config := fmt.Sprintf("temp-dir = %q\ntmp-storage-path = %q\nenable-telemetry = false\n[log]\nlevel = \"warn\"\n"+asyncCommit, f.Join("tmp"), f.Join("tmp"))
	if o.TLS {
		config += fmt.Sprintf("[security]\nssl-ca = %q\nssl-cert = %q\nssl-key = %q\n", f.Join("tls/ca.pem"), f.Join("tls/server.pem"), f.Join("tls/server.key"))
	}
	if err := f.Write("config.toml", []byte(config)); err != nil {
		return err
	}
	return mysql.WriteInit(f, []string{"ALTER USER 'root'@'%' IDENTIFIED BY " + mysql.Quote(s.Password)}, o.Users, mysql.CreateUser)
}

// arguments makes the command line. There is no status port, no socket, and the address that it tells others is loopback as well.
func arguments(f *engine.Folder, port int) []string {
	return []string{
		"-store", "unistore", "-path", f.Join("data"), "-config", f.Join("config.toml"),
		"-host", "127.0.0.1", "-advertise-address", "127.0.0.1", "-P", strconv.Itoa(port),
		"-report-status=false", "-socket", "", "-initialize-sql-file", f.Join("init.sql"), // runs before the server takes connections
	}
}

// ready asks over TCP, and asks for the data folder too: another server may have got the port.
func ready(ctx context.Context, s *engine.Server) (err error) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	c, err := mysql.Connect(ctx, s.Target())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	rows, err := engine.Query(ctx, c, "SELECT VERSION(), @@tidb_config")
	if err != nil {
		return err
	}
	if data := filepath.Join(s.Folder(), "data"); !strings.Contains(string(rows[0][1]), strconv.Quote(data)) {
		return fmt.Errorf("another server answers: its configuration does not name %s", data)
	}
	s.Version = string(rows[0][0])
	return nil
}

// set makes settings.
func set(ctx context.Context, s *engine.Server, settings map[string]string) (err error) {
	c, err := mysql.Connect(ctx, s.Target())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for name, value := range settings {
		if err := engine.Exec(ctx, c, "SET GLOBAL "+mysql.Identifier(name)+" = "+mysql.Quote(value)); err != nil {
			return fmt.Errorf("set up tidb server: %w", err)
		}
	}
	return nil
}
