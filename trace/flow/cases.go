package flow

import (
	"slices"

	"wirecheck/history"
	"wirecheck/trace/lex"
)

// cased is what a column gets in the row that one branch of a CASE names: SET n = CASE id WHEN 1 THEN 8 WHEN 2 THEN 18 END.
type cased struct {
	key, value string // the column and its value that name the row
	history.Operand
}

// cases reads an assignment of such a CASE between two tokens, perhaps in brackets and with a cast; nil if it is of another form.
func (u *update) cases(name string, i, end int) (list []cased) {
	for i < end && u.tokens[i].Text == "(" {
		i++
	}
	is := func(word string) bool { return i < end && u.tokens[i].Is(word) }
	if !is("case") {
		return nil
	}
	base := ""
	if i++; !is("when") {
		if base, i = u.columnAt(i); base == "" || !is("when") {
			return nil
		}
	}
	for is("when") {
		key, begin := base, i+1
		then := u.word(begin, end, "then")
		if key == "" {
			for begin < then && u.tokens[begin].Text == "(" {
				begin++
			}
			if key, begin = u.columnAt(begin); key == "" || begin >= then || u.tokens[begin].Text != "=" {
				return nil
			}
			begin++
		}
		last := then
		for base == "" && last > begin && u.tokens[last-1].Text == ")" {
			last--
		}
		next := u.word(then, end, "when", "else", "end")
		if then >= end || next >= end || len(list) == maxRows || len(list) > 0 && list[0].key != key {
			return nil
		}
		at, o := u.alone(key, begin, last), u.alone(name, then+1, next)
		if at.Role != history.RoleSet {
			return nil
		}
		list, i = append(list, cased{key, at.Value, o}), next
	}
	if is("else") {
		i++
		if column, behind := u.columnAt(i); is("null") {
			i++
		} else if i = behind; column != name {
			return nil
		}
	}
	if !is("end") {
		return nil
	}
	for i++; i < end; i++ {
		if u.tokens[i].Text == ")" {
			continue
		}
		if behind := u.cast(i); behind != end {
			return nil
		}
		break
	}
	return list
}

// columnAt is the column that stands at a place, and the place behind it.
func (u *update) columnAt(i int) (name string, behind int) {
	for i < len(u.tokens) && (u.tokens[i].Kind == lex.Word || u.tokens[i].Kind == lex.Name) {
		name = column(u.tokens[i])
		if i++; i+1 >= len(u.tokens) || u.tokens[i].Text != "." {
			break
		}
		i++
	}
	return name, i
}

// word is the place of the next of some words, outside of other CASEs and brackets; end if there is none.
func (u *update) word(i, end int, words ...string) int {
	for depth := 0; i < end; i++ {
		switch t := u.tokens[i]; {
		case depth == 0 && slices.ContainsFunc(words, t.Is):
			return i
		case t.Text == "(" || t.Is("case"):
			depth++
		case t.Text == ")" || depth > 0 && t.Is("end"):
			depth--
		}
	}
	return end
}

// casedRows are the rows that the branches name, with what each assigns.
func (u *update) casedRows() (list []Row) {
	for _, c := range u.branches {
		if c.key != u.branches[0].key {
			return nil
		}
		i := slices.IndexFunc(list, func(r Row) bool { return r.Named[c.key] == c.value })
		if i < 0 {
			i = len(list)
			list = append(list, Row{map[string]string{c.key: c.value}, slices.Clone(u.list)})
		}
		for k := range list[i].Operands {
			if o := &list[i].Operands[k]; o.Column == c.Column && o.Role.Assigns() {
				*o = c.Operand
			}
		}
	}
	return list
}
