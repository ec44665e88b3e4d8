package source_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"wirecheck/backends/engine"
	"wirecheck/backends/postgres"
	"wirecheck/trace"
	"wirecheck/trace/source"
)

// values are expressions of the types that are written as text.
var values = []string{
	"true", "false", "0::int2", "(-32768)::int2", "(-2147483648)::int4", "9223372036854775807::int8", "'it''s'::text", "''::varchar", "'x'::bpchar(3)", "'n'::name",
	`'\x00ff27'::bytea`, "0::numeric", "0.00::numeric", "-12345678.90123::numeric", "10000::numeric", "0.0001::numeric", "1e20::numeric", "'NaN'::numeric", "123456789012345678901234567890.5::numeric",
	"99990000::numeric", "1.5::float4", "1e6::float4", "0.1::float8", "1e15::float8", "1e-5::float8", "-0.0001::float8", "'Infinity'::float8", "'NaN'::float4", "123456.75::float8",
	"'2026-11-20'::date", "'1999-12-31'::date", "'infinity'::date", "'0001-01-01'::date", "'01:02:03.5'::time", "'24:00'::time", "'2026-11-20 01:02:03.456789'::timestamp",
	"'1999-12-31 23:59:59.9'::timestamp", "'-infinity'::timestamp", "'2026-11-20 01:02:03+02'::timestamptz", "'5bd66ef5-0953-69c7-b0d1-f8f4bd33716a'::uuid", `'{"a": [1, "x"]}'::jsonb`,
	`'{"a":1}'::json`, "ARRAY[1,NULL,3]", "ARRAY['a','b c','NULL','','q\"\\']", "'{}'::text[]", "ARRAY['2026-11-20'::date]", "7::oid", "NULL::int4",
}

// TestPostgresBinary asks for values in both formats, in results and as parameters: what is told of the binary ones is what the server prints.
func TestPostgresBinary(t *testing.T) {
	server, err := postgres.Start(t.Context(), engine.Options{Settings: map[string]string{"timezone": "UTC"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	passed := newTap(t, server.Address())
	url := fmt.Sprintf("postgres://postgres:%s@127.0.0.1:%d/postgres?application_name=binary&sslmode=disable", server.Password, passed.port())
	conn, err := pgconn.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	query := "SELECT " + strings.Join(values, ", ")
	text, err := conn.Exec(t.Context(), query).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	r := conn.ExecParams(t.Context(), query, nil, nil, nil, []int16{1}).Read()
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	// What came back goes out again as binary parameters, whose types the server tells.
	var casts []string
	var formats []int16
	for i := range values {
		casts = append(casts, fmt.Sprintf("$%d", i+1))
		formats = append(formats, 1)
	}
	var oids []uint32
	for _, f := range text[0].FieldDescriptions {
		oids = append(oids, f.DataTypeOID)
	}
	if r := conn.ExecParams(t.Context(), "SELECT "+strings.Join(casts, ", "), r.Rows[0], oids, formats, nil).Read(); r.Err != nil {
		t.Fatal(r.Err)
	}
	// A pipeline with an error in the middle: what stands behind the error is not executed.
	pipe := conn.StartPipeline(t.Context())
	for _, sql := range []string{"SELECT 1", "SELECT 1/0", "SELECT 3"} {
		pipe.SendQueryParams(sql, nil, nil, nil, nil)
	}
	if err := pipe.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := pipe.Close(); err == nil {
		t.Fatal("the pipeline did not fail")
	}
	if _, err := conn.CopyFrom(t.Context(), strings.NewReader(strings.Repeat("7\n", 100_000)), "CREATE TEMP TABLE c (a int); COPY c FROM STDIN"); err != nil {
		t.Fatal(err)
	}
	large := "SELECT '" + strings.Repeat("x", 3<<20) + "'"
	if _, err := conn.Exec(t.Context(), large).ReadAll(); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "SELECT repeat('y', 100), n FROM generate_series(1, 20000) n").ReadAll(); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	// pgx prepares, describes and asks for binary results by itself.
	high, err := pgx.Connect(t.Context(), strings.Replace(url, "=binary", "=pgx", 1))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var n int64
		var s string
		if err := high.QueryRow(t.Context(), "SELECT $1::int8 + 1, $2::text", int64(41), "a").Scan(&n, &s); err != nil || n != 42 {
			t.Fatal(err, n)
		}
	}
	if err := high.Close(context.Background()); err != nil {
		t.Fatal(err)
	}

	records, report := importBytes(t, pcapFile(t, packetsOf(t, passed.close(), server.Port), false), source.Options{})
	if report.Unknown != 0 || report.Count("statements skipped after an error in their pipeline") != 1 {
		t.Error(reportText(t, report))
	}
	sts := statements(records, "binary")
	var got []string
	for _, st := range sts {
		got = append(got, st.SQL[:min(len(st.SQL), 20)])
	}
	want := []string{"SELECT true, false, ", "SELECT true, false, ", "SELECT $1, $2, $3, $", "SELECT 1", "SELECT 1/0", "CREATE TEMP TABLE c ", "SELECT 'xxxxxxxxxxxx", "SELECT repeat('y', 1"}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatal(d)
	}
	// The server prints UTC as +00, and so do we.
	for i, v := range sts[0].Results[0].Rows[0] {
		if d := cmp.Diff(v, sts[1].Results[0].Rows[0][i]); d != "" {
			t.Errorf("%s, as a result: -text +binary:\n%s", values[i], d)
		}
		p := sts[2].Params[i]
		if d := cmp.Diff(v, trace.Value{Null: p.Null, Binary: p.Binary, Text: p.Value}); d != "" {
			t.Errorf("%s, as a parameter: -text +binary:\n%s", values[i], d)
		}
	}
	if a, b := sts[0].Results[0].Digest, sts[1].Results[0].Digest; a == "" || a != b {
		t.Errorf("digests of the same rows: %s and %s", a, b)
	}
	if st := sts[4]; st.Error == nil || st.Error.Code != "22012" {
		t.Errorf("the pipeline's error: %+v", st)
	}
	if st := sts[5]; len(st.Results) != 2 || st.Results[1].Affected != 100_000 {
		t.Errorf("COPY: %+v", st.Results)
	}
	if sts[6].SQL != large {
		t.Error("the large statement is not whole")
	}
	if r := sts[7].Results[0]; r.Count != 20000 || len(r.Rows) != source.DefaultRows || !r.Partial || r.Digest == "" {
		t.Errorf("the large result: %d rows, %d kept", r.Count, len(r.Rows))
	}
	two := statements(records, "pgx")
	if len(two) != 2 || two[0].Results[0].Rows[0][0].Text != "42" || two[1].Params[0] != (trace.Param{Type: "int8", Value: "41"}) || two[1].Name == "" {
		t.Errorf("pgx:\n%s", shown(records))
	}
}
