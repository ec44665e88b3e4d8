package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionInfo is what is known of this build.
type versionInfo struct {
	Version  string `json:"version"`            // of the module; "(devel)" for a build from a working tree
	Revision string `json:"revision,omitempty"` // of the source, if the build knew it
	Time     string `json:"time,omitempty"`     // of the revision
	Modified bool   `json:"modified,omitempty"` // the working tree had changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersionCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  wirecheck version\n  wirecheck version --format json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := readVersion(debug.ReadBuildInfo())
			if c.format == "json" {
				return json.NewEncoder(c.stdout).Encode(v)
			}
			_, err := fmt.Fprintln(c.stdout, v)
			return err
		},
	}
}

func readVersion(info *debug.BuildInfo, ok bool) versionInfo {
	v := versionInfo{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// String is one line for people.
func (v versionInfo) String() string {
	s := "wirecheck " + v.Version
	if v.Revision != "" {
		s += " " + v.Revision
	}
	if v.Time != "" {
		s += " of " + v.Time
	}
	if v.Modified {
		s += " (modified)"
	}
	return s + ", " + v.Go + ", " + v.Platform
}
