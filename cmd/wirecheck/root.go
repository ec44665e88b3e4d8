package main

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"wirecheck/backends"
	"wirecheck/configs"
	"wirecheck/lab/panel"
	"wirecheck/trace/secret"
)

// common is what all commands share: the flags that they have in common, and where they write.
type common struct {
	format     string
	seed       uint64
	logLevel   string
	noProgress bool
	orders     uint // txcheck's, for each case; 0, where no command has the flag: 1

	stdout, stderr io.Writer      // results; logs, progress and errors
	line           *progressLine  // of stderr
	log            zerolog.Logger // ready when a command runs

	// patience is how long, in nanoseconds, a command may take to end after a signal.
	patience *atomic.Int64
	args     []string // the command line
}

func newCommon(stdout, stderr io.Writer) *common {
	c := &common{stdout: stdout, stderr: stderr, line: &progressLine{to: stderr}, patience: new(atomic.Int64)}
	c.endWithin(5 * time.Second)
	return c
}

// labPatience is for commands that have databases to remove, on a busy machine.
const labPatience = 30 * time.Second

// fleetPatience is for commands that wait for NATS, up to 5 seconds for an answer: to what they are at, that a finding and the position are written down, and
// that warnings are heard.
const fleetPatience = 20 * time.Second

// endWithin bounds the time that the command takes to end after a signal.
func (c *common) endWithin(d time.Duration) { c.patience.Store(int64(d)) }

// formats are the values of --format. A command that cannot give one of them refuses it (see takes).
var formats = append(slices.Clone(findingFormats), formatSVG, formatScenario, "isolationtester", "matrix")

func newRootCommand(stdout, stderr io.Writer) *cobra.Command {
	return newCommon(stdout, stderr).rootCommand()
}

func (c *common) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "wirecheck",
		Short: "See the isolation anomalies of an application, live",
		Long: `wirecheck is a proxy for PostgreSQL, MariaDB and MySQL. It sees which version of
which row every statement reads and writes. From that it finds the anomalies
that the isolation level lets through (lost update, write skew, read skew), and
names the transactions, the statements, the rows and the remedy.

A URL on a command line shows its password to other users of the machine. Leave
it out: every command that connects takes the password from the environment
variable ` + backends.PasswordVariable + `, or from the first line of the file that
` + backends.PasswordFileVariable + ` names.

Exit status: 0 nothing found, 1 something found, 2 wirecheck could not do its
work, 3 wirecheck could not decide.`,
		Example: `  wirecheck demo
  wirecheck proxy --listen postgres://127.0.0.1:6432 --upstream postgres://127.0.0.1:5432 --mode observe
  wirecheck check history.jsonl`,
		SilenceUsage:      true,
		SilenceErrors:     true, // run prints them
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return c.setUp(cmd) },
	}
	root.Version = strings.TrimPrefix(readVersion(debug.ReadBuildInfo()).String(), "wirecheck ") // cobra puts "wirecheck version" in front
	root.SetUsageFunc(usage)
	root.SetOut(c.stdout)
	root.SetErr(c.stderr)
	root.SetFlagErrorFunc(flagError)
	flags := root.PersistentFlags()
	flags.StringVar(&c.format, "format", "text", "format of the results: "+strings.Join(formats, ", "))
	flags.Uint64Var(&c.seed, "seed", 0, "seed of every random choice; 0: wirecheck chooses one and prints it")
	flags.StringVar(&c.logLevel, "log-level", "info", "lowest level that is logged: "+strings.Join(configs.LogLevels, ", "))
	flags.BoolVar(&c.noProgress, "no-progress", false, "show no progress, not even on a terminal")

	root.AddCommand(
		newAdviseCommand(c),
		newCheckCommand(),
		newCICommand(c),
		newCollectCommand(c),
		newConvertCommand(),
		newDemoCommand(c),
		newExplainCommand(c),
		newExploreCommand(c),
		newHealthCommand(c),
		newProxyCommand(c),
		newRunCommand(c),
		newReplayCommand(c),
		newHuntCommand(c),
		newReduceCommand(c),
		newInstrumentCommand(c),
		newEnginesCommand(c),
		newTraceCommand(c),
		newVersionCommand(c),
		newManCommand(c),
	)
	completeValues(root)
	argumentErrors(root)
	return root
}

// chooseSeed chooses a seed if the user gave none.
func (c *common) chooseSeed() uint64 {
	c.random()
	return c.seed
}

// judging is how the command's flags let cases be judged.
func (c *common) judging() panel.Options {
	return panel.Options{Log: c.log, Seed: c.seed, Orders: c.orders}
}

// setUp checks the common flags and makes the logger.
func (c *common) setUp(cmd *cobra.Command) error {
	if err := takesOf(cmd).needFormat(c.format); err != nil {
		return err
	}
	if !slices.Contains(configs.LogLevels, c.logLevel) {
		return fmt.Errorf("unknown log level %q: known are %s", c.logLevel, strings.Join(configs.LogLevels, ", "))
	}
	if slices.Contains([]string{"demo", "explain", "run", "replay", "advise", "hunt", "reduce", "add", "remove", "start"}, cmd.Name()) {
		c.endWithin(labPatience)
	}
	c.log = zerolog.New(c.logLines(c.line)).Level(levelOf(c.logLevel)).With().Timestamp().Logger()
	if slices.ContainsFunc(c.args, func(arg string) bool { return secret.URLs(arg) != arg }) {
		c.log.Warn().Strs("instead", []string{backends.PasswordVariable, backends.PasswordFileVariable}).
			Msg("a URL on the command line has a password, which other users of the machine can see")
	}
	return nil
}

// levelOf is the level that a user names.
func levelOf(name string) zerolog.Level {
	if name == "off" {
		return zerolog.Disabled
	}
	level, err := zerolog.ParseLevel(name)
	if err != nil {
		panic(err) // configs.LogLevels has no other ones
	}
	return level
}

// logLines gives the log the form that suits stderr.
func (c *common) logLines(w io.Writer) io.Writer {
	if terminal(c.stderr) {
		return zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly, NoColor: os.Getenv("TERM") == "dumb"} // it knows NO_COLOR
	}
	return w
}

// ordersFlag gives a command that asks oracles the one setting that one of them has.
func ordersFlag(flags *pflag.FlagSet, c *common) {
	flags.UintVar(&c.orders, "orders", 1, "topological orders that txcheck executes for each case")
}

// random makes the one random source of a run and tells its seed, which repeats the run.
func (c *common) random() *mathrand.Rand {
	if c.seed == 0 {
		var b [8]byte
		rand.Read(b[:])                               // never fails (crypto/rand, since Go 1.24)
		c.seed = binary.LittleEndian.Uint64(b[:]) | 1 // not 0
		c.log.Info().Uint64("seed", c.seed).Msg("seed chosen")
	}
	return mathrand.New(mathrand.NewPCG(c.seed, 0))
}

func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
