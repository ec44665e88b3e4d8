package explore

import (
	"io"

	"wirecheck/report"
	"wirecheck/report/page"
)

// HTML writes it as a page.
func (a *Advice) HTML(w io.Writer) error {
	d := page.Of(report.Result{Source: a.Trace, Undecided: a.Undecided}, nil)
	d.Text = a.whole()
	return page.Write(w, d)
}
