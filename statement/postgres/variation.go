package postgres

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/statement"
	"wirecheck/statement/pgsyntax"
)

// The built-in functions that are known to give the same for the same arguments, database and settings: those that pg_proc of
// PostgreSQL 15 calls immutable, and the stable ones that look neither at the clock nor at the session (manual, 38.7 and
// chapter 9). A function of the user's with such a name is taken for the built-in one.
var steadyNames = statement.Names(`abs acos acosd acosh area array_dims array_fill array_length array_lower array_ndims array_position
array_positions array_remove array_replace array_append array_prepend array_cat array_to_json array_to_string array_to_tsvector array_upper ascii asin
asind asinh atan atan2 atan2d atand atanh bit_count bit_length box btrim cardinality cbrt ceil ceiling center char_length character_length chr
circle coalesce concat concat_ws convert convert_from convert_to cos cosd cosh cot cotd crc32 date date_add date_bin date_part date_subtract date_trunc
datemultirange daterange decode degrees diagonal diameter div encode enum_first enum_last enum_range erf erfc exp extract factorial family float4 float8
floor format gcd get_bit get_byte greatest height host hostmask initcap inet_merge inet_same_family int2 int4 int4multirange int4range int8
int8multirange int8range isclosed isempty isfinite isopen isparallel isperp ishorizontal isvertical json_array_length json_build_array
json_build_object json_extract_path json_extract_path_text json_object json_populate_record json_scalar json_serialize json_strip_nulls json_typeof
json_value json_query json_exists jsonb_array_length jsonb_build_array jsonb_build_object jsonb_extract_path jsonb_extract_path_text jsonb_insert
jsonb_object jsonb_path_exists jsonb_path_match jsonb_path_query_array jsonb_path_query_first jsonb_populate_record jsonb_pretty jsonb_set
jsonb_set_lax jsonb_strip_nulls jsonb_typeof justify_days justify_hours justify_interval lcm least left length like_escape line ln log log10
lower lower_inc lower_inf lpad lseg ltrim macaddr8_set7bit make_date make_interval make_time make_timestamp make_timestamptz masklen md5 min_scale mod
multirange netmask network normalize is_normalized npoints nullif num_nonnulls num_nulls numeric nummultirange numnode numrange octet_length overlaps
overlay parse_ident path pclose phraseto_tsquery pi plainto_tsquery point polygon popen position pow power querytree quote_ident quote_literal quote_nullable
radians radius range_merge regexp_count regexp_instr regexp_like regexp_match regexp_replace regexp_split_to_array regexp_substr
repeat replace reverse right round row row_to_json rpad rtrim scale set_bit set_byte set_masklen setweight sha224 sha256 sha384 sha512 sign
similar_escape similar_to_escape sin sind sinh slope split_part sqrt starts_with string_to_array strip strpos substr substring tan tand tanh text textcat timestamp
timestamptz timezone to_ascii to_char to_date to_hex to_json to_jsonb to_number to_timestamp to_tsquery to_tsvector translate trim trim_array
trim_scale trunc ts_delete ts_filter ts_headline ts_lexize ts_rank ts_rank_cd ts_rewrite tsmultirange tsquery_phrase tsrange tstzmultirange
tstzrange tsvector_to_array unistr upper upper_inc upper_inf varchar websearch_to_tsquery width width_bucket xmlcomment xmlexists xpath xpath_exists
pg_sleep pg_size_bytes pg_size_pretty pg_typeof current_database current_schema`)

// steadySets are those that return sets.
var steadySets = statement.Names(`generate_series generate_subscripts json_array_elements json_array_elements_text json_each json_each_text json_object_keys
json_populate_recordset json_to_recordset json_to_record jsonb_array_elements jsonb_array_elements_text jsonb_each jsonb_each_text jsonb_object_keys
jsonb_path_query jsonb_populate_recordset jsonb_to_recordset jsonb_to_record regexp_matches regexp_split_to_table string_to_table unnest xmltable json_table`)

// aggregateNames are the built-in aggregate functions (manual, 9.21).
var aggregateNames = statement.Names(`any_value array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count covar_pop covar_samp every json_agg json_agg_strict
json_arrayagg json_object_agg json_object_agg_strict json_object_agg_unique json_objectagg jsonb_agg jsonb_agg_strict jsonb_object_agg
jsonb_object_agg_strict jsonb_object_agg_unique max min mode percentile_cont percentile_disc range_agg range_intersect_agg regr_avgx regr_avgy
regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy stddev stddev_pop stddev_samp string_agg sum var_pop var_samp variance xmlagg`)

// orderedAggregates show the order of their rows (manual, 9.21, and 4.2.7).
var orderedAggregates = statement.Names(`any_value array_agg json_agg json_agg_strict json_arrayagg json_object_agg json_object_agg_strict json_objectagg jsonb_agg
jsonb_agg_strict jsonb_object_agg jsonb_object_agg_strict string_agg xmlagg`)

// windowNames are the built-in window functions (manual, 9.22), all but the ranks of which show an order.
var windowNames = statement.Names(`cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number`)

// varyingNames are functions of which it is known why they vary.
var varyingNames = statement.Varying(map[string]string{
	"the clock":              "now clock_timestamp statement_timestamp transaction_timestamp timeofday age pg_sleep_until",
	"random values":          "random random_normal gen_random_uuid uuidv4 uuidv7 uuid_generate_v1 uuid_generate_v4 setseed",
	"a sequence":             "nextval setval currval lastval",
	"the session":            "current_setting set_config pg_backend_pid pg_my_temp_schema current_query inet_client_port pg_trigger_depth",
	"numbers of transaction": "txid_current txid_current_if_assigned txid_current_snapshot txid_status pg_current_xact_id pg_current_xact_id_if_assigned pg_current_snapshot pg_snapshot_xmin pg_snapshot_xmax",
})

// sessionNames are functions that tell what the session did before.
var sessionNames = statement.Names(`currval lastval current_setting set_config pg_backend_pid setseed random pg_my_temp_schema pg_current_xact_id_if_assigned
txid_current_if_assigned`)

// variation says why a statement may give another result another time.
func variation(n *pg.Node, st *statement.Statement) {
	var whys []string
	vary := func(why string) { whys = append(whys, why) }
	defer func() { st.Volatile = statement.Reasons(whys) }()
	session := func(why string) {
		st.Variables = true
		vary(why)
	}
	switch s := n.Node.(type) {
	case *pg.Node_ExecuteStmt, *pg.Node_FetchStmt, *pg.Node_DeclareCursorStmt, *pg.Node_ClosePortalStmt, *pg.Node_DeallocateStmt, *pg.Node_VariableShowStmt,
		*pg.Node_DiscardStmt:
		session("it depends on what the session did before")
	case *pg.Node_CallStmt, *pg.Node_DoStmt:
		vary("it calls a procedure")
	case *pg.Node_CopyStmt:
		vary("COPY")
	case *pg.Node_ExplainStmt:
		vary("EXPLAIN")
	case *pg.Node_CreateStmt:
		st.Variables = s.CreateStmt.Relation.GetRelpersistence() == "t"
	}
	pgsyntax.Walk(n, func(m proto.Message) bool {
		switch m := m.(type) {
		case *pg.FuncCall:
			varyCall(m, vary, session)
		case *pg.SQLValueFunction:
			if m.Op <= pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP_N {
				vary("the clock")
			}
		case *pg.SelectStmt:
			if (m.LimitCount != nil || m.LimitOffset != nil) && len(m.SortClause) == 0 {
				vary(statement.UnorderedLimit)
			}
			if len(m.DistinctClause) > 0 && m.DistinctClause[0].GetNode() != nil && len(m.SortClause) == 0 {
				vary("DISTINCT ON without ORDER BY")
			}
		case *pg.RangeTableSample:
			vary("TABLESAMPLE")
		case *pg.CurrentOfExpr:
			session("a cursor")
		case *pg.RangeVar:
			if strings.HasPrefix(m.Schemaname, "pg_temp") {
				session("a temporary table")
			}
		case *pg.ColumnRef:
			if transactional(m) {
				vary("system column " + pgsyntax.LastName(m.Fields))
			}
		case *pg.ParamRef:
			st.Parameters = max(st.Parameters, int(m.Number))
		case *pg.JsonArrayAgg:
			if len(m.GetConstructor().GetAggOrder()) == 0 {
				vary("an aggregate that shows the order of rows")
			}
		case *pg.A_Const:
			switch strings.ToLower(strings.TrimSpace(m.GetSval().GetSval())) {
			case "now", "today", "tomorrow", "yesterday": // special values of dates (manual, 8.5.1.4)
				vary("a literal that may tell the time")
			}
		}
		return true
	})
}

func varyCall(f *pg.FuncCall, vary, session func(string)) {
	name := pgsyntax.LastName(f.Funcname)
	builtin := len(f.Funcname) == 1 || f.Funcname[0].GetString_().GetSval() == "pg_catalog"
	switch ordered := len(f.AggOrder) > 0; {
	case !builtin:
		vary("function " + name + " is not known")
	case orderedAggregates[name] && !ordered && (f.Over == nil || unordered(f.Over)):
		vary("aggregate " + name + " shows the order of rows")
	case windowNames[name] && f.Over != nil && unordered(f.Over):
		vary("window function " + name + " without ORDER BY")
	case steadyNames[name], steadySets[name], aggregateNames[name], windowNames[name]:
	case name == "age" && len(f.Args) > 1:
	case sessionNames[name]:
		session("function " + name + " tells of " + varyingNames[name])
	case varyingNames[name] != "":
		vary("function " + name + " tells of " + varyingNames[name])
	default:
		vary("function " + name + " is not known")
	}
}

// unordered reports whether a window has no order. A window that takes another one's may have its.
func unordered(w *pg.WindowDef) bool {
	return len(w.OrderClause) == 0 && w.Refname == "" && w.Name == ""
}

// calls says whether a SELECT itself calls an aggregate or a window function, and names a function in its select list or order
// that may be an aggregate or return a set.
func calls(s *pg.SelectStmt) (aggregate, window bool, strange string) {
	visit := func(m proto.Message) bool {
		switch f := m.(type) {
		case *pg.FuncCall:
			name := pgsyntax.LastName(f.Funcname)
			switch {
			case f.Over != nil:
				window = true
			case aggregateNames[name], f.AggStar, f.AggDistinct, len(f.AggOrder) > 0, f.AggFilter != nil, f.AggWithinGroup:
				aggregate = true
			case !steadyNames[name] && varyingNames[name] == "":
				strange = name
			}
		case *pg.GroupingFunc, *pg.JsonArrayAgg, *pg.JsonObjectAgg:
			aggregate = true
		case *pg.SelectStmt:
			return false
		}
		return true
	}
	pgsyntax.WalkAll(s.TargetList, visit)
	pgsyntax.WalkAll(s.SortClause, visit)
	pgsyntax.WalkAll(s.DistinctClause, visit)
	pgsyntax.WalkAll(s.WindowClause, visit)
	return aggregate, window, strange
}
