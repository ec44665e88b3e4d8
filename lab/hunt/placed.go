package hunt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"wirecheck/fleet/work"
)

// unsent is a folder that the fleet does not know yet, since its server did not answer. It is on disk below unsentFolder, until it has a name.
type unsent struct {
	name   string // the beginning of the folder's name
	object string
	path   string // where it is on disk meanwhile
	bug    *Bug
	files  map[string]string
}

// unsentFolder holds what the fleet does not know yet.
const unsentFolder = "unsent"

// place implements shared.
func (m *member) place(_ context.Context, name string, n int, b *Bug, files map[string]string) (*Bug, error) {
	m.objects++
	u := &unsent{name: name, object: fmt.Sprintf("%s-%d", m.fleet.Self(), m.objects), bug: b, files: files}
	kept, err := m.publish(m.last, u, n)
	if !m.lost(err) {
		return kept, err
	}
	m.log.Warn().Err(err).Str("folder", name).Msg("the fleet's server does not answer: it hears later of what was found")
	u.path = m.free(filepath.Join(unsentFolder, name), 1)
	if b != nil {
		b.Folder = u.path
		m.kept = append(m.kept, b)
		if err := b.in(files); err != nil {
			return nil, err
		}
	}
	m.unsent = append(m.unsent, u)
	m.write(pendingFolder{u.path, files})
	return b, nil
}

// publish gives a folder its name in the fleet, and writes it. The bug is the one that the fleet keeps: another one if that is the same.
func (m *member) publish(ctx context.Context, u *unsent, n int) (*Bug, error) {
	for {
		if err := m.catchUp(ctx); err != nil {
			return nil, err
		}
		for _, p := range m.placed {
			if p.Object == u.object { // the answer was lost
				return m.keptIn(p.Folder), nil
			}
		}
		key := ""
		p := placed{Folder: m.free(u.name, n), Object: u.object, By: m.self.Name}
		if u.bug == nil {
			key = p.Folder
		} else {
			if old := m.like(u.bug); old != nil {
				return old, nil
			}
			b := *u.bug
			b.Folder, key = p.Folder, b.Signature
			if err := b.in(u.files); err != nil {
				return nil, err
			}
			p.Bug = &b
		}
		text, err := json.Marshal(p)
		if err != nil {
			return nil, err
		}
		if err := m.fleet.PutFiles(ctx, u.object, u.files); err != nil {
			return nil, err
		}
		err = m.found.Put(ctx, key, text)
		if errors.Is(err, work.ErrBehind) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if u.bug != nil {
			u.bug.Folder = p.Folder
		}
		p.Bug = u.bug
		m.have(p, u.files)
		return u.bug, nil
	}
}

// keptIn is the bug of a folder; nil: it has none.
func (m *member) keptIn(folder string) *Bug {
	if i := slices.IndexFunc(m.kept, func(b *Bug) bool { return b.Folder == folder }); i >= 0 {
		return m.kept[i]
	}
	return nil
}

// have takes a folder of the fleet over.
func (m *member) have(p placed, files map[string]string) {
	m.placed[p.Folder] = p
	if p.Bug != nil && !slices.Contains(m.kept, p.Bug) {
		m.kept = append(m.kept, p.Bug)
	}
	if _, err := os.Lstat(filepath.Join(m.dir, p.Folder)); err != nil {
		m.write(pendingFolder{p.Folder, files})
	} else if p.Bug != nil { // of an earlier run
		if err := m.rewrite(p.Bug); err != nil {
			m.log.Error().Err(err).Str("folder", p.Folder).Msg("a bug could not be written again")
		}
	}
}

// catchUp takes over what the fleet has found since it was asked last.
func (m *member) catchUp(ctx context.Context) (err error) {
	for {
		if m.todo == nil {
			if m.todo, err = m.found.Next(ctx); m.todo == nil || err != nil {
				return err
			}
		}
		var p placed
		if err := json.Unmarshal(m.todo.Data, &p); err != nil {
			return err
		}
		if err := m.takeOver(ctx, p); err != nil {
			return err
		}
		m.todo = nil
	}
}

// takeOver makes an entry of the log this hunter's.
func (m *member) takeOver(ctx context.Context, p placed) error {
	if b := m.keptIn(p.Folder); b != nil && p.Bug != nil { // written once more
		b.Also = p.Bug.Also
		return m.rewrite(b)
	}
	files, err := m.fleet.Files(ctx, p.Object)
	if err != nil {
		return err
	}
	if p.Bug != nil {
		if err := p.Bug.in(files); err != nil {
			return err
		}
	}
	m.have(p, files)
	return nil
}

// send tells the fleet what it does not know yet.
func (m *member) send(ctx context.Context) error {
	for len(m.unsent) > 0 {
		u := m.unsent[0]
		kept, err := m.publish(ctx, u, 1)
		if err != nil {
			return err
		}
		if u.bug != nil && kept != u.bug { // another hunter found it meanwhile
			m.kept = slices.DeleteFunc(m.kept, func(b *Bug) bool { return b == u.bug })
		}
		m.unsent = m.unsent[1:]
		m.pending = slices.DeleteFunc(m.pending, func(p pendingFolder) bool { return p.name == u.path })
		if err := os.RemoveAll(filepath.Join(m.dir, u.path)); err != nil {
			return err
		}
	}
	return os.RemoveAll(filepath.Join(m.dir, unsentFolder))
}

// numbered is the end of a folder's name.
var numbered = regexp.MustCompile(`-\d+$`)

// readUnsent reads what an earlier run could not tell the fleet.
func (m *member) readUnsent() error {
	root := filepath.Join(m.dir, unsentFolder)
	folders := map[string]*unsent{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == root {
			return fs.SkipAll
		}
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		u := folders[folder]
		if u == nil {
			m.objects++
			u = &unsent{
				name: numbered.ReplaceAllString(folder, ""), object: fmt.Sprintf("%s-%d", m.fleet.Self(), m.objects),
				path: filepath.Join(unsentFolder, folder), files: map[string]string{},
			}
			folders[folder] = u
			m.unsent = append(m.unsent, u)
		}
		u.files[e.Name()] = string(text)
		if e.Name() == bugFile && filepath.Dir(folder) == "." {
			u.bug = &Bug{}
			if err := json.Unmarshal(text, u.bug); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read what the fleet does not know yet: %w", err)
	}
	return nil
}

// changed implements shared.
func (m *member) changed(_ context.Context, b *Bug) error {
	ctx := m.last
	also := slices.Clone(b.Also)
	for {
		p, sent := m.placed[b.Folder]
		if !sent { // the fleet does not know the bug yet
			return m.rewrite(b)
		}
		p.Bug = b
		text, err := json.Marshal(p)
		if err != nil {
			return err
		}
		err = m.found.Put(ctx, b.Signature, text)
		if err == nil {
			return m.rewrite(b)
		}
		if errors.Is(err, work.ErrBehind) {
			if err = m.catchUp(ctx); err == nil {
				for _, class := range also {
					if !slices.Contains(b.Also, class) {
						b.Also = append(b.Also, class)
					}
				}
				continue
			}
		}
		return errors.Join(err, m.rewrite(b))
	}
}
