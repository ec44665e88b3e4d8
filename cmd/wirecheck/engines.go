package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/history/prose"
	"wirecheck/report"
)

func newEnginesCommand(c *common) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "engines",
		Short: "List the database servers on this machine, or start one",
		Long: `wirecheck runs scenarios on private servers. It finds a product's programs on
this machine, starts them on loopback with a data folder and a port of their
own, and removes everything at the end.`,
		Example: "  wirecheck engines list\n  wirecheck engines start postgres",
		Args:    onlyCommands,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newEnginesListCommand(c), newEnginesStartCommand(c))
	return cmd
}

// engineInfo is what the list says of one product.
type engineInfo struct {
	Name     string       `json:"name"`
	Title    string       `json:"title"`
	Levels   []string     `json:"levels"`
	Default  string       `json:"default_level"`
	Programs []programRow `json:"programs"` // on this machine; none: no private server can be started
	Install  string       `json:"install"`
}

// programRow is one server program of a product. Engine is how the command line names it.
type programRow struct {
	Engine  string `json:"engine"`
	Version string `json:"version,omitempty"`
	Path    string `json:"path"`

	found engine.Found
}

func newEnginesListCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the products, their servers on this machine and their levels",
		Long: `list shows each product that wirecheck knows, its isolation levels, and whether
wirecheck can start a private server of it on this machine. If it cannot, list
shows the command that installs one. A product's bare name starts the first
program in its list.

wirecheck looks for servers where packages put them, in PATH, and in the folder
wirecheck-engines below the user's cache folder ($XDG_CACHE_HOME or ~/.cache).`,
		Example: "  wirecheck engines list\n  wirecheck engines list --format json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list := listEngines(backends.All())
			if err := askVersions(cmd.Context(), list); err != nil {
				return err
			}
			if c.format == "json" {
				return report.Indented(c.stdout, list)
			}
			printEngines(c.stdout, list)
			return nil
		},
	}
}

func listEngines(all []engine.Descriptor) []engineInfo {
	var list []engineInfo
	for _, d := range all {
		info := engineInfo{Name: d.Name, Title: d.Title, Default: d.Default, Programs: []programRow{}, Install: d.Install}
		for _, l := range d.Levels {
			info.Levels = append(info.Levels, strings.ToLower(l.SQL))
		}
		for _, f := range d.Find() {
			row := programRow{Engine: d.Name, Path: f.Bin, found: f}
			if d.Embedded {
				row.Path = "this program, journal mode " + f.Bin
			}
			if f.Name != "" {
				row.Engine += ":" + f.Name
			}
			info.Programs = append(info.Programs, row)
		}
		list = append(list, info)
	}
	return list
}

// askVersions asks the programs which version they are. One that does not run has none: start says why.
func askVersions(ctx context.Context, list []engineInfo) error {
	for _, e := range list {
		for i := range e.Programs {
			version, err := e.Programs[i].found.Ask(ctx)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				version = ""
			}
			e.Programs[i].Version = version
		}
	}
	return nil
}

func printEngines(out io.Writer, list []engineInfo) {
	for i, e := range list {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "%s\n  levels   %s (default: %s)\n", e.Title, strings.Join(e.Levels, ", "), strings.ToLower(e.Default))
		for _, p := range e.Programs {
			version := cmp.Or(p.Version, "-")
			fmt.Fprintf(out, "  start    %-16s version %-12s in %s\n", p.Engine, version, p.Path)
		}
		if len(e.Programs) == 0 {
			fmt.Fprintf(out, "  start    not on this machine; install it with: %s\n", e.Install)
		}
	}
}

func newEnginesStartCommand(c *common) *cobra.Command {
	var plain bool
	cmd := &cobra.Command{
		Use:   "start ENGINE",
		Short: "Start a private server and remove it at the end",
		Long: `start starts a private server on loopback, prints how to connect to it, and
waits for Ctrl-C or SIGTERM. Then it stops the server and removes its files. If
this process is killed, the next private server removes them. The server does
not protect its data against a loss of power.

ENGINE is a product's name, or a version as "wirecheck engines list" shows it.`,
		Example: `  wirecheck engines start postgres
  wirecheck engines start tidb:2023-01
  wirecheck engines start mariadb --format json`,
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, e := range listEngines(backends.All()) {
				for _, p := range e.Programs {
					names = append(names, p.Engine)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return startEngine(cmd.Context(), c, args[0], plain)
		},
	}
	cmd.Flags().BoolVar(&plain, "plain", false, "leave out the settings that make schedules quick and repeatable (deadlock_timeout and the like)")
	return cmd
}

// startedServer is what start says of the server.
type startedServer struct {
	Engine   string `json:"engine"`
	Version  string `json:"version"`
	URL      string `json:"url"` // without the password
	User     string `json:"user"`
	Password string `json:"password"`
	Socket   string `json:"socket,omitempty"`
	Folder   string `json:"folder"`
	Connect  string `json:"connect"` // a command line
}

func startEngine(ctx context.Context, c *common, name string, plain bool) (err error) {
	d, err := backends.ByName(name)
	if err != nil {
		return err
	}
	if d.Embedded {
		return fmt.Errorf("%s is a library in this process: there is no server to start; name it where scenarios are executed, as in --engine %s", d.Title, name)
	}
	var o engine.Options
	if !plain {
		o.Settings = d.LabSettings
	}
	s, err := d.Start(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	info := describeServer(d, s)
	if c.format == "json" {
		if err := json.NewEncoder(c.stdout).Encode(info); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(c.stdout, "%s %s is at %s\n  password  %s\n  folder    %s\n  connect   %s\nCtrl-C ends and removes it.\n",
			d.Title, info.Version, info.URL, info.Password, info.Folder, info.Connect)
	}
	select {
	case <-ctx.Done():
		return nil // what was asked for
	case <-s.Done():
		return fmt.Errorf("the %s server has ended by itself; its log ends with:\n%s", d.Title, prose.Tail(strings.TrimSpace(s.Log()), 2000))
	}
}

func describeServer(d engine.Descriptor, s *engine.Server) startedServer {
	u := url.URL{Scheme: d.Name, User: url.User(s.User), Host: s.Address(), Path: "/" + d.Lab.Maintenance}
	info := startedServer{
		Engine: d.Name, Version: s.Version, URL: u.String(), User: s.User, Password: s.Password, Socket: s.Socket, Folder: s.Folder(),
		Connect: fmt.Sprintf("MYSQL_PWD=%s %s -h %s -P %d -u %s", s.Password, d.Client, s.Host, s.Port, s.User),
	}
	if d.Protocol == engine.ProtocolPostgres {
		info.Connect = fmt.Sprintf("PGPASSWORD=%s %s %s", s.Password, d.Client, u.String())
	}
	return info
}
