package panel

import (
	"slices"

	"wirecheck/backends/engine"
	"wirecheck/lab/scenario"
	"wirecheck/product"
	"wirecheck/statement"
	dialect "wirecheck/statement/mysql"
	"wirecheck/statement/postgres"
)

// touches is what a dialect's parser says of a text.
type touches func(sql string, plain func(table string) bool) []statement.Touch

// Independence says which steps may change places without effect, as far as the product's parser can say from the scenario's text.
// It is nil, so that every interleaving is run, if a setup does what is not understood, or a session something that changes what
// statements mean: definitions, settings.
func Independence(spec *scenario.Spec, d engine.Descriptor, level product.Level) scenario.Independent {
	if d.Embedded {
		return nil // statements lock the whole database, readers too: hardly anything may change places
	}
	read := touches(postgres.Touches)
	if d.Protocol == engine.ProtocolMySQL {
		read = dialect.New(dialect.Flavor(d.Name)).Touches
	}
	tables, ok := plainTables(spec, read)
	if !ok {
		return nil
	}
	plain := func(name string) bool { return tables[name] }
	levels, ok := sessionLevels(spec, read, plain)
	if !ok {
		return nil
	}
	analyze := func(sql string) []scenario.Footprint {
		var all []scenario.Footprint
		for _, t := range read(sql, plain) {
			all = append(all, footprint(t))
		}
		return all
	}
	return scenario.Independence(spec, analyze, traits(d, append(levels, level.History)))
}

// traits are what a product does at any of the levels.
func traits(d engine.Descriptor, levels []string) scenario.Traits {
	serializable := slices.Contains(levels, product.Serializable)
	return scenario.Traits{
		SnapshotAtBegin: d.SnapshotAt == product.AtBegin,
		ReadsLock:       d.ReadsLock && serializable,
		Certifies:       d.Certifies && serializable,
		ErrorsRelease:   d.ErrorFails,
	}
}

// plainTables are the tables that the setup makes and of which all is known that a statement on them touches. It reports whether
// the whole setup is understood.
func plainTables(spec *scenario.Spec, read touches) (tables map[string]bool, ok bool) {
	tables = map[string]bool{}
	var tied []string
	for _, b := range spec.Setup {
		for _, t := range read(b.SQL, nil) {
			if t.Kind == statement.TouchOpaque {
				return nil, false
			}
			for _, name := range t.Plain {
				tables[name] = true
			}
			if t.Kind == statement.TouchDefine {
				tied = append(tied, t.Writes...)
			}
		}
	}
	for _, name := range tied {
		delete(tables, name)
	}
	return tables, true
}

// sessionLevels are the levels that sessions ask for. It reports whether everything that sessions do is known not to change what
// other statements mean.
func sessionLevels(spec *scenario.Spec, read touches, plain func(string) bool) (levels []string, ok bool) {
	for _, session := range spec.Sessions {
		var texts []string
		if session.Setup != nil {
			texts = append(texts, session.Setup.SQL)
		}
		for _, st := range session.Steps {
			texts = append(texts, st.SQL)
		}
		for _, text := range texts {
			for _, t := range read(text, plain) {
				if t.Kind == statement.TouchOpaque || t.Kind == statement.TouchDefine {
					return nil, false
				}
				levels = append(levels, t.Level)
			}
		}
	}
	return levels, true
}

// footprint says the same in the words of package scenario.
func footprint(t statement.Touch) scenario.Footprint {
	actions := map[statement.TouchKind]scenario.Action{
		statement.TouchLocal: scenario.ActLocal, statement.TouchBegin: scenario.ActBegin, statement.TouchEnd: scenario.ActEnd,
		statement.TouchRead: scenario.ActRead, statement.TouchWrite: scenario.ActWrite,
	}
	return scenario.Footprint{Action: actions[t.Kind], Reads: t.Reads, Writes: t.Writes, Partial: t.Partial, Snapshot: t.Snapshot}
}
