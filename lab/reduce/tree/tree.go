// Package tree makes the trees of SQL parsers simpler, one edit at a time: without an optional part, without an element of a list, with
// a part of an expression in its place, with a constant in its place. It knows no dialect: it walks Go structs, and a Grammar says
// what they mean.
package tree

import (
	"reflect"
	"slices"
)

// Grammar says what the nodes of a dialect's tree are.
type Grammar struct {
	// Print writes the tree that is being edited. It may fail or panic: edits make trees that no parser would.
	Print func() (string, error)
	// Enter reports whether a field is looked into, Clear whether its value may be taken away, Shorten whether a part of a list may. Shorten
	// may be nil: all may.
	Enter, Clear, Shorten func(node reflect.Type, field string) bool
	// Slot names the kind of thing that stands at a place, such as "expression"; empty if nothing else may stand there. A part of
	// the same kind may take its place.
	Slot func(place reflect.Value) string
	// Constants are what may stand at a place of that kind instead of anything.
	Constants func(kind string, place reflect.Value) []reflect.Value
	// Extra are edits of a node that need to know it: each does one and gives what undoes it.
	Extra func(node any) []func() (undo func())
}

// Simpler gives the texts of the tree after each edit, those that take away more first. The tree, to which root points, is as before
// afterwards.
func Simpler(root any, g Grammar) []string {
	w := &walk{g: g, seen: map[uintptr]bool{}, had: map[string]bool{}}
	w.slot(reflect.ValueOf(root).Elem())
	w.node(reflect.ValueOf(root).Elem())
	return w.out
}

type walk struct {
	g    Grammar
	seen map[uintptr]bool
	had  map[string]bool
	out  []string
}

// emit prints the tree as it is now.
func (w *walk) emit() {
	defer func() { _ = recover() }() // a tree that cannot be printed is no candidate
	text, err := w.g.Print()
	if err == nil && text != "" && !w.had[text] {
		w.had[text] = true
		w.out = append(w.out, text)
	}
}

// put prints the tree with another value at a place.
func (w *walk) put(place, value reflect.Value) {
	old := reflect.New(place.Type()).Elem()
	old.Set(place)
	place.Set(value)
	w.emit()
	place.Set(old)
}

// node edits what a value leads to: first its own parts, then theirs.
func (w *walk) node(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			w.node(v.Elem())
		}
	case reflect.Pointer:
		if v.IsNil() || w.seen[v.Pointer()] || v.Elem().Kind() != reflect.Struct {
			return
		}
		w.seen[v.Pointer()] = true
		if w.g.Extra != nil {
			for _, edit := range w.g.Extra(v.Interface()) {
				undo := edit()
				w.emit()
				undo()
			}
		}
		w.structure(v.Elem())
	case reflect.Struct:
		w.structure(v)
	case reflect.Slice:
		for i := range v.Len() {
			w.slot(v.Index(i))
		}
		for i := range v.Len() {
			w.node(v.Index(i))
		}
	}
}

func (w *walk) structure(v reflect.Value) {
	fields := w.fields(v)
	for _, f := range fields {
		w.shorten(v.Type(), f.name, f.value)
	}
	for _, f := range fields {
		w.slot(f.value)
	}
	for _, f := range fields {
		w.node(f.value)
	}
}

type field struct {
	name  string
	value reflect.Value
}

// fields are those that may be looked into.
func (w *walk) fields(v reflect.Value) (list []field) {
	t := v.Type()
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && v.Field(i).CanSet() && w.g.Enter(t, f.Name) {
			list = append(list, field{f.Name, v.Field(i)})
		}
	}
	return list
}

// shorten takes a part away, or some of a list.
func (w *walk) shorten(node reflect.Type, name string, v reflect.Value) {
	optional := w.g.Clear(node, name)
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if optional && !v.IsNil() {
			w.put(v, reflect.Zero(v.Type()))
		}
	case reflect.Bool:
		if optional && v.Bool() {
			w.put(v, reflect.Zero(v.Type()))
		}
	case reflect.Slice:
		switch v.Type().Elem().Kind() {
		case reflect.Pointer, reflect.Interface, reflect.Struct, reflect.Slice:
		default:
			return
		}
		n := v.Len()
		if n > 0 && optional {
			w.put(v, reflect.Zero(v.Type()))
		}
		if w.g.Shorten != nil && !w.g.Shorten(node, name) {
			return
		}
		for size := n / 2; size >= 1; size /= 2 { // as ddmin: large parts first
			for from := 0; from < n; from += size {
				to := min(from+size, n)
				if to-from == n {
					continue
				}
				w.put(v, reflect.AppendSlice(reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, n), v.Slice(0, from)), v.Slice(to, n)))
			}
		}
	}
}

// slot puts constants and parts of the same kind at a place.
func (w *walk) slot(place reflect.Value) {
	kind := w.g.Slot(place)
	if kind == "" {
		return
	}
	for _, c := range w.g.Constants(kind, place) {
		w.put(place, c)
	}
	for _, part := range w.parts(kind, place) {
		w.put(place, part)
	}
}

// parts are the nearest places of the same kind below one.
func (w *walk) parts(kind string, place reflect.Value) (out []reflect.Value) {
	seen := map[uintptr]bool{}
	var look func(v reflect.Value, top bool)
	look = func(v reflect.Value, top bool) {
		if !top && v.CanSet() && w.g.Slot(v) == kind {
			if v.Type().AssignableTo(place.Type()) {
				part := reflect.New(v.Type()).Elem()
				part.Set(v)
				out = append(out, part)
			}
			return
		}
		switch v.Kind() {
		case reflect.Interface:
			if !v.IsNil() {
				look(v.Elem(), top)
			}
		case reflect.Pointer:
			if v.IsNil() || seen[v.Pointer()] || v.Elem().Kind() != reflect.Struct {
				return
			}
			seen[v.Pointer()] = true
			for _, f := range w.fields(v.Elem()) {
				look(f.value, false)
			}
		case reflect.Struct:
			for _, f := range w.fields(v) {
				look(f.value, false)
			}
		case reflect.Slice:
			for i := range v.Len() {
				look(v.Index(i), false)
			}
		}
	}
	look(place, true)
	return slices.Clip(out)
}
