// Command coverage measures how much of the statements of real applications wirecheck sees exactly: small shops written in the ORMs that
// applications use, each on a private server behind an observing proxy.
//
//	go run ./internal/bench/coverage [-engines postgres,mysql] [-apps django,typeorm] [-rounds N] [-explain]
//
// A product that is not installed, and an application whose language or libraries are missing, is named as missing. NODE_PATH says where Node's libraries are.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/live"
	"wirecheck/oracle/isolation"
	"wirecheck/proxy"
	"wirecheck/rewrite"
)

// app is an application: testdata/apps/shop_NAME.
type app struct {
	name, file, program string
	probe               []string // succeeds where its libraries are there
}

var apps = []app{
	{"Django", "shop_django.py", "/usr/bin/python3", []string{"-c", "import django, psycopg2, MySQLdb"}},
	{"SQLAlchemy", "shop_sqlalchemy.py", "/usr/bin/python3", []string{"-c", "import sqlalchemy, psycopg2, pymysql"}},
	{"TypeORM", "shop_typeorm.js", "node", []string{"-e", "['typeorm', 'pg', 'mysql2'].map(require.resolve)"}},
	{"Sequelize", "shop_sequelize.js", "node", []string{"-e", "['sequelize', 'pg', 'mysql2'].map(require.resolve)"}},
}

// options are those of the command.
type options struct {
	folder, only string
	rounds       int
	explain      bool
}

func main() {
	var o options
	engines := flag.String("engines", "postgres,mariadb,mysql,tidb", "products")
	flag.StringVar(&o.folder, "folder", "testdata/apps", "folder of the applications")
	flag.StringVar(&o.only, "apps", "", "names of the applications (default: all)")
	flag.IntVar(&o.rounds, "rounds", 5, "how often each request of an application is made")
	flag.BoolVar(&o.explain, "explain", false, "also show which statements were not seen exactly")
	flag.Parse()
	fmt.Println("| application | engine | statements | exact | approximate | opaque | conditions judged |\n|---|---|---|---|---|---|---|")
	for _, name := range strings.Split(*engines, ",") {
		if err := measureAll(context.Background(), o, name); err != nil {
			fmt.Fprintf(os.Stderr, "coverage: %s: %v\n", name, err)
			os.Exit(2)
		}
	}
}

// measureAll prints the rows of one engine.
func measureAll(ctx context.Context, o options, name string) (err error) {
	d, err := backends.ByName(name)
	if err != nil {
		return err
	}
	if len(d.Find()) == 0 {
		fmt.Fprintf(os.Stderr, "coverage: %s is missing\n", name)
		return nil
	}
	s, err := d.Start(ctx, engine.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	labs, err := engine.OpenLabs(ctx, d, s.Target())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, labs.Close(ctx)) }()
	for _, a := range apps {
		if o.only != "" && !strings.Contains(","+strings.ToLower(o.only)+",", ","+strings.ToLower(a.name)+",") {
			continue
		}
		if out, err := exec.CommandContext(ctx, a.program, a.probe...).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "coverage: %s is missing: %v: %s\n", a.name, err, firstLine(out))
			continue
		}
		target, err := labs.Create(ctx)
		if err != nil {
			return err
		}
		seen, err := measure(ctx, o, d, a, target)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		all := seen.Exact + seen.Approximate + seen.Opaque
		share := func(n int) string { return fmt.Sprintf("%.1f%%", 100*float64(n)/float64(max(all, 1))) }
		asked := seen.Predicates + seen.Unevaluated()
		judged := fmt.Sprintf("%.1f%%", 100*float64(seen.Predicates)/float64(max(asked, 1)))
		fmt.Printf("| %s | %s %s | %d | %s | %s | %s | %s |\n", a.name, d.Title, s.Version, all, share(seen.Exact), share(seen.Approximate), share(seen.Opaque), judged)
		if o.explain {
			fmt.Printf("\n%s\n", seen.Explain())
		}
	}
	return nil
}

// measure makes the schema of an application, which gives its tables the hidden columns where the product needs them, and then serves its requests.
func measure(ctx context.Context, o options, d engine.Descriptor, a app, target engine.Target) (seen isolation.Coverage, err error) {
	setup, err := live.Open(ctx, zerolog.Nop(), d, target, nil)
	if err != nil {
		return seen, err
	}
	if err := errors.Join(a.run(ctx, o, setup.Through(target), "setup"), setup.Close()); err != nil {
		return seen, err
	}
	log := zerolog.New(os.Stderr).Level(zerolog.ErrorLevel)
	l, err := live.New(live.Options{Explain: true, Log: log, Now: time.Now()})
	if err != nil {
		return seen, err
	}
	protocol := proxy.Postgres
	if d.Protocol == engine.ProtocolMySQL {
		protocol = proxy.MySQL
	}
	network, address := target.Address()
	p, err := proxy.Listen(ctx, log, func(c proxy.Config) (proxy.Handler, error) {
		return l.Handler(c, live.Observation{Capture: rewrite.CaptureAuto, Warn: true})
	}, proxy.Config{Listen: proxy.Address{Network: "tcp", Addr: "127.0.0.1:0"}, Protocol: protocol, Mode: proxy.Observe,
		Upstream: proxy.Address{Network: network, Addr: address}})
	if err != nil {
		return seen, err
	}
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- p.Serve(serving) }()
	target.Host, target.Port = "127.0.0.1", p.Addrs()[0].(*net.TCPAddr).Port
	err = a.run(ctx, o, target, "traffic")
	stop()
	err = errors.Join(err, <-served)
	r, e := l.Finish()
	return r.Coverage, errors.Join(err, e)
}

// patience is how long one phase of an application may take.
const patience = 3 * time.Minute

// run runs one phase of an application.
func (a app) run(ctx context.Context, o options, t engine.Target, phase string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, a.program, filepath.Join(o.folder, a.file), phase)
	kind := "mysql"
	if t.Engine == "postgres" {
		kind = t.Engine
	}
	cmd.Env = append(os.Environ(), "APP_ENGINE="+kind, "APP_HOST="+t.Host, "APP_PORT="+strconv.Itoa(t.Port), "APP_USER="+t.User, "APP_PASSWORD="+t.Password,
		"APP_DATABASE="+t.Database, "APP_ROUNDS="+strconv.Itoa(o.rounds))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", phase, err, out)
	}
	return nil
}

func firstLine(b []byte) string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return cmp.Or(lines[len(lines)-1], lines[0])
}
