package columnar

import (
	"slices"

	"wirecheck/history"
	"wirecheck/oracle/isolation"
)

// eventRow is a row of the events. The names of columns are no words of SQL's own.
type eventRow struct {
	Event       int64          `parquet:"event"`
	Input       int32          `parquet:"input"`
	Kind        string         `parquet:"kind,dict"`
	Session     int64          `parquet:"session"`
	Txn         int64          `parquet:"txn,optional"`
	FromTick    int64          `parquet:"from_tick,optional"`
	ToTick      int64          `parquet:"to_tick,optional"`
	At          int64          `parquet:"at,optional,timestamp(microsecond)"`
	Engine      string         `parquet:"engine,optional,dict"`
	Server      string         `parquet:"server,optional,dict"`
	Database    string         `parquet:"database_name,optional,dict"`
	User        string         `parquet:"user_name,optional,dict"`
	Client      string         `parquet:"client,optional,dict"`
	Backend     int64          `parquet:"backend,optional"`
	Level       string         `parquet:"level,optional,dict"`
	Implicit    bool           `parquet:"implicit"`
	Statement   int32          `parquet:"statement,optional"`
	SQL         string         `parquet:"sql,optional,dict"`
	Verb        string         `parquet:"verb,optional,dict"`
	Coverage    string         `parquet:"coverage,optional,dict"`
	Why         string         `parquet:"why,optional,dict"`
	CurrentRead bool           `parquet:"current_read"`
	Predicate   bool           `parquet:"predicate"`
	Reads       []predicateRow `parquet:"predicate_reads,list"`
	Unread      string         `parquet:"unread,optional,dict"`
	UndoesFrom  int32          `parquet:"undoes_from,optional"`
	Tokens      []string       `parquet:"tokens,list"`
	ErrorCode   string         `parquet:"error_code,optional,dict"`
	ErrorText   string         `parquet:"error_message,optional,dict"`
	Request     string         `parquet:"request,optional,dict"`
	Params      string         `parquet:"params,optional,dict"`
	Tags        []string       `parquet:"tags,list"`
	Operands    []operandRow   `parquet:"operands,list"`
	Derived     []derivedRow   `parquet:"derived,list"`
	Outcome     string         `parquet:"outcome,optional,dict"`
	SentTick    int64          `parquet:"sent_tick,optional"`
	Pending     bool           `parquet:"pending"`
}

type predicateRow struct {
	Table    string `parquet:"table_name,dict"`
	Where    string `parquet:"condition,dict"`
	FromTick int64  `parquet:"from_tick"`
	ToTick   int64  `parquet:"to_tick"`
	Whole    bool   `parquet:"whole"`
	Met      bool   `parquet:"met"`
	Current  bool   `parquet:"is_current"`
	Within   bool   `parquet:"within"`
	Some     bool   `parquet:"some"`
	Counted  bool   `parquet:"counted"`
	Last     string `parquet:"last,optional,dict"`
	Groups   string `parquet:"groups,optional"`
	Snapshot string `parquet:"snapshot,optional"`
}

type operandRow struct {
	Column string `parquet:"column_name,dict"`
	Role   string `parquet:"role,dict"`
	Value  string `parquet:"operand,optional,dict"`
}

type derivedRow struct {
	Column    string `parquet:"column_name,dict"`
	Table     string `parquet:"table_name,dict"`
	Key       string `parquet:"row_key,dict"`
	Txn       int64  `parquet:"txn"`
	Statement int32  `parquet:"statement"`
	Version   string `parquet:"version,optional,dict"`
	Read      string `parquet:"value_read,optional,dict"`
	Kind      string `parquet:"kind,optional,dict"`
	Constant  string `parquet:"constant,optional,dict"`
}

// accessRow is a row of the accesses.
type accessRow struct {
	Event      int64  `parquet:"event"`
	Session    int64  `parquet:"session"`
	Txn        int64  `parquet:"txn,optional"`
	Statement  int32  `parquet:"statement,optional"`
	Op         string `parquet:"op,dict"`
	Table      string `parquet:"table_name,dict"`
	Key        string `parquet:"row_key,optional,dict"`
	Name       string `parquet:"row_name,optional,dict"`
	Version    string `parquet:"version,optional,dict"`
	Writer     string `parquet:"writer,optional,dict"`
	Prev       string `parquet:"prev_version,optional,dict"`
	PrevWriter string `parquet:"prev_writer,optional,dict"`
	Place      int64  `parquet:"place,optional"`
	PrevPlace  int64  `parquet:"prev_place,optional"`
	Before     int64  `parquet:"before_place,optional"`
	Approx     bool   `parquet:"approximate"`
	Image      string `parquet:"image,optional,dict"`
	Was        string `parquet:"prev_image,optional,dict"`
	Values     string `parquet:"values_read,optional,dict"`
}

// edgeRow is a row of the edges.
type edgeRow struct {
	From          int64  `parquet:"from_txn"`
	To            int64  `parquet:"to_txn"`
	Kind          string `parquet:"kind,dict"`
	Predicate     bool   `parquet:"predicate"`
	Path          bool   `parquet:"path"`
	Table         string `parquet:"table_name,optional,dict"`
	Key           string `parquet:"row_key,optional,dict"`
	Name          string `parquet:"row_name,optional,dict"`
	FromVersion   string `parquet:"from_version,optional,dict"`
	ToVersion     string `parquet:"to_version,optional,dict"`
	FromStatement int32  `parquet:"from_statement,optional"`
	ToStatement   int32  `parquet:"to_statement,optional"`
}

func (w *Writer) eventOf(input int, e *history.Event) eventRow {
	r := eventRow{
		Event: w.count.Events, Input: int32(input), Kind: string(e.Kind), Session: w.number(e.Session), Txn: w.number(e.Txn),
		FromTick: w.number(e.From), ToTick: w.number(e.To), At: e.At / 1000,
		Engine: text(e.Engine), Server: text(e.Server), Database: text(e.Database), User: text(e.User), Client: text(e.Client), Backend: w.number(e.Backend),
		Level: text(e.Level), Implicit: e.Implicit, Statement: int32(e.N), SQL: text(e.SQL), Verb: text(e.Verb), Coverage: text(string(e.Coverage)),
		Why: text(e.Why), CurrentRead: e.CurrentRead, Predicate: e.Predicate, Unread: text(e.Unread), UndoesFrom: int32(e.UndoesFrom),
		Tokens: texts(e.Tokens), Request: text(e.Request), Params: text(e.Params), Tags: texts(e.Tags),
		Outcome: text(string(e.Outcome)), SentTick: w.number(e.Sent), Pending: e.Pending,
	}
	if e.Error != nil {
		r.ErrorCode, r.ErrorText = text(e.Error.Code), text(e.Error.Message)
	}
	for _, p := range e.Reads {
		r.Reads = append(r.Reads, predicateRow{text(p.Table), text(p.Where), w.number(p.From), w.number(p.To), p.Whole, p.Met, p.Current, p.Within, p.Some, p.Counted, text(p.Last), text(p.Groups), text(p.Snapshot)})
	}
	for _, o := range e.Operands {
		r.Operands = append(r.Operands, operandRow{text(o.Column), text(string(o.Role)), text(o.Value)})
	}
	for _, d := range e.Derived {
		r.Derived = append(r.Derived, derivedRow{text(d.Column), text(d.Row.Table), text(d.Row.Key), w.number(d.Txn), int32(d.N), text(d.Version),
			text(d.Read), text(d.Kind), text(d.Constant)})
	}
	return r
}

func (w *Writer) accessOf(e *history.Event, a *history.Access) accessRow {
	return accessRow{
		Event: w.count.Events, Session: w.number(e.Session), Txn: w.number(e.Txn), Statement: int32(e.N), Op: text(string(a.Op)),
		Table: text(a.Row.Table), Key: text(a.Row.Key), Name: text(a.Name), Version: text(a.Version), Writer: text(a.Writer),
		Prev: text(a.Prev), PrevWriter: text(a.PrevWriter), Place: w.number(a.Order), PrevPlace: w.number(a.PrevOrder), Before: w.number(a.AsOf),
		Approx: a.Approx, Image: text(a.Image), Was: text(a.Was), Values: text(a.Values),
	}
}

func (w *Writer) edgeOf(d isolation.Dependency) edgeRow {
	return edgeRow{
		From: w.number(d.From), To: w.number(d.To), Kind: string(d.Kind), Predicate: d.Predicate, Path: d.Path,
		Table: text(d.Row.Table), Key: text(d.Row.Key), Name: text(d.Name), FromVersion: text(d.FromVersion), ToVersion: text(d.ToVersion),
		FromStatement: int32(d.FromStatement), ToStatement: int32(d.ToStatement),
	}
}

// texts copies a list, which belongs to its event.
func texts(list []string) []string {
	list = slices.Clone(list)
	for i := range list {
		list[i] = text(list[i])
	}
	return list
}

// What rows take in memory besides their long texts, by estimate.
const (
	eventSize   = 512
	elementSize = 128
	accessSize  = 256
	edgeBytes   = 256
)

func eventBytes(e *history.Event) int {
	n := eventSize + len(e.SQL) + len(e.Params) + (len(e.Tokens)+len(e.Tags)+len(e.Operands)+len(e.Derived))*elementSize
	for _, p := range e.Reads {
		n += elementSize + len(p.Where)
	}
	return n
}

func accessBytes(a *history.Access) int {
	return accessSize + len(a.Row.Key) + len(a.Image) + len(a.Was) + len(a.Values)
}
