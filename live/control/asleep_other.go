//go:build !linux

package control

import "errors"

// Asleep gives an error: only on Linux does the system show whether threads sleep.
func Asleep(int) (bool, error) {
	return false, errors.New("only on Linux can it be seen whether a process sleeps")
}
