package mysql

import (
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/statement"
	"wirecheck/statement/mysqlsyntax"
)

// steadyNames are the built-in functions that are known to give the same for the same arguments, database and settings (MySQL
// manual, chapter 14; MariaDB knowledge base, "Built-in Functions"). A stored function with such a name is taken for the
// built-in one.
var steadyNames = statement.Names(`abs acos adddate addtime aes_decrypt aes_encrypt and ascii asin atan atan2 bin bin_to_uuid bit_count bit_length bitand bitneg bitor bitxor case cast
ceil ceiling char char_length character_length charset chr coalesce coercibility collation column_create column_get compress concat concat_ws conv
convert convert_tz cos cot crc32 crc32c current_role current_user database date date_add date_format date_sub datediff day dayname dayofmonth
dayofweek dayofyear decode default degrees div elt encode eq exp export_set extract field find_in_set floor format format_bytes format_nano_time
from_base64 from_days from_unixtime fts_match_word ge get_format greatest grouping gt hex hour if ifnull ilike in inet6_aton inet6_ntoa inet_aton
inet_ntoa insert instr intdiv interval is_ipv4 is_ipv4_compat is_ipv4_mapped is_ipv6 is_uuid isfalse isnull istrue istrue_with_null json_array
json_array_append json_array_insert json_compact json_contains json_contains_path json_depth json_detailed json_equals json_exists json_extract
json_insert json_keys json_length json_loose json_memberof json_merge json_merge_patch json_merge_preserve json_normalize json_object json_overlaps
json_pretty json_query json_quote json_remove json_replace json_schema_valid json_search json_set json_storage_free json_storage_size json_type
json_unquote json_valid json_value last_day lcase le least left leftshift length like ln locate log log10 log2 lower lpad lt ltrim make_set makedate
maketime mask_date mask_full mask_null mask_partial md5 microsecond mid minus minute mod month monthname mul name_const natural_sort_key ne not nulleq
nullif nvl nvl2 oct octet_length or ord password period_add period_diff pi plus point position pow power quarter quote radians regexp regexp_instr
regexp_like regexp_replace regexp_substr repeat replace reverse right rightshift round row rpad rtrim schema sec_to_time second session_user sformat
sha sha1 sha2 sign sin sleep sm3 soundex space sqrt st_astext st_geomfromtext st_x st_y str_to_date strcmp subdate substr substring substring_index
subtime system_user tan tidb_version time time_format time_to_sec timediff timestamp timestampadd timestampdiff to_base64 to_char to_days to_seconds translate trim
truncate ucase unaryminus unaryplus uncompress uncompressed_length unhex upper user uuid_to_bin uuid_version values vec_as_text vec_cosine_distance
vec_dims vec_from_text vec_l1_distance vec_l2_distance vec_l2_norm vec_negative_inner_product version week weekday weekofyear weight_string xor year
yearweek`)

// aggregateNames are aggregate functions that the parser has no name for, so that it takes them for others.
var aggregateNames = statement.Names(`median percentile_cont percentile_disc approx_count_distinct approx_percentile`)

// varyingNames are functions of which it is known why they vary.
var varyingNames = statement.Varying(map[string]string{
	"the clock":     "now sysdate current_timestamp localtime localtimestamp curdate current_date curtime current_time utc_date utc_time utc_timestamp",
	"random values": "rand uuid uuid_short uuid_v4 uuid_v7 random_bytes sys_guid",
	"a sequence":    "nextval setval",
	"the server":    "load_file is_free_lock is_used_lock get_lock release_lock release_all_locks tidb_current_tso",
	sessionReason:   "connection_id last_insert_id row_count found_rows lastval rand_seed current_resource_group",
})

// sessionReason is why functions vary that tell what the session is or did before.
const sessionReason = "the session"

// steady reports whether a function, or what the parser takes for one, is known to give the same for the same arguments.
func steady(name string) bool {
	switch name {
	case ast.DateLiteral, ast.TimeLiteral, ast.TimestampLiteral: // DATE '2000-01-01' is a call in the parser's tree
		return true
	}
	return steadyNames[name]
}

// vary says why a statement may give another result another time.
func vary(n ast.StmtNode, st *statement.Statement) {
	v := &varyVisitor{st: st}
	mysqlsyntax.Visit(n, v.enter)
	st.Volatile = statement.Reasons(v.whys)
}

type varyVisitor struct {
	st   *statement.Statement
	whys []string
}

func (v *varyVisitor) add(why string) { v.whys = append(v.whys, why) }

// several finds an UPDATE of several tables that reads what it assigns: in which order it does so is not defined (MySQL manual, 15.2.17).
func (v *varyVisitor) several(n *ast.UpdateStmt) {
	tables := map[string]bool{}
	for _, a := range n.List {
		tables[a.Column.Table.L] = true
	}
	if len(tables) < 2 {
		return
	}
	for _, a := range n.List {
		found := false
		look := func(n ast.Node) bool { // without a table's name in front of it, a column may be any table's
			if n, ok := n.(*ast.ColumnNameExpr); ok && n.Name.Name.L == a.Column.Name.L {
				found = found || n.Name.Table.L == "" || a.Column.Table.L == "" || n.Name.Table.L == a.Column.Table.L
			}
			return found
		}
		for _, other := range n.List {
			if other != a {
				mysqlsyntax.Visit(other.Expr, look)
			}
		}
		if n.TableRefs != nil {
			mysqlsyntax.Visit(n.TableRefs, look)
		}
		if mysqlsyntax.Visit(n.Where, look); found {
			v.add("an UPDATE of several tables that reads a column which it assigns")
			return
		}
	}
}

func (v *varyVisitor) enter(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncCallExpr:
		v.call(n)
	case *ast.AggregateFuncExpr:
		switch name := strings.ToLower(n.F); name {
		case "group_concat":
			if n.Order == nil {
				v.add("aggregate group_concat shows the order of rows")
			}
		case "json_arrayagg", "json_objectagg", "any_value", "first_row", "approx_percentile":
			v.add("aggregate " + name + " shows the order of rows")
		}
	case *ast.WindowFuncExpr:
		if name := strings.ToLower(n.Name); n.Spec.OrderBy == nil && n.Spec.Name.O == "" && n.Spec.Ref.O == "" && orderedWindows[name] {
			v.add("window function " + name + " without ORDER BY")
		}
	case *ast.MatchAgainst:
		v.add("full-text search, which sees what is committed alone") // MySQL manual, 17.6.2.4, InnoDB Full-Text Index Transaction Handling
	case *ast.VariableExpr:
		v.st.Variables = true
		v.add("variable " + n.Name)
	case *ast.SelectStmt:
		v.limit(n.Limit, n.OrderBy)
		if n.SelectIntoOpt != nil {
			v.add("INTO a file")
		}
	case *ast.SetOprStmt:
		v.limit(n.Limit, n.OrderBy)
	case *ast.SetOprSelectList:
		v.limit(n.Limit, n.OrderBy)
	case *ast.UpdateStmt:
		v.limit(n.Limit, n.Order)
		v.several(n)
	case *ast.DeleteStmt:
		v.limit(n.Limit, n.Order)
	case *ast.TableName:
		if n.AsOf != nil || n.TableSample != nil {
			v.add("a sample or an old state of a table")
		}
	case *mysqlsyntax.ParamMarker:
		v.st.Parameters++
	}
	return false
}

// orderedWindows are the window functions that show an order; the ranks are equal without one.
var orderedWindows = statement.Names("row_number first_value last_value lag lead nth_value ntile")

func (v *varyVisitor) limit(l *ast.Limit, order *ast.OrderByClause) {
	if l != nil && order == nil {
		v.add(statement.UnorderedLimit)
	}
}

func (v *varyVisitor) call(n *ast.FuncCallExpr) {
	name := n.FnName.L
	switch why := varyingNames[name]; {
	case n.Schema.O != "":
		v.add("function " + n.Schema.O + "." + n.FnName.O + " is not known")
	case name == "unix_timestamp" && len(n.Args) == 0:
		v.add("function unix_timestamp tells of the clock")
	case name == "unix_timestamp", steady(name):
	case why != "":
		v.st.Variables = v.st.Variables || why == sessionReason
		v.add("function " + name + " tells of " + why)
	default:
		v.add("function " + name + " is not known")
	}
}

// own is what the outermost SELECT calls itself.
type own struct {
	aggregate, window bool
	strange           string // a function that may be an aggregate
}

// walkOwn looks at the select list and the order of a SELECT, not into its subqueries.
func walkOwn(n *ast.SelectStmt) *own {
	v := &own{}
	if n.Fields != nil {
		mysqlsyntax.Visit(n.Fields, v.enter)
	}
	if n.OrderBy != nil {
		mysqlsyntax.Visit(n.OrderBy, v.enter)
	}
	return v
}

func (v *own) enter(n ast.Node) (over bool) {
	switch n := n.(type) {
	case *ast.SubqueryExpr:
		return true
	case *ast.AggregateFuncExpr:
		v.aggregate = true
	case *ast.WindowFuncExpr:
		v.window = true
	case *ast.FuncCallExpr:
		if name := n.FnName.L; aggregateNames[name] {
			v.aggregate = true
		} else if !steady(name) && varyingNames[name] == "" && name != "unix_timestamp" {
			v.strange = name
		}
	}
	return false
}
