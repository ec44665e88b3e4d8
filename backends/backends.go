// Package backends lists the products that wirecheck knows. Each has its own package below; a new one is a package and
// one line here.
package backends

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"wirecheck/backends/engine"
	"wirecheck/backends/mariadb"
	"wirecheck/backends/mysql"
	"wirecheck/backends/postgres"
	"wirecheck/backends/sqlite"
	"wirecheck/backends/tidb"
)

// All lists the products in the order in which they are shown.
func All() []engine.Descriptor {
	return []engine.Descriptor{
		postgres.Descriptor(),
		mariadb.Descriptor(),
		mysql.Descriptor(),
		tidb.Descriptor(),
		sqlite.Descriptor(),
	}
}

// ByName finds a product by its name or by the scheme of its URLs. A version on the machine can stand behind a colon, as
// Descriptor.Find names it: tidb:2023-01, postgres:15. Then Start takes that one.
func ByName(name string) (engine.Descriptor, error) {
	name, version, chosen := strings.Cut(name, ":")
	d, err := byName(name)
	if err != nil || !chosen {
		return d, err
	}
	var names []string
	for _, f := range d.Find() {
		if f.Name == version {
			start := d.Start
			d.Start = func(ctx context.Context, o engine.Options) (*engine.Server, error) {
				o.Bin = cmp.Or(o.Bin, f.Bin)
				return start(ctx, o)
			}
			return d, nil
		}
		names = append(names, name+":"+f.Name)
	}
	if len(names) == 0 {
		return engine.Descriptor{}, fmt.Errorf("no %s on this machine; install it with: %s", d.Title, d.Install)
	}
	return engine.Descriptor{}, fmt.Errorf("no %s %q on this machine: there is %s", d.Title, version, strings.Join(names, ", "))
}

func byName(name string) (engine.Descriptor, error) {
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
