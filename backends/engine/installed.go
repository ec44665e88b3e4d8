package engine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Installed is the folder in which servers are looked for that no package manager has put into PATH: one folder for each product and
// version, such as mysql or tidb-2025-11.
func Installed() string {
	cache, err := os.UserCacheDir() // $XDG_CACHE_HOME or ~/.cache
	if err != nil {
		return "" // without a home there is none
	}
	return filepath.Join(cache, "wirecheck-engines")
}

// Found is one server program on the machine.
type Found struct {
	Name    string   // what tells it from others of the product: "2025-11", "15"; empty if there is only one
	Bin     string   // the folder of its programs (Options.Bin)
	Version []string // the command that prints the version
	Built   string   // the version of a library that is part of this program: there is nothing to ask
}

var number = regexp.MustCompile(`[0-9]+(\.[0-9]+)+`)

// Ask asks the program for its version: "15.18". It is empty where the program gives none that is a number.
func (f Found) Ask(ctx context.Context) (string, error) {
	if f.Built != "" {
		return f.Built, nil
	}
	out, err := exec.CommandContext(ctx, f.Version[0], f.Version[1:]...).Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", f.Version[0], err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return number.FindString(line), nil
}
