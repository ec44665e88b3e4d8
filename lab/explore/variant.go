package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/lab/panel"
	"wirecheck/lab/replay"
	"wirecheck/product"
)

// Setting is a setting of sessions, or of the server.
type Setting struct {
	Name, Value string
	server      bool // it is no setting of sessions
}

// Variant is another level, other settings or another server for a trace.
type Variant struct {
	Text     string // as it was asked for
	Level    string // as product.Level.History; empty: the trace's
	Engine   string // a name or a URL; empty: the one of the replay as it was
	Settings []Setting
}

// settingName is how settings are called; the words of their values need no quotes.
var (
	settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)
	plainValue  = regexp.MustCompile(`^[A-Za-z0-9_.+-]+$`)
)

// ParseVariant reads "level=serializable,setting=lock_timeout=50ms".
func ParseVariant(text string) (v Variant, err error) {
	v.Text = text
	for part := range strings.SplitSeq(text, ",") {
		kind, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch {
		case value == "":
			return v, fmt.Errorf("--what-if %q: expected level=LEVEL, setting=NAME=VALUE or engine=ENGINE, several with commas between", text)
		case kind == "level" && v.Level == "":
			if v.Level, err = product.ParseLevel(value); err != nil {
				return v, fmt.Errorf("--what-if %q: %w", text, err)
			}
		case kind == "engine" && v.Engine == "":
			v.Engine = value
		case kind == "setting":
			s := Setting{}
			s.Name, s.Value, _ = strings.Cut(value, "=")
			if !settingName.MatchString(s.Name) || s.Value == "" {
				return v, fmt.Errorf("--what-if %q: expected setting=NAME=VALUE", text)
			}
			v.Settings = append(v.Settings, s)
		default:
			return v, fmt.Errorf("--what-if %q: %s stands there twice, or is not known: known are level, setting and engine", text, kind)
		}
	}
	return v, nil
}

// sql is the statement that sets it, in the dialect of a server.
func (s Setting) sql(mysql bool) string {
	value := s.Value
	if !plainValue.MatchString(value) || !mysql {
		value = "'" + strings.ReplaceAll(value, "'", "''") + "'"
	}
	switch {
	case !mysql:
		return "SET " + s.Name + " = " + value
	case s.server:
		return "SET GLOBAL " + s.Name + " = " + value
	}
	return "SET SESSION " + s.Name + " = " + value
}

// settings are the statements with which the variant's sessions begin.
func (r *replayer) settings() (list []string) {
	for _, s := range r.o.Settings {
		if !s.server {
			list = append(list, s.sql(!r.postgres()))
		}
	}
	return list
}

func settingNames(settings []Setting) (names []string) {
	for _, s := range settings {
		names = append(names, s.Name)
	}
	return names
}

// varied gives a group as it is in the variant.
func (r *replayer) varied(g *replay.Group) *replay.Group {
	if r.o.Level != "" {
		g = g.Unbound()
	}
	if len(r.o.Settings) > 0 {
		g = g.Set(settingNames(r.o.Settings), r.settings())
	}
	return g
}

// fit opens the server of a variant, or takes one of those that are open, and finds out whether it has the level and the settings.
func (v *Variant) fit(ctx context.Context, base *replayer, name string, open map[string]*backends.Instance) (_ *backends.Instance, err error) {
	if v.Engine != "" {
		if base.o.Template != "" || base.o.InPlace != "" {
			return nil, errors.New("another server has not the database that --template or --in-place names: give --snapshot")
		}
		name = v.Engine
	}
	in := open[name]
	if in == nil {
		if missing, err := backends.Missing(name); err != nil {
			return nil, err
		} else if missing != nil {
			return nil, fmt.Errorf("this machine has no server of %s (%s): wirecheck engines list shows those that it has", name, missing.Title)
		}
		if in, err = backends.Open(ctx, name); err != nil {
			return nil, err
		}
		open[name] = in
	}
	r := &replayer{o: base.o, survey: base.survey, instance: in}
	if err := r.sameDialect(); err != nil {
		return nil, err
	}
	if v.Level != "" {
		if _, err := panel.FindLevel(in.Engine, v.Level); err != nil {
			return nil, err
		}
	}
	if len(v.Settings) == 0 {
		return in, nil
	}
	if err := v.session(ctx, r, in); err != nil {
		return nil, err
	}
	if !v.server() {
		return in, nil
	}
	// A server of its own: the other variants are to know nothing of it.
	own, err := backends.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	open[v.Text] = own
	return own, v.global(ctx, own)
}

// server reports whether a setting is one of the server.
func (v *Variant) server() bool {
	return slices.ContainsFunc(v.Settings, func(s Setting) bool { return s.server })
}

// session tries the settings in a session.
func (v *Variant) session(ctx context.Context, r *replayer, in *backends.Instance) (err error) {
	conn, err := in.Engine.Connect(ctx, maintenance(in))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	for i := range v.Settings {
		s := &v.Settings[i]
		a, err := conn.Do(ctx, s.sql(!r.postgres()))
		switch {
		case err != nil:
			return fmt.Errorf("set %s: %w", s.Name, err)
		case a.Err == nil:
		case !r.postgres() && r.private() && a.Err.Code == globalOnly:
			s.server = true
		default:
			return fmt.Errorf("set %s: %s says: %s", s.Name, in.Engine.Title, a.Err.Message)
		}
	}
	return nil
}

// globalOnly is the number of "is a GLOBAL variable and should be set with SET GLOBAL" (MySQL error message reference, ER_GLOBAL_VARIABLE).
const globalOnly = "1229"

// global sets what a session cannot set, on a private server.
func (v *Variant) global(ctx context.Context, in *backends.Instance) (err error) {
	conn, err := in.Engine.Connect(ctx, maintenance(in))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	for _, s := range v.Settings {
		if s.server {
			if err := engine.Exec(ctx, conn, s.sql(true)); err != nil {
				return fmt.Errorf("set %s: %w", s.Name, err)
			}
		}
	}
	return nil
}

// maintenance is a database of the server that is always there.
func maintenance(in *backends.Instance) engine.Target {
	t := in.Target
	t.Database = cmp.Or(t.Database, in.Engine.Lab.Maintenance)
	return t
}

// options are those of the replay in a variant.
func (v *Variant) options(o Options, in *backends.Instance) Options {
	o.Instance, o.Level, o.Settings = in, v.Level, v.Settings
	o.Tables, o.Compare, o.Replayed = "", "", nil
	o.Trail = replay.NewTrail(maxUnits, (&replayer{instance: in}).dialect())
	return o
}
