package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"wirecheck/configs"
)

// The values of --unit besides auto.
const (
	unitTransaction = "transaction"
	unitRequest     = "request"
)

// unitFlags say what must be serializable.
type unitFlags struct {
	unit     string
	possible bool
}

func (f *unitFlags) flags(flags *pflag.FlagSet) {
	f.flag(flags)
	flags.BoolVar(&f.possible, "possible", false, "also report what may be an anomaly between requests, where it cannot be seen whether the write depends on the read")
}

func (f *unitFlags) flag(flags *pflag.FlagSet) {
	flags.StringVar(&f.unit, "unit", configs.Units[0], "what must be serializable: transaction, request (its transactions share tags, or no pause parts them), or auto: requests where tags or pauses show them")
}

func (f *unitFlags) check() error {
	if !slices.Contains(configs.Units, f.unit) {
		return fmt.Errorf("unit %q: expected one of %s", f.unit, strings.Join(configs.Units, ", "))
	}
	return nil
}
