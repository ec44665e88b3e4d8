package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"wirecheck/answer"
	"wirecheck/lab/scenario"
)

// knownCase is a case as the JSON has it.
type knownCase struct {
	ID, Title, Source, Paper, Reported, Kind, Family, Mode, Status, Class string
	Expected, Actual, Notes, Query                                        string
	Engines, Isolation, Setup, Final, Oracles                             []string
	SessionInit                                                           []string `json:"session_init"`
	RawSetup                                                              []string `json:"raw_setup"`
	Schedule                                                              []struct{ Session, SQL string }
	Buggy, Correct                                                        []condition
}

// condition is one of those that must all hold. Stmt counts from 1 in the schedule, Final in the final queries.
type condition struct {
	Stmt, Final int
	Rows        *[]string
	NRows       *int
	Affected    *int
	Err         *string
	Blocked     *bool
	Crash       *bool
	WSSTx       *bool `json:"wss_tx"`
	WSSStmt     *bool `json:"wss_stmt"`
}

var levels = map[string]string{"RU": "read uncommitted", "RC": "read committed", "RR": "repeatable read", "SER": "serializable"}

// convert makes the text of a spec file.
func convert(src []byte) (string, error) {
	var c knownCase
	d := json.NewDecoder(bytes.NewReader(src))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return "", err
	}
	s := &scenario.Spec{Name: c.ID, Header: c.header()}
	for _, sql := range c.Setup {
		s.Setup = append(s.Setup, scenario.Block{SQL: sql})
	}
	s.Teardown = c.teardown()
	steps, err := c.sessions(s)
	if err != nil {
		return "", err
	}
	if err := c.directives(s, steps); err != nil {
		return "", err
	}
	return s.Print()
}

func (c *knownCase) header() []string {
	lines := []string{c.ID + ": " + c.Title}
	add := func(what, text string) {
		if text != "" {
			lines = append(lines, what+": "+text)
		}
	}
	add("Source", c.Source)
	add("Reported for", c.Reported)
	add("Class", c.Class)
	add("Status", c.Status)
	add("Right", c.Expected)
	add("Seen", c.Actual)
	add("Note", c.Notes)
	if c.Kind == "meta" {
		add("Note", "the oracle radar compares the answer with that of a twin without the optional metadata (raw lines)")
	}
	return lines
}

var createTable = regexp.MustCompile(`(?i)^\s*CREATE\s+TABLE\s+(\w+)`)

// teardown drops what the setup created, as programs that have no fresh database for every case need it.
func (c *knownCase) teardown() *scenario.Block {
	var drops []string
	for _, sql := range c.Setup {
		if m := createTable.FindStringSubmatch(sql); m != nil {
			drops = append(drops, m[1])
		}
	}
	if len(drops) == 0 {
		return nil
	}
	return &scenario.Block{SQL: "DROP TABLE " + strings.Join(drops, ", ")}
}

// sessions makes the sessions, their steps and the one permutation. It gives the steps in the order of the schedule.
func (c *knownCase) sessions(s *scenario.Spec) ([]*scenario.Step, error) {
	if c.Kind == "meta" {
		c.Schedule = append(c.Schedule, struct{ Session, SQL string }{"s1", c.Query})
	}
	index := make(map[string]int)
	perm := &scenario.Permutation{}
	var steps []*scenario.Step
	for _, st := range c.Schedule {
		i, ok := index[st.Session]
		if !ok {
			i = len(s.Sessions)
			index[st.Session] = i
			session := &scenario.Session{Name: st.Session}
			if init := c.init(); init != "" {
				session.Setup = &scenario.Block{SQL: init}
			}
			s.Sessions = append(s.Sessions, session)
		}
		session := s.Sessions[i]
		if len(session.Steps) == 26 {
			return nil, fmt.Errorf("session %s has more steps than there are letters", st.Session)
		}
		step := &scenario.Step{Name: fmt.Sprintf("%s%c", st.Session, 'a'+len(session.Steps)), SQL: st.SQL, Session: i, Index: len(session.Steps)}
		session.Steps = append(session.Steps, step)
		steps = append(steps, step)
		perm.Steps = append(perm.Steps, scenario.PermutationStep{Step: step})
	}
	s.Permutations = append(s.Permutations, perm)
	return steps, nil
}

// init is what each session executes first.
func (c *knownCase) init() string {
	all := c.SessionInit
	if c.Mode == "optimistic" {
		all = append(all, "SET SESSION tidb_txn_mode = 'optimistic'")
	}
	return strings.Join(all, "; ")
}

func (c *knownCase) directives(s *scenario.Spec, steps []*scenario.Step) error {
	add := func(key, name, value string) {
		s.Directives = append(s.Directives, scenario.Directive{Key: key, Name: name, Value: value})
	}
	add("engine", "", strings.Join(c.engines(), ", "))
	if names := levelNames(c.Isolation); len(names) > 0 {
		add("level", "", strings.Join(names, ", "))
	}
	if c.Kind == "meta" {
		add("oracle", "", "radar")
	}
	for _, sql := range c.Final {
		add("final", "", sql)
	}
	for _, sql := range c.RawSetup {
		add("raw", "", sql)
	}
	if err := c.outcomes(steps, add); err != nil {
		return err
	}
	where := func(key, value string) {
		for _, only := range seen[c.ID] {
			s.Directives = append(s.Directives, scenario.Directive{Key: key, Only: only, Value: value})
		}
	}
	if silent[c.ID] {
		add("expect", "", "none")
	}
	for _, name := range c.anomalies() {
		where("expect", name)
	}
	if !misfires[c.ID] {
		add("observe", "", "not buggy")
		where("observe", "buggy")
	}
	return nil
}

func (c *knownCase) outcomes(steps []*scenario.Step, add func(key, name, value string)) error {
	if c.Kind == "meta" {
		add("outcome", "buggy", "found(radar)")
		return nil
	}
	for _, o := range []struct {
		name string
		all  []condition
	}{{"buggy", c.Buggy}, {"correct", c.Correct}} {
		var terms []string
		if data, ok := byData[c.ID]; ok && o.name == "buggy" {
			terms = append(terms, data)
		}
		for _, cond := range o.all {
			if o.name == "buggy" && (len(terms) > 0 || len(o.all) > 1) {
				cond.WSSTx = nil // the data decide without the oracle
			}
			t, err := cond.terms(steps, len(c.Final))
			if err != nil {
				return err
			}
			terms = append(terms, t...)
		}
		if len(terms) > 0 {
			add("outcome", o.name, strings.Join(terms, " and "))
		}
	}
	return nil
}

// anomalies are what the oracles should say where the wrong behaviour is observed, as far as the case names it.
func (c *knownCase) anomalies() []string {
	var all []string
	for _, o := range c.Oracles {
		for _, name := range []string{"lost update", "write skew", "read-write skew"} {
			if o == "isorel ("+name+")" {
				all = append(all, name)
			}
		}
	}
	for _, cond := range c.Buggy {
		if cond.WSSTx != nil && *cond.WSSTx && !misfires[c.ID] {
			all = append(all, "wss-tx")
		}
	}
	return all
}

func (c *knownCase) engines() []string {
	switch {
	case len(c.Engines) > 0:
		return c.Engines
	case c.Family == "mysql":
		return []string{"mariadb", "mysql", "tidb"}
	}
	return []string{"postgres", "mariadb", "mysql", "tidb"}
}

func levelNames(short []string) []string {
	var names []string
	for _, l := range short {
		names = append(names, levels[l])
	}
	return names
}

// terms writes a condition in the language of outcome lines.
func (c condition) terms(steps []*scenario.Step, finals int) ([]string, error) {
	name := ""
	switch {
	case c.Stmt > len(steps) || c.Final > finals:
		return nil, fmt.Errorf("a condition names statement %d and final query %d; there are %d and %d", c.Stmt, c.Final, len(steps), finals)
	case c.Stmt > 0:
		name = steps[c.Stmt-1].Name
	case c.Final == 1:
		name = "final"
	case c.Final > 1:
		name = fmt.Sprintf("final%d", c.Final)
	}
	var all []string
	add := func(holds bool, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if !holds {
			text = "not " + text
		}
		all = append(all, text)
	}
	if c.Rows != nil {
		add(true, "rows(%s) are %s", name, rowList(*c.Rows))
	}
	if c.NRows != nil {
		add(true, "count(%s) = %d", name, *c.NRows)
	}
	if c.Affected != nil {
		add(true, "affected(%s) = %d", name, *c.Affected)
	}
	switch {
	case c.Err == nil:
	case *c.Err == "":
		add(true, "ok(%s)", name)
	case *c.Err == "*":
		add(true, "failed(%s)", name)
	default:
		add(true, "failed(%s) with %s", name, *c.Err)
	}
	if c.Blocked != nil {
		add(*c.Blocked, "blocked(%s)", name)
	}
	if c.Crash != nil {
		add(*c.Crash, "crashed")
	}
	if c.WSSTx != nil {
		add(*c.WSSTx, "found(wss-tx)")
	}
	if c.WSSStmt != nil {
		add(*c.WSSStmt, "found(wss-stmt)")
	}
	return all, nil
}

// rowList writes rows; in the JSON the values of a row are separated by |.
func rowList(rows []string) string {
	if len(rows) == 0 {
		return "none"
	}
	texts := make([]string, len(rows))
	for i, row := range rows {
		var values []answer.Value
		for v := range strings.SplitSeq(row, "|") {
			value := answer.Value(v)
			if v == "NULL" {
				value = nil
			}
			values = append(values, value)
		}
		texts[i] = scenario.RowText(values)
	}
	return strings.Join(texts, ", ")
}
