package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// processPoll is how often the list of processes is looked at while some are on their way out.
const processPoll = 5 * time.Millisecond

// bindToParent makes the kernel send sig to the child when the thread that started it ends (prctl(2),
// PR_SET_PDEATHSIG). The caller keeps that thread alive as long as the child.
func bindToParent(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }

// endProcessesIn waits until no process has its working folder inside dir, and kills those that stay. Servers work
// inside their data folder, and so do the processes that they start.
func endProcessesIn(ctx context.Context, dir string) error {
	tick := time.NewTicker(processPoll)
	defer tick.Stop()
	killed := map[int]bool{}
	for first := true; ; first = false {
		pids, err := processesIn(dir)
		if err != nil || len(pids) == 0 {
			return err
		}
		for _, pid := range pids {
			if first || killed[pid] { // the first time they may be about to leave by themselves
				continue
			}
			killed[pid] = true
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("kill process %d in %s: %w", pid, dir, err)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for processes %v in %s: %w", pids, dir, ctx.Err())
		case <-tick.C:
		}
	}
}

// processesIn lists the processes whose working folder is dir or below it.
func processesIn(dir string) ([]int, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, ignoreGone(err)
	}
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, link := range links {
		cwd, err := os.Readlink(link)
		if err != nil { // gone by now, or another user's
			continue
		}
		if cwd != real && !strings.HasPrefix(cwd, real+"/") {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(link, "/")[2]); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// roomInMemory is how many bytes files can still take in dir, if that is in memory and this process may write there.
func roomInMemory(dir string) uint64 {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil || st.Type != unix.TMPFS_MAGIC || unix.Access(dir, unix.W_OK|unix.X_OK) != nil {
		return 0
	}
	return st.Bavail * uint64(st.Bsize)
}
