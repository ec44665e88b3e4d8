package engine

// ErrorClass is what a product's table says of one error code.
type ErrorClass struct {
	Reason Reason
	Retry  bool
	// Aborts: the error ends the whole transaction on the server, and the session is outside of any afterwards.
	Aborts bool
	// Gone: the connection ends with it.
	Gone bool
}

// Judge makes an outcome of an answer, given the product's table of errors. err is what Conn.Do returned.
func Judge(class func(code string) ErrorClass, a Answer, err error) Outcome {
	if a.Err == nil {
		switch {
		case err != nil:
			return Outcome{Effect: EffectGone, Reason: ReasonServer}
		case rolledBack(a):
			return Outcome{Effect: EffectRolledBack}
		}
		return Outcome{Effect: EffectNone}
	}
	c := class(a.Err.Code)
	o := Outcome{Effect: EffectStatement, Reason: c.Reason, Retry: c.Retry}
	switch {
	case err != nil || c.Gone:
		o.Effect = EffectGone
	case a.After == Failed:
		o.Effect = EffectFailed
	case !a.After.InTransaction() && a.Before.InTransaction():
		// PostgreSQL leaves a transaction block only when COMMIT fails, which is a rollback; so do the errors that the
		// table names. What remains are statements with an implicit commit.
		o.Effect = EffectCommitted
		if c.Aborts || a.Err.Aborted || a.Err.Severity != "" {
			o.Effect = EffectRolledBack
		}
	}
	return o
}

// rolledBack reports whether the last statement ended a transaction by a rollback. Only PostgreSQL says so: COMMIT of a
// failed transaction answers ROLLBACK (PostgreSQL manual, COMMIT).
func rolledBack(a Answer) bool {
	n := len(a.Results)
	return !a.After.InTransaction() && n > 0 && a.Results[n-1].Tag == "ROLLBACK"
}
