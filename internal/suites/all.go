package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// all are the suites, in the order in which they run.
func all() []suite {
	none := func(why string) func(context.Context, string) error {
		return func(context.Context, string) error { return errors.New(why) }
	}
	const noTests = "its npm package has no tests, and its repository is not a package"
	list := append(goModules(),
		pytest("PyMySQL 1.1.1", "mariadb", debian("trixie", "python-pymysql", "cryptography"), []string{"CREATE DATABASE test1", "CREATE DATABASE test2"}, func(folder string, at place) (env, args []string, err error) {
			database := func(name string) string {
				return fmt.Sprintf(`{"host": %q, "port": %d, "user": %q, "passwd": %q, "database": %q, "use_unicode": true, "local_infile": true}`, at.host, at.port, at.user, at.password, name)
			}
			text := "[" + database("test1") + ", " + database("test2") + "]"
			return nil, []string{"pymysql/tests"}, os.WriteFile(filepath.Join(folder, "pymysql", "tests", "databases.json"), []byte(text), 0o644)
		}),
		pytest("psycopg2 2.9", "postgres", debian("trixie", "psycopg2", "psycopg2"), []string{"CREATE DATABASE psycopg2_test"}, func(folder string, at place) (env, args []string, err error) {
			return []string{"PSYCOPG2_TESTDB=psycopg2_test", "PSYCOPG2_TESTDB_HOST=" + at.host, fmt.Sprintf("PSYCOPG2_TESTDB_PORT=%d", at.port), "PSYCOPG2_TESTDB_USER=" + at.user, "PGPASSWORD=" + at.password}, []string{"tests"}, nil
		}),
	)
	sqlalchemy := func(engine, driver string, create ...string) suite {
		modules := map[string]string{"mariadb": "MySQLdb", "postgres": "psycopg2"}
		return pytest("SQLAlchemy's suite for dialects, "+engine, engine, dialectSuite(modules[engine]), create, func(source string, at place) (env, args []string, err error) {
			url := fmt.Sprintf("%s://%s:%s@%s:%d/test", driver, at.user, at.password, at.host, at.port)
			return nil, []string{"--dburi", url, "test_suite.py"}, nil
		})
	}
	list = append(list,
		sqlalchemy("postgres", "postgresql+psycopg2", "CREATE DATABASE test", `\c test`, "CREATE SCHEMA test_schema", "CREATE SCHEMA test_schema_2", "CREATE EXTENSION hstore"),
		sqlalchemy("mariadb", "mariadb+mysqldb", "CREATE DATABASE test", "CREATE DATABASE test_schema", "CREATE DATABASE test_schema_2"),
	)
	apps := []string{"basic", "queries", "transactions", "select_for_update", "aggregation", "expressions", "update", "delete", "bulk_create", "get_or_create", "introspection", "schema", "migrations", "backends", "many_to_many", "raw_query", "prefetch_related", "inspectdb", "force_insert_update", "ordering"}
	mysqlPerl := func(driver string) func(at place) []string {
		return func(at place) []string {
			return []string{fmt.Sprintf("DBI_DSN=DBI:%s:database=test;host=%s;port=%d", driver, at.host, at.port)}
		}
	}
	list = append(list,
		perlSuite("DBD-Pg 3.18", "postgres", "trixie", "libdbd-pg-perl", "libdbd-pg-perl", nil, func(at place) []string {
			return []string{fmt.Sprintf("DBI_DSN=dbi:Pg:dbname=postgres;host=%s;port=%d", at.host, at.port), "DBDPG_TEST_ALWAYS_ENV=1"}
		}),
		perlSuite("DBD-MariaDB 1.22", "mariadb", "bookworm", "libdbd-mariadb-perl", "libdbd-mariadb-perl", []string{"CREATE OR REPLACE DATABASE test COLLATE utf8mb4_unicode_ci"}, mysqlPerl("MariaDB")),
		perlSuite("DBD-mysql 4.050", "mariadb", "bookworm", "libdbd-mysql-perl", "libdbd-mysql-perl", []string{"CREATE OR REPLACE DATABASE test"}, mysqlPerl("mysql")),
	)
	list = append(list,
		// The names have no spaces: run-tests.php does not quote its folder.
		phpSuite("PHP-8.2-mysqli-and-PDO", "mariadb", []string{"mysqlnd", "mysqli", "pdo", "pdo_mysql"}, []string{"ext/mysqli/tests", "ext/pdo_mysql/tests"}, "CREATE OR REPLACE DATABASE test", func(at place) []string {
			return []string{"MYSQL_TEST_HOST=" + at.host, fmt.Sprintf("MYSQL_TEST_PORT=%d", at.port), "MYSQL_TEST_USER=" + at.user, "MYSQL_TEST_PASSWD=" + at.password,
				fmt.Sprintf("PDO_MYSQL_TEST_DSN=mysql:dbname=test;host=%s;port=%d", at.host, at.port), "PDO_MYSQL_TEST_USER=" + at.user, "PDO_MYSQL_TEST_PASS=" + at.password}
		}),
		phpSuite("PHP-8.2-pgsql-and-PDO", "postgres", []string{"pgsql", "pdo", "pdo_pgsql"}, []string{"ext/pgsql/tests", "ext/pdo_pgsql/tests"}, "CREATE DATABASE test", func(at place) []string {
			to := fmt.Sprintf("host=%s port=%d dbname=test user=%s password=%s", at.host, at.port, at.user, at.password)
			return []string{"PGSQL_TEST_CONNSTR=" + to, "PDO_PGSQL_TEST_DSN=pgsql:" + to}
		}),
	)
	list = append(list, further()...)
	list = append(list, append(regression(), mysqltests()...)...)
	return append(list,
		django("Django 3.2 (part), postgres", "postgres", "postgresql", apps...),
		django("Django 3.2 (part), mariadb", "mariadb", "mysql", apps...),
		suite{name: "psycopg 3", engine: "postgres", get: none("the mirror has no archive of Debian's source package psycopg3, and its PyPI archive has no tests")},
		suite{name: "pg", get: none(noTests)}, suite{name: "postgres (npm)", get: none(noTests)}, suite{name: "mysql2", get: none(noTests)},
		suite{name: "mariadb (npm)", get: none(noTests)}, suite{name: "knex", get: none(noTests)}, suite{name: "sequelize", get: none(noTests)},
	)
}

// further are those of clients that came later: from Java, Node and Debian's Python.
func further() []suite {
	list := []suite{
		javaSuite("MariaDB-Connector/J 2.7.6", "mariadb", "mariadb-connector-java", "org/mariadb/jdbc/*Test.class", []string{"libmariadb-java", "junit4", "libhamcrest-java", "libjna-java", "libjna-platform-java", "libslf4j-java"},
			[]string{"CREATE OR REPLACE DATABASE testj"}, func(at place) []string {
				return []string{fmt.Sprintf("-DdbUrl=jdbc:mariadb://%s:%d/testj?user=%s&password=%s", at.host, at.port, at.user, at.password), "-Xmx512m", "-DTEST_DB_HOST=" + at.host, fmt.Sprintf("-DTEST_DB_PORT=%d", at.port), "-DTEST_DB_USER=" + at.user, "-DTEST_DB_PASSWORD=" + at.password}
			}),
	}
	postgresNode := func(at place) []string {
		return []string{"PGHOST=" + at.host, fmt.Sprintf("PGPORT=%d", at.port), "PGUSER=" + at.user, "PGPASSWORD=" + at.password, "PGDATABASE=postgres"}
	}
	mariadbNode := func(at place) []string {
		return []string{"CI=1", "MYSQL_HOST=" + at.host, fmt.Sprintf("MYSQL_PORT=%d", at.port), "MYSQL_USER=" + at.user, "MYSQL_PASSWORD=" + at.password, "MYSQL_DATABASE=test"}
	}
	list = append(list,
		npmSuite("pg-cursor 2.0.0", "postgres", npmPackage("pg-cursor@2.0.0", "mocha@6", "pg@8"), "test/*.js", "--exit", nil, postgresNode),
		npmSuite("pg-query-stream 2.1.2", "postgres", npmPackage("pg-query-stream@2.1.2", "mocha@6", "pg@8", "pg-cursor@2", "JSONStream@0.7", "concat-stream@1.0", "stream-spec@0.3", "stream-tester@0.0.5", "through@2.3"),
			"test/*.js", "--exit", nil, postgresNode),
		npmSuite("mysql2 0.15.8", "mariadb", npmPackage("mysql2@0.15.8", "progress@1.1.8"), "test/integration/*/test-*.js", "", []string{"CREATE OR REPLACE DATABASE test"}, mariadbNode),
		npmSuite("mysql 2.18.1", "mariadb", modules(debian("bookworm", "node-mysql", "sys"), "after@0.8", "seedrandom@3", "timezone-mock@0.0.7", "utest@0.0.8", "urun@0.0.8"),
			"test/integration/*/test-*.js", "", []string{"CREATE OR REPLACE DATABASE test"}, mariadbNode),
	)
	list = append(list,
		pytest("peewee 3.14.10, mariadb", "mariadb", debian("bookworm", "peewee", "MySQLdb"), []string{"CREATE DATABASE peewee_test"}, func(source string, at place) (env, args []string, err error) {
			files, err := filepath.Glob(filepath.Join(source, "tests", "*.py"))
			return []string{"PEEWEE_TEST_BACKEND=mysql", "PEEWEE_MYSQL_HOST=" + at.host, fmt.Sprintf("PEEWEE_MYSQL_PORT=%d", at.port), "PEEWEE_MYSQL_USER=" + at.user, "PEEWEE_MYSQL_PASSWORD=" + at.password},
				append(files, "--continue-on-collection-errors"), err
		}),
		pytest("mysqlclient 1.4.6", "mariadb", debian("bookworm", "python-mysqldb", "MySQLdb"), []string{"CREATE OR REPLACE DATABASE test"}, func(source string, at place) (env, args []string, err error) {
			file := filepath.Join(source, "wirecheck.cnf")
			text := fmt.Sprintf("[MySQLdb-tests]\nhost=%s\nport=%d\nuser=%s\npassword=%s\ndatabase=test\n", at.host, at.port, at.user, at.password)
			// Its own module is not compiled; Debian's is tested.
			return []string{"TESTDB=" + file}, []string{"tests", "--continue-on-collection-errors"}, errors.Join(os.RemoveAll(filepath.Join(source, "MySQLdb")), os.WriteFile(file, []byte(text), 0o600))
		}),
	)
	return list
}

// goModules are the suites of Go modules.
func goModules() []suite {
	return []suite{
		goSuite("go-sql-driver/mysql 1.10.1", "mariadb", "github.com/go-sql-driver/mysql@v1.10.1", "TestConnectorReturnsTimeout", // it needs a network
			[]string{"CREATE DATABASE gotest"}, func(at place) (env, flags []string) {
				return []string{"MYSQL_TEST_USER=" + at.user, "MYSQL_TEST_PASS=" + at.password, fmt.Sprintf("MYSQL_TEST_ADDR=%s:%d", at.host, at.port), "MYSQL_TEST_PROT=tcp"}, nil
			}, "."),
		goSuite("lib/pq 1.12.3", "postgres", "github.com/lib/pq@v1.12.3", "^$",
			[]string{"CREATE DATABASE pqgotest"}, func(at place) (env, flags []string) {
				return []string{"PGHOST=" + at.host, fmt.Sprintf("PGPORT=%d", at.port), "PGUSER=" + at.user, "PGPASSWORD=" + at.password, "PGDATABASE=pqgotest", "PGSSLMODE=disable"}, nil
			}, "./..."),
		goSuite("pgx 5.12.0", "postgres", "github.com/jackc/pgx/v5@v5.12.0", "^$",
			[]string{"CREATE DATABASE pgx_test", `\c pgx_test`, "CREATE EXTENSION hstore", "CREATE EXTENSION ltree", "CREATE DOMAIN uint64 AS numeric(20,0)"}, func(at place) (env, flags []string) {
				url := fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=pgx_test sslmode=disable", at.host, at.port, at.user, at.password)
				return []string{"PGX_TEST_DATABASE=" + url, "PGX_TEST_TCP_CONN_STRING=" + url, "PGX_TEST_PLAIN_PASSWORD_CONN_STRING=", "PGX_TEST_MD5_PASSWORD_CONN_STRING="}, nil
			}, "./..."),
		goSuite("xorm 1.4.3, postgres", "postgres", "xorm.io/xorm@v1.4.3", "^$", []string{"CREATE DATABASE xorm_test"}, func(at place) (env, flags []string) {
			return nil, []string{"-db=postgres", "-conn_str=" + at.url("xorm_test"), "-show_sql=false"}
		}, "./tests"),
		goSuite("xorm 1.4.3, mariadb", "mariadb", "xorm.io/xorm@v1.4.3", "^$", []string{"CREATE DATABASE xorm_test"}, func(at place) (env, flags []string) {
			return nil, []string{"-db=mysql", "-conn_str=" + at.dsn("xorm_test"), "-show_sql=false"}
		}, "./tests"),
		goSuite("go-pg 10.11.0", "postgres", "github.com/go-pg/pg/v10@v10.11.0", "^$", []string{"CREATE EXTENSION hstore"}, func(at place) (env, flags []string) {
			return []string{"PGHOST=" + at.host, fmt.Sprintf("PGPORT=%d", at.port), "PGUSER=" + at.user, "PGPASSWORD=" + at.password, "PGDATABASE=postgres", "PGSSLMODE=disable"}, nil
		}, "./..."),
		goSuite("River 0.51.2", "postgres", "github.com/riverqueue/river@v0.51.2", "^$", []string{"CREATE DATABASE river_test"}, func(at place) (env, flags []string) {
			return []string{"TEST_DATABASE_URL=" + at.url("river_test") + "&pool_max_conns=15"}, nil
		}, "./..."),
		goSuite("pgx 4.18.3", "postgres", "github.com/jackc/pgx/v4@v4.18.3", "^$",
			[]string{"CREATE DATABASE pgx_test", `\c pgx_test`, "CREATE DOMAIN uint64 AS numeric(20,0)"}, func(at place) (env, flags []string) {
				return []string{fmt.Sprintf("PGX_TEST_DATABASE=host=%s port=%d user=%s password=%s dbname=pgx_test sslmode=disable", at.host, at.port, at.user, at.password)}, nil
			}, "./..."),
		goSuite("pgconn 1.14.3", "postgres", "github.com/jackc/pgconn@v1.14.3", "^$", []string{"CREATE DATABASE pgx_test"}, func(at place) (env, flags []string) {
			url := fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=pgx_test sslmode=disable", at.host, at.port, at.user, at.password)
			return []string{"PGX_TEST_CONN_STRING=" + url, "PGX_TEST_TCP_CONN_STRING=" + url}, nil
		}, "./..."),
		goSuite("sqlx 1.4.0, postgres", "postgres", "github.com/jmoiron/sqlx@v1.4.0", "^$", []string{"CREATE DATABASE test"}, func(at place) (env, flags []string) {
			return []string{"SQLX_MYSQL_DSN=skip", "SQLX_SQLITE_DSN=skip", "SQLX_POSTGRES_DSN=" + at.url("test")}, nil
		}, "./..."),
		goSuite("sqlx 1.4.0, mariadb", "mariadb", "github.com/jmoiron/sqlx@v1.4.0", "^$", []string{"CREATE DATABASE test"}, func(at place) (env, flags []string) {
			return []string{"SQLX_POSTGRES_DSN=skip", "SQLX_SQLITE_DSN=skip", "SQLX_MYSQL_DSN=" + at.dsn("test")}, nil
		}, "./..."),
		goSuite("goqu 9.19.0, postgres", "postgres", "github.com/doug-martin/goqu/v9@v9.19.0", "^$", []string{"CREATE DATABASE test"}, func(at place) (env, flags []string) {
			return []string{"PG_URI=" + at.url("test")}, nil
		}, ".", "./dialect/postgres"),
		goSuite("goqu 9.19.0, mariadb", "mariadb", "github.com/doug-martin/goqu/v9@v9.19.0", "^$", []string{"CREATE DATABASE test"}, func(at place) (env, flags []string) {
			return []string{"MYSQL_URI=" + at.dsn("test")}, nil
		}, "./dialect/mysql"),
		goSuite("gorp 3.1.0, postgres", "postgres", "github.com/go-gorp/gorp/v3@v3.1.0", "^$", []string{"CREATE DATABASE test"}, func(at place) (env, flags []string) {
			return []string{"GORP_TEST_DIALECT=postgres", "GORP_TEST_DSN=" + at.url("test")}, nil
		}, "."),
		goSuite("gorp 3.1.0, mariadb", "mariadb", "github.com/go-gorp/gorp/v3@v3.1.0", "^$", []string{"CREATE DATABASE test"}, func(at place) (env, flags []string) {
			return []string{"GORP_TEST_DIALECT=mysql", "GORP_TEST_DSN=" + at.dsn("test")}, nil
		}, "."),
		goSuite("upper/db 4.10.0, postgres", "postgres", "github.com/upper/db/v4@v4.10.0", "^$", []string{"CREATE DATABASE test"}, func(at place) (env, flags []string) {
			return []string{"DB_NAME=test", "DB_USERNAME=" + at.user, "DB_PASSWORD=" + at.password, "DB_HOST=" + at.host, fmt.Sprintf("DB_PORT=%d", at.port)}, nil
		}, "./adapter/postgresql"),
		goSuite("bun's pgdriver 1.2.18", "postgres", "github.com/uptrace/bun/driver/pgdriver@v1.2.18", "^$", []string{"CREATE DATABASE test"}, func(at place) (env, flags []string) {
			return []string{"PG=" + at.url("test")}, nil
		}, "./..."),
	}
}
