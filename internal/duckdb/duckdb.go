// Package duckdb has tests only: they execute the SQL of docs/how-to/sql.md in DuckDB. They have a package of their own since DuckDB is a large
// library in C++, which no program of wirecheck's holds.
package duckdb
