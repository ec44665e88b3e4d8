package proxy

import (
	"fmt"
	"runtime/debug"
)

// PanicError is a panic in a session: a defect of wirecheck, which costs that session and no other.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("a defect of wirecheck: panic: %v", e.Value) }

// Catch calls f. A panic in f is an error.
func Catch(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}
