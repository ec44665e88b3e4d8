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
	"time"

	"github.com/spf13/cobra"

	"wirecheck/internal/spool"
	"wirecheck/lab/explore"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	c := newCommon(os.Stdout, os.Stderr)
	// The first signal asks for an orderly end. What comes within a second is the same wish: timeout(1) signals the process, and then its group. After
	// that the signals have their usual effect, so another one ends the process at once. So does the patience with a command that does not come to its end.
	context.AfterFunc(ctx, func() {
		time.AfterFunc(time.Second, stop)
		time.AfterFunc(time.Duration(c.patience.Load()), func() {
			say(os.Stderr, "wirecheck: interrupted; what it was at could not be ended in time")
			os.Exit(int(exitFailed))
		})
	})
	os.Exit(int(c.run(ctx, os.Args[1:])))
}

// run executes the command line and gives the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) exitStatus {
	return newCommon(stdout, stderr).run(ctx, args)
}

func (c *common) run(ctx context.Context, args []string) exitStatus {
	c.args = args
	root := c.rootCommand()
	root.SetArgs(args)
	return execute(ctx, root, c.line)
}

// say prints a last line without waiting for a pipe that nobody reads.
func say(stderr io.Writer, format string, args ...any) {
	w := spool.To(stderr, spool.Options{})
	fmt.Fprintf(w, format+"\n", args...)
	_ = w.Close(flushPatience) // whoever does not read the line does not miss it
}

// overStatus adds an error of the end, which is told in place of an exit status by what was found.
func overStatus(err, ended error) error {
	var status exitStatus
	if ended != nil && errors.As(err, &status) {
		return ended
	}
	return errors.Join(err, ended)
}

// execute executes a command and makes the exit status from its error, which is printed here and nowhere else.
func execute(ctx context.Context, cmd *cobra.Command, stderr io.Writer) exitStatus {
	ran, err := cmd.ExecuteContextC(ctx)
	var status exitStatus
	switch {
	case err == nil:
		return exitClean
	case errors.As(err, &status):
		return status
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		say(stderr, "wirecheck: interrupted")
	default:
		say(stderr, "wirecheck: %v", valueMeant(ran, err))
		if errors.Is(err, explore.ErrEmpty) {
			return exitUnknown
		}
	}
	return exitFailed
}
