package mysqlwire

import (
	"wirecheck/history"
	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
	"wirecheck/statement"
)

// heldStamp is what the session knows of the stamp that the server's variable holds.
type heldStamp struct {
	token string // of the transaction whose stamp the server may hold; empty if it surely holds none
	// apart says that a savepoint came since: what follows may be undone apart from it, or it already is.
	apart bool
}

// set notes the stamp that the server may hold after a statement of ours that sets it. refused is the server's error.
func (h *heldStamp) set(stamp string, refused *history.ServerError) {
	if refused != nil && h.token != "" {
		return // the old one or the new one
	}
	h.token, h.apart = dialect.StampToken(stamp), false
}

// mayMislead reports whether a wrong name would stand in the rows if stamp could not be set (KILL QUERY and
// max_statement_time can hit our statement): then the client's statement waits until it is set. The stamp of another
// statement of the same transaction does no harm, if the two are committed or undone together.
func (h *heldStamp) mayMislead(stamp string) bool {
	return h.token != "" && (h.token != dialect.StampToken(stamp) || h.apart)
}

// follow notes what a statement that succeeded means for the stamp.
func (h *heldStamp) follow(p *rewrite.Plan) {
	switch p.Control.Verb {
	case statement.ControlSavepoint, statement.ControlRollbackTo, statement.ControlReset:
		h.apart = true
	}
}

// clearStamp takes the stamp away in front of writes that no history gets.
func (o *observation) clearStamp() error {
	_, _, err := o.ownRows("SET @wc_t=NULL")
	o.stamp.token = ""
	return err
}

// stamped notes what the answer to a statement of ours that sets the stamp means: it also makes the log.
func (o *observation) stamped(stamp string, refused *history.ServerError) {
	o.stamp.set(stamp, refused)
	if refused == nil {
		o.log.exists = true
	}
}
