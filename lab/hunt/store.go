package hunt

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"wirecheck/backends/engine"
	"wirecheck/lab"
	"wirecheck/lab/generate"
	"wirecheck/lab/panel"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/scheduler/shell"
)

// store is the folder of a hunt. Each folder in it is written beside its place and moved there, so that there is never half of
// one; what cannot be written (a full disk) stays in memory and is tried again.
type store struct {
	dir   string
	state State
	// steering is what the choice of cases goes by, in steering.json. It is written less often than the state: it is larger, and what is
	// lost of it is only found again.
	steering *generate.Steering
	steered  time.Duration // when it was written, as state.Elapsed
	base     time.Duration // of earlier runs
	kept     []*Bug
	known    map[string]bool
	pending  []pendingFolder
	log      zerolog.Logger
	shared   shared
}

// State is what --resume needs, in state.json.
type State struct {
	Engine     string         `json:"engine"`
	Fleet      string         `json:"fleet,omitempty"` // what the hunters of a fleet know it by
	Seed       uint64         `json:"seed"`
	Next       int            `json:"next"` // case
	Elapsed    time.Duration  `json:"elapsed_ns"`
	Cases      int            `json:"cases"`
	Refused    int            `json:"setups_refused"`
	Refusals   map[string]int `json:"refusals"` // of setups, by the server's error
	Statements int            `json:"statements"`
	Accepted   int            `json:"accepted"`
	Findings   int            `json:"findings"` // not only distinct ones
	Flaky      int            `json:"flaky"`
	Unknown    int            `json:"unknown"`
	Crashes    int            `json:"crashes"`  // and hangs
	Broken     int            `json:"broken"`   // cases that could not be judged, though the server lived
	Unjudged   int            `json:"unjudged"` // cases that no oracle could judge
	Fresh      int            `json:"fresh"`    // combinations that were new
	Permitted  map[string]int `json:"permitted"`
	// Spent is how long each oracle took, confirmation of what it found included.
	Spent   map[string]time.Duration `json:"spent_ns"`
	Scores  scores                   `json:"scores"`
	Reasons map[string]int           `json:"reasons"`            // of unknown verdicts, by oracle
	Exact   int                      `json:"statements_exact"`   // as the isolation oracle saw them
	Inexact int                      `json:"statements_inexact"` // in part, or not at all
	Reduced map[string]int           `json:"reduced"`            // findings that were probably alike, see hunter.alike
	Seen    map[string]int           `json:"seen"`               // findings by signature
}

// complete makes the maps that are not there.
func (s *State) complete() {
	for _, m := range []*map[string]int{&s.Permitted, &s.Refusals, &s.Reasons, &s.Reduced, &s.Seen} {
		if *m == nil {
			*m = map[string]int{}
		}
	}
	if s.Scores == nil {
		s.Scores = scores{}
	}
	if s.Spent == nil {
		s.Spent = map[string]time.Duration{}
	}
}

func (s *State) permitted() (n int) {
	for _, k := range s.Permitted {
		n += k
	}
	return n
}

// Bug is one distinct bug, in finding.json of its folder.
type Bug struct {
	Signature string          `json:"signature"`
	Folder    string          `json:"folder"`
	Title     string          `json:"title"`
	Engine    string          `json:"engine"`
	Version   string          `json:"version"`
	Level     string          `json:"level"`
	Size      string          `json:"size"`
	Seen      int             `json:"seen"`
	Also      []string        `json:"also,omitempty"` // other classes of findings that the reduced case shows
	Hallmarks []string        `json:"hallmarks"`      // of the reduced case and the statement that differs
	Elsewhere []Elsewhere     `json:"elsewhere,omitempty"`
	Finding   *oracle.Finding `json:"finding"`
}

// pendingFolder is one that could not be written yet.
type pendingFolder struct {
	name  string
	files map[string]string
}

const (
	StateFile    = "state.json"
	steeringFile = "steering.json"
	bugFile      = "finding.json"
	// unfinished is how files and folders are named while they are written, as os.CreateTemp has it.
	unfinished = ".writing-*"
)

// steerEvery is how old the steering may be that --resume finds after a kill.
const steerEvery = 10 * time.Second

// newStore is the store of a folder that is not read yet.
func newStore(dir, engineName, known string) (*store, error) {
	k := &store{dir: dir, known: map[string]bool{}, steering: generate.NewSteering(), state: State{Engine: engineName}}
	k.state.complete()
	k.shared = &alone{store: k, group: 1}
	if known != "" {
		if err := k.readKnown(known); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// openFleetStore makes the folder of a fleet's hunter, or goes on with one: what is in it, the fleet knows.
func openFleetStore(dir, engineName, known, fleet string) (*store, error) {
	k, err := newStore(dir, engineName, known)
	if err != nil {
		return nil, err
	}
	k.state.Fleet = fleet
	path := filepath.Join(dir, StateFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		if err = os.MkdirAll(dir, 0o700); err != nil {
			err = fmt.Errorf("make the folder for what is found: %w", err)
		}
		return k, err
	}
	var before State
	if err == nil {
		err = json.Unmarshal(text, &before)
	}
	if err != nil {
		return nil, fmt.Errorf("read the hunt's state: %s: %w", path, err)
	}
	if before.Fleet != fleet {
		return nil, fmt.Errorf("%s holds the results of another hunt: give another --out", dir)
	}
	return k, k.removeHalves()
}

// openStore makes the folder, or goes on with one.
func openStore(dir, engineName, known string, resume bool) (*store, error) {
	k, err := newStore(dir, engineName, known)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, StateFile)
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist) && resume:
		return nil, fmt.Errorf("%s is not there: nothing to resume", path)
	case errors.Is(err, os.ErrNotExist):
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make the folder for what is found: %w", err)
		}
		return k, nil
	case err != nil:
		return nil, fmt.Errorf("read the hunt's state: %w", err)
	case !resume:
		return nil, fmt.Errorf("%s holds the results of a hunt: give --resume to go on with it, or another --out", dir)
	}
	if err := json.Unmarshal(text, &k.state); err != nil {
		return nil, fmt.Errorf("read the hunt's state: %s: %w", path, err)
	}
	if k.state.Engine != engineName {
		return nil, fmt.Errorf("%s is a hunt on %s, not on %s", dir, k.state.Engine, engineName)
	}
	k.state.complete()
	if err := k.removeHalves(); err != nil {
		return nil, err
	}
	k.base, k.steered = k.state.Elapsed, k.state.Elapsed
	if err := k.readSteering(); err != nil {
		return nil, err
	}
	return k, k.readKept()
}

// readSteering reads what the choice of cases went by; a hunt that was ended in its first seconds has left nothing.
func (k *store) readSteering() error {
	path := filepath.Join(k.dir, steeringFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, k.steering)
	}
	if err != nil {
		return fmt.Errorf("read what steers the hunt: %s: %w", path, err)
	}
	return nil
}

// saveSteering writes what the choice of cases goes by.
func (k *store) saveSteering() error {
	k.steered = k.state.Elapsed
	text, err := json.Marshal(k.steering)
	if err != nil {
		return err
	}
	return ReplaceFile(filepath.Join(k.dir, steeringFile), append(text, '\n'))
}

// readKept reads what earlier runs found.
func (k *store) readKept() error {
	files, err := filepath.Glob(filepath.Join(k.dir, "*", bugFile))
	if err != nil {
		return err
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read what was found: %w", err)
		}
		var b Bug
		if err := json.Unmarshal(text, &b); err != nil {
			return fmt.Errorf("read what was found: %s: %w", path, err)
		}
		b.Seen = k.state.Seen[b.Signature] // none if it was found after the state was saved: that case is executed again
		k.kept = append(k.kept, &b)
	}
	return nil
}

// removeHalves removes what a hunt that was killed was writing: the cases since its last state are executed again.
func (k *store) removeHalves() error {
	halves, err := filepath.Glob(filepath.Join(k.dir, unfinished))
	for _, path := range halves {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}

// readKnown reads signatures; what follows a # is a comment.
func (k *store) readKnown(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read what is known: %w", err)
	}
	defer f.Close()
	scan := bufio.NewScanner(f)
	for scan.Scan() {
		line, _, _ := strings.Cut(scan.Text(), "#")
		if line = strings.TrimSpace(line); line != "" {
			k.known[line] = true
		}
	}
	if err := scan.Err(); err != nil {
		return fmt.Errorf("read what is known: %w", err)
	}
	return nil
}

// save writes the state, and what could not be written before.
func (k *store) save(passed time.Duration) error {
	k.state.Elapsed = k.base + passed
	var errs []error
	var left []pendingFolder
	for _, p := range k.pending {
		if err := k.writeFolder(p); err != nil {
			errs, left = append(errs, err), append(left, p)
		}
	}
	if k.pending = left; len(left) > 0 { // a state beyond what was found would lose it, if this process was killed
		return errors.Join(errs...)
	}
	if k.state.Elapsed-k.steered >= steerEvery {
		errs = append(errs, k.saveSteering())
	}
	text, err := json.MarshalIndent(&k.state, "", "  ")
	if err == nil {
		err = ReplaceFile(filepath.Join(k.dir, StateFile), append(text, '\n'))
	}
	return errors.Join(append(errs, err)...)
}

// ReplaceFile writes a file beside its place and moves it there.
func ReplaceFile(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), unfinished)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// writeFolder writes a folder beside its place and moves it there.
func (k *store) writeFolder(p pendingFolder) error {
	temp, err := os.MkdirTemp(k.dir, unfinished)
	if err != nil {
		return fmt.Errorf("keep what was found: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		mode := os.FileMode(0o600)
		if strings.HasSuffix(name, ".sh") {
			mode = 0o700
		}
		if err = os.WriteFile(filepath.Join(temp, name), []byte(p.files[name]), mode); err != nil {
			break
		}
	}
	to := filepath.Join(k.dir, p.name)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err == nil {
		err = os.Rename(temp, to)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("keep what was found: %w", err), os.RemoveAll(temp))
	}
	return nil
}

// keep writes a distinct bug, or counts one that is there.
func (k *store) keep(ctx context.Context, h *hunter, small, original *scenario.Spec, level product.Level, f *oracle.Finding, seen *schedule.Schedule) (*Bug, error) {
	b := &Bug{
		Signature: signature(h.Instance.Engine, small, f), Engine: h.Instance.Engine.Name, Version: h.Instance.Version, Level: level.History,
		Title: fmt.Sprintf("%s: %s", f.Class, f.Title()), Size: small.Size(), Seen: 1, Finding: f,
	}
	if k.known[b.Signature] {
		return nil, nil
	}
	if f.Difference != nil {
		b.Hallmarks = hallmarks(small, []string{f.Difference.SQL})
	}
	if old := k.like(b); old != nil {
		k.see(old)
		return old, nil
	}
	b.Elsewhere = h.elsewhere(ctx, small, level, f)
	files := map[string]string{}
	for name, spec := range map[string]*scenario.Spec{"case.spec": small, "original.spec": original} {
		files[name] = h.reproducer(spec, level, f.Oracle)
	}
	h.file(ctx, files, small, level, b, seen)
	files["reproduce.sh"] = fmt.Sprintf("#!/bin/sh\n# Shows it on a fresh private server, or on the one whose URL is given.\nexec wirecheck run \"$(dirname \"$0\")/case.spec\" --engine \"${1:-%s}\" --level %q --oracle %s\n", k.state.Engine, level.History, f.Oracle)
	var err error
	if h.Instance.Engine.Embedded || f.Name == oracle.NameHang { // no proxy, no history; and a hang would take its limit once more
	} else if files["history.jsonl"], err = h.history(ctx, small, level); err != nil {
		files["history.jsonl"] = ""
		h.Options.Log.Warn().Err(err).Str("signature", b.Signature).Msg("the history could not be recorded")
	}
	kept, err := k.shared.place(ctx, string(f.Class), len(k.kept)+1, b, files)
	switch {
	case err != nil:
		return nil, err
	case kept == b:
		k.state.Seen[b.Signature]++
	default: // another hunter was first
		k.see(kept)
	}
	return kept, nil
}

// like is the kept bug that another one is; nil: it is a new one.
func (k *store) like(b *Bug) *Bug {
	for _, old := range k.kept {
		if old != b && (old.Signature == b.Signature || old.same(b.Finding, b.Hallmarks)) {
			return old
		}
	}
	return nil
}

// also notes that findings of another class show the same bug, and writes the bug again.
func (k *store) also(ctx context.Context, b *Bug, class string) error {
	k.see(b)
	if string(b.Finding.Class) == class || slices.Contains(b.Also, class) {
		return nil
	}
	b.Also = append(b.Also, class)
	return k.shared.changed(ctx, b)
}

// rewrite writes a bug in its folder again.
func (k *store) rewrite(b *Bug) error {
	files := map[string]string{}
	if err := b.in(files); err != nil {
		return err
	}
	for i := range k.pending {
		if k.pending[i].name == b.Folder {
			maps.Copy(k.pending[i].files, files)
			return nil
		}
	}
	if err := ReplaceFile(filepath.Join(k.dir, b.Folder, bugFile), []byte(files[bugFile])); err != nil {
		return fmt.Errorf("note who else tells %s: %w", b.Folder, err)
	}
	return nil
}

// knows counts a finding whose cause the oracle names and that is kept already, or known from elsewhere.
func (k *store) knows(ctx context.Context, f *oracle.Finding) (bool, error) {
	if f.Difference == nil || f.Difference.Cause == "" {
		return false, nil
	}
	sign := signature(engine.Descriptor{}, nil, f)
	if k.known[sign] {
		return true, nil
	}
	for _, b := range k.kept {
		if b.Signature == sign {
			return true, k.also(ctx, b, string(f.Class))
		}
	}
	return false, nil
}

// free is the first name of a folder, from a number on, that is not taken: a hunt that was killed may have come further than its state.
func (k *store) free(name string, n int) string {
	for ; ; n++ {
		to := fmt.Sprintf("%s-%03d", name, n)
		_, err := os.Lstat(filepath.Join(k.dir, to))
		if err != nil && !slices.ContainsFunc(k.pending, func(p pendingFolder) bool { return p.name == to }) {
			return to
		}
	}
}

// see counts a bug that is kept already.
func (k *store) see(b *Bug) {
	b.Seen++
	k.state.Seen[b.Signature]++
}

// mostApart bounds how many flaky findings, and how many broken cases, the store keeps.
const mostApart = 50

// apart keeps what is no bug, below flaky/ or broken/; n is how many there were.
func (k *store) apart(ctx context.Context, name string, n int, files map[string]string) {
	if n > mostApart {
		return
	}
	if _, err := k.shared.place(ctx, name, n, nil, files); err != nil {
		k.log.Error().Err(err).Str("folder", name).Msg("a case could not be kept")
	}
}

// write writes a folder, or keeps it in memory until it can be written.
func (k *store) write(p pendingFolder) {
	if err := k.writeFolder(p); err != nil {
		k.pending = append(k.pending, p)
		k.log.Error().Err(err).Msg("what was found is kept in memory and tried again")
	}
}

// keepFlaky keeps what did not repeat, with the execution in which it was seen: what each session did and got, who waited for whom, and the tables at the end.
func (h *hunter) keepFlaky(ctx context.Context, spec *scenario.Spec, level product.Level, f *oracle.Finding) error {
	h.store.state.Flaky++
	finding, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	files := map[string]string{"case.spec": h.reproducer(spec, level, f.Oracle), bugFile: string(finding) + "\n"}
	if h.executed != nil {
		var text strings.Builder
		if err := h.executed.Text(&text, spec); err != nil {
			return err
		}
		files["execution.txt"] = text.String()
	}
	h.store.apart(ctx, filepath.Join("flaky", string(f.Class)), h.store.state.Flaky, files)
	return nil
}

// reproducer is the text of a scenario that shows a finding. The format has no way to write a } in SQL; then the text says that.
func (h *hunter) reproducer(spec *scenario.Spec, level product.Level, oracles ...string) string {
	target := scenario.Target{Engine: h.Instance.Engine.Name, Level: level.History}
	text, err := spec.Reproducer(spec.Permutations[0], target, oracles, h.Options.Seed).Print()
	if err != nil {
		return fmt.Sprintf("# %v\n", err)
	}
	return text
}

// dump prints what could not be written anywhere.
func (k *store) dump(w io.Writer) {
	for _, p := range k.pending {
		for _, name := range slices.Sorted(maps.Keys(p.files)) {
			fmt.Fprintf(w, "--- %s/%s\n%s\n", p.name, name, p.files[name])
		}
	}
}

// history executes a case behind a proxy that records what each statement read and wrote.
func (h *hunter) history(ctx context.Context, spec *scenario.Spec, level product.Level) (string, error) {
	var text strings.Builder
	o := h.Options
	o.Record = &text
	b, err := panel.Open(ctx, h.Instance, lab.Config{Level: level, Case: h.o.Limit, Limits: shell.Limits{Stuck: panel.StuckLimit}}, panel.Selection{Isolation: true}, o)
	if err != nil {
		return "", err
	}
	_, err = b.Run(ctx, spec, spec.Permutations[0])
	err = errors.Join(err, b.Close(ctx)) // which writes what is left
	return text.String(), err
}
