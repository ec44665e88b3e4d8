package filing

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/product"
)

// Settings are those of the server and of a new session of it that may matter to a case.
type Settings struct {
	family product.Dialect
	// Basic are the character sets, the collations and the SQL mode, in a fixed order; Changed are the settings that differ from their
	// defaults, sorted.
	Basic, Changed []Setting
}

// Setting is a name and a value.
type Setting struct{ Name, Value string }

// basic asks for the settings that every report has: a name and a value a row.
var basic = map[product.Dialect]string{
	product.DialectMySQL: "SELECT 'character_set_connection', @@character_set_connection UNION ALL SELECT 'collation_connection', @@collation_connection " +
		"UNION ALL SELECT 'character_set_database', @@character_set_server UNION ALL SELECT 'collation_database', @@collation_server UNION ALL SELECT 'sql_mode', @@sql_mode",
	product.DialectPostgres: "SELECT 'client_encoding', current_setting('client_encoding') UNION ALL SELECT 'encoding', pg_encoding_to_char(encoding) FROM pg_database WHERE datname = 'template0' " +
		"UNION ALL SELECT 'collation', datcollate FROM pg_database WHERE datname = 'template0'",
}

// places are settings that say where a server is and how it is reached, which differs from run to run.
var places = regexp.MustCompile(`(?i)dir|file|path|port|socket|log|host|pid|uuid|address|bind|user|cert|ssl|tls|_key|timestamp|version|plugin|cluster_name|listen`)

// ReadSettings asks a server.
func ReadSettings(ctx context.Context, s *backends.Instance) (_ Settings, err error) {
	out := Settings{family: s.Engine.Dialect}
	if s.Engine.Embedded {
		return out, nil
	}
	conn, err := s.Engine.Connect(ctx, s.Target)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	read := func(sql string) (list []Setting, err error) {
		if sql == "" {
			return nil, nil
		}
		rows, err := engine.Query(ctx, conn, sql)
		for _, row := range rows {
			list = append(list, Setting{string(row[0]), string(row[1])})
		}
		return list, err
	}
	if out.Basic, err = read(basic[s.Engine.Dialect]); err != nil {
		return out, err
	}
	if out.Changed, err = read(product.Of(s.Engine.Name).Changed); err != nil {
		return out, err
	}
	out.Changed = slices.DeleteFunc(out.Changed, func(v Setting) bool { return places.MatchString(v.Name) || slices.Contains(out.Basic, v) })
	slices.SortFunc(out.Changed, func(a, b Setting) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Lines are the settings for people.
func (s Settings) Lines() (list []string) {
	for _, v := range slices.Concat(s.Basic, s.Changed) {
		list = append(list, fmt.Sprintf("%s = %s", v.Name, v.Value))
	}
	return list
}

func (s Settings) value(name string) string {
	if i := slices.IndexFunc(s.Basic, func(v Setting) bool { return v.Name == name }); i >= 0 {
		return s.Basic[i].Value
	}
	return ""
}

// session are the statements that give a session of another client the same settings.
func (s Settings) session() []string {
	if s.family != product.DialectMySQL || len(s.Basic) == 0 {
		return nil
	}
	return []string{
		fmt.Sprintf("SET NAMES %s COLLATE %s", s.value("character_set_connection"), s.value("collation_connection")),
		fmt.Sprintf("SET SESSION sql_mode = '%s'", s.value("sql_mode")),
	}
}

// create are the statements that make a database.
func (s Settings) create(name string) []string {
	switch s.family {
	case product.DialectMySQL:
		return []string{"DROP DATABASE IF EXISTS " + name, fmt.Sprintf("CREATE DATABASE %s CHARACTER SET %s COLLATE %s", name, s.value("character_set_database"), s.value("collation_database"))}
	case product.DialectPostgres:
		return []string{"DROP DATABASE IF EXISTS " + name, "CREATE DATABASE " + name + " TEMPLATE template0"}
	}
	return nil
}
