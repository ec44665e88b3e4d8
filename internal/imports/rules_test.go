// Package imports holds the rules about who may import whom, and checks packages against them. The rules keep the core
// of wirecheck (history, oracles, rewriting, scheduling) runnable without the world around it.
package imports

import (
	"fmt"
	"slices"
	"strings"
)

// Package is what `go list -json` says of a package.
type Package struct {
	ImportPath string
	Standard   bool
	Imports    []string // what its files import, tests left out
	Deps       []string // what these import in turn, too
}

// Rule forbids imports to some packages.
type Rule struct {
	// Of are the packages that the rule is about, and Except those that it is not about. In both, as in Never, a path
	// within the module stands for the package and all below it.
	Of, Except []string
	// Never are packages that must not be imported, Direct those that must not be named by the packages themselves but
	// may be used by what they import.
	Never, Direct []string
	// StandardOnly forbids everything but the standard library and the packages in And.
	StandardOnly bool
	And          []string
	Why          string
}

var (
	core     = []string{"oracle", "rewrite", "scheduler", "statement"}
	judging  = []string{"lab/panel", "lab/suite", "lab/hunt", "lab/explore"}
	gopacket = []string{"github.com/gopacket/gopacket", "github.com/gopacket/gopacket/layers", "github.com/gopacket/gopacket/pcapgo"}
	pure     = append([]string{"answer", "lab/scenario", "lab/generate"}, core...)
)

// Rules are the project's.
func Rules() []Rule { return rules }

var rules = []Rule{
	{
		Of: []string{"history"}, StandardOnly: true, And: []string{"history"},
		Why: "history holds the nouns that everything speaks of, so it depends on nothing but itself",
	},
	{
		Of: []string{"answer"}, StandardOnly: true, And: []string{"history"},
		Why: "an answer is what a server said; it knows nothing of who asked",
	},
	{
		Of: []string{"anomaly"}, StandardOnly: true, And: []string{"anomaly"},
		Why: "the list of anomalies is what levels, oracles and reports are written in",
	},
	{
		Of: []string{"product"}, StandardOnly: true, And: []string{"product", "anomaly", "answer", "history"},
		Why: "what a product does is data; every other package may ask it, and it asks none",
	},
	{
		Of: []string{"fleet"}, Except: []string{"fleet/bus", "fleet/stream", "fleet/work"}, StandardOnly: true,
		And: []string{"fleet", "product", "anomaly", "answer", "history"},
		Why: "histories are joined without knowing who reads or judges them",
	},
	{
		Of:    []string{"fleet/bus", "fleet/stream", "fleet/work"},
		Never: []string{"proxy", "live", "oracle", "scheduler", "rewrite", "statement", "backends", "lab", "configs", "report", "cmd"},
		Why:   "what a fleet shares are messages, work items and keys: what they mean is for those who hand them over",
	},
	{
		Of: []string{"oracle/cycle"}, StandardOnly: true, And: []string{"anomaly"},
		Why: "a search for cycles sees numbers alone",
	},
	{
		Of: []string{"oracle/sieve"}, StandardOnly: true, And: []string{"oracle/cycle", "product", "anomaly", "answer", "history"},
		Why: "the sieve sees facts alone: a collector's partitions run it without the engine that names and explains",
	},
	{
		Of: []string{"lab/scenario"}, StandardOnly: true, And: []string{"lab/scenario", "product", "anomaly", "answer", "history"},
		Why: "a scenario is text and orders of steps: what SQL touches and what oracles find it is handed as functions",
	},
	{
		Of: core, Never: []string{"proxy", "live", "backends", "lab", "configs", "cmd", "internal"},
		Why: "oracles, rewriting and scheduling run without servers and sockets; what they need executed they are handed as a small interface",
	},
	{
		Of: []string{"lab/scenario", "lab/generate"}, Never: []string{"proxy", "live", "backends", "configs", "cmd", "internal"},
		Why: "a case is text: it is written, read and generated without servers",
	},
	{
		Of: append([]string{"history"}, pure...), Direct: []string{"net", "os/exec", "math/rand", "math/rand/v2", "crypto/rand", "github.com/rs/zerolog"},
		Why: "no sockets, programs, randomness or log in the core: the same input gives the same verdict",
	},
	{
		// rewrite/postgres prints dates that are keys; TestNoClock sees to it that it does not ask what time it is.
		// scheduler/shell is the scheduler's side that faces the world.
		Of: append([]string{"history"}, pure...), Except: []string{"rewrite/postgres", "scheduler/shell"}, Direct: []string{"time"},
		Why: "no clock in the core: the same input gives the same verdict",
	},
	{
		Of: pure, Direct: []string{"os"},
		Why: "no files, environment or process in the core; a history's own file is package history's affair",
	},
	{
		Of: []string{"proxy"}, Never: []string{"live", "oracle", "scheduler", "backends", "lab", "configs", "cmd"},
		Why: "the proxy knows neither oracles nor scheduling policy nor products: it calls a gate and hands statements to a recorder",
	},
	{
		Of: []string{"live"}, Except: []string{"live/control"}, Never: []string{"scheduler", "lab", "configs", "cmd"},
		Why: "live judges what a proxy records; the command proxy and labs use it, and it knows neither",
	},
	{
		Of: []string{"live/control"}, Never: []string{"oracle/isolation", "lab/panel", "configs", "report", "cmd"},
		Why: "the gate joins the proxy with the scheduler and the lock views; it judges nothing",
	},
	{
		Of: []string{"offline"}, Never: []string{"proxy", "live", "scheduler", "backends", "lab", "configs", "cmd"},
		Why: "what was recorded is judged without a server, a proxy or flags",
	},
	{
		Of: []string{"backends"}, Never: []string{"proxy", "live", "oracle", "scheduler", "lab", "configs", "cmd"},
		Why: "a backend knows its product and nothing of what is done with it",
	},
	{
		Of: []string{"trace"}, Never: []string{"proxy", "live", "oracle", "scheduler", "rewrite", "statement", "backends", "lab", "configs", "report", "internal", "cmd"},
		Why: "a trace is what others saw: logs and packets are read without servers, and what only a parser knows cmd hands over as a function",
	},
	{
		Of: []string{"trace"}, Except: []string{"trace/source", "trace/logs", "trace/packets", "trace/recorder"},
		Never: []string{"trace/source", "trace/logs", "trace/packets", "trace/recorder"},
		Why:   "the file of a trace does not know what fills it",
	},
	{
		Of: []string{"trace/lex"}, StandardOnly: true,
		Why: "splitting SQL into tokens needs the text and nothing else",
	},
	{
		Of: []string{"trace/logs"}, Never: []string{"trace/packets", "trace/recorder"},
		Why: "logs and packets are two kinds of sources; what they share is in trace/source",
	},
	{
		Of: []string{"trace/packets", "trace/recorder"}, Never: []string{"trace/logs"},
		Why: "logs and packets are two kinds of sources; and the recorder decodes what clients send, it reads no logs",
	},
	{
		Of: []string{""}, Except: []string{"trace/packets"}, Direct: gopacket,
		Why: "packet captures are read in one place",
	},
	{
		Of: []string{""}, Except: []string{"trace/foreign"}, Direct: []string{"olympos.io/encoding/edn"},
		Why: "EDN is read in one place, which bounds how deep it nests",
	},
	{
		Of: []string{""}, Except: []string{"report/columnar"}, Direct: []string{"github.com/parquet-go/parquet-go"},
		Why: "Parquet is written in one place",
	},
	{
		Of: []string{"trace/packets/wire"}, Direct: gopacket,
		Why: "a decoder takes bytes, whether a packet capture or a proxy has them",
	},
	{
		Of: []string{"lab"}, Except: judging, Never: append([]string{"proxy", "live", "report", "configs", "cmd"}, judging...),
		Why: "cases are written, executed, reduced and replayed without a verdict; a panel joins the lab with the oracles",
	},
	{
		Of: judging, Never: []string{"configs", "cmd"},
		Why: "a panel and its users are called with values; flags, settings and the exit status belong to cmd",
	},
	{
		Of: []string{"configs"}, Never: []string{"proxy", "live", "oracle", "scheduler", "backends", "lab", "cmd", "internal"},
		Why: "the configuration is data; only cmd joins it with the parts",
	},
	{
		Of: []string{"statement"}, Never: []string{"oracle", "scheduler", "rewrite"},
		Why: "a description tells what a text says; plans are made of it, not the other way round",
	},
	{
		Of: []string{""}, Except: []string{"statement/pgsyntax", "statement/postgres", "rewrite/postgres", "lab/reduce/postgres"}, Direct: []string{"github.com/pganalyze/pg_query_go/v6"},
		Why: "who reads PostgreSQL's trees is few; only statement/pgsyntax calls the parser (its TestGate)",
	},
	{
		Of: []string{""}, Except: []string{"statement/mysqlsyntax"}, Direct: []string{"github.com/pingcap/tidb/pkg/parser"},
		Why: "TiDB's parser is called in one place, which bounds what it is given",
	},
	{
		Of: []string{"report"}, Never: []string{"proxy", "live", "scheduler", "backends", "lab", "configs", "cmd"},
		Why: "a report is made from findings alone, live or long after",
	},
	{
		Of: []string{"report/page"}, Direct: []string{"os", "os/exec", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand", "github.com/rs/zerolog"},
		Why: "a page is bytes made of findings: the same ones on disk and live, with nothing loaded from elsewhere",
	},
	{
		Of: []string{""}, Except: []string{"cmd"}, Never: []string{"cmd"},
		Why: "cmd joins the parts; no part knows it",
	},
	{
		Of: []string{""}, Except: []string{"internal/testserver", "internal/browser", "oracle/schedule/scheduletest"},
		Direct: []string{"testing", "github.com/google/go-cmp/cmp", "pgregory.net/rapid", "wirecheck/internal/testserver", "wirecheck/internal/browser", "wirecheck/internal/deeptext",
			"github.com/duckdb/duckdb-go/v2"},
		Why: "what is for tests stays in tests",
	},
	{
		Of: []string{""}, Except: []string{"cmd", "live/web"}, Never: []string{"live/web"},
		Why: "who watches a proxy is not part of it: the command joins them",
	},
	{
		Of: []string{""}, Except: []string{"live/web"}, Direct: []string{"github.com/prometheus/client_golang/prometheus", "net/http/pprof"},
		Why: "what runs counts for itself; one package tells Prometheus and serves profiles",
	},
	{
		Of: []string{""}, Except: []string{"internal/browser"}, Direct: []string{"github.com/chromedp/chromedp"},
		Why: "a browser is driven by tests alone, and started in one place",
	},
	{
		Of: []string{""}, Except: []string{"proxy/pgwire"}, Direct: []string{"github.com/jackc/pgproto3/v2"},
		Why: "pgproto3/v2 is frozen; behind one package it can be exchanged",
	},
}

// Check gives a line for each import that breaks a rule. module is the path of the module that the rules speak of.
func Check(module string, rules []Rule, packages []Package) []string {
	var broken []string
	for _, r := range rules {
		for _, p := range packages {
			if !covers(module, r.Of, p.ImportPath) || covers(module, r.Except, p.ImportPath) {
				continue
			}
			for _, path := range r.breaks(module, p, packages) {
				broken = append(broken, fmt.Sprintf("%s imports %s: %s", p.ImportPath, path, r.Why))
			}
		}
	}
	slices.Sort(broken)
	return slices.Compact(broken)
}

// breaks lists the imports of p that the rule forbids.
func (r Rule) breaks(module string, p Package, packages []Package) []string {
	var bad []string
	for _, path := range p.Deps {
		if r.StandardOnly && !standard(path, packages) && !covers(module, r.And, path) || covers(module, r.Never, path) {
			bad = append(bad, path)
		}
	}
	for _, path := range p.Imports {
		if slices.Contains(r.Direct, path) {
			bad = append(bad, path)
		}
	}
	return bad
}

// covers reports whether path is one of the module's folders or below it; the folder "" is the whole module.
func covers(module string, folders []string, path string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		full := strings.TrimSuffix(module+"/"+folder, "/")
		return path == full || strings.HasPrefix(path, full+"/")
	})
}

func standard(path string, packages []Package) bool {
	i := slices.IndexFunc(packages, func(p Package) bool { return p.ImportPath == path })
	return i >= 0 && packages[i].Standard
}
