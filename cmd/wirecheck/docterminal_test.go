package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// docTerminal is a shell in a terminal of its own, as a reader of a document has it: psql and mariadb in it prompt, and
// Ctrl-C ends what runs.
type docTerminal struct {
	master *os.File
	shell  *exec.Cmd
	done   chan struct{} // closed when the shell is gone and all of its output is read

	mu     sync.Mutex
	output string        // since the last input
	news   chan struct{} // gets a value when output grows
}

// openTerminal starts a shell in folder dir.
func openTerminal(t *testing.T, dir string, env []string) *docTerminal {
	t.Helper()
	master, slave, err := openPTY()
	if err != nil {
		t.Fatalf("open a terminal: %v", err)
	}
	d := &docTerminal{master: master, done: make(chan struct{}), news: make(chan struct{}, 1)}
	d.shell = exec.Command("bash", "--norc", "--noprofile", "--noediting", "-i")
	d.shell.Dir, d.shell.Env = dir, env
	d.shell.Stdin, d.shell.Stdout, d.shell.Stderr = slave, slave, slave
	d.shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := d.shell.Start(); err != nil {
		t.Fatalf("start a shell: %v", err)
	}
	slave.Close()
	go d.read()
	t.Cleanup(d.close)
	return d
}

// openPTY makes a pair of a terminal and its other side, without echo and wide enough for any line.
func openPTY() (master, slave *os.File, err error) {
	if master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	var number, locked int32
	if err := ioctl(master, syscall.TIOCGPTN, unsafe.Pointer(&number)); err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	if err := ioctl(master, syscall.TIOCSPTLCK, unsafe.Pointer(&locked)); err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	if slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	var settings syscall.Termios
	size := [4]uint16{50, 2000}
	err = errors.Join(ioctl(slave, syscall.TCGETS, unsafe.Pointer(&settings)), ioctl(slave, syscall.TIOCSWINSZ, unsafe.Pointer(&size)))
	settings.Lflag &^= syscall.ECHO
	settings.Oflag &^= syscall.ONLCR
	return master, slave, errors.Join(err, ioctl(slave, syscall.TCSETS, unsafe.Pointer(&settings)))
}

func ioctl(f *os.File, request uintptr, p unsafe.Pointer) error {
	raw, err := f.SyscallConn() // Fd would make reads block even when the file is closed
	if err != nil {
		return err
	}
	var errno syscall.Errno
	err = raw.Control(func(fd uintptr) { _, _, errno = syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(p)) })
	if errno != 0 {
		return errno
	}
	return err
}

// read collects what the terminal shows.
func (d *docTerminal) read() {
	defer close(d.done)
	buffer := make([]byte, 32<<10)
	for {
		n, err := d.master.Read(buffer)
		d.mu.Lock()
		d.output += string(buffer[:n])
		d.mu.Unlock()
		select {
		case d.news <- struct{}{}:
		default:
		}
		if err != nil { // EIO: the shell is gone
			return
		}
	}
}

var (
	escapes     = regexp.MustCompile(`\x1b\[[0-9;?]*[a-zA-Z]`)
	overwritten = regexp.MustCompile(`(?m)^[^\n]*\r`)
)

// screen is what the terminal has shown since the last input: without colours, and of a line that was written over only
// the last state. input is left out, since psql and mariadb echo it.
func (d *docTerminal) screen(input string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	text := escapes.ReplaceAllString(d.output, "")
	text = overwritten.ReplaceAllString(strings.ReplaceAll(text, "\r\n", "\n"), "")
	if input != "" {
		text = strings.TrimPrefix(text, input+"\n")
	}
	return text
}

// send types a line; "^C" is Ctrl-C.
func (d *docTerminal) send(line string) error {
	d.mu.Lock()
	d.output = ""
	d.mu.Unlock()
	text := line + "\n"
	if line == interrupt {
		text = "\x03"
	}
	_, err := io.WriteString(d.master, text)
	return err
}

// await waits until ready says that what the screen shows is enough, and gives it.
func (d *docTerminal) await(input string, ready func(screen string) bool) (string, bool) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		if text := d.screen(input); ready(text) {
			return text, true
		}
		select {
		case <-d.news:
		case <-d.done:
			text := d.screen(input)
			return text, ready(text)
		case <-timer.C:
			return d.screen(input), false
		}
	}
}

// close ends the shell and all that runs in its terminal, which gets SIGHUP.
func (d *docTerminal) close() {
	d.master.Close()
	<-d.done
	if err := d.shell.Wait(); err != nil {
		return // it was hung up
	}
}
