package wss

import (
	"fmt"

	"wirecheck/oracle"
	"wirecheck/product"
)

// judged is the judgement of a cause on a product.
func judged(cause product.CauseID, p *product.Product) judgement {
	known := p.Cause(cause)
	switch {
	case known == nil:
		return judgement{kind: oracle.KindUnknown, cause: cause, reason: fmt.Sprintf("%s would explain it, and nothing is known of that on %s", cause, p.Title)}
	case known.Confirmed:
		return judgement{kind: oracle.KindViolation, cause: cause, reason: known.Reason, source: known.Source}
	}
	return judgement{kind: oracle.KindPermitted, cause: cause, reason: known.Reason, source: known.Source}
}
