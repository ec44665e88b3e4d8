package main

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/spf13/cobra"

	"wirecheck/trace"
)

func newTraceRedactCommand(c *common) *cobra.Command {
	var o trace.ReadOptions
	var output string
	cmd := &cobra.Command{
		Use:   "redact FILE -o FILE",
		Short: "Replace all values of a trace by tokens",
		Long: `redact replaces literals, parameters, rows of results, the tags of sqlcommenter
and client addresses by tokens. It removes comments and the texts of errors.
Within one file, equal values have equal tokens. A number stays a number, a date
a date, a UUID a UUID and a string a string, so the statements still parse.
Names of tables, columns, users, databases and applications stay. redact uses a
random key and does not keep it.`,
		Example: `  wirecheck trace redact shop.wct -o redacted.wct`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needOutput(output); err != nil {
				return err
			}
			key := make([]byte, 32)
			rand.Read(key) // never fails (crypto/rand, since Go 1.24)
			return redactTrace(cmd.Context(), c, args[0], output, o, key)
		},
	}
	outputFlag(cmd, &output)
	damagedFlag(cmd, &o)
	return cmd
}

func redactTrace(ctx context.Context, c *common, path, output string, o trace.ReadOptions, key []byte) error {
	r := trace.NewRedactor(key)
	products := map[uint64]string{}
	n := 0
	err := copyTrace(path, output, o, func(h *trace.Header) { h.Redacted = true }, func(w *trace.Writer) error {
		return readTrace(ctx, c, path, o, false, func(rec *trace.Record) error {
			switch rec.Kind {
			case trace.KindSession:
				products[rec.Session] = rec.Open.Product
			case trace.KindEnd:
				defer delete(products, rec.Session)
			case trace.KindStatement:
				n++
			}
			r.Record(rec, products[rec.Session])
			return w.Write(rec)
		})
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "statements redacted: %d\n", n)
	return nil
}
