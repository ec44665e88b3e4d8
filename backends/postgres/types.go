package postgres

import (
	"sync"

	"github.com/jackc/pgx/v5/pgtype"
)

// builtIn knows the types that every database has by the same OIDs. It is only read.
var builtIn = sync.OnceValue(pgtype.NewMap)

// firstUser is the first OID that a server gives to what users make (PostgreSQL source, access/transam.h,
// FirstNormalObjectId).
const firstUser = 16384

// rare are built-in types that pgtype does not know.
var rare = map[uint32]string{
	22: "int2vector", 24: "regproc", 30: "oidvector", 790: "money", 1790: "refcursor", 2202: "regprocedure",
	2203: "regoper", 2204: "regoperator", 2205: "regclass", 2206: "regtype", 2249: "record", 2278: "void",
	2970: "txid_snapshot", 3220: "pg_lsn", 3614: "tsvector", 3615: "tsquery", 3734: "regconfig", 3769: "regdictionary",
	4089: "regnamespace", 4096: "regrole", 5038: "pg_snapshot", 5069: "xid8",
}

// typeName is the name of a type; those that a database defines are not looked up, since that would be a statement of its own in
// the session.
func typeName(oid uint32) string {
	if name, ok := rare[oid]; ok {
		return name
	}
	// The map fills a cache when it is asked for an OID, but only under its own lock for known ones; TypeForOID reads.
	if t, ok := builtIn().TypeForOID(oid); ok {
		return t.Name
	}
	if oid >= firstUser {
		return "user-defined"
	}
	return "unknown"
}

// numeric reports whether psql aligns the type to the right (PostgreSQL source, fe_utils/print.c,
// column_type_alignment).
func numeric(oid uint32) bool {
	switch oid {
	case 20, 21, 23, // int8, int2, int4
		700, 701, 1700, // float4, float8, numeric
		26, 28, 29, 5069, // oid, xid, cid, xid8
		790: // money
		return true
	}
	return false
}
