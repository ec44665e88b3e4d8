package condition

import (
	"encoding/json"
	"slices"
	"strings"
)

// The kinds of PostgreSQL's jsonb (manual, 8.14) and of arrays of one dimension (8.15), which are compared by operators of their own.
const (
	JSON        Kind = "json"
	TextArray   Kind = "texts"
	NumberArray Kind = "numbers"
)

// Element is the kind of the elements of a kind of arrays; empty if it is none.
func (k Kind) Element() Kind {
	return map[Kind]Kind{TextArray: Text, NumberArray: Number}[k]
}

// containing are the comparisons of documents and arrays: member says that the array has the one value; ? that the document has the key.
var containing = []string{"&&", "@>", "<@", "member", "?"}

// includes decides a comparison of a document or an array.
func (k Kind) includes(op, a, b string) Truth {
	if k == JSON {
		left, ok1 := document(a)
		right, ok2 := document(b)
		switch {
		case op == "?" && ok1:
			fields, _ := left.(map[string]any)
			list, _ := left.([]any)
			_, has := fields[b]
			return truth(has || left == b || slices.Contains(list, any(b)))
		case op == "@>" && ok1 && ok2:
			if list, isList := left.([]any); isList && scalar(right) {
				return among(list, right)
			}
			return within(left, right)
		}
		return Unsure
	}
	left, ok := elements(a)
	right := []Value{&b}
	if op != "member" {
		var ok2 bool
		right, ok2 = elements(b)
		ok = ok && ok2
	}
	if !ok {
		return Unsure
	}
	if op == "<@" {
		left, right = right, left
	}
	out := truth(op == "@>" || op == "<@")
	for _, v := range right {
		found := False // NULL is like no element (manual, 9.19)
		for _, w := range left {
			switch t := k.Element().compare("=", v, w); {
			case t == Unsure:
				return Unsure
			case t == True:
				found = True
			case t == Null && op == "member" && found == False:
				found = Null
			}
		}
		if op == "member" || (found == True) != (out == True) {
			return found
		}
	}
	return out
}

// document reads a document of JSON. A number stays a text.
func document(s string) (v any, ok bool) {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	if d.Decode(&v) != nil || d.More() {
		return nil, false
	}
	return v, true
}

func scalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// within reports whether a document contains another one (manual, 8.14.3).
func within(a, b any) Truth {
	switch b := b.(type) {
	case map[string]any:
		fields, ok := a.(map[string]any)
		out := truth(ok)
		for key, v := range b {
			w, has := fields[key]
			if t := within(w, v); !has || t == False {
				return False
			} else if t == Unsure {
				out = Unsure
			}
		}
		return out
	case []any:
		list, ok := a.([]any)
		out := truth(ok)
		for _, v := range b {
			if t := among(list, v); t == False {
				return False
			} else if t == Unsure {
				out = Unsure
			}
		}
		return out
	case json.Number:
		n, ok := a.(json.Number)
		if !ok {
			return False
		}
		v, w := n.String(), b.String()
		return Number.compare("=", &v, &w)
	}
	if !scalar(a) {
		return False
	}
	return truth(a == b)
}

// among reports whether one of the values contains v.
func among(list []any, v any) Truth {
	out := False
	for _, w := range list {
		if t := within(w, v); t == True {
			return True
		} else if t == Unsure {
			out = Unsure
		}
	}
	return out
}

// member is what a document has at the keys: the document there or, as a text, its value. It is NULL where there is none.
func member(doc string, text bool, keys ...string) (Value, bool) {
	for i, key := range keys {
		switch {
		case strings.HasPrefix(doc, "[") && len(keys) > 1: // a key of a path may be an index
			return nil, false
		case !strings.HasPrefix(doc, "{"):
			return nil, true
		}
		var fields map[string]json.RawMessage
		if json.Unmarshal([]byte(doc), &fields) != nil {
			return nil, false
		}
		raw, has := fields[key]
		if !has {
			return nil, true
		}
		if doc = string(raw); text && i == len(keys)-1 {
			return scalarText(doc)
		}
	}
	return &doc, true
}

// path is #>>: what a document has at the end of a list of keys.
func path(doc, keys string) (Value, bool) {
	list, ok := elements(keys)
	var names []string
	for _, v := range list {
		if v == nil {
			return nil, true
		}
		names = append(names, *v)
	}
	if !ok || len(names) == 0 {
		return nil, false
	}
	return member(doc, true, names...)
}

// scalarText is the text of a document, as ->> gives it.
func scalarText(doc string) (Value, bool) {
	if doc == "null" {
		return nil, true
	}
	if strings.HasPrefix(doc, `"`) {
		var s string
		err := json.Unmarshal([]byte(doc), &s)
		return &s, err == nil
	}
	return &doc, true
}
