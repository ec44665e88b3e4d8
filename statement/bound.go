// Package statement holds what the text of one SQL statement tells, whatever server it is sent to: its tables and clauses
// (Statement), what it does to its transaction (Control), what it touches (Touch), and the metadata that it defines
// (Definition). The packages below it read it from the text, one for each dialect.
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
