package engine

import (
	"wirecheck/answer"
	"wirecheck/product"
)

// Judge makes an outcome of an answer, by the product's table of errors. err is what Conn.Do returned.
func Judge(p *product.Product, a answer.Answer, err error) answer.Outcome {
	if a.Err == nil {
		switch {
		case err != nil:
			return answer.Outcome{Effect: answer.EffectGone, Reason: answer.ReasonServer}
		case rolledBack(a):
			return answer.Outcome{Effect: answer.EffectRolledBack}
		}
		return answer.Outcome{Effect: answer.EffectNone}
	}
	c := p.Error(a.Err.Code, a.Err.Message)
	o := answer.Outcome{Effect: answer.EffectStatement, Reason: c.Reason, Retry: c.Retry}
	switch {
	case err != nil || c.Gone:
		o.Effect = answer.EffectGone
	case a.After == answer.Failed:
		o.Effect = answer.EffectFailed
	case !a.After.InTransaction() && a.Before.InTransaction():
		// PostgreSQL leaves a transaction block only when COMMIT fails, which is a rollback; so do the errors that the
		// table names. What remains are statements with an implicit commit.
		o.Effect = answer.EffectCommitted
		if c.Aborts || a.Err.Aborted || a.Err.Severity != "" {
			o.Effect = answer.EffectRolledBack
		}
	}
	return o
}

// rolledBack reports whether the last statement ended a transaction by a rollback. Only PostgreSQL says so: COMMIT of a
// failed transaction answers ROLLBACK (PostgreSQL manual, COMMIT).
func rolledBack(a answer.Answer) bool {
	n := len(a.Results)
	return !a.After.InTransaction() && n > 0 && a.Results[n-1].Tag == "ROLLBACK"
}
