package suite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"wirecheck/backends"
	"wirecheck/lab/panel"
	"wirecheck/lab/scenario"
)

// keep writes the scenario that shows what was found in a permutation, and tells the command.
func (r *runner) keep(spec *scenario.Spec, p *scenario.Permutation, s *backends.Instance, report *panel.CaseReport) error {
	if len(report.Findings) == 0 {
		return nil
	}
	var oracles []string
	for i := range report.Findings {
		if name := report.Findings[i].Oracle; !slices.Contains(oracles, name) {
			oracles = append(oracles, name)
		}
	}
	w := spec.Reproducer(p, scenario.Target{Engine: s.Engine.Name, Level: report.Level}, oracles, r.o.Judging.Seed)
	text, err := w.Print()
	if err != nil {
		r.o.Judging.Log.Warn().Err(err).Msg("the scenario that shows the finding cannot be written as a file")
		return nil
	}
	report.Case = text
	if r.o.Out == "" {
		return nil
	}
	if err := os.MkdirAll(r.o.Out, 0o700); err != nil {
		return fmt.Errorf("keep what was found: %w", err)
	}
	base := strings.TrimSuffix(filepath.Base(spec.Name), ".spec")
	name := fmt.Sprintf("%s-%s-%s-%d.spec", base, s.Engine.Name, strings.ReplaceAll(report.Level, " ", "-"), report.N)
	path := filepath.Join(r.o.Out, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return errors.Join(errors.New("keep what was found"), err)
	}
	report.Kept = path
	return nil
}
