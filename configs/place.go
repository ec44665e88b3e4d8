package configs

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"wirecheck/history/prose"
	"wirecheck/trace/secret"
)

// problem is what is wrong with one key, and what is allowed there.
type problem struct{ at, text string }

// problems collects what is wrong with a configuration.
type problems struct{ list []problem }

func (p *problems) add(at, format string, args ...any) {
	p.list = append(p.list, problem{at, fmt.Sprintf(format, args...)})
}

// err says all problems, one a line. where gives the file and the line of each.
func (p *problems) err(where func(problem) string) error {
	var errs []error
	for _, one := range p.list {
		errs = append(errs, errors.New("  "+where(one)+one.at+": "+one.text))
	}
	return errors.Join(errs...)
}

// source is a file with the lines of its keys.
type source struct {
	path  string
	lines map[string]int // by key, as in listeners[0].mode
}

// where gives the file and the line of a key, or of what the key belongs in.
func (s *source) where(p problem) string {
	for at := p.at; ; at = at[:strings.LastIndexAny(at, ".[")] {
		if line := s.lines[at]; line > 0 || !strings.ContainsAny(at, ".[") {
			return fmt.Sprintf("%s:%d: ", s.path, max(line, 1))
		}
	}
}

// read reads one YAML document over what to has. The error names the file, the line, the key and what is allowed of all that is wrong with its form.
func (s *source) read(in io.Reader, to any) error {
	text, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", s.path, err)
	}
	if line, err := bounded(text); err != nil {
		return fmt.Errorf("  %s:%d: %w", s.path, line, err)
	}
	s.lines = map[string]int{}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return s.placed(err)
	}
	for i, doc := range file.Docs {
		if i > 0 && doc.Body != nil {
			return fmt.Errorf("  %s:%d: there is more than one document in it", s.path, doc.Body.GetToken().Position.Line)
		}
		p := &problems{}
		s.walk(p, doc.Body, reflect.TypeOf(to).Elem(), "")
		if err := p.err(s.where); err != nil {
			return err
		}
	}
	if err := yaml.UnmarshalWithOptions(text, to, yaml.Strict()); err != nil && !errors.Is(err, io.EOF) { // an empty file says nothing
		return s.placed(err)
	}
	return nil
}

// placed is an error of the YAML parser without the text around it, which may have passwords.
func (s *source) placed(err error) error {
	line, text := 1, "it is no YAML"
	if e := yaml.Error(nil); errors.As(err, &e) {
		text = e.GetMessage()
		if t := e.GetToken(); t != nil && t.Position != nil {
			line = t.Position.Line
		}
	}
	return fmt.Errorf("  %s:%d: %s", s.path, line, secret.URLs(prose.Line(text, 200)))
}

// walk looks at a node that should be read as a type, and notes its lines.
func (s *source) walk(p *problems, node ast.Node, as reflect.Type, at string) {
	switch n := node.(type) {
	case nil, *ast.NullNode, *ast.AliasNode, *ast.MergeKeyNode, *ast.CommentGroupNode: // what an alias stands for was looked at
		return
	case *ast.AnchorNode:
		s.walk(p, n.Value, as, at)
		return
	case *ast.MappingValueNode:
		s.mapping(p, []*ast.MappingValueNode{n}, as, at)
		return
	case *ast.MappingNode:
		s.mapping(p, n.Values, as, at)
		return
	case *ast.SequenceNode:
		if as.Kind() != reflect.Slice {
			p.add(s.key(at), "there is a list, and it takes %s", expected(as))
			return
		}
		for i, v := range n.Values {
			at := fmt.Sprintf("%s[%d]", at, i)
			if v != nil && v.GetToken() != nil {
				s.lines[at] = v.GetToken().Position.Line
			}
			s.walk(p, v, as.Elem(), at)
		}
		return
	}
	value, to := node.GetToken().Value, reflect.New(as).Interface()
	_, fraction := node.(*ast.FloatNode)
	if as.Kind() != reflect.Struct && as.Kind() != reflect.Slice && !(fraction && as.Kind() == reflect.Int) && yaml.NodeToValue(node, to) == nil {
		return
	}
	if v, ok := to.(interface{ Set(string) error }); ok && v.Set(value) != nil {
		p.add(at, "%s", secret.URLs(v.Set(value).Error()))
		return
	}
	p.add(s.key(at), "%s: it takes %s", strconv.Quote(prose.Cut(secret.URLs(value), 60)), expected(as))
}

// key names the file's top for people.
func (s *source) key(at string) string {
	return cmp.Or(at, "the file")
}

func (s *source) mapping(p *problems, values []*ast.MappingValueNode, as reflect.Type, at string) {
	if as.Kind() != reflect.Struct {
		p.add(s.key(at), "there are keys, and it takes %s", expected(as))
		return
	}
	for _, v := range values {
		if v.Key == nil || v.Key.IsMergeKey() {
			continue
		}
		name, line := v.Key.GetToken().Value, v.Key.GetToken().Position.Line
		shown := prose.Line(name, 60)
		at := strings.TrimPrefix(at+"."+shown, ".")
		s.lines[at] = line
		if i := slices.Index(keys(as), name); i >= 0 {
			s.walk(p, v.Value, as.Field(i).Type, at)
		} else {
			p.add(at, "there is no such key; there are %s", strings.Join(keys(as), ", "))
		}
	}
}

// keys are those of a section.
func keys(as reflect.Type) (list []string) {
	for i := range as.NumField() {
		name, _, _ := strings.Cut(as.Field(i).Tag.Get("yaml"), ",")
		list = append(list, name)
	}
	return list
}

// expected says what a key takes.
func expected(as reflect.Type) string {
	switch as {
	case reflect.TypeFor[time.Duration]():
		return "a duration, as in 500ms, 10s or 1h"
	case reflect.TypeFor[Size]():
		return "a size, as in 65536, 64KiB, 1MiB or 1GiB"
	case reflect.TypeFor[Switch]():
		return "on or off"
	}
	switch as.Kind() {
	case reflect.Struct:
		return "the keys " + strings.Join(keys(as), ", ")
	case reflect.Slice:
		return "a list"
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	}
	return "a text"
}
