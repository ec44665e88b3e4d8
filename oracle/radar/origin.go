package radar

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
)

// call finds what may be the call of a function; keyword what only looks like one, and aggregates, which have no value of a row.
var (
	call    = regexp.MustCompile(`[A-Za-z_]\w*\(`)
	keyword = regexp.MustCompile(`(?i)^(?:in|as|on|and|or|not|any|all|some|exists|values|using|over|by|when|then|else|where|having|select|row|with|count|sum|avg|min|max|std\w*|var\w*|bit_and|bit_or|bit_xor|\w*_agg|group_concat|json_\w*agg)\($`)
)

// calls are the calls of functions in a query's text, the innermost first.
func calls(text string) (list []string) {
	for _, at := range call.FindAllStringIndex(text, -1) {
		if keyword.MatchString(text[at[0]:at[1]]) {
			continue
		}
		inside := strings.Join(schedule.Items(text[at[1]:]), ",")
		if end := at[1] + len(inside); end < len(text) && !selects.MatchString(inside) {
			list = append(list, text[at[0]:end+1])
		}
	}
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	return slices.Compact(list)
}

var selects = regexp.MustCompile(`(?i)\bselect\b`)

// Named gives a finding whose origin is known of the product its cause.
func Named(p *product.Product, f *oracle.Finding) {
	if known := p.Cause(product.FirstType); known != nil && f.Difference.Cause == "" && f.Difference.Function() == "ifnull" {
		f.Because(known)
	}
}

// origin finds the innermost call of a function whose type is another one on the two databases: all around it only shows that. No optional metadata but NOT NULL
// has a say in a type, and that only in whether the type has NULL.
func (c *checker) origin(ctx context.Context, asked *schedule.Step, now answer.State, d *oracle.Difference) error {
	st := &asked.Statement
	if now == answer.Failed || st.SetOperation || st.Clauses.From == "" {
		return nil
	}
	from := statement.Clauses{With: st.Clauses.With, From: st.Clauses.From}
	for _, expression := range calls(st.Text) {
		sql := from.Query(expression)
		here, err := schedule.Ask(ctx, c.stage, asked.Session, sql, now, c.s.DBMS().ErrorFails)
		if err != nil {
			return err
		}
		there, err := c.o.Raw.Execute(ctx, asked.Session, sql)
		if err != nil {
			return err
		}
		a, b := here.Answer.Columns, there.Answer.Columns
		if len(a) == 1 && len(b) == 1 && a[0].Type != b[0].Type && a[0].Type != "" && b[0].Type != "" {
			d.Origin, d.Types = expression, fmt.Sprintf("%s, and %s in the raw database", a[0].Type, b[0].Type)
			return nil
		}
	}
	return nil
}
