package control

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Asleep looks at this process several times, while the others sleep.
const (
	ownLooks = 10
	ownPause = 200 * time.Microsecond
)

// Asleep reports whether every thread sleeps: those of the process, of all that it has started and they have started, and of this process
// but for the caller's. It gives an error if the system does not show it (proc(5)).
func Asleep(pid int) (bool, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for look := 1; ; look++ {
		asleep, err := familySleeps(pid)
		if !asleep || err != nil {
			return false, err
		}
		// This process comes last: then it has seen what the others sent before they fell asleep.
		asleep, err = threadsSleep(os.Getpid(), unix.Gettid(), nil)
		if asleep || err != nil || look == ownLooks {
			return asleep, err
		}
		// A thread without work spins before it sleeps, and the caller's own way here has woken one.
		rest(ownPause)
	}
}

// rest lets this thread sleep, and wakes no other. If the runtime knew of it, it would set a thread going that watches for long system calls. On a busy
// machine that one waits for a processor whenever somebody looks, so that nothing ever seems to sleep. On a single processor, others could not run meanwhile.
func rest(d time.Duration) {
	if runtime.GOMAXPROCS(0) == 1 {
		time.Sleep(d)
		return
	}
	pause := unix.NsecToTimespec(int64(d))
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&pause)), 0, 0) // a signal ends it early
}

// familySleeps reports whether every thread of a process sleeps, and of all that it has started and they have started.
func familySleeps(pid int) (bool, error) {
	processes := []int{pid}
	for len(processes) > 0 {
		next := processes[0]
		processes = processes[1:]
		asleep, err := threadsSleep(next, 0, &processes)
		if !asleep || err != nil {
			return false, err
		}
	}
	return true, nil
}

// threadsSleep reports whether the threads of a process sleep, all but one. children gets the processes that they have started, unless it
// is nil. A process that is gone sleeps.
func threadsSleep(pid, but int, children *[]int) (bool, error) {
	folder := fmt.Sprintf("/proc/%d/task", pid)
	threads, err := os.ReadDir(folder)
	if err != nil {
		return true, unlessGone(err)
	}
	for _, thread := range threads {
		if thread.Name() == strconv.Itoa(but) {
			continue
		}
		stat, err := os.ReadFile(folder + "/" + thread.Name() + "/stat")
		if err != nil {
			if err := unlessGone(err); err != nil {
				return false, err
			}
			continue
		}
		// The name stands in parentheses and may hold some; the state is the letter behind it.
		if i := bytes.LastIndexByte(stat, ')'); i < 0 || i+2 >= len(stat) || !strings.ContainsRune("SITtZX", rune(stat[i+2])) {
			return false, nil
		}
		if children == nil {
			continue
		}
		list, err := os.ReadFile(folder + "/" + thread.Name() + "/children")
		if err != nil {
			if err := unlessThread(folder, thread.Name(), err); err != nil {
				return false, err
			}
			continue
		}
		for _, field := range strings.Fields(string(list)) {
			if child, err := strconv.Atoi(field); err == nil {
				*children = append(*children, child)
			}
		}
	}
	return true, nil
}

// unlessGone is an error that does not say that a process or a thread is gone.
func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// unlessThread is nil if a thread is gone; a kernel may also lack the list of its children.
func unlessThread(folder, thread string, err error) error {
	if _, e := os.Stat(folder + "/" + thread); e == nil {
		return fmt.Errorf("the kernel does not list the processes that a process has started: %w", err)
	}
	return unlessGone(err)
}
