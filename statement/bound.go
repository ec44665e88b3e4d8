// Package statement tells what one SQL statement says, by its text alone.
package statement

import "fmt"

// TooLarge is the error for a text that is too large to be parsed within bounded time and stack. The statement stays opaque.
type TooLarge struct {
	Of     string // what there is too much of
	Amount int
	Limit  int
}

// Error implements error.
func (e *TooLarge) Error() string {
	return fmt.Sprintf("the text is not parsed: %s of %d, where %d is the limit", e.Of, e.Amount, e.Limit)
}
