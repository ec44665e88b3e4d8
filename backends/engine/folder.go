package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Folders of private servers are named so. One that is being made is not touched by others until it has its lock.
const (
	folderPrefix   = "wirecheck-run-"
	unlockedPrefix = "wirecheck-new-"
)

// removeLimit bounds the wait for a server's last processes to go away.
const removeLimit = 10 * time.Second

// Folder is the place of one private server. Its file "lock" is locked as long as the process that owns it lives; the
// kernel lets go of the lock however that process ends, which is how others know that the folder is abandoned.
type Folder struct {
	Path    string
	Account Account
	lock    *os.File
}

// NewFolder makes a folder for a server of the product, with a folder tmp in it, after it has removed those that dead processes left behind.
func NewFolder(product string, account Account) (*Folder, error) {
	dirs := account.tempDirs()
	for _, temp := range dirs {
		if err := Sweep(temp); err != nil {
			return nil, err
		}
	}
	fresh, err := os.MkdirTemp(withRoom(dirs), unlockedPrefix+product+"-")
	if err != nil {
		return nil, fmt.Errorf("make folder for %s server: %w", product, err)
	}
	f, err := claim(fresh, account)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make folder for %s server: %w", product, err), os.RemoveAll(fresh))
	}
	if err := f.Mkdir("tmp"); err != nil {
		return nil, errors.Join(fmt.Errorf("make folder for %s server: %w", product, err), f.Remove())
	}
	return f, nil
}

// withRoom is the first of the folders with room for a server, or the last.
func withRoom(dirs []string) string {
	for _, dir := range dirs[:len(dirs)-1] {
		if roomInMemory(dir) >= roomForServers {
			return dir
		}
	}
	return dirs[len(dirs)-1]
}

// claim locks a new folder and gives it its final name.
func claim(fresh string, account Account) (*Folder, error) {
	if err := os.Chmod(fresh, 0o755); err != nil { // the account passes through it; what is secret below has its own mode
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(fresh, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", lock.Name(), err), lock.Close())
	}
	path := filepath.Join(filepath.Dir(fresh), folderPrefix+strings.TrimPrefix(filepath.Base(fresh), unlockedPrefix))
	if err := os.Rename(fresh, path); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &Folder{Path: path, Account: account, lock: lock}, nil
}

// Join gives the path of something in the folder.
func (f *Folder) Join(elem ...string) string {
	return filepath.Join(append([]string{f.Path}, elem...)...)
}

// Mkdir makes a folder in it that only the account can enter.
func (f *Folder) Mkdir(name string) error {
	if err := os.Mkdir(f.Join(name), 0o700); err != nil {
		return err
	}
	return f.Account.Own(f.Join(name))
}

// Write makes a file in it that only the account can read.
func (f *Folder) Write(name string, content []byte) error {
	if err := os.WriteFile(f.Join(name), content, 0o600); err != nil {
		return err
	}
	return f.Account.Own(f.Join(name))
}

// Command prepares a program to run in the folder as its account.
func (f *Folder) Command(path string, args ...string) *exec.Cmd {
	return f.Account.Command(f.Join("tmp"), path, args...)
}

// Remove ends whatever still runs in the folder and removes it.
func (f *Folder) Remove() error {
	err := empty(f.Path)
	return errors.Join(err, f.lock.Close())
}

// Sweep removes the folders below temp whose owners are dead. Folders of other users are left alone.
func Sweep(temp string) error {
	paths, err := filepath.Glob(filepath.Join(temp, folderPrefix+"*"))
	if err != nil {
		return fmt.Errorf("look for abandoned folders: %w", err)
	}
	for _, path := range paths {
		if err := sweepOne(path); err != nil {
			return fmt.Errorf("remove abandoned folder %s: %w", path, err)
		}
	}
	return nil
}

func sweepOne(path string) error {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() || !ours(info) {
		return ignoreGone(err)
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return empty(path) // its owner died while removing it
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil // its owner lives
		}
		return err
	}
	return empty(path)
}

// empty ends the processes that work inside path and removes it. The lock goes last, so that a removal that is cut
// short is taken up again by the next sweep.
func empty(path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), removeLimit)
	defer cancel()
	if err := endProcessesIn(ctx, path); err != nil {
		return err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return ignoreGone(err)
	}
	for _, e := range entries {
		if e.Name() == "lock" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(path, e.Name())); err != nil {
			return err
		}
	}
	return os.RemoveAll(path)
}

func ours(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

func ignoreGone(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
