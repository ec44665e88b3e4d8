package engine

import (
	"os"
	"path/filepath"
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
	Name string // what tells it from others of the product: "2025-11", "15"; empty if there is only one
	Bin  string // the folder of its programs (Options.Bin)
}
