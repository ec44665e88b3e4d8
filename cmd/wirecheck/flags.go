package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wirecheck/backends"
	"wirecheck/configs"
	"wirecheck/lab/panel"
	"wirecheck/product"
)

// invariantFlag adds --invariant, for lab.ParseInvariants. behind says what it is checked behind.
func invariantFlag(flags *pflag.FlagSet, texts *[]string, behind string) {
	flags.StringArrayVar(texts, "invariant", nil, "query that must give no rows behind "+behind+", or, as same:SELECT ..., the same rows before and after it; repeatable")
}

// takes says what of the common flags a command has a use for. Its help shows no others.
type takes struct {
	formats  []string // that it gives, the default first; one alone: --format is refused
	instead  string   // what gives the others
	seed     bool
	progress bool
}

// commandTakes has a row for each command that runs. Those without formats of their own write text.
var commandTakes = map[string]takes{
	"advise":            {formats: []string{"text", "json", formatHTML, "markdown"}, seed: true, progress: true},
	"check":             {formats: findingFormats},
	"ci":                {formats: []string{"text"}, instead: "--junit, --sarif, --json, --markdown and --html write files"},
	"collect":           {formats: findingFormats},
	"convert":           {},
	"demo":              {formats: []string{"text"}},
	"engines list":      {formats: []string{"text", "json"}},
	"engines start":     {formats: []string{"text", "json"}},
	"explain":           {formats: append(slices.Clone(findingFormats), formatSVG, formatScenario), progress: true},
	"explore":           {formats: []string{"text", "json"}, seed: true, progress: true},
	"health":            {formats: []string{"text"}},
	"hunt":              {formats: []string{"text", "json", formatHTML}, seed: true, progress: true},
	"hunt status":       {formats: []string{"text", "json"}},
	"instrument add":    {formats: []string{"text", "json"}, progress: true},
	"instrument remove": {formats: []string{"text", "json"}, progress: true},
	"instrument status": {formats: []string{"text", "json"}},
	"man":               {},
	"proxy":             {formats: findingFormats, seed: true},
	"reduce":            {formats: []string{"text"}, seed: true, progress: true},
	"replay":            {formats: []string{"text", "json", formatHTML}, seed: true, progress: true},
	"run":               {formats: []string{"text", "json", "junit", formatHTML, "isolationtester", "matrix", "markdown"}, seed: true, progress: true},
	"trace cut":         {},
	"trace export":      {progress: true},
	"trace import":      {progress: true},
	"trace redact":      {},
	"trace show":        {formats: []string{"text", "json", formatHTML}},
	"trace stats":       {formats: []string{"text", "json"}},
	"version":           {formats: []string{"text", "json"}},
}

func takesOf(cmd *cobra.Command) takes {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	return commandTakes[path]
}

// needFormat refuses a format that the command cannot give.
func (t takes) needFormat(format string) error {
	switch {
	case !slices.Contains(formats, format):
		known := t.formats
		if len(known) == 0 {
			known = formats
		}
		return fmt.Errorf("unknown format %q: use one of %s", format, strings.Join(known, ", "))
	case t.formats == nil || slices.Contains(t.formats, format):
		return nil
	}
	last := len(t.formats) - 1
	use := t.formats[last]
	if last > 0 {
		use = strings.Join(t.formats[:last], ", ") + " or " + use
	}
	if t.instead != "" {
		use += " (" + t.instead + ")"
	}
	return fmt.Errorf("this command gives no %s: use %s", format, use)
}

// usage says how a command is called. (cobra can take a template for it, which would need package text/template: see report/page on what that costs.)
func usage(cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:")
	if cmd.Runnable() {
		b.WriteString("\n  " + cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\n  " + cmd.CommandPath() + " [command]")
	}
	if cmd.HasExample() {
		b.WriteString("\n\nExamples:\n" + cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\n\nAvailable Commands:")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				fmt.Fprintf(&b, "\n  %-*s %s", sub.NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
	flags := func(title string, set *pflag.FlagSet) {
		if set.HasAvailableFlags() {
			b.WriteString("\n\n" + title + ":\n" + strings.TrimRight(set.FlagUsagesWrapped(helpWidth), " \n"))
		}
	}
	flags("Flags", cmd.LocalFlags())
	flags("Global Flags", shown(cmd))
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n\nUse \"%s [command] --help\" for more information about a command.", cmd.CommandPath())
	}
	_, err := fmt.Fprintln(cmd.OutOrStderr(), b.String())
	return err
}

// helpWidth is how many columns a help text has at most.
const helpWidth = 80

// shown are the common flags that the help of a command shows.
func shown(cmd *cobra.Command) *pflag.FlagSet {
	t, set := takesOf(cmd), pflag.NewFlagSet("", pflag.ContinueOnError)
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		copied := *f
		switch f.Name {
		case "format":
			copied.Usage = "format of the results: " + strings.Join(t.formats, ", ")
			copied.Hidden = len(t.formats) < 2
		case "seed":
			copied.Hidden = !t.seed
		case "no-progress":
			copied.Hidden = !t.progress
		}
		set.AddFlag(&copied)
	})
	return set
}

// flagValues are the values of flags that a shell completes, by the flag's name. Some flags take others besides.
func flagValues(cmd *cobra.Command, name string) []string {
	switch name {
	case "format":
		if t := takesOf(cmd); t.formats != nil {
			return t.formats
		}
	case "log-level":
		return configs.LogLevels
	case "engine":
		var names []string
		for _, d := range backends.All() {
			names = append(names, d.Name)
		}
		return names
	case "oracle":
		return append(strings.Split(panel.OracleNames(), ", "), "all", "none")
	case "level":
		names := []string{"all"}
		for _, level := range product.LevelNames {
			names = append(names, strings.ReplaceAll(level, " ", "-"))
		}
		return names
	case "input":
		return inputs
	case "unit":
		return configs.Units
	case "mode":
		return []string{"observe", "pass", "control"}
	case "capture":
		return []string{"auto", "columns", "native"}
	case "strategy":
		return []string{"random", "pct", "pct:3", "all"}
	case "permutations":
		return []string{"listed", "all", "random:10", "pct:10,3"}
	case "interleavings":
		return []string{"random:10", "pct:10,3", "all"}
	}
	return nil
}

// completeValues lets shells complete the values of all flags of a command and of those below it.
func completeValues(cmd *cobra.Command) {
	complete := func(f *pflag.Flag) {
		if _, has := cmd.GetFlagCompletionFunc(f.Name); has || flagValues(cmd, f.Name) == nil && f.Name != "format" {
			return
		}
		if err := cmd.RegisterFlagCompletionFunc(f.Name, func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			before := ""
			if i := strings.LastIndex(typed, ","); i >= 0 { // of a list, what comes next
				before = typed[:i+1]
			}
			var values []string
			for _, v := range flagValues(cmd, f.Name) {
				values = append(values, before+v)
			}
			return values, cobra.ShellCompDirectiveNoFileComp
		}); err != nil {
			panic(err) // the command has the flag
		}
	}
	cmd.LocalFlags().VisitAll(complete)
	for _, sub := range cmd.Commands() {
		completeValues(sub)
	}
}

// meant says which of the known words a wrong one may stand for; nothing if it is like none of them.
func meant(typed, prefix string, known []string) string {
	var names cobra.Command // cobra knows how to compare
	names.SuggestionsMinimumDistance = 2
	for _, k := range known {
		names.AddCommand(&cobra.Command{Use: k, Run: func(*cobra.Command, []string) {}})
	}
	like := names.SuggestionsFor(typed)
	if typed == "" || len(like) == 0 || slices.Contains(known, typed) {
		return ""
	}
	return "\n\nDid you mean this?\n\t" + prefix + strings.Join(like, "\n\t"+prefix) + "\n"
}

// onlyCommands refuses what is no command below this one.
func onlyCommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range cmd.Commands() {
		names = append(names, sub.Name())
	}
	return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), meant(args[0], "", names))
}

// flagError says of a flag that does not exist which one may be meant.
func flagError(cmd *cobra.Command, err error) error {
	like := ""
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		like = meant(unknown.GetSpecifiedName(), "--", names)
	}
	return fmt.Errorf("%w (see: %s --help)%s", err, cmd.CommandPath(), like)
}

// argumentErrors makes the commands below cmd say which arguments they take, where they get others.
func argumentErrors(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		argumentErrors(sub)
		takes := sub.Args
		if takes == nil || sub.HasSubCommands() {
			continue
		}
		sub.Args = func(cmd *cobra.Command, args []string) error {
			if takes(cmd, args) == nil {
				return nil
			}
			got := "no argument"
			if len(args) > 0 {
				got = fmt.Sprintf("%q", args)
			}
			return fmt.Errorf("expected: %s; got %s (see: %s --help)", cmd.UseLine(), got, cmd.CommandPath())
		}
	}
}

// valueMeant adds to an error that quotes the value of a flag which value may be meant.
func valueMeant(cmd *cobra.Command, err error) error {
	if _, ok := errors.AsType[exitStatus](err); ok {
		return err
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		for value := range strings.SplitSeq(strings.Trim(f.Value.String(), "[]"), ",") {
			if like := meant(value, "--"+f.Name+" ", flagValues(cmd, f.Name)); like != "" && strings.Contains(err.Error(), fmt.Sprintf("unknown %s %q", strings.ReplaceAll(f.Name, "-", " "), value)) {
				err = fmt.Errorf("%w%s", err, like)
			}
		}
	})
	return err
}
