//go:build !linux

package control

import (
	"errors"
	"time"
)

// Asleep gives an error: only on Linux does the system show whether threads sleep.
func Asleep(int) (bool, error) {
	return false, errors.New("only on Linux can it be seen whether a process sleeps")
}

func rest(d time.Duration) { time.Sleep(d) }
