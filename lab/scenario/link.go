package scenario

import "strings"

// UnusedStep begins the text of the one warning that isolationtester prints, too.
const UnusedStep = "unused step name: "

// link makes the checks that isolationtester makes after parsing (check_testspec in isolationtester.c) and replaces the
// names in permutations by steps. Sessions of the same name are allowed there, so they are only warned about.
func (p *parser) link() {
	sessions := make(map[string]Pos)
	for _, s := range p.spec.Sessions {
		if first, ok := sessions[s.Name]; ok {
			p.warn(s.Pos, "a second session named %s, the first is in line %d; output that names it will be hard to read", quoteName(s.Name), first.Line)
			continue
		}
		sessions[s.Name] = s.Pos
	}
	steps := make(map[string]*Step)
	for _, s := range p.spec.Sessions {
		for _, st := range s.Steps {
			if first, ok := steps[st.Name]; ok {
				p.fail(st.Pos, "a second step named %s, the first is in line %d; names of steps are unique in the file, rename one", quoteName(st.Name), first.Pos.Line)
				continue
			}
			steps[st.Name] = st
		}
	}
	used := make(map[*Step]bool)
	for _, perm := range p.spec.Permutations {
		p.linkPermutation(perm, steps, used)
	}
	if len(p.spec.Permutations) == 0 {
		return
	}
	for _, s := range p.spec.Sessions {
		for _, st := range s.Steps {
			if !used[st] {
				p.warn(st.Pos, UnusedStep+"%s", st.Name)
			}
		}
	}
}

func (p *parser) linkPermutation(perm *Permutation, steps map[string]*Step, used map[*Step]bool) {
	here := make(map[string]*Step)
	for i := range perm.Steps {
		ps := &perm.Steps[i]
		st, ok := steps[ps.Step.Name]
		if !ok {
			p.fail(ps.Pos, "there is no step %s%s", quoteName(ps.Step.Name), similar(ps.Step.Name, steps))
			continue
		}
		ps.Step = st
		used[st] = true
		here[st.Name] = st
	}
	for _, ps := range perm.Steps {
		for i := range ps.Markers {
			m := &ps.Markers[i]
			if m.Kind == MarkOnce {
				continue
			}
			of, ok := here[m.Step.Name]
			switch {
			case !ok && steps[m.Step.Name] != nil:
				p.fail(m.Pos, "the marker of %s names the step %s, which is not in this permutation; it would never wait for it", quoteName(ps.Step.Name), quoteName(m.Step.Name))
			case !ok:
				p.fail(m.Pos, "the marker of %s names the step %s, which does not exist%s", quoteName(ps.Step.Name), quoteName(m.Step.Name), similar(m.Step.Name, here))
			case of == ps.Step:
				p.fail(m.Pos, "the marker of %s names the step itself; a step cannot wait for its own end", quoteName(ps.Step.Name))
			case of.Session == ps.Step.Session && steps[ps.Step.Name] != nil:
				p.fail(m.Pos, "the marker of %s names %s, a step of the same session; a step can only wait for another session", quoteName(ps.Step.Name), quoteName(m.Step.Name))
			}
			if ok {
				m.Step = of
			}
		}
	}
}

// similar suggests a name that was probably meant: the same but for case, or the only one that contains it.
func similar[V any](name string, among map[string]V) string {
	var best string
	n := 0
	for other := range among {
		if strings.EqualFold(name, other) || distanceOne(name, other) {
			if n == 0 || other < best {
				best = other
			}
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return "; did you mean " + quoteName(best) + "?"
}

// distanceOne reports whether one character inserted, removed or changed makes a b, for names of three and more.
func distanceOne(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(a) < 3 || len(b)-len(a) > 1 {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) == len(b) {
		return a[i:] == b[i:] || a[i+1:] == b[i+1:]
	}
	return a[i:] == b[i+1:]
}
