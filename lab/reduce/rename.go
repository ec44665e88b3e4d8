package reduce

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// words are all tokens of a draft, in lower case.
func (d *draft) words() map[string]bool {
	words := map[string]bool{}
	d.everywhere(func(sql string) string {
		for _, t := range tokens(sql) {
			words[strings.ToLower(sql[t.from:t.to])] = true
		}
		return sql
	})
	return words
}

// constants writes each constant that is not simple yet as a simpler one, everywhere at once, so that values which were equal stay so.
func (r *reduction) constants() error {
	var list []string
	all := r.best.clone()
	all.each(func(sql string) string {
		for _, t := range tokens(sql) {
			if text := sql[t.from:t.to]; constant(text) && !slices.Contains(list, text) {
				list = append(list, text)
			}
		}
		return sql
	})
	for _, old := range list {
		used := r.best.words()
		for _, by := range simplerConstants(old, used) {
			d := r.best.clone()
			d.each(func(sql string) string { return replaced(sql, func(t string) (string, bool) { return by, t == old }) })
			if d.weight() >= r.best.weight() {
				continue
			}
			if taken, err := r.try(d); err != nil {
				return err
			} else if taken {
				break
			}
		}
	}
	return nil
}

// simplerConstants are what may stand for a constant without being mixed up with others: a small number and, for a text, a letter.
func simplerConstants(old string, used map[string]bool) (list []string) {
	first := func(words []string) {
		for _, w := range words {
			if !used[w] {
				list = append(list, w)
				return
			}
		}
	}
	first([]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"})
	if old[0] == '\'' {
		first([]string{"''", "'a'", "'b'", "'c'", "'d'"})
	}
	return list
}

// types makes columns integers, and texts small numbers with them: the two often only go together.
func (r *reduction) types() error {
	for i := 0; i < len(r.best.setup); i++ {
		table, names := createdColumns(r.best.setup[i])
		for _, column := range names {
			sql := withType(r.best.setup[i], column)
			if sql == r.best.setup[i] {
				continue
			}
			d := r.best.clone()
			d.setup[i] = sql
			numbers := map[string]string{}
			used := d.words()
			d.each(func(sql string) string {
				if t, _ := createdColumns(sql); t != "" && t != table {
					return sql
				}
				return replaced(sql, func(t string) (string, bool) {
					if t[0] != '\'' && !(digit(t[0]) && strings.Contains(t, ".")) {
						return "", false
					}
					if numbers[t] == "" {
						n := 0
						for ; used[strconv.Itoa(n)]; n++ {
						}
						numbers[t] = strconv.Itoa(n)
						used[numbers[t]] = true
					}
					return numbers[t], true
				})
			})
			if _, err := r.try(d); err != nil {
				return err
			}
		}
	}
	return nil
}

// withType makes a column of a CREATE TABLE an INT and keeps its constraints.
func withType(sql, column string) string {
	list := tokens(sql)
	_, open := created(sql, list)
	if open < 0 {
		return sql
	}
	elements, _ := parenthesised(sql, list, open)
	for _, e := range elements {
		if e.first != column || isConstraint(e.first) {
			continue
		}
		text := sql[e.from:e.to]
		parts := tokens(text)
		end := len(text)
		for i := 1; i < len(parts); i++ {
			if word := strings.ToUpper(text[parts[i].from:parts[i].to]); slices.Contains(behindType, word) {
				end = parts[i].from
				break
			}
		}
		simple := text[:parts[0].to] + " INT"
		if end < len(text) {
			simple += " " + text[end:]
		}
		if weight(simple) >= weight(text) && len(parts) != 2 || strings.EqualFold(simple, text) {
			return sql
		}
		return sql[:e.from] + simple + sql[e.to:]
	}
	return sql
}

// behindType are the words that end a column's type.
var behindType = []string{"NOT", "NULL", "DEFAULT", "PRIMARY", "UNIQUE", "KEY", "CHECK", "GENERATED", "AS", "REFERENCES", "CONSTRAINT", "AUTO_INCREMENT", "INVISIBLE", "COMMENT"}

// names gives tables, columns, indexes, sessions and steps short names.
func (r *reduction) names() error {
	if err := r.rename(append(r.best.tableNames(), r.columnNames()...)); err != nil {
		return err
	}
	d := r.best.clone()
	places := make([]int, len(d.sessions))
	for i := range d.sessions {
		d.sessions[i].name = fmt.Sprintf("s%d", i+1)
	}
	for i, st := range d.steps {
		places[st.session]++
		d.steps[i].name = fmt.Sprintf("s%d_%d", st.session+1, places[st.session])
	}
	_, err := r.try(d)
	return err
}

// naming is a name and what to call it.
type naming struct {
	old  string // in lower case
	list []string
}

var (
	tableNames  = []string{"t", "u", "v", "w", "x", "y", "z"}
	columnNames = []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	indexNames  = []string{"i", "j", "k", "l", "m", "n"}
)

// tableNames are those that the setup creates: tables, views, indexes.
func (d *draft) tableNames() (list []naming) {
	for _, sql := range d.setup {
		if table, _ := createdColumns(sql); table != "" {
			list = append(list, naming{table, tableNames})
			continue
		}
		if words := tokens(sql); len(words) > 3 && strings.EqualFold(sql[words[0].from:words[0].to], "CREATE") {
			for i := 1; i+1 < len(words); i++ {
				switch next := name(sql[words[i+1].from:words[i+1].to]); strings.ToUpper(sql[words[i].from:words[i].to]) {
				case "VIEW":
					list = append(list, naming{next, tableNames})
				case "INDEX":
					list = append(list, naming{next, indexNames})
				default:
					continue
				}
				break
			}
		}
	}
	return list
}

func (r *reduction) columnNames() (list []naming) {
	for _, sql := range r.best.setup {
		_, columns := createdColumns(sql)
		for _, c := range columns {
			list = append(list, naming{c, columnNames})
		}
	}
	return list
}

// rename tries all names at once, and where that does not show it any more, each of them.
func (r *reduction) rename(list []naming) error {
	used := r.best.words()
	to, taken := map[string]string{}, map[string]bool{}
	for _, n := range list {
		if to[n.old] != "" || taken[n.old] {
			continue
		}
		for _, name := range n.list {
			if name == n.old || !used[name] && !taken[name] {
				if taken[name] = true; name != n.old {
					to[n.old] = name
				}
				break
			}
		}
	}
	if len(to) == 0 {
		return nil
	}
	change := func(to map[string]string) (bool, error) {
		d := r.best.clone()
		d.everywhere(func(sql string) string {
			return replaced(sql, func(t string) (string, bool) {
				by := to[name(t)]
				return by, by != "" && t[0] != '\''
			})
		})
		return r.try(d)
	}
	if taken, err := change(to); taken || err != nil || len(to) == 1 {
		return err
	}
	for _, n := range list {
		if to[n.old] == "" {
			continue
		}
		if _, err := change(map[string]string{n.old: to[n.old]}); err != nil {
			return err
		}
	}
	return nil
}
