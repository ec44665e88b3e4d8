package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	mysqlTests = "/usr/share/mysql/mysql-test" // of the package mariadb-test
	testLimit  = time.Minute                   // for one file
	notEnded   = "not ended\n"
)

// mysqltestParts are the parts in which MariaDB's own tests are played, so that each ends within the time limit: a name, and the files of the folder whose names
// match.
var mysqltestParts = [][]string{
	{"writes", "main/insert*", "main/update*", "main/delete*", "main/multi_update*", "main/replace*", "main/row*", "main/last*", "main/auto_increment*", "main/check_constraint*", "suite/innodb/t/deadlock*"},
	{"definitions", "main/create*", "main/drop*", "main/temp_*", "main/rename*", "main/truncate*", "main/default*", "main/foreign_key*", "main/invisible*", "main/trigger*", "main/show*"},
	{"routines", "main/ps*", "main/sp-[a-e]*", "main/signal*", "main/warnings*", "main/get_diagnostics*", "main/user_var*", "main/cursor*"},
	{"queries", "main/union*", "main/group_by*", "main/having*", "main/null*", "main/cte_n*", "main/limit*", "main/distinct*", "main/metadata*", "main/intersect*", "main/except*", "main/order_by_*"},
	{"suites", "suite/json/t/*", "suite/versioning/t/*", "suite/period/t/*", "suite/gcol/t/*", "suite/vcol/t/*", "suite/sql_sequence/*"},
}

// mysqltestLeftOut are what a file's name or text has that is not played: servers that restart, have a log or replicate, tests for an hour, one that drops a table of the server's own, and one that waits
// for tables of MyISAM as no other engine does. MariaDB 10.11 crashes in main/view (docs/reference/limits.md).
var mysqltestLeftOut = regexp.MustCompile(`(?i)restart_mysqld|shutdown_server|kill_mysqld|have_debug|debug_sync|master-slave|rpl_init|have_log_bin|have_binlog|big_test|have_archive|` +
	`main/(drop|view|sp-lock|sp-threads|lock_multi)\.test`)

// mysqltestVaries is what two servers print otherwise: the names of temporary files.
var mysqltestVaries = regexp.MustCompile(`/tmp[0-9A-Za-z_]{6}\b`)

// forgetAll brings a server of tests back to where it began: databases, accounts and settings.
const forgetAll = `EXECUTE IMMEDIATE "BEGIN NOT ATOMIC
DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
FOR p IN (SELECT id FROM information_schema.PROCESSLIST WHERE id <> CONNECTION_ID() AND user <> 'system user' AND command <> 'Daemon') DO KILL p.id; END FOR;
SET foreign_key_checks = 0;
FOR d IN (SELECT schema_name n FROM information_schema.SCHEMATA WHERE schema_name NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys', 'mtr'))
	DO EXECUTE IMMEDIATE CONCAT('DROP DATABASE ` + "`" + `', d.n, '` + "`" + `'); END FOR;
FOR u IN (SELECT user u, host h FROM mysql.global_priv WHERE user NOT IN ('root', 'mariadb.sys', 'mysql', 'PUBLIC')) DO EXECUTE IMMEDIATE CONCAT('DROP USER ', QUOTE(u.u), '@', QUOTE(u.h)); END FOR;
FOR g IN (SELECT n, s.v v FROM mtr.settings s JOIN information_schema.GLOBAL_VARIABLES ON n = variable_name WHERE NOT variable_value <=> s.v)
	DO EXECUTE IMMEDIATE CONCAT('SET GLOBAL ', g.n, ' = ', IF(g.v REGEXP '^[0-9.]+$', g.v, QUOTE(g.v))); END FOR;
END"`

// mysqltests are the parts of MariaDB's own tests.
func mysqltests() (list []suite) {
	for _, part := range mysqltestParts {
		list = append(list, mysqltest(part[0], part[1:]))
	}
	return list
}

// mysqltest is a part of MariaDB's own tests as mysqltest plays them, one file after the other, and on behind an error. A test passes if what it prints is what the direct
// run printed, byte by byte; where two direct runs differ, or a file does not end, it is skipped.
func mysqltest(part string, patterns []string) suite {
	return suite{
		name: "MariaDB 10.11 tests, " + part, engine: "mariadb",
		settings: map[string]string{"character_set_server": "latin1", "collation_server": "latin1_swedish_ci", "log_bin_trust_function_creators": "1", "local_infile": "1", "use_stat_tables": "preferably",
			"histogram_type": "json_hb", "sort_buffer_size": "256K", "skip_name_resolve": "0"},
		get: func(context.Context, string) error {
			_, err := os.Stat(mysqlTests)
			return err
		},
		run: func(ctx context.Context, folder string, at place, only []string) (outcomes, error) {
			for _, dir := range []string{filepath.Join(folder, at.mode), filepath.Join(folder, "vardir", "tmp")} {
				if err := os.MkdirAll(dir, 0o777); err != nil {
					return nil, err
				}
			}
			if err := at.prepare(ctx, "CREATE OR REPLACE USER root@localhost", "GRANT ALL ON *.* TO root@localhost WITH GRANT OPTION", "DROP USER root@'%'", "CREATE DATABASE mtr",
				"CREATE TABLE mtr.settings SELECT variable_name n, variable_value v FROM information_schema.GLOBAL_VARIABLES", "CREATE PROCEDURE mtr.add_suppression(p TEXT) SET @p = p",
				"USE mysql", "source /usr/share/mysql/mysql_test_data_timezone.sql"); err != nil {
				return nil, err
			}
			at.password = "" // of tests' sessions
			r := outcomes{}
			for _, pattern := range patterns {
				files, err := filepath.Glob(filepath.Join(mysqlTests, pattern+".test"))
				if err != nil {
					return nil, err
				}
				for _, file := range files {
					name := strings.TrimSuffix(strings.ReplaceAll(strings.TrimPrefix(file, mysqlTests+"/"), "/", "."), ".test")
					if r[name] != "" || only != nil && !slices.Contains(only, name) {
						continue
					}
					if r[name], err = at.mysqltest(ctx, folder, file, name); err != nil {
						return nil, err
					}
					if r[name] == "" {
						delete(r, name)
					}
				}
			}
			return r, nil
		},
	}
}

// mysqltest plays a file, and compares what it prints with what it printed directly. It gives "" for one that is left out.
func (p place) mysqltest(ctx context.Context, folder, file, name string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil || mysqltestLeftOut.MatchString(file) || mysqltestLeftOut.Match(text) {
		return "", err
	}
	runs := []string{filepath.Join(folder, p.mode, name+".out")}
	direct, again := filepath.Join(folder, modes[0], name+".out"), filepath.Join(folder, modes[0], name+".again")
	if p.mode == modes[0] {
		runs = append(runs, again)
	}
	for _, out := range runs {
		if err := p.prepare(ctx, forgetAll); err != nil {
			return "", err
		}
		if err := os.RemoveAll(filepath.Join(p.direct.Folder(), "data", "test")); err != nil { // files of SELECT INTO OUTFILE, which DROP DATABASE leaves
			return "", err
		}
		if err := p.prepare(ctx, "CREATE DATABASE IF NOT EXISTS test"); err != nil {
			return "", err
		}
		printed, err := p.playMysqltest(ctx, filepath.Join(folder, "vardir"), file)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(out, printed, 0o644); err != nil {
			return "", err
		}
	}
	var printed [3][]byte
	for i, out := range []string{runs[0], direct, again} {
		if printed[i], err = os.ReadFile(out); err != nil {
			return "", err
		}
	}
	switch {
	case !bytes.Equal(printed[1], printed[2]) || bytes.HasSuffix(printed[1], []byte("skipped\n")) || bytes.HasSuffix(printed[1], []byte(notEnded)):
		return skipped, nil
	case !bytes.Equal(printed[0], printed[1]):
		return failed, nil
	}
	return passed, nil
}

// playMysqltest gives what mysqltest prints, without what is the server's own: ports, folders.
func (p place) playMysqltest(ctx context.Context, vardir, file string) ([]byte, error) {
	within, cancel := context.WithTimeout(ctx, testLimit)
	defer cancel()
	to := []string{"--no-defaults", "--protocol=tcp", "--host=" + p.host, fmt.Sprintf("--port=%d", p.port), "--user=" + p.user, "--skip-ssl"}
	cmd := exec.CommandContext(within, "mariadb-test", append(slices.Clone(to), "--database=test", "--tmpdir="+filepath.Join(vardir, "tmp"), "--logdir="+vardir, "--test-file="+file, "--tail-lines=0", "--continue-on-error")...)
	client := func(name, program string) string { return name + "=" + program + " " + strings.Join(to, " ") }
	cmd.Dir = mysqlTests
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=MET", "MYSQL_TEST_DIR="+mysqlTests, "MYSQLTEST_VARDIR="+vardir, "MYSQL_TMP_DIR="+filepath.Join(vardir, "tmp"), fmt.Sprintf("MASTER_MYPORT=%d", p.port),
		"MASTER_MYSOCK=/none", "MYSQL_TEST_ROOT=", "DEFAULT_MASTER_PORT=3306", "MYSQL_CHARSETSDIR=/usr/share/mysql/charsets", "SECURE_LOAD_PATH="+mysqlTests+"/std_data", "MYSQLD_DATADIR="+filepath.Join(p.direct.Folder(), "data"),
		client("MYSQL", "mariadb"), client("MYSQL_DUMP", "mariadb-dump"), client("MYSQL_CHECK", "mariadb-check"), client("MYSQL_SHOW", "mariadb-show"), client("MYSQLADMIN", "mariadb-admin"), client("MYSQL_IMPORT", "mariadb-import"))
	cmd.WaitDelay = time.Second
	out, _ := cmd.CombinedOutput() // it fails where a test does
	if ctx.Err() != nil {
		return nil, fmt.Errorf("mysqltest did not end %s in time: %w", file, ctx.Err())
	}
	if within.Err() != nil {
		out = append(out, notEnded...)
	}
	for what, name := range map[string]string{fmt.Sprint(p.port): "PORT", fmt.Sprint(p.direct.Port): "PORT", p.direct.Folder(): "FOLDER"} {
		out = bytes.ReplaceAll(out, []byte(what), []byte(name))
	}
	return mysqltestVaries.ReplaceAll(out, []byte("/tmpN")), cmp.Or(os.RemoveAll(filepath.Join(vardir, "tmp")), os.MkdirAll(filepath.Join(vardir, "tmp"), 0o777), os.Chmod(filepath.Join(vardir, "tmp"), 0o777))
}
