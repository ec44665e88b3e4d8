// Command wirecheck stands between clients and a DBMS, sees which row versions each statement reads and writes, and
// says which anomalies the isolation level lets through.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks for an orderly end; after it the signals have their usual effect, so a second one ends the
	// process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(int(run(ctx, os.Args[1:], os.Stdout, os.Stderr)))
}

// run executes the command line and gives the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) exitStatus {
	root := newRootCommand(stdout, stderr)
	root.SetArgs(args)
	return execute(ctx, root, stderr)
}

// execute executes a command and makes the exit status from its error, which is printed here and nowhere else.
func execute(ctx context.Context, cmd *cobra.Command, stderr io.Writer) exitStatus {
	err := cmd.ExecuteContext(ctx)
	var status exitStatus
	switch {
	case err == nil:
		return exitClean
	case errors.As(err, &status):
		return status
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "wirecheck: interrupted")
	default:
		fmt.Fprintf(stderr, "wirecheck: %v\n", err)
	}
	return exitFailed
}
