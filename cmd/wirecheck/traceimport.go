package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"wirecheck/trace"
	"wirecheck/trace/logs"
	"wirecheck/trace/packets"
	"wirecheck/trace/source"
)

func newTraceImportCommand(c *common) *cobra.Command {
	var o source.Options
	var output string
	var names []string
	formats := append([]source.Format{packets.Format()}, logs.Formats()...)
	for _, f := range formats {
		names = append(names, f.Name)
	}
	cmd := &cobra.Command{
		Use:   "import FILE... -o FILE",
		Short: "Make a trace file from server logs or a packet capture",
		Long: `import makes a trace file from server logs or a packet capture. It reports
what the source does not contain and which server settings add it. import
recognises the format of each file, unless --format names it. Several files of
one format are one log: name them in their order. Files may be compressed (gzip,
zstd).

  csvlog, jsonlog  PostgreSQL, best with log_statement = all, log_duration = on,
                   log_connections = on, log_disconnections = on,
                   log_lock_waits = on, deadlock_timeout = 10ms; also with
                   log_min_duration_statement = 0 alone, or with pgaudit
  stderr           PostgreSQL's log in text form; --prefix is its
                   log_line_prefix
  general          general query log of MySQL and MariaDB: the order of starts,
                   no ends
  slow             slow query log with long_query_time = 0 (MySQL:
                   log_slow_extra = ON) of MySQL, MariaDB, Percona Server, TiDB
  audit            MariaDB's server_audit: the order of starts and of ends,
                   errors
  pcap             packet capture (pcap, pcapng) of unencrypted traffic:
                   everything, results included

import counts the lines that it does not understand and shows the first ones.

Exit status: 0; 2 if wirecheck could not read a file; 3 if there is no statement
in it.`,
		Example: `  wirecheck trace import postgresql-*.csv -o shop.wct
  wirecheck trace import --format slow mysql-slow.log.gz -o shop.wct
  tcpdump -i any -s 0 -w shop.pcap port 5432   # for a while, then:
  wirecheck trace import shop.pcap -o shop.wct`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needOutput(output); err != nil {
				return err
			}
			return importTrace(cmd, c, formats, args, output, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Format, "format", "auto", "format of the files: auto, "+strings.Join(names, ", "))
	f.StringVar(&o.Prefix, "prefix", "", "log_line_prefix of a stderr log (default: the usual ones)")
	f.StringVar(&o.Product, "product", "", "product that wrote the log, if the log does not say: mysql, mariadb, tidb")
	f.IntSliceVar(&o.Ports, "port", nil, "server ports in a packet capture, for connections that began before it")
	f.IntVar(&o.Rows, "rows", source.DefaultRows, "rows of each result to keep; a digest covers all rows")
	outputFlag(cmd, &output)
	return cmd
}

func importTrace(cmd *cobra.Command, c *common, formats []source.Format, files []string, output string, o source.Options) error {
	var total int64
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("open log: %w", err)
		}
		total += info.Size()
	}
	o.Rows = cmp.Or(o.Rows, -1)
	read := int64(0)
	o.Read = func(n int64) {
		read += n
		c.progressOf(read, total, "import: %d of %d MB", read/1e6, total/1e6)
	}
	var reports []*source.Report
	err := writeTrace(output, trace.Header{Started: time.Now().UnixNano()}, func(w *trace.Writer) (err error) {
		o.Out = w.Write
		reports, err = source.Import(cmd.Context(), formats, files, o)
		var sources []trace.Source
		for _, r := range reports {
			sources = append(sources, r.Source())
		}
		w.SetSources(sources)
		return err
	})
	c.clearProgress()
	statements := 0
	for _, r := range reports {
		statements += r.Statements
		if e := r.Text(c.stdout); e != nil && err == nil {
			err = e
		}
	}
	if err == nil && statements == 0 {
		fmt.Fprintln(c.stderr, "wirecheck: no statement was found")
		return exitUnknown
	}
	return err
}
