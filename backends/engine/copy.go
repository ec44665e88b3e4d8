package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"wirecheck/answer"
	"wirecheck/history/prose"
)

// Copying is how a product copies a database with everything in it.
type Copying struct {
	// Create makes a database as a copy of another one.
	Create func(database, of string) string
	// Settings gives the statements, one a row, that give a copy what Create leaves out: the original's settings.
	Settings func(database, of string) string
	// Refused says in plain words what a refusal of Create means, by its code.
	Refused map[string]string
}

// copyLimit is how long a server may take to copy a database.
const copyLimit = time.Hour

// Copy makes a copy of a database and gives it as a target. The original stays as it is; the server may ask that nobody is connected to it.
func (l *Labs) Copy(ctx context.Context, of string) (Target, error) {
	how := l.engine.Lab.Copying
	if how == nil {
		return Target{}, fmt.Errorf("copy %s: %s cannot copy databases", of, l.engine.Title)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	t, err := l.make(ctx, fmt.Sprintf("%s%08x_%d", LabPrefix, l.run, l.next), func(name string) string { return how.Create(name, of) }, copyLimit)
	var refused *answer.Error
	if errors.As(err, &refused) && how.Refused[refused.Code] != "" {
		return t, fmt.Errorf("copy %s: %s: %w", of, how.Refused[refused.Code], refused)
	}
	if err != nil {
		return t, fmt.Errorf("copy %s: %w", of, err)
	}
	statements, err := Query(ctx, l.owner, how.Settings(t.Database, of))
	for _, row := range statements {
		err = errors.Join(err, Exec(ctx, l.owner, string(row[0])))
	}
	if err != nil {
		return t, fmt.Errorf("copy the settings of %s: %w", of, err)
	}
	return t, nil
}

// output is what a program writes. Close ends the program if it still runs.
type output struct {
	io.Reader
	command *exec.Cmd
	said    *bytes.Buffer
	end     context.CancelFunc
	whole   bool // it was read to its end
}

// Piped starts a program of a product's vendor and gives what it writes. env is added to this process's environment. That the program failed
// is an error at the end of its output.
func Piped(ctx context.Context, env []string, program string, args ...string) (io.ReadCloser, error) {
	ctx, end := context.WithCancel(ctx)
	o := &output{command: exec.CommandContext(ctx, program, args...), said: &bytes.Buffer{}, end: end}
	o.command.Env, o.command.Stderr = append(os.Environ(), env...), o.said
	out, err := o.command.StdoutPipe()
	if err == nil {
		err = o.command.Start()
	}
	if err != nil {
		end()
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	o.Reader = out
	return o, nil
}

// Read implements io.Reader.
func (o *output) Read(p []byte) (int, error) {
	n, err := o.Reader.Read(p)
	if !errors.Is(err, io.EOF) || o.whole {
		return n, err
	}
	o.whole = true
	if failed := o.command.Wait(); failed != nil {
		return n, fmt.Errorf("%s: %w: %s", filepath.Base(o.command.Path), failed, prose.Line(strings.TrimSpace(o.said.String()), prose.Width))
	}
	return n, err
}

// Close implements io.Closer.
func (o *output) Close() error {
	o.end()
	if !o.whole {
		_ = o.command.Wait() // it was ended
	}
	return nil
}
