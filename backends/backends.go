// Package backends lists the products that wirecheck knows. Each has its own package below; a new one is a package and
// one line here.
package backends

import (
	"fmt"
	"strings"

	"wirecheck/backends/engine"
	"wirecheck/backends/mariadb"
	"wirecheck/backends/mysql"
	"wirecheck/backends/postgres"
)

// All lists the products in the order in which they are shown.
func All() []engine.Descriptor {
	return []engine.Descriptor{
		postgres.Descriptor(),
		mariadb.Descriptor(),
		mysql.Descriptor(),
	}
}

// ByName finds a product by its name or by the scheme of its URLs.
func ByName(name string) (engine.Descriptor, error) {
	var schemes []string
	for _, d := range All() {
		if d.Name == name {
			return d, nil
		}
		for _, s := range d.Schemes {
			if s == name {
				return d, nil
			}
			schemes = append(schemes, s)
		}
	}
	return engine.Descriptor{}, fmt.Errorf("unknown engine %q: known are %s", name, strings.Join(schemes, ", "))
}
