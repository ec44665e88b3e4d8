package main

import (
	"strings"

	"wirecheck/lab/scenario"
)

// seen says where the wrong behaviour was observed, on MariaDB 10.11, MySQL 9.7, TiDB of November 2025 and of January
// 2023 (with its embedded storage) and PostgreSQL 15. Where a case was run and is not listed, it was not observed.
var seen = map[string][]scenario.Selector{
	"mysql-104833":        {at("RU RC", "mariadb", "mysql")},
	"mariadb-26643":       {at("RU RC", "mariadb", "mysql")},
	"mariadb-27992":       {at("RU RC", "mariadb", "mysql")},
	"mariadb-30835":       {at("RU RC", "mariadb", "mysql", "postgres"), at("RC", "tidb")},
	"mariadb-26642":       {at("RR", "mariadb", "mysql", "tidb")},
	"tidb-42121":          {at("RC RR", "tidb")},
	"tidb-42486":          {at("RR", "tidb")},
	"mysql-108528":        {at("RR", "mariadb", "mysql")},
	"isorel-fig1":         {at("RR", "mariadb", "mysql", "tidb")},
	"isorel-lostupdate":   {at("RR", "mariadb", "mysql", "tidb")},
	"isorel-fig6":         {at("RR", "mariadb", "mysql", "tidb", "postgres")},
	"hermitage-g2item":    {at("RR", "mariadb", "mysql", "tidb", "postgres")},
	"hermitage-otv":       {at("RU", "mariadb", "mysql")},
	"hermitage-pmp-write": {at("RC", "postgres")},
	"pg-rc-evalplanqual":  {at("RC", "mariadb", "mysql", "tidb", "postgres"), at("RR", "tidb", "postgres")},
	"wc-listing5":         {at("RC", "mariadb", "mysql", "tidb", "postgres")},
	"wc-listing6":         {at("RC", "mariadb", "mysql", "tidb", "postgres"), at("RR", "tidb", "postgres")}, // RR: MariaDB and MySQL block tx2
	"mysql-110125":        {at("", "mysql")},
	"tidb-41734":          {at("", "tidb 2023-01")},
	"tidb-44219":          {at("", "tidb 2023-01")},
}

// misfires are controls on which an oracle is known to be wrong, so that nothing can be demanded.
var misfires = map[string]bool{"mysql-119707": true}

// at makes a selector from short names of levels, separated by blanks.
func at(short string, engines ...string) scenario.Selector {
	return scenario.Selector{Engines: engines, Levels: levelNames(strings.Fields(short))}
}

// byData are conditions that tell the wrong behaviour without the oracle that the case names for it. wc-listing6: tx2, if
// not made to wait, commits first; executed first, it would leave the table empty after tx1.
var byData = map[string]string{"wc-listing6": "ok(tx2b) and not blocked(tx2b) and not rows(final) are none"}

// silent are the cases in which no oracle must speak on these engines: fixed, or only with another storage.
var silent = map[string]bool{
	"tidb-19585": true, "tidb-28092": true, "tidb-28095": true, "tidb-30361": true, "tidb-39976": true, "tidb-44135": true,
	"mariadb-14868": true,
}
