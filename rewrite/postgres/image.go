package postgres

import (
	"encoding/json"
	"fmt"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/statement/condition"
)

// images asks for the images of the version that a write makes and of the one that it replaces.
func (x *instrumentation) images(target source, w *write) (list []string) {
	expr, columns := x.image(target)
	if columns == nil {
		return nil
	}
	list = append(list, x.hidden(part{rel: target.rel, image: columns, was: w.op == history.OpDelete, left: w.left(target.rel)}, expr))
	if x.linked {
		list = append(list, x.hidden(part{rel: target.rel, image: columns, was: true}, "pg_catalog.current_setting('"+oldImage+"')"))
	}
	return list
}

// askSnapshot gives the hidden column with the snapshot of a statement that may wait for a transaction: it ends behind it, though its snapshot does not have
// what that transaction wrote (PostgreSQL manual, 13.2.1).
func (x *planner) askSnapshot(waits bool) []string {
	if !waits || !x.native {
		return nil
	}
	x.plan.Snapshot = len(x.parts) + 1
	return []string{x.hidden(part{apart: true}, "pg_catalog.pg_current_snapshot()::pg_catalog.text")}
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
	var b, left []byte
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
		if slices.Contains(p.left, p.image[i]) {
			left = condition.AppendColumn(left, p.image[i], v)
		}
	}
	if p.was {
		list[0].Was = string(b)
		return nil
	}
	last := &list[len(list)-1]
	if last.Image = string(b); last.Op == history.OpUpdate && last.Was == "" {
		last.Was = string(left)
	}
	return nil
}

// left are the columns that an upsert leaves as they are in a row that it meets: RETURNING tells them of the version that it replaced, too.
func (w *write) left(rel *rewrite.Relation) (list []string) {
	if !w.upsert || rel.HasTriggers {
		return nil
	}
	assigned := func(name string) bool {
		return slices.ContainsFunc(w.node.(*pg.InsertStmt).OnConflictClause.TargetList, func(t *pg.Node) bool { return t.GetResTarget().GetName() == name })
	}
	for i := range rel.Columns {
		if c := &rel.Columns[i]; !c.Generated && !assigned(c.Name) {
			list = append(list, c.Name)
		}
	}
	return list
}

// long reports whether false stands for a text that is too long.
func (p *part) long(i int) bool {
	for _, c := range p.rel.Columns {
		if c.Name == p.image[i] {
			return long(kindOf(&c))
		}
	}
	return false
}

// image gives the expression of the values of the wanted columns of a row, as a JSON array of text, and the columns.
func (x *scene) image(s source) (expr string, columns []string) {
	if !x.native || !x.session.utf8() || x.catalog.Encoding != "UTF8" {
		return "", nil
	}
	var missing []missingColumn
	wanted := x.wanted.Columns(s.rel, topName(s.rel))
	bare := s.bare(x, wanted)
	for _, name := range wanted {
		a := s.rel.Attribute(name)
		if a == nil || kindOf(a) == condition.Other {
			continue
		}
		c := s.named(name, bare)
		missing = append(missing, missingColumn{name, noValue})
		if kind := kindOf(a); long(kind) {
			// Long text is not worth its way: false says that it is not told.
			if kind != condition.Text {
				c += "::pg_catalog.text"
			}
			c = fmt.Sprintf("CASE WHEN pg_catalog.octet_length(%s::pg_catalog.text) > %d THEN pg_catalog.to_json(false) ELSE pg_catalog.to_json(%s) END", c, maxImage, c)
		}
		if columns != nil {
			expr += ", "
		}
		expr, columns = expr+c, append(columns, name)
	}
	if columns == nil {
		return "", nil
	}
	expr = "pg_catalog.json_build_array(" + expr + ")::pg_catalog.text"
	if bare {
		expr = lookup(x, s, expr, missing)
	}
	return expr, columns
}

// long reports whether the texts of a kind may be long.
func long(k condition.Kind) bool {
	return k == condition.Text || k == condition.JSON || k.Element() != ""
}

// maxImage is how many bytes a text has at most that is part of an image.
const maxImage = 1024

// WantAll asks for images of all columns, so that what is captured does not depend on what was asked before. It is called before the first
// statement.
func (r *Rewriter) WantAll() { r.wanted.Always = true }

// WantEarly asks for them at first. It is called before the first statement.
func (r *Rewriter) WantEarly(e *rewrite.Early) { r.wanted.Early = e }

// Want asks for images of what a predicate read needs from now on.
func (r *Rewriter) Want(a *rewrite.Ask) { r.wanted.Ask(a) }

// Generation grows whenever statements planned before should be planned again, as more is wanted.
func (r *Rewriter) Generation() uint64 { return r.wanted.Generation() }
