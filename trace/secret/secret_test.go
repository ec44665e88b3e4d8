package secret

import (
	"strings"
	"testing"

	"wirecheck/trace/lex"
)

// TestSQL: "hush" is the secret wherever it stands.
func TestSQL(t *testing.T) {
	my, pg := lex.MySQL, lex.PostgreSQL
	for _, tt := range []struct {
		d         lex.Dialect
		sql, want string
	}{
		{pg, "CREATE ROLE a LOGIN PASSWORD 'hush'", "CREATE ROLE a LOGIN PASSWORD '***'"},
		{pg, "create user a with encrypted password 'hush' valid until '2030-01-01'", "create user a with encrypted password '***' valid until '2030-01-01'"},
		{pg, "ALTER ROLE a PASSWORD E'hu\\'hush'", "ALTER ROLE a PASSWORD '***'"},
		{pg, "ALTER USER a PASSWORD $$hush$$; SELECT 'b'", "ALTER USER a PASSWORD '***'; SELECT 'b'"},
		{pg, "ALTER USER a PASSWORD 'SCRAM-SHA-256$4096:hush=$hush:hush'", "ALTER USER a PASSWORD '***'"},
		{pg, "alter role a passwrod 'hush'", "alter role a passwrod '***'"},
		{pg, "ALTER ROLE a PASSWORD hush", "ALTER ROLE a PASSWORD '***'"},
		{pg, `ALTER ROLE a PASSWORD "hush"`, "ALTER ROLE a PASSWORD '***'"},
		{pg, "ALTER ROLE a /* hush */ PASSWORD -- hush\n 'hush", "ALTER ROLE a /* *** */ PASSWORD /* *** */\n '***'"},
		{pg, "SELECT 1; ALTER ROLE a PASSWORD U&'hush'", "SELECT 1; ALTER ROLE a PASSWORD '***'"},
		{pg, "SELECT ((; ALTER ROLE a PASSWORD 'hush'", "SELECT ((; ALTER ROLE a PASSWORD '***'"},
		{pg, "SELECT ( x ALTER ROLE a PASSWORD 'hush'", "SELECT ( x ALTER ROLE a PASSWORD '***'"},
		{pg, "DO $$ BEGIN EXECUTE 'ALTER ROLE a PASSWORD ''hush'''; END $$", "DO $$ BEGIN EXECUTE 'ALTER ROLE a PASSWORD ''***'''; END $$"},
		{pg, "/* ALTER ROLE a PASSWORD 'hush' */ SELECT 'b'", "/* ALTER ROLE a PASSWORD '***' */ SELECT 'b'"},
		{pg, "CREATE USER MAPPING FOR a SERVER s OPTIONS (user 'b', password 'hush')", "CREATE USER MAPPING FOR a SERVER s OPTIONS (user 'b', password '***')"},
		{pg, "CREATE SUBSCRIPTION s CONNECTION 'host=h password=hush' PUBLICATION p", "CREATE SUBSCRIPTION s CONNECTION '***' PUBLICATION p"},
		{pg, "SELECT dblink_connect('c', 'host=h password=hush dbname=d')", "SELECT dblink_connect('c', 'host=h password=*** dbname=d')"},
		{pg, "SELECT * FROM dblink('password=''hush it''', 'SELECT 1') t(a int)", "SELECT * FROM dblink('password=***', 'SELECT 1') t(a int)"},
		{pg, "SELECT f('host=h user=u password=hush')", "SELECT f('host=h user=u password=***')"},
		{pg, "SELECT f('postgres://u:hush@h/d?sslpassword=hush&x=1')", "SELECT f('postgres://u:***@h/d?sslpassword=***&x=1')"},
		{pg, "ALTER SYSTEM SET primary_conninfo = 'host=h password=hush'", "ALTER SYSTEM SET primary_conninfo = 'host=h password=***'"},
		{my, "CREATE USER 'a'@'%' IDENTIFIED BY 'hush'", "CREATE USER 'a'@'%' IDENTIFIED BY '***'"},
		{my, "CREATE OR REPLACE USER a IDENTIFIED BY \"hush\", 'b'@'h' IDENTIFIED BY 'hush'", "CREATE OR REPLACE USER a IDENTIFIED BY '***', 'b'@'h' IDENTIFIED BY '***'"},
		{my, "ALTER USER a IDENTIFIED WITH caching_sha2_password BY 'hush' REPLACE 'hush'", "ALTER USER a IDENTIFIED WITH caching_sha2_password BY '***' REPLACE '***'"},
		{my, "ALTER USER a IDENTIFIED WITH p AS 0x68757368", "ALTER USER a IDENTIFIED WITH p AS '***'"},
		{my, "ALTER USER a IDENTIFIED VIA ed25519 USING PASSWORD('hush') OR p USING 'hush'", "ALTER USER a IDENTIFIED VIA ed25519 USING PASSWORD('***') OR p USING '***'"},
		{my, "GRANT ALL ON *.* TO 'a'@'%' IDENTIFIED BY PASSWORD '*hush'", "GRANT ALL ON *.* TO 'a'@'%' IDENTIFIED BY PASSWORD '***'"},
		{my, "SET PASSWORD FOR 'a'@'h' = PASSWORD('hush')", "SET PASSWORD FOR 'a'@'h' = PASSWORD('***')"},
		{my, "SET PASSWORD FOR a = 'hush'", "SET PASSWORD FOR a = '***'"},
		{my, "SET PASSWORD FOR `a` = 'hush'", "SET PASSWORD FOR `a` = '***'"},
		{my, "SET PASSWORD FOR 'a' = 'hush'", "SET PASSWORD FOR 'a' = '***'"},
		{my, "SET PASSWORD = 'hush'", "SET PASSWORD = '***'"},
		{my, "set global x = 1, password = 'hush'", "set global x = 1, password = '***'"},
		{my, "CHANGE MASTER TO MASTER_HOST='h', MASTER_PASSWORD='hush'", "CHANGE MASTER TO MASTER_HOST='***', MASTER_PASSWORD='***'"},
		{my, "CHANGE REPLICATION SOURCE TO SOURCE_PASSWORD = 'hush'", "CHANGE REPLICATION SOURCE TO SOURCE_PASSWORD = '***'"},
		{my, "START SLAVE USER='u' PASSWORD='hush'", "START SLAVE USER='***' PASSWORD='***'"},
		{my, "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (USER 'u', PASSWORD 'hush')", "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (USER 'u', PASSWORD '***')"},
		{my, "CREATE TABLE t (a int) ENGINE=FEDERATED CONNECTION='mysql://u:hush@h/d/t'", "CREATE TABLE t (a int) ENGINE=FEDERATED CONNECTION='mysql://u:***@h/d/t'"},
		{my, "PREPARE s FROM 'ALTER USER a IDENTIFIED BY ''hush'''", "PREPARE s FROM 'ALTER USER a IDENTIFIED BY ''***'''"},
		{my, "SET @s = \"ALTER USER a IDENTIFIED BY 'hush'\"", "SET @s = \"ALTER USER a IDENTIFIED BY '***'\""},
		{my, "/*!50000 CREATE USER a */ /*M!100100 IDENTIFIED BY 'hush' */", "/*!50000 CREATE USER a */ /*M!100100 IDENTIFIED BY '***' */"},
		{my, "CREATE USER a IDENTIFED BY 'hush'", "CREATE USER a IDENTIFED BY '***'"},
		{my, `CREATE USER a IDENTIFIED BY 'x\' COMMENT 'hush'`, "CREATE USER a IDENTIFIED BY  ***"},
		{my, "SELECT PASSWORD('hush')", "SELECT PASSWORD('***')"},
	} {
		got := SQL(tt.sql, tt.d)
		if got.SQL != tt.want || !got.Found || strings.Contains(got.SQL, "hush") {
			t.Errorf("%s:\n got %s\nwant %s", tt.sql, got.SQL, tt.want)
		}
		upper := strings.NewReplacer("HUSH", "hush", "HU\\", "hu\\").Replace(strings.ToUpper(tt.sql))
		if got := SQL(upper, tt.d); !got.Found || strings.Contains(got.SQL, "hush") {
			t.Errorf("in capitals: %s: %s", upper, got.SQL)
		}
	}
}

// TestSQLKeeps: what an application calls a password is its own affair, and nothing else is touched.
func TestSQLKeeps(t *testing.T) {
	for _, d := range []lex.Dialect{lex.MySQL, lex.PostgreSQL} {
		for _, sql := range []string{
			"SELECT 'x'", "UPDATE users SET password = 'x' WHERE name = 'y'", "SELECT * FROM users WHERE password = 'x' AND identified = 'y'",
			"INSERT INTO users (name, password) VALUES ('a', 'b')", "CREATE TABLE users (password varchar(20) DEFAULT 'x')", "SET search_path = 'x'",
			"INSERT INTO notes VALUES ('my password is on the note', 'the password ''x''', 'identified ''x''')", "ALTER TABLE t ADD COLUMN user_password text DEFAULT 'x'",
			"SELECT 'http://host:8080/a', 'mailto:a@b'", "CREATE ROLE a", "DROP USER 'a'@'b'", "ALTER ROLE a VALID UNTIL '2030-01-01'", "ALTER USER a PASSWORD NULL", "",
			"CREATE USER 'a'@'h' PASSWORD EXPIRE INTERVAL 3 DAY", "SET password_encryption = 'scram-sha-256'", "ALTER SERVER s VERSION 2", "SELECT dblink('c', 'SELECT 1')",
			"GRANT CREATE USER ON *.* TO 'a'", "UPDATE t SET password = 'x', password_hint = 'y'",
		} {
			if got := SQL(sql, d); got.SQL != sql || got.Any() {
				t.Errorf("%s: %+v", sql, got)
			}
		}
	}
}

// TestParams: parameters in the place of secrets are told.
func TestParams(t *testing.T) {
	for sql, want := range map[string]bool{
		"ALTER USER a IDENTIFIED BY ?": true, "SET PASSWORD = ?": true, "SELECT PASSWORD(?)": true, "PREPARE s FROM 'ALTER USER a IDENTIFIED BY ?'": true,
		"SELECT dblink_connect(?, ?)": true, "UPDATE users SET password = ?": false, "SELECT ? /* password */": false, "SELECT dblink('c', 'q'), ?": false,
	} {
		if got := SQL(sql, lex.MySQL); got.Params != want {
			t.Errorf("%s: %+v", sql, got)
		}
	}
}

// TestDeep: quotes within quotes cost no more than other text.
func TestDeep(t *testing.T) {
	for _, sql := range []string{strings.Repeat("/* ", 200_000) + "password 'hush'", "SELECT " + strings.Repeat("$a$ $b$ ", 100_000) + "ALTER ROLE a PASSWORD 'hush'"} {
		if got := SQL(sql, lex.PostgreSQL); strings.Contains(got.SQL, "hush") || !got.Found {
			t.Errorf("%.30s: %d bytes, found: %v", sql, len(got.SQL), got.Found)
		}
	}
}

func TestValue(t *testing.T) {
	for s, want := range map[string]string{
		"host=h password=hush": "host=h password=***", "mysql://u:hush@h/d": "mysql://u:***@h/d", "CREATE USER `a` IDENTIFIED BY PASSWORD '*hush'": "CREATE USER `a` IDENTIFIED BY PASSWORD '***'",
		"password=strong": "password=strong", "the password 'x' of the user": "the password 'x' of the user", "http://h:80/x@y": "http://h:80/x@y",
	} {
		if got := Value(s, lex.PostgreSQL); got != want && !strings.Contains(s, "`") {
			t.Errorf("%s: got %s, want %s", s, got, want)
		}
		if got := Value(s, lex.MySQL); got != want {
			t.Errorf("%s: got %s, want %s", s, got, want)
		}
	}
}

// TestColumn: the cheap look in front of the expression leaves no name out.
func TestColumn(t *testing.T) {
	parts := []string{"passw", "PassPhrase", "secret", "SECRET", "toKen", "pwd", "Pass", "hash", "salt", "pin", "otp", "cvv", "iban", "ssn", "api_key", "privatekey", "acceſſ_Key", "ſecret", "toKen",
		"_", "a", "pi", "n", "se", "cret", "ke", "y", "api", "private", "é"}
	matched := 0
	for _, a := range parts {
		for _, b := range parts {
			for _, c := range parts {
				name := a + b + c
				if want := column.MatchString(name); Column(name) != want {
					t.Errorf("%q: got %t, want %t", name, !want, want)
				} else if want {
					matched++
				}
			}
		}
	}
	if all := len(parts) * len(parts) * len(parts); matched == 0 || matched == all {
		t.Errorf("%d of %d names are secret", matched, all)
	}
}

func BenchmarkColumn(b *testing.B) {
	for b.Loop() {
		Column("customer_id")
	}
}

func BenchmarkNothing(b *testing.B) {
	sql := strings.Repeat("SELECT a, b FROM orders WHERE user_id = 12 AND state = 'open' ", 3)
	for b.Loop() {
		SQL(sql, lex.MySQL)
	}
}
