//go:build !linux

package engine

import (
	"context"
	"syscall"
)

// bindToParent does nothing: only Linux ends a child together with its parent. The next sweep removes the folder.
func bindToParent(*syscall.SysProcAttr, syscall.Signal) {}

// endProcessesIn does nothing: there is no /proc to find the processes of an abandoned server in.
func endProcessesIn(context.Context, string) error { return nil }

// roomInMemory is 0: only Linux is known to have files in memory.
func roomInMemory(string) uint64 { return 0 }
