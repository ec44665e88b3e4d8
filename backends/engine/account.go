package engine

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// Account is the operating system's user as whom a private server runs.
type Account struct {
	name     string
	uid, gid uint32
	other    bool // not the user of this process
}

// AccountFor picks the account: that of this process, or, since servers refuse to run as root or had better not, the
// first of the candidates that exists.
func AccountFor(candidates ...string) (Account, error) {
	if os.Geteuid() != 0 {
		return Account{}, nil
	}
	for _, name := range candidates {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		if errUID != nil || errGID != nil {
			continue
		}
		return Account{name: name, uid: uint32(uid), gid: uint32(gid), other: true}, nil
	}
	return Account{}, fmt.Errorf("find a user to run the server as: root is not suitable, and none of %v exists", candidates)
}

// AccountForProgram is AccountFor, unless only this process's user can reach the program: then it is that one.
func AccountForProgram(program string, candidates ...string) (Account, error) {
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return Account{}, fmt.Errorf("find a user to run the server as: %w", err)
	}
	if os.Geteuid() == 0 && !searchable(filepath.Dir(real)) {
		return Account{}, nil
	}
	return AccountFor(candidates...)
}

// Root reports whether programs of the account run as the superuser.
func (a Account) Root() bool { return !a.other && os.Geteuid() == 0 }

// Own gives a file or folder to the account.
func (a Account) Own(path string) error {
	if !a.other {
		return nil
	}
	return os.Chown(path, int(a.uid), int(a.gid))
}

// Command prepares a program to run as the account, in folder dir, which is its home and takes its temporary files, in
// an environment that depends on nothing outside.
func (a Account) Command(dir, path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "LC_ALL=C", "TZ=UTC"}
	// Ctrl-C in a terminal reaches the whole process group: it is for wirecheck, which then ends the server itself.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if a.other {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return cmd
}

// memory is where Linux keeps files in memory; roomForServers is what must be free there before a server goes there, in bytes.
const (
	memory         = "/dev/shm"
	roomForServers = 8 << 30
)

// tempDirs are the folders for temporary files that the account can reach; the last one always serves, memory only if it has room.
// A server that lives for minutes makes and drops thousands of files. TMPDIR overrules it. A login manager removes at the end
// of a login what an ordinary user left in memory (logind.conf(5), RemoveIPC), and a hunt goes on after that: then it is not used.
func (a Account) tempDirs() []string {
	dir := os.TempDir()
	if a.other && !searchable(dir) {
		dir = "/tmp"
	}
	_, err := os.Stat("/run/systemd/system") // sd_booted(3)
	if os.Getenv("TMPDIR") != "" || err == nil && os.Geteuid() != 0 || dir == memory {
		return []string{dir}
	}
	return []string{memory, dir}
}

// searchable reports whether every user may pass through dir and all folders above it.
func searchable(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}
