package product

import (
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/history"
)

// ErrorClass is what an error code means for the session's transaction.
type ErrorClass struct {
	Reason answer.Reason
	// Retry says that the transaction lost against a concurrent one and may succeed when it is repeated.
	Retry bool
	// Aborts says that the error ends the whole transaction on the server, and that the session is outside of any afterwards. An error
	// that leaves a failed transaction behind, which the client must still roll back, does not (Traits.ErrorFails).
	Aborts bool
	// Gone says that the connection ends with it.
	Gone bool
	// Mistake says that the statement cannot succeed whatever the rows are and whoever else runs: it is not valid, it names what is not
	// there, or its user may not do that.
	Mistake bool
}

// ErrorRow is a line of a product's table of errors. A code that ends in * stands for all that begin with what is before it.
type ErrorRow struct {
	Codes []string
	Class ErrorClass
	// Says are parts of messages where the code alone does not tell: the line holds for errors that say one of them.
	Says []string
}

// Error is the class of an error. A code that no line has is the statement's own fault.
func (p *Product) Error(code, message string) ErrorClass {
	says := func(part string) bool { return strings.Contains(message, part) }
	for _, r := range p.Errors {
		if oneOf(r.Codes, code) && (r.Says == nil || slices.ContainsFunc(r.Says, says)) {
			return r.Class
		}
	}
	return ErrorClass{Reason: answer.ReasonOther}
}

// Duplicate reports whether the server refused a statement since a row with its key is there already.
func (p *Product) Duplicate(e *history.ServerError) bool {
	return e != nil && p.DuplicateError != "" && e.Code == p.DuplicateError
}

// The classes that several products have.
var (
	deadlock      = ErrorClass{Reason: answer.ReasonDeadlock, Retry: true}
	serialization = ErrorClass{Reason: answer.ReasonSerialization, Retry: true}
	lockTimeout   = ErrorClass{Reason: answer.ReasonLockTimeout, Retry: true}
	noWait        = ErrorClass{Reason: answer.ReasonNoWait, Retry: true}
	readOnly      = ErrorClass{Reason: answer.ReasonReadOnly}
	cancelled     = ErrorClass{Reason: answer.ReasonCancelled}
	killed        = ErrorClass{Reason: answer.ReasonKilled, Gone: true}
	serverGone    = ErrorClass{Reason: answer.ReasonServer, Gone: true}
	internal      = ErrorClass{Reason: answer.ReasonInternal}
	mistake       = ErrorClass{Reason: answer.ReasonOther, Mistake: true}
)

// aborting is a class whose errors end the transaction.
func aborting(c ErrorClass) ErrorClass {
	c.Aborts = true
	return c
}
