package troc

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/oracle/schedule"
	"wirecheck/statement"
)

// features are what a case's setup has that a view cannot show exactly.
type features struct {
	generated map[string][]string // by table: the columns that the server fills in
	touched   map[string]bool     // by table: an UPDATE sets a column to the time (MySQL family: ON UPDATE)
	computed  map[string][]string // by table: the columns that are generated from others
	views     map[string]string   // views that show nothing but tables: the one table that they are of, or empty
	rowwise   map[string]bool     // views that show rows of one table, each by itself
	late      bool                // constraints that are looked at when a transaction ends, and not before
	primary   map[string][]string // by table: the columns of the primary key, in lower case; empty for a part that is no column
	prefixes  map[string][]string // by table: those of which the key has only the beginning
	unique    map[string][]string // by table: columns of other keys
	keys      bool                // foreign keys: a statement on one table looks at another one
	acts      bool                // foreign keys by which a change of one table changes another one
}

var (
	unjudged = []struct {
		pattern *regexp.Regexp
		why     string
	}{
		{regexp.MustCompile(`(?i)\bcreate\s+(or\s+replace\s+)?(definer\s*=\s*\S+\s+)?(constraint\s+)?trigger\b`), "a table has triggers"},
		{regexp.MustCompile(`(?i)\bcreate\s+(or\s+replace\s+)?rule\b`), "a table has rules"},
		{regexp.MustCompile(`(?i)\binherits\s*\(`), "a table inherits from another one"},
		{regexp.MustCompile(`(?i)\bwith\s+system\s+versioning\b`), "a table has system versioning"},
		{regexp.MustCompile(`(?i)\b(enable\s+row\s+level\s+security|create\s+policy)\b`), "a table has row security"},
	}
	acting     = regexp.MustCompile(`(?i)\bon\s+(delete|update)\s+(cascade|set\s+(null|default))\b`)
	touching   = regexp.MustCompile(`(?i)\bon\s+update\s+(current_timestamp|now|localtime)`)
	computing  = regexp.MustCompile(`(?i)\bas\s*\(`)
	references = regexp.MustCompile(`(?i)\breferences\b`)
	automatic  = regexp.MustCompile(`(?i)\b(auto_increment|auto_random|(small|big)?serial[248]?|identity|nextval|uuid\w*|gen_random_uuid|rand|random|now|current_timestamp|current_date|localtime|localtimestamp|clock_timestamp|statement_timestamp|sysdate|txid_current|pg_current_xact_id)\b`)
	viewed     = regexp.MustCompile("(?i)^\\s*create\\s+(?:or\\s+replace\\s+)?(?:algorithm\\s*=\\s*\\w+\\s+)?(?:definer\\s*=\\s*\\S+\\s+)?(?:sql\\s+security\\s+\\w+\\s+)?view\\s+[`\"]?([\\w$]+)[`\"]?")
	definition = regexp.MustCompile("(?i)^\\s*[`\"]?([\\w$]+)[`\"]?\\s")
	keyPart    = regexp.MustCompile("(?i)^\\s*[`\"]?([\\w$]+)[`\"]?\\s*(\\(\\s*\\d+\\s*\\))?(?:\\s+(?:asc|desc))?\\s*$")
	created    = regexp.MustCompile("(?i)\\bcreate\\s+(?:\\w+\\s+)*?table\\s+(?:if\\s+not\\s+exists\\s+)?([`\"]?[\\w$]+[`\"]?(?:\\.[`\"]?[\\w$]+[`\"]?)?)\\s*\\(")
)

// featureless says why a setup has something that cannot be judged; empty if it has nothing of the kind.
func featureless(setup []string) string {
	for _, sql := range setup {
		for _, u := range unjudged {
			if u.pattern.MatchString(sql) {
				return u.why
			}
		}
	}
	return ""
}

// featuresOf looks for what the server fills in. It goes by the texts, and errs on the side of finding something.
func featuresOf(setup []string, tables []string) features {
	f := features{
		generated: map[string][]string{}, computed: map[string][]string{}, views: map[string]string{}, rowwise: map[string]bool{}, primary: map[string][]string{}, prefixes: map[string][]string{},
		unique: map[string][]string{}, touched: map[string]bool{},
	}
	for _, sql := range setup {
		if m := viewed.FindStringSubmatch(sql); m != nil && !automatic.MatchString(sql) {
			f.views[m[1]] = f.base(sql[len(m[0]):], tables)
			f.rowwise[m[1]] = f.views[m[1]] != "" && rowwise(sql[len(m[0]):])
		}
		f.keys = f.keys || references.MatchString(sql)
		f.acts = f.acts || acting.MatchString(sql)
		at := created.FindAllStringSubmatchIndex(sql, -1)
		for n, m := range at {
			name := strings.NewReplacer("`", "", `"`, "").Replace(sql[m[2]:m[3]])
			name = strings.TrimPrefix(name, "public.")
			end := len(sql)
			if n+1 < len(at) {
				end = at[n+1][0]
			}
			for _, part := range schedule.Items(sql[m[1]:end]) {
				f.key(name, part)
				f.touched[name] = f.touched[name] || touching.MatchString(part)
				if c := definition.FindStringSubmatch(part); c != nil && !constraint[strings.ToLower(c[1])] && computing.MatchString(part[len(c[0]):]) {
					f.computed[name] = append(f.computed[name], strings.ToLower(c[1]))
				}
				if c := definition.FindStringSubmatch(part); c != nil && automatic.MatchString(part[len(c[0]):]) {
					f.generated[name] = append(f.generated[name], strings.ToLower(c[1]))
				}
			}
		}
		if len(at) == 0 && automatic.MatchString(sql) && regexp.MustCompile(`(?i)^\s*alter\b`).MatchString(sql) {
			for _, t := range tables {
				if strings.Contains(sql, t) {
					f.generated[t] = append(f.generated[t], "")
				}
			}
		}
	}
	return f
}

// base is the table that a view's definition names, by itself or by another view, if it names one only, and only once.
func (f *features) base(definition string, tables []string) (base string) {
	mentions := 0
	for _, name := range slices.Concat(tables, slices.Collect(maps.Keys(f.views))) {
		n := len(regexp.MustCompile(`(?i)\bfrom\s+["`+"`"+`]?`+regexp.QuoteMeta(name)+`\b`).FindAllString(definition, -1))
		if mentions += len(regexp.MustCompile(`(?i)\b`+regexp.QuoteMeta(name)+`\b`).FindAllString(definition, -1)); n == 0 {
			continue
		}
		if base = name; !slices.Contains(tables, name) {
			base = f.views[name]
		}
	}
	if mentions != 1 {
		return ""
	}
	return base
}

// key reads a column's or a constraint's definition for keys.
func (f *features) key(table, part string) {
	lower := strings.ToLower(part)
	primary, unique := strings.Contains(lower, "primary key"), strings.Contains(lower, "unique")
	if !primary && !unique {
		return
	}
	into := f.unique
	if primary {
		into = f.primary
	}
	if c := definition.FindStringSubmatch(part); c != nil && !constraint[strings.ToLower(c[1])] {
		into[table] = append(into[table], strings.ToLower(c[1]))
		return
	}
	if at := strings.IndexByte(part, '('); at >= 0 {
		for _, c := range schedule.Items(part[at+1:]) {
			m := keyPart.FindStringSubmatch(c)
			switch {
			case m != nil:
				into[table] = append(into[table], strings.ToLower(m[1]))
				if primary && m[2] != "" {
					f.prefixes[table] = append(f.prefixes[table], strings.ToLower(m[1]))
				}
			case primary:
				into[table] = append(into[table], "")
			}
		}
	}
}

// constraint are words that begin the definition of something else than a column.
var constraint = map[string]bool{"primary": true, "unique": true, "constraint": true, "key": true, "index": true, "check": true, "foreign": true}

// rekeys says whether a change of a row from one state to another changes its primary key, and whether it may change what the engine
// keeps the row under.
func (f *features) rekeys(table string, columns []answer.Column, from, to []answer.Value) (primary, perhaps bool) {
	for i, c := range columns {
		if i >= len(from) || i >= len(to) || answer.SameRow(from[i:i+1], to[i:i+1]) {
			continue
		}
		name := strings.ToLower(c.Name)
		same := strings.EqualFold(strings.TrimRight(string(from[i]), " "), strings.TrimRight(string(to[i]), " ")) // for many collations
		switch {
		case slices.Contains(f.primary[table], name) && !same && !slices.Contains(f.prefixes[table], name):
			primary = true
		case slices.Contains(f.primary[table], name), len(f.primary[table]) == 0 && slices.Contains(f.unique[table], name):
			perhaps = true
		}
	}
	return primary, perhaps
}

// sameKey says whether two rows have the same primary key, or maybe the same key under which the engine keeps them.
func (f *features) sameKey(table string, columns []answer.Column, a, b []answer.Value) (same, maybe bool) {
	if len(f.primary[table]) > 0 {
		other, perhaps := f.rekeys(table, columns, a, b)
		return !other && !perhaps, !other
	}
	return false, slices.ContainsFunc(f.unique[table], func(name string) bool {
		i := slices.IndexFunc(columns, func(c answer.Column) bool { return strings.EqualFold(c.Name, name) })
		return i >= 0 && i < len(a) && i < len(b) && a[i] != nil && b[i] != nil && strings.EqualFold(strings.TrimRight(string(a[i]), " "), strings.TrimRight(string(b[i]), " "))
	})
}

// primaryKey are the places of the columns of a table's primary key; nil if it has none, or not all of them are columns.
func (f *features) primaryKey(table string, columns []answer.Column) (places []int) {
	for _, name := range f.primary[table] {
		i := slices.IndexFunc(columns, func(c answer.Column) bool { return strings.EqualFold(c.Name, name) })
		if i < 0 {
			return nil
		}
		places = append(places, i)
	}
	return places
}

// fills says whether a statement lets the server fill in a column.
func (f *features) fills(table string, columns []string, q *statement.Statement) bool {
	if f.touched[table] && (q.Verb == "update" || q.Insert != nil && q.Insert.Conflict) {
		return true
	}
	generated := f.generated[table]
	if len(generated) == 0 || q.Verb != "insert" && q.Verb != "replace" && q.Verb != "merge" {
		return false
	}
	in := q.Insert
	if in == nil || in.Select != "" || in.Defaults || in.Set || in.Rows == nil {
		return true
	}
	given := in.Columns
	if given == nil {
		given = columns
	}
	for _, g := range generated {
		at := slices.IndexFunc(given, func(c string) bool { return strings.EqualFold(c, g) })
		if at < 0 {
			return true
		}
		for _, r := range in.Rows {
			if at >= len(r) || !explicit.MatchString(strings.TrimSpace(r[at])) {
				return true
			}
		}
	}
	return false
}

// explicit are values that no server replaces.
var explicit = regexp.MustCompile(`^(-?[1-9][0-9]*|'[^']+')$`)
