package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"wirecheck/history"
	"wirecheck/offline"
	"wirecheck/oracle"
	"wirecheck/oracle/isolation"
	"wirecheck/report/columnar"
)

// formatParquet is the only format that export writes.
const formatParquet = "parquet"

func newTraceExportCommand(c *common) *cobra.Command {
	var format, out string
	var realTime bool
	cmd := &cobra.Command{
		Use:   "export HISTORY... --out DIR",
		Short: "Write histories and their dependencies in columns (Parquet)",
		Long: `export writes the row versions that a proxy recorded, and the dependencies
between transactions that follow from them, as Parquet files for DuckDB, Spark
and other programs: events.parquet, accesses.parquet and edges.parquet in a new
folder. It reads what "wirecheck check" reads: traces of mode observe and
histories, of several proxies in front of one database together.

The files have what the history has: redact a trace first ("wirecheck trace
redact"), if others are to read them.`,
		Example: `  wirecheck trace export shop.wct --out shop
  wirecheck trace export host1.wct host2.wct --out shop
  duckdb -c "SELECT kind, count(*) FROM 'shop/edges.parquet' GROUP BY kind"`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case format != formatParquet:
				return fmt.Errorf("export writes no %s: use --format %s", format, formatParquet)
			case out == "":
				return errors.New("no folder to write to: name it with --out")
			}
			inputs, found, done, err := openHistories(cmd, args, inputAuto)
			defer done()
			if err == nil && found != inputNative {
				err = fmt.Errorf("%s is a history of %s: only histories of wirecheck's own are exported (wirecheck convert --to native makes one)", inputs[0].Name, found)
			}
			if err != nil {
				return err
			}
			return c.export(cmd, inputs, out, realTime)
		},
	}
	f := cmd.Flags()
	f.StringVar(&format, "format", formatParquet, "format of the files: "+formatParquet)
	f.StringVar(&out, "out", "", "the folder to write; it must not exist, or be empty")
	f.BoolVar(&realTime, "real-time", false, "also write the dependencies of real time: one transaction was over before another began")
	return cmd
}

// export writes the columns of histories.
func (c *common) export(cmd *cobra.Command, inputs []offline.Input, out string, realTime bool) (err error) {
	if err := c.watch(cmd.Context(), inputs); err != nil {
		return err
	}
	var w *columnar.Writer
	discard := func() error {
		if w == nil {
			return nil
		}
		defer func() { w = nil }()
		return w.Discard()
	}
	j, err := judge(cmd, inputs, isolation.Options{Strict: true}, false, func(o *isolation.Options) (func(int, *history.Event) error, error) {
		err := discard() // of a reading that must begin again
		if err != nil {
			return nil, err
		}
		if w, err = columnar.Create(out); err != nil {
			return nil, err
		}
		o.Dependencies = func(d isolation.Dependency) {
			if realTime || d.Kind != oracle.EdgeRT {
				w.Edge(d)
			}
		}
		return w.Event, nil
	})
	c.clearProgress()
	if err == nil && j.Checker.Broken() != "" {
		err = fmt.Errorf("the dependencies of %s cannot be told (this is a defect of wirecheck): %s", sourceOf(inputs), j.Checker.Broken())
	}
	if err != nil {
		return errors.Join(err, discard())
	}
	n, err := w.Close()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.stdout, "%s: %d events, %d accesses, %d edges\n", out, n.Events, n.Accesses, n.Edges)
	return err
}

// watch lets the reading of files end with a context, and shows how far it has come.
func (c *common) watch(ctx context.Context, inputs []offline.Input) error {
	p := &exportProgress{c: c}
	for i := range inputs {
		in := &inputs[i]
		f, ok := in.In.(*os.File)
		if !ok || !offline.Seekable(f) {
			in.In, p.total = interruptible{ctx, in.In}, -1
			continue
		}
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if p.total >= 0 {
			p.total += info.Size()
		}
		in.In = watched{interruptible{ctx, f}, f, p}
	}
	return nil
}

// exportProgress is how much of the files has been read.
type exportProgress struct {
	c           *common
	read, total int64 // total -1: not known
}

// watched is a file whose reading is shown.
type watched struct {
	interruptible
	io.Seeker
	p *exportProgress
}

// Read reads.
func (w watched) Read(b []byte) (int, error) {
	n, err := w.interruptible.Read(b)
	w.p.read += int64(n)
	if w.p.total < 0 {
		w.p.c.progressf("export: %d MB", w.p.read/1e6)
	} else {
		w.p.c.progressOf(w.p.read, w.p.total, "export: %d of %d MB", w.p.read/1e6, w.p.total/1e6)
	}
	return n, err
}

// Seek begins again.
func (w watched) Seek(offset int64, whence int) (int64, error) {
	if offset == 0 && whence == io.SeekStart {
		w.p.read = 0
	}
	return w.Seeker.Seek(offset, whence)
}
