package postgres

import (
	"encoding/json"
	"fmt"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/statement/condition"
)

// images asks for the images of the version that a write makes and of the one that it replaces.
func (x *instrumentation) images(target source, op history.Op) (list []string) {
	expr, columns := x.image(target)
	if columns == nil {
		return nil
	}
	list = append(list, x.hidden(part{rel: target.rel, image: columns, was: op == history.OpDelete}, expr))
	if x.linked {
		list = append(list, x.hidden(part{rel: target.rel, image: columns, was: true}, "pg_catalog.current_setting('"+oldImage+"')"))
	}
	return list
}

// imaged adds an image to the accesses that the row's first column told: one, or two where the key changed.
func (p *part) imaged(list []history.Access, text []byte) error {
	if len(list) == 0 {
		return nil
	}
	var values []json.RawMessage
	if err := json.Unmarshal(text, &values); err != nil || len(values) != len(p.image) {
		return fmt.Errorf("%w: an image", errHidden)
	}
	var b []byte
	for i, raw := range values {
		var v condition.Value
		switch s := string(raw); {
		case s == "null":
		case raw[0] == '{':
			return &rewrite.ChangedError{Table: p.rel.Name}
		case raw[0] == '"':
			var text string
			if err := json.Unmarshal(raw, &text); err != nil {
				return fmt.Errorf("%w: an image: %w", errHidden, err)
			}
			v = &text
		case s == "false" && p.long(i):
			continue
		default:
			v = &s
		}
		b = condition.AppendColumn(b, p.image[i], v)
	}
	if p.was {
		list[0].Was = string(b)
	} else {
		list[len(list)-1].Image = string(b)
	}
	return nil
}

// long reports whether false stands for a text that is too long.
func (p *part) long(i int) bool {
	for _, c := range p.rel.Columns {
		if c.Name == p.image[i] {
			return kindOf(&c) == condition.Text
		}
	}
	return false
}
