package mysqlwire

import (
	"regexp"
	"strings"

	"wirecheck/history"
	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
	"wirecheck/statement"
)

// query relays COM_QUERY.
func (o *observation) query(f frame) error {
	if f.n > o.ps.Config.Limits.Text || !holds(o, f) {
		return o.longQuery(f)
	}
	b, err := o.client.packet(f)
	if err != nil {
		return o.badClient(err, "command")
	}
	sql := string(b[1:])
	own, q, err := asked(o, sql)
	if err != nil {
		return err
	}
	if q != nil && !q.Param {
		sql = own
	}
	return o.text(sql)
}

// text executes the text of a COM_QUERY.
func (o *observation) text(sql string) error {
	script, err := o.complete(func(now dialect.Session) *rewrite.Script { return o.analyse(sql, now) })
	if err != nil {
		return err
	}
	if err := o.restoreCounts(script); err != nil {
		return err
	}
	x := exchange{o: o, plans: script.Plans, client: sql, request: o.textRequest(sql, script)}
	if script.Changed(sql) {
		x.fallback = func(from int, why string) (*exchange, error) {
			rest := textRequest{o: o, sql: sql}
			if from > 0 { // it counts lines from each statement's first
				rest.sql = sql[script.Plans[from].At:]
			}
			return &exchange{o: o, plans: forwarded(script.Plans[from:], why), client: sql, request: rest}, nil
		}
	}
	return x.run()
}

// textRequest is the form in which the server gets the client's text.
func (o *observation) textRequest(sql string, script *rewrite.Script) request {
	text := textRequest{o: o, sql: script.SQL}
	switch p := script.Plans[0]; {
	case p.ParsedApart > 0:
		return parsedApart{o: o, sql: script.SQL}
	case o.warnings.ownLimit(sql):
		return textRequest{o: o, sql: "SHOW WARNINGS"}
	case p.Marked != nil && len(script.Plans) == 1 && (o.log.exists || !p.Log):
		return stampedText{text, p, sql}
	}
	return text
}

// planTries is how often a text is planned: without what it misses, with it, and once more if another session changes something
// meanwhile.
const planTries = 4

// complete plans a text. Where the plan needs what is not known, and the server can be asked, it is, and the text planned again; else with
// what was known before.
func (o *observation) complete(plan func(dialect.Session) *rewrite.Script) (*rewrite.Script, error) {
	var script *rewrite.Script
	for range planTries {
		script = plan(o.settings.current())
		news, err := o.refresh(script)
		if err != nil {
			return nil, err
		}
		if !news {
			break
		}
	}
	if len(script.Missing) > 0 {
		now := o.settings.current()
		now.Stale = true
		script = plan(now)
	}
	return script, nil
}

// analyse asks the dialect what to do with a text. It forwards what cannot be carried out in one request as it is.
func (o *observation) analyse(sql string, now dialect.Session) *rewrite.Script {
	var script *rewrite.Script
	sound := true
	if !planned(o, sql, func() { sound = o.tracker.guard(func() { script = o.rewriter.Script(sql, o.known(), now) }) }) {
		return dialect.Unread(sql, now, tooMany)
	}
	if !sound {
		return &rewrite.Script{SQL: sql, Plans: []*rewrite.Plan{opaquePlan(sql, "the session is not observed any more")}}
	}
	if len(script.Plans) == 0 { // an empty text; the server has an error for it
		return &rewrite.Script{SQL: sql, Plans: []*rewrite.Plan{{Text: sql, Verb: "other"}}}
	}
	why := scattered(script)
	if script.Plans[0].Diagnostics && script.Plans[0].Stamp {
		why = inquisitive
	}
	if exceeds(o, script, sql) {
		why = exceeding
	}
	if why != "" {
		return &rewrite.Script{SQL: sql, Plans: forwarded(script.Plans, why), Missing: script.Missing, Uses: script.Uses}
	}
	return script
}

// exceeding is why a text is forwarded that fits into the server's packets, but not with what would be added.
const exceeding = "with what tells its rows, it is longer than the server takes (max_allowed_packet)"

// exceeds reports whether a text of ours, with the names of what it writes, may be longer than the server takes.
func exceeds(o *observation, script *rewrite.Script, sql string) bool {
	const names = 16 << 10
	return len(script.SQL)+names > o.settings.packet && script.Changed(sql) && !o.traits.ordinaryColumns
}

// tooMany is why a long text is not planned.
const tooMany = "too many long texts are planned at this time"

// planned calls plan, unless too many other sessions have long texts planned.
func planned(o *observation, sql string, plan func()) bool {
	return o.observer.Recorder.Lanes().Plan(sql, o.traits.ordinaryColumns, plan)
}

// inquisitive is why a statement is forwarded in front of which ours would change what it asks for: UPDATE t SET n = ROW_COUNT().
const inquisitive = "it asks for what the statement before it left behind"

// scattered says why a script of several statements cannot be rewritten: a stamp goes in front of a whole request, and
// behind a statement with any number of results it is unknown whose the next one is.
func scattered(script *rewrite.Script) string {
	if len(script.Plans) < 2 {
		return ""
	}
	for i, p := range script.Plans {
		if p.Stamp || p.Log {
			return "one of several statements in one request"
		}
		if manyResults(p) && i < len(script.Plans)-1 {
			return "behind a statement with any number of results"
		}
	}
	return ""
}

var manyResultsText = regexp.MustCompile(`(?is)^[\s(]*(?:(?:/\*.*?\*/|#[^\n]*\n|-- [^\n]*\n)\s*)*(?:CALL|EXECUTE|BEGIN\s+NOT|IF|CASE|LOOP|WHILE|REPEAT|FOR)\b`)

// manyResults reports whether the server may answer the statement with several results, of which an OK is the last.
func manyResults(p *rewrite.Plan) bool {
	return p.Verb == "other" && manyResultsText.MatchString(p.Text)
}

// forwarded gives the plans for statements that are sent as the client wrote them.
func forwarded(plans []*rewrite.Plan, why string) []*rewrite.Plan {
	out := make([]*rewrite.Plan, len(plans))
	for i, p := range plans {
		q := *p
		q.Edits, q.Marked, q.Hidden, q.NoRows, q.Decode, q.Stamp, q.Log, q.Listed, q.ParsedApart = nil, nil, 0, false, nil, false, false, false, 0
		if q.Coverage != history.CoverageNone && (p.Hidden > 0 || p.Stamp || p.Log) {
			q.Coverage, q.Why = history.CoverageOpaque, why
		}
		out[i] = &q
	}
	return out
}

// longQuery streams a text that is too long to be analysed.
func (o *observation) longQuery(f frame) error {
	b, err := o.client.prefix(f, 256)
	if err != nil {
		return err
	}
	plan := &rewrite.Plan{
		Text: strings.ToValidUTF8(string(b[1:]), "") + " ...", Verb: "other", Coverage: history.CoverageOpaque, Why: "the text is too long, or too many long ones are held",
		Schema: true, Control: statement.Control{Verb: statement.ControlReset},
	}
	word, _, _ := strings.Cut(strings.TrimSpace(string(b[1:])), " ")
	switch word = strings.ToLower(word); word {
	case "select", "insert", "update", "delete", "replace":
		plan.Verb, plan.Schema, plan.Control = word, false, statement.Control{}
	}
	return (&exchange{o: o, plans: []*rewrite.Plan{plan}, request: streamRequest{o: o}}).run()
}
