package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newManCommand is for those who make packages; make release calls it.
func newManCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:     "man FOLDER",
		Short:   "Write the manual pages into a folder",
		Hidden:  true,
		Example: "  wirecheck man /usr/local/share/man/man1",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("write the manual pages: %w", err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // the same source gives the same pages
			return doc.GenManTree(root, &doc.GenManHeader{Title: "WIRECHECK", Section: "1", Source: "wirecheck", Manual: "wirecheck"}, args[0])
		},
	}
}
