package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"wirecheck/history"
	"wirecheck/history/observed"
	"wirecheck/history/prose"
	"wirecheck/offline"
	"wirecheck/oracle"
	"wirecheck/oracle/inferred"
	"wirecheck/oracle/level"
	"wirecheck/report"
	"wirecheck/trace/foreign"
)

// The inputs that are no format of package foreign.
const (
	inputAuto   = "auto"
	inputNative = "native"
)

// inputs are the values of --input.
var inputs = append([]string{inputAuto, inputNative}, foreign.Formats...)

// outputBinary is the native form in fewer bytes.
const outputBinary = "binary"

// convertible are the values of --to.
var convertible = append([]string{inputNative, outputBinary}, foreign.Formats...)

// checkInput refuses an unknown format.
func checkInput(input string) error {
	if slices.Contains(inputs, input) {
		return nil
	}
	return fmt.Errorf("unknown input %q: use %s", input, strings.Join(inputs, ", "))
}

// detectBytes is how much of a file is read to recognise its format.
const detectBytes = 64 << 10

// openHistory opens a file, or standard input, and says what its format is. The reader begins at the file's beginning, and can seek if the file can.
func openHistory(cmd *cobra.Command, path, input string) (in io.Reader, name, format string, done func(), err error) {
	file, name, done := cmd.InOrStdin(), "standard input", func() {}
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, "", "", nil, fmt.Errorf("open history: %w", err)
		}
		file, name, done = f, path, func() { _ = f.Close() } // read only: nothing can be lost
	}
	in = file
	if format = input; input != inputAuto {
		return in, name, format, done, nil
	}
	var begin []byte
	if f, ok := file.(io.ReadSeeker); ok && offline.Seekable(f) {
		begin, err = io.ReadAll(io.LimitReader(f, detectBytes))
		if err == nil {
			_, err = f.Seek(int64(-len(begin)), io.SeekCurrent)
		}
		if err != nil {
			done()
			return nil, "", "", nil, fmt.Errorf("read %s: %w", name, err)
		}
	} else {
		head := bufio.NewReaderSize(file, detectBytes)
		begin, _ = head.Peek(detectBytes) // whatever is wrong with it the reader says
		in = head
	}
	format = cmp.Or(foreign.Detect(begin), inputNative)
	return in, name, format, done, nil
}

// foreignFlags are what a foreign history is judged by.
type foreignFlags struct {
	level, format string
	asked         *level.Level // of the literature, or nil
	strict        bool
	jepsen        bool
	known         baseline
}

// The exit statuses of Jepsen's own commands (jepsen.cli); 0 is valid and 1 invalid there, too.
const (
	jepsenUnknown exitStatus = 2
	jepsenUsage   exitStatus = 254
	jepsenCrash   exitStatus = 255
)

// blank reports whether a file has nothing in it, or no more than the brackets of an empty list.
func blank(in io.Reader) bool {
	begin, err := io.ReadAll(io.LimitReader(in, detectBytes))
	return err == nil && len(begin) < detectBytes && strings.Trim(string(begin), " \t\r\n,[]()\ufeff") == ""
}

// checkForeign judges a history of another checker's format and prints the result.
func checkForeign(cmd *cobra.Command, in io.Reader, path, name, format string, flags foreignFlags) error {
	h, err := foreign.Read(in, format, name)
	if err != nil {
		return err
	}
	h.KnownInitial = h.KnownInitial || flags.jepsen && (format == foreign.Elle || format == foreign.JepsenJSON) // keys of its tests begin with nothing
	shows := showsLevels(flags.asked, flags.format)
	found := inferred.Check(h, inferred.Options{Order: flags.strict || flags.jepsen && flags.level == "" && flags.asked == nil, Levels: shows || flags.jepsen})
	judge, named := flags.asked, flags.level
	switch {
	case flags.level != "":
		judge = level.OfSQL(flags.level)
	case flags.asked != nil:
		named = flags.asked.Name
	}
	if judge != nil || flags.jepsen {
		inferred.At(judge, named, found.Findings)
	}
	result := report.Result{Source: path, Findings: found.Findings, Coverage: found.Coverage, Undecided: found.Undecided}
	levels := &report.Levels{Weakest: level.Weakest(found.Levels), Strongest: level.Strongest(found.Levels), Unsure: found.Unsure, Verdicts: found.Levels, Apart: true}
	switch {
	case flags.asked != nil:
		levels.Asked = flags.asked.Name
	case flags.jepsen && judge != nil:
		levels.Asked = judge.Name
	}
	if shows {
		result.Levels = levels
	}
	if err := flags.known.apply(&result, time.Now()); err != nil {
		return err
	}
	if err := printResult(cmd.OutOrStdout(), result, flags.format, path); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	asked := flags.asked != nil && flags.level == ""
	decided := report.Result{Levels: levels} // where the findings mean nothing, a level may be known
	switch {
	case asked && flags.jepsen && levelStatus(decided) == exitUnknown:
		return jepsenUnknown
	case asked:
		return levelStatus(decided)
	case flags.jepsen:
		return jepsenStatus(result.Findings, levels)
	}
	return status(result)
}

// jepsenStatus is the exit status as Jepsen's commands give it: what the level that was asked for allows is valid; none stands for strict serializability.
func jepsenStatus(findings []oracle.Finding, levels *report.Levels) error {
	state := levels.Verdict(cmp.Or(levels.Asked, "strict serializable")).State
	switch {
	case state == level.Broken || slices.ContainsFunc(findings, func(f oracle.Finding) bool { return f.Kind == oracle.KindViolation }):
		return exitFound
	case state == level.Unknown:
		return jepsenUnknown
	}
	return nil
}

// asJepsen gives an error of wirecheck's the exit status that Jepsen's commands have for it.
func asJepsen(cmd *cobra.Command, err error, usage bool) error {
	var known exitStatus
	if err == nil || errors.As(err, &known) {
		return err
	}
	say(cmd.ErrOrStderr(), "wirecheck: %v", err)
	if usage {
		return jepsenUsage
	}
	return jepsenCrash
}

// newConvertCommand makes "wirecheck convert".
func newConvertCommand() *cobra.Command {
	var input, to, output string
	cmd := &cobra.Command{
		Use:   "convert HISTORY",
		Short: "Write a history in the format of another checker",
		Long: `convert reads a history in any of the formats that check knows and writes it in
another one. What the other format cannot say is an error, but for real time:
Plume's and dbcop's formats have none, and Jepsen's has nothing else, so a
history without it gets one that means nothing; convert then warns.

A history of wirecheck's own (native), or the one in a trace (.wct) that a proxy
recorded in mode observe, becomes one of registers: the keys are rows, the
values are the versions' ids. To "native" and "binary" all of it is kept;
"binary" is the form that check reads fastest.`,
		Example: `  wirecheck convert --to plume history.edn > history.txt
  wirecheck convert --to elle --output shop.edn shop.jsonl
  wirecheck convert --to binary --output shop.bin shop.wct`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkInput(input); err != nil {
				return err
			}
			if !slices.Contains(convertible, to) {
				return fmt.Errorf("unknown format %q: use --to with one of %s", to, strings.Join(convertible, ", "))
			}
			in, name, format, done, err := openHistory(cmd, args[0], input)
			if err != nil {
				return err
			}
			defer done()
			recorded := offline.Input{In: in, Path: args[0], Name: name}
			if format == inputNative && (to == inputNative || to == outputBinary) {
				return writeTo(cmd, output, func(w io.Writer) error { return copyEvents(w, recorded, to) })
			}
			h, err := readAny(recorded, format)
			if err != nil {
				return err
			}
			for reason, n := range h.Omitted {
				fmt.Fprintf(cmd.ErrOrStderr(), "wirecheck: warning: left out %d times: %s\n", n, reason)
			}
			if !h.Ordered && (to == foreign.Elle || to == foreign.JepsenJSON) {
				fmt.Fprintln(cmd.ErrOrStderr(), "wirecheck: warning: the history shows no real time; that of the result means nothing, but for the order of each session")
			}
			if n := h.Unordered(); n > 0 && to == inputNative {
				fmt.Fprintf(cmd.ErrOrStderr(), "wirecheck: warning: the history does not show the order of the versions of %s: a check of the result does not find what needs it\n", prose.Count(n, "key"))
			}
			return writeTo(cmd, output, func(w io.Writer) error {
				switch to {
				case inputNative:
					return observed.WriteNative(w, h)
				case outputBinary:
					return errors.New("only a history of wirecheck's own has a binary form: convert to native first")
				}
				return foreign.Write(w, h, to)
			})
		},
	}
	cmd.Flags().StringVar(&input, "input", inputAuto, "format of the history: "+strings.Join(inputs, ", "))
	cmd.Flags().StringVar(&to, "to", "", "format of the result: "+strings.Join(convertible, ", "))
	cmd.Flags().StringVar(&output, "output", "", "write the result to this file, which must not exist (default: standard output)")
	return cmd
}

// readAny reads a history in any format as one of keys and values.
func readAny(in offline.Input, format string) (h *observed.History, err error) {
	if format != inputNative {
		return foreign.Read(in.In, format, in.Name)
	}
	var missing []string
	_, next, done, err := offline.Open(in, func(text string) { missing = append(missing, text) })
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	if h, err = observed.ReadNative(next); err != nil {
		return nil, notObserved(err)
	}
	for _, text := range missing {
		h.Omit(text)
	}
	return h, nil
}

// writeTo writes to a new file, or to standard output. Of what failed no file stays.
func writeTo(cmd *cobra.Command, path string, write func(io.Writer) error) error {
	if path == "" {
		return write(cmd.OutOrStdout())
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// copyEvents writes a history of wirecheck's own as JSON lines or in the binary form.
func copyEvents(w io.Writer, in offline.Input, to string) (err error) {
	missing := error(nil)
	header, next, done, err := offline.Open(in, func(text string) { missing = errors.Join(missing, errors.New(text)) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	var out interface {
		Write(*history.Event) error
		Flush() error
	}
	if to == outputBinary {
		out, err = history.NewBinaryWriter(w, header)
	} else {
		out, err = history.NewWriter(w, header)
	}
	var e history.Event
	for err == nil {
		if err = next(&e); err == nil {
			err = out.Write(&e)
		}
	}
	if !errors.Is(err, io.EOF) {
		return notObserved(err)
	}
	return errors.Join(out.Flush(), missing)
}
