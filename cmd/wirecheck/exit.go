package main

import "fmt"

// exitStatus is the error by which a command says how the process ends after it has said all there is to say.
type exitStatus int

// The exit statuses; scripts rely on them.
const (
	exitClean   exitStatus = 0 // nothing found
	exitFound   exitStatus = 1 // something found
	exitFailed  exitStatus = 2 // wirecheck could not do its work
	exitUnknown exitStatus = 3 // could not decide
)

// Error makes exitStatus an error.
func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }
