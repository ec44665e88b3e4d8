package scenario

import (
	"fmt"
	"slices"
	"strings"
)

// Parse reads a spec file. name is the file's, for messages. The error is Problems: all that is wrong, each with its place.
// What isolationtester accepts is accepted, and means the same; only #wirecheck: lines can be wrong on top of that.
func Parse(name string, src []byte) (*Spec, error) {
	p := &parser{lex: newLexer(name, string(src)), spec: &Spec{Name: name}}
	p.advance()
	p.file()
	if len(p.lex.problems) == 0 {
		p.link()
	}
	p.spec.Directives = append(p.spec.Directives, p.pending...)
	for _, d := range p.spec.Directives {
		p.checkDirective(d, true)
	}
	for _, perm := range p.spec.Permutations {
		for _, d := range perm.Directives {
			p.checkDirective(d, false)
		}
	}
	p.checkObserved()
	if problems := p.lex.problems; len(problems) > 0 {
		slices.SortStableFunc(problems, func(a, b Problem) int {
			if a.Pos.Line != b.Pos.Line {
				return a.Pos.Line - b.Pos.Line
			}
			return a.Pos.Column - b.Pos.Column
		})
		return nil, problems
	}
	return p.spec, nil
}

// parser is a recursive descent over the grammar of specparse.y with one token of look-ahead.
type parser struct {
	lex  *lexer
	spec *Spec
	tok  token
	// pending are directives read before tok that may turn out to be those of a permutation. lastLine is the line of the
	// last of them or of a comment after them.
	pending  []Directive
	lastLine int
	begun    bool // the header is over
	lost     bool // nothing was read as expected since a problem: what follows is not told, it may be its consequence
}

func (p *parser) fail(pos Pos, format string, args ...any) { p.lex.fail(pos, format, args...) }

func (p *parser) warn(pos Pos, format string, args ...any) {
	p.spec.Warnings = append(p.spec.Warnings, Problem{File: p.spec.Name, Pos: pos, Text: fmt.Sprintf(format, args...)})
}

// advance reads the next token and takes in the comments before it.
func (p *parser) advance() {
	for {
		p.tok = p.lex.next()
		if p.tok.kind != kindComment {
			p.begun = true
			if p.lastLine != p.tok.pos.Line-1 || p.tok.kind != "permutation" {
				p.flush()
			}
			return
		}
		p.comment(p.tok)
	}
}

// flush makes the pending directives those of the file.
func (p *parser) flush() {
	p.spec.Directives = append(p.spec.Directives, p.pending...)
	p.pending = nil
}

const directiveMark = "wirecheck:"

func (p *parser) comment(t token) {
	if p.lastLine != t.pos.Line-1 {
		p.flush()
		p.begun = p.begun || len(p.spec.Header) > 0
	}
	p.lastLine = t.pos.Line
	text, isDirective := strings.CutPrefix(t.text, directiveMark)
	if isDirective {
		p.begun = true
		if !t.alone {
			p.fail(t.pos, "a #wirecheck: comment after something else; it must stand on a line of its own")
			return
		}
		p.directive(text, Pos{Line: t.pos.Line, Column: t.pos.Column})
		return
	}
	if strings.HasPrefix(strings.TrimSpace(t.text), directiveMark) {
		p.warn(t.pos, "an ordinary comment to wirecheck; for a directive leave out the blank: #wirecheck:")
	}
	if !p.begun && t.alone {
		p.spec.Header = append(p.spec.Header, strings.TrimPrefix(t.text, " "))
	}
}

// found describes the current token.
func (p *parser) found() string {
	switch p.tok.kind {
	case kindName:
		return fmt.Sprintf("the name %s", quoteName(p.tok.text))
	case kindNumber:
		return fmt.Sprintf("the number %s", p.tok.text)
	case kindSQL:
		return "an SQL block"
	case kindEnd:
		return string(kindEnd)
	}
	return fmt.Sprintf("%q", string(p.tok.kind))
}

// expect takes a token of the kind, or complains.
func (p *parser) expect(k kind, after string) (token, bool) {
	if p.tok.kind == k {
		t := p.tok
		p.lost = false
		p.advance()
		return t, true
	}
	p.unexpected(string(k) + after)
	return token{}, false
}

func (p *parser) unexpected(want string) {
	if p.tok.kind != kindBad && !p.lost {
		hint := ""
		if keywords[string(p.tok.kind)] && strings.HasPrefix(want, string(kindName)+" after") {
			hint = fmt.Sprintf("; to use the word as a name, quote it: %q", string(p.tok.kind))
		}
		p.fail(p.tok.pos, "found %s, expected %s%s", p.found(), want, hint)
	}
}

// recover skips to where reading can go on after a problem.
func (p *parser) recover() {
	p.lost = true
	for p.tok.kind != kindEnd && (!keywords[string(p.tok.kind)] || p.tok.kind == "notices") {
		p.advance()
	}
}

// file reads everything. The order of the parts is that of the grammar; what stands out of order is complained about and
// read nevertheless, so that one run finds all problems.
func (p *parser) file() {
	const (
		inSetup = iota
		inTeardown
		inSessions
		inPermutations
	)
	part := inSetup
	for p.tok.kind != kindEnd {
		start := p.tok.pos
		switch k := p.tok.kind; {
		case k == "setup" && part == inSetup:
			if b := p.block("setup"); b != nil {
				p.spec.Setup = append(p.spec.Setup, *b)
			}
		case k == "teardown" && part == inSetup:
			p.spec.Teardown = p.block("teardown")
			part = inTeardown
		case k == "session" && part <= inSessions:
			p.session()
			part = inSessions
		case k == "permutation" && part >= inSessions:
			p.permutation()
			part = inPermutations
		default:
			p.unexpected(partsAfter(part == inSetup, part == inTeardown, part == inSessions))
			p.advance()
			p.recover()
		}
		if p.tok.pos == start && p.tok.kind != kindEnd {
			p.advance() // never happens; a loop that does not move would never end
		}
	}
	if len(p.spec.Sessions) == 0 && len(p.lex.problems) == 0 {
		p.fail(p.tok.pos, "found the end of the file, expected a session; a spec has at least one")
	}
}

func partsAfter(setup, teardown, sessions bool) string {
	switch {
	case setup:
		return "setup, teardown or session"
	case teardown:
		return "session; a file has one teardown, after all setup blocks and before the first session"
	case sessions:
		return "step, teardown, session or permutation"
	}
	return "permutation; everything else stands before the first permutation"
}

// block reads a keyword and its SQL.
func (p *parser) block(after string) *Block {
	p.advance()
	t, ok := p.expect(kindSQL, " after "+after)
	if !ok {
		p.recover()
		return nil
	}
	return &Block{SQL: t.text, Pos: t.pos}
}

func (p *parser) session() {
	p.advance()
	name, ok := p.expect(kindName, " after session")
	if !ok {
		p.recover()
	}
	s := &Session{Name: name.text, Pos: name.pos}
	index := len(p.spec.Sessions)
	p.spec.Sessions = append(p.spec.Sessions, s)
	if p.tok.kind == "setup" {
		s.Setup = p.block("setup")
	}
	for {
		switch p.tok.kind {
		case "step":
			if st := p.step(); st != nil {
				st.Session, st.Index = index, len(s.Steps)
				s.Steps = append(s.Steps, st)
			}
			continue
		case kindBad:
			p.advance()
			p.recover()
			continue
		case "setup":
			if len(s.Steps) > 0 {
				break
			}
			p.unexpected("step; a session has one setup block, unlike the file")
			p.block("setup")
			continue
		}
		break
	}
	if len(s.Steps) == 0 && len(p.lex.problems) == 0 {
		p.unexpected("step; a session has at least one")
	}
	if p.tok.kind == "teardown" {
		s.Teardown = p.block("teardown")
	}
}

func (p *parser) step() *Step {
	p.advance()
	name, ok := p.expect(kindName, " after step")
	if !ok {
		p.recover()
		return nil
	}
	sql, ok := p.expect(kindSQL, " after the name of the step")
	if !ok {
		p.recover()
		return nil
	}
	return &Step{Name: name.text, SQL: sql.text, Pos: name.pos}
}

// permutation reads one; the steps are looked up later, by link.
func (p *parser) permutation() {
	perm := &Permutation{Pos: p.tok.pos, Directives: p.pending}
	p.pending = nil
	p.spec.Permutations = append(p.spec.Permutations, perm)
	p.advance()
	for p.tok.kind == kindName {
		name := p.tok
		p.advance()
		// The name stands in for the step until link finds it.
		ps := PermutationStep{Step: &Step{Name: name.text}, Pos: name.pos}
		if p.tok.kind == "(" {
			markers, ok := p.markers()
			if !ok {
				p.recover()
				return
			}
			ps.Markers = markers
		}
		perm.Steps = append(perm.Steps, ps)
	}
	if len(perm.Steps) == 0 || !slices.Contains([]kind{"permutation", kindEnd}, p.tok.kind) {
		p.unexpected("a name of a step or the next permutation")
		p.recover()
	}
}

func (p *parser) markers() ([]Marker, bool) {
	var markers []Marker
	for {
		p.advance() // ( or ,
		m := Marker{Kind: MarkOnce, Pos: p.tok.pos}
		switch p.tok.kind {
		case "*":
			p.advance()
		case kindName:
			m.Kind, m.Step = MarkStep, &Step{Name: p.tok.text}
			p.advance()
			if p.tok.kind == "notices" {
				p.advance()
				n, ok := p.expect(kindNumber, " after notices")
				if !ok {
					return nil, false
				}
				m.Kind, m.Notices = MarkNotices, n.number
			}
		default:
			p.unexpected("a name of a step, or *, as marker in the parentheses")
			return nil, false
		}
		markers = append(markers, m)
		if p.tok.kind == "," {
			continue
		}
		_, ok := p.expect(")", " or , after a marker")
		return markers, ok
	}
}
