package wss

import (
	"context"

	"wirecheck/oracle"
)

// judgement is what a difference means.
type judgement struct {
	kind                  oracle.Kind
	cause, reason, source string
}

func (c *check) judge(_ context.Context, found []difference) error {
	for i := range found {
		c.verdict.Findings = append(c.verdict.Findings, c.finding(&found[i], judgement{kind: oracle.KindViolation}))
	}
	return nil
}
