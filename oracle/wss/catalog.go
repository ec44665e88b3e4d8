package wss

import (
	"regexp"
	"strings"

	"wirecheck/oracle/schedule"
)

var (
	createTable = regexp.MustCompile("(?is)\\bCREATE\\s+(?:TEMPORARY\\s+|TEMP\\s+|UNLOGGED\\s+)?TABLE\\s+(?:IF\\s+NOT\\s+EXISTS\\s+)?([^\\s(]+)\\s*\\(")
	quoted      = regexp.MustCompile(`'[^']*'`)
	counterWord = regexp.MustCompile(`(?i)\b(AUTO_INCREMENT|AUTO_RANDOM|SMALLSERIAL|BIGSERIAL|SERIAL[248]?|GENERATED\s+(?:ALWAYS|BY\s+DEFAULT)\s+AS\s+IDENTITY|NEXTVAL\s*\(|NEXT\s+VALUE\s+FOR)`)
)

// generatedColumns reads from a setup which columns get their values from a counter, by table. Counters are outside of transactions: what
// a rolled-back or a refused statement took is not given back (MySQL manual, 17.6.1.6; PostgreSQL manual, 9.17), and concurrent
// transactions take values in the order of their statements.
func generatedColumns(setup []string) map[string][]string {
	out := map[string][]string{}
	for _, sql := range setup {
		for _, m := range createTable.FindAllStringSubmatchIndex(sql, -1) {
			table := unquoted(sql[m[2]:m[3]])
			for _, item := range schedule.Items(sql[m[1]:]) {
				words := strings.Fields(item)
				if len(words) > 1 && counterWord.MatchString(quoted.ReplaceAllString(item, "")) {
					out[table] = append(out[table], unquoted(words[0]))
				}
			}
		}
	}
	return out
}

var (
	primaryKey    = regexp.MustCompile(`(?i)\bPRIMARY\s+KEY\b`)
	uniqueWord    = regexp.MustCompile(`(?i)\bUNIQUE\b`)
	notNull       = regexp.MustCompile(`(?i)\bNOT\s+NULL\b`)
	keyOfTable    = regexp.MustCompile("(?is)^\\s*(?:CONSTRAINT\\s+\\S+\\s+)?PRIMARY\\s+KEY[^(]*\\((.*)\\)")
	addPrimaryKey = regexp.MustCompile("(?is)\\bALTER\\s+TABLE\\s+(\\S+)\\s+ADD\\s+(?:CONSTRAINT\\s+\\S+\\s+)?PRIMARY\\s+KEY[^(]*\\(([^)]*)\\)")
)

// clusteredKeys reads from a setup by which columns InnoDB stores a table's rows (MySQL manual, 17.6.2.1): the primary key, or else a
// unique column that is NOT NULL. A table that has none keeps its rows where they are.
func clusteredKeys(setup []string) map[string][]string {
	out := map[string][]string{}
	for _, sql := range setup {
		for _, m := range createTable.FindAllStringSubmatchIndex(sql, -1) {
			table := unquoted(sql[m[2]:m[3]])
			var unique []string
			for _, item := range schedule.Items(sql[m[1]:]) {
				words := strings.Fields(item)
				whole := keyOfTable.FindStringSubmatch(item)
				switch {
				case len(words) < 2:
				case whole != nil:
					out[table] = names(whole[1])
				case primaryKey.MatchString(item):
					out[table] = []string{unquoted(words[0])}
				case unique == nil && notNull.MatchString(item) && uniqueWord.MatchString(item):
					unique = []string{unquoted(words[0])}
				}
			}
			if out[table] == nil && unique != nil {
				out[table] = unique
			}
		}
		for _, m := range addPrimaryKey.FindAllStringSubmatch(sql, -1) {
			out[unquoted(m[1])] = names(m[2])
		}
	}
	return out
}

// selfReference reports whether a table of a setup refers to itself.
func selfReference(setup []string) bool {
	for _, sql := range setup {
		for _, m := range createTable.FindAllStringSubmatchIndex(sql, -1) {
			for _, item := range schedule.Items(sql[m[1]:]) {
				if r := reference.FindStringSubmatch(item); r != nil && strings.EqualFold(unquoted(r[1]), unquoted(sql[m[2]:m[3]])) {
					return true
				}
			}
		}
		if words := strings.Fields(sql); len(words) > 2 && strings.EqualFold(words[0], "ALTER") {
			if r := reference.FindStringSubmatch(sql); r != nil && strings.EqualFold(unquoted(r[1]), unquoted(words[2])) {
				return true
			}
		}
	}
	return false
}

// names reads a list of columns, without lengths and orders.
func names(list string) (out []string) {
	for _, item := range schedule.Items(list) {
		name, _, _ := strings.Cut(strings.TrimSpace(item), "(")
		name, _, _ = strings.Cut(strings.TrimSpace(name), " ")
		out = append(out, unquoted(name))
	}
	return out
}

// unquoted is a name's last part without quotes.
func unquoted(name string) string {
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		name = name[i+1:]
	}
	return strings.Trim(name, "`\"")
}
