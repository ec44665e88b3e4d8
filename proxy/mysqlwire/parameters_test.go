package mysqlwire_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/internal/testserver"
)

// bindSetup makes the table that bound values are compared with, assigned and inserted.
var bindSetup = []string{
	"SET timestamp=1700000000",
	"CREATE TABLE p (id INT PRIMARY KEY, i INT, b BIGINT UNSIGNED, v VARCHAR(20), d DECIMAL(10,2), f DOUBLE, dt DATETIME(6), da DATE, ti TIME, y YEAR, bl BLOB, e ENUM('x','y'), KEY (i), KEY (v)) STATS_AUTO_RECALC=0",
	"INSERT INTO p VALUES (1,1,1,'a',1.5,0.5,'2020-01-01 00:00:00','2020-01-01','10:00:00',2020,'text','x'),(2,-1,18446744073709551615,'1',-1,1e10,'1999-12-31 23:59:59.5','1999-12-31','-10:00:00',1999,NULL,NULL),(3,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'','y')",
	"ANALYZE TABLE p", "SELECT 1 FROM p a, p b, p c, p d LIMIT 0",
}

// bindStatements have ? where a value is bound. COLUMN is one of the table's columns. MariaDB 10.11.19 crashes at some values of LIMIT ?.
var bindStatements = []string{
	"SELECT ?", "SELECT ?, ? + 1, CONCAT(?)", "SELECT * FROM p WHERE COLUMN = ?", "SELECT id, COLUMN FROM p WHERE COLUMN >= ? ORDER BY id", "SELECT id FROM p WHERE COLUMN IN (?, ?) ORDER BY id", "SELECT id, d FROM p WHERE id BETWEEN ? AND ? ORDER BY id",
	"SELECT COUNT(*), SUM(i) FROM p WHERE COLUMN <> ?", "SELECT COLUMN, COUNT(*) FROM p WHERE id > ? GROUP BY COLUMN", "SELECT d, ? FROM p WHERE id = ? FOR UPDATE", "SELECT EXISTS (SELECT 1 FROM p WHERE COLUMN = ?)", "SELECT DISTINCT COLUMN FROM p WHERE id <> ?",
	"INSERT INTO p (id, COLUMN) VALUES (?, ?)", "INSERT IGNORE INTO p (id, COLUMN) VALUES (?, ?), (9, ?)", "INSERT INTO p (id, v) VALUES (1, ?) ON DUPLICATE KEY UPDATE v = ?",
	"UPDATE p SET COLUMN = ? WHERE id = ?", "UPDATE p SET v = ?, i = ? WHERE COLUMN = ?", "DELETE FROM p WHERE COLUMN = ?", "SET @x = ?", "DO ?",
}

// bound makes the value of a parameter: its type, and its bytes.
func (g *dice) bound() (kind []byte, value []byte) {
	kinds := []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 245, 246, 247, 248, 249, 250, 251, 252, 253, 254, 255}
	k := kinds[g.IntN(len(kinds))]
	if g.mysql { // which takes executions with other types, and with a NULL that is none, for malformed, see docs/reference/limits.md
		kinds = slices.DeleteFunc(kinds, func(k byte) bool { return k == 6 || k > 12 && k != 15 && k < 249 && k != 245 && k != 246 || k == 255 })
		k = kinds[g.IntN(len(kinds))]
	} else if g.chance(3) {
		k = []byte{14, 17, 18, 19, 20, 100, 242, 243, 244}[g.IntN(9)] // of the server's own, or of nobody
	}
	kind = []byte{k, 0}
	if g.chance(30) {
		kind[1] = 0x80 // unsigned
	}
	number := []int64{0, 1, 2, 3, -1, 127, 128, 255, 32768, math.MaxInt32, math.MinInt64, math.MaxInt64, 2020}[g.IntN(13)]
	switch k {
	case 1, 244:
		return kind, []byte{byte(number)}
	case 2, 13:
		return kind, binary.LittleEndian.AppendUint16(nil, uint16(number))
	case 3, 9:
		return kind, binary.LittleEndian.AppendUint32(nil, uint32(number))
	case 8:
		return kind, binary.LittleEndian.AppendUint64(nil, uint64(number))
	case 4:
		return kind, binary.LittleEndian.AppendUint32(nil, math.Float32bits([]float32{0, 0.5, -1, 1e30, float32(math.Inf(1))}[g.IntN(5)]))
	case 5:
		return kind, binary.LittleEndian.AppendUint64(nil, math.Float64bits([]float64{0, 0.5, -1, 1e10, 1e300, math.NaN()}[g.IntN(6)]))
	case 6:
		return kind, nil
	case 7, 10, 12:
		whole := []byte{11, 0xe4, 7, 1, 1, 10, 20, 30, 0x40, 0xe2, 1, 0}
		return kind, g.moment(whole, 0, 4, 7, 11)
	case 11:
		whole := []byte{12, byte(g.IntN(2)), 1, 0, 0, 0, 10, 20, 30, 0x40, 0xe2, 1, 0}
		return kind, g.moment(whole, 0, 8, 12)
	}
	return kind, mysql.PutLengthEncodedString([]byte(g.one("", "1", "a", "1.5", "2020-01-01", "x", "10:00:00", "\xff\x00'\\", "1e10", "it's", strings.Repeat("long", 100))))
}

// moment cuts a time to one of its lengths. Some times are none.
func (g *dice) moment(whole []byte, sizes ...int) []byte {
	size := sizes[g.IntN(len(sizes))]
	out := slices.Clone(whole[:1+size])
	out[0] = byte(size)
	if size > 0 && !g.mysql && g.chance(10) { // MySQL takes it for a malformed packet, of which it keeps the errors of earlier commands
		out[1+g.IntN(size)] = 99
	}
	return out
}

// execution makes what stands behind the iterations of COM_STMT_EXECUTE: NULLs, whether types follow, types, values but those that came as long data.
func (g *dice) execution(params int, types [][]byte, long map[int]bool) (body []byte, bound [][]byte) {
	if params == 0 {
		return nil, nil
	}
	again := len(types) == params && !g.mysql && g.chance(30) // with the types of before, which MySQL itself may have forgotten
	nulls := make([]byte, (params+7)/8)
	var values []byte
	for i := range params {
		kind, value := g.bound()
		for again && kind[0] != types[i][0] {
			kind, value = g.bound()
		}
		bound = append(bound, kind)
		if long[i] {
			kind[0] = mysql.MYSQL_TYPE_BLOB
			again = again && types[i][0] == mysql.MYSQL_TYPE_BLOB
		} else if g.chance(15) {
			nulls[i/8] |= 1 << (i % 8)
		} else {
			values = append(values, value...)
		}
	}
	if again {
		return append(append(nulls, 0), values...), types
	}
	return slices.Concat(nulls, []byte{1}, slices.Concat(bound...), values), bound
}

// bindActs makes a session of prepared statements whose parameters have all types, with long data and cursors.
func bindActs(g *dice, n int) (acts []act) {
	for _, sql := range bindSetup {
		acts = append(acts, act{cmd: mysql.COM_QUERY, text: sql})
	}
	var params [slots]int
	var types [slots][][]byte
	var cursor [slots]byte
	var long [slots]map[int]bool
	for i := range n {
		a := act{slot: g.IntN(slots)}
		switch k := g.IntN(100); {
		case k < 25 || i < slots:
			a.cmd = mysql.COM_STMT_PREPARE
			if i < slots {
				a.slot = i
			}
			sql := bindStatements[g.IntN(len(bindStatements))]
			for g.mysql && strings.HasPrefix(sql, "DELETE") { // see docs/reference/limits.md: a text that is no number
				sql = bindStatements[g.IntN(len(bindStatements))]
			}
			a.text = strings.ReplaceAll(sql, "COLUMN", g.one("i", "b", "v", "d", "f", "dt", "da", "ti", "y", "bl", "e"))
			params[a.slot], types[a.slot], cursor[a.slot], long[a.slot] = strings.Count(sql, "?"), nil, 0, nil
			if strings.HasPrefix(sql, "SELECT") && g.chance(40) {
				cursor[a.slot] = []byte{1, 1, 1, 2, 4, 8, 9, 0x80}[g.IntN(8)]
			}
		case k < 70:
			a.cmd = mysql.COM_STMT_EXECUTE
			// MySQL 9.7.4 does not end its answer to some executions without a cursor behind one with a cursor.
			if a.flags = cursor[a.slot]; !g.mysql && g.chance(20) {
				a.flags = 0
			}
			body, bound := g.execution(params[a.slot], types[a.slot], long[a.slot])
			types[a.slot], long[a.slot] = bound, nil
			a.text = string(body)
		case k < 76:
			a.cmd, a.text, a.params = mysql.COM_STMT_SEND_LONG_DATA, g.one("", "long", "1", "2020-01-01"), []any{g.IntN(3)}
			if g.mysql { // long data for no parameter spoils the statement there, too, but only as the server has it prepared
				a.params[0] = g.IntN(max(1, params[a.slot]))
			}
			if !g.mysql && types[a.slot] != nil { // MariaDB 10.11.19 crashes if the parameter had another type before
				continue
			}
			if long[a.slot] == nil {
				long[a.slot] = map[int]bool{}
			}
			long[a.slot][a.number(0)] = true
		case k < 84:
			a.cmd = mysql.COM_STMT_FETCH
			a.params = []any{[]int{0, 1, 2, 100}[g.IntN(4)]}
		case k < 87:
			a.cmd = g.command(mysql.COM_STMT_RESET, mysql.COM_STMT_CLOSE)
			if g.mysql { // it keeps the error of an unknown statement in front of that of an execution behind it, unless something is prepared meanwhile
				a.cmd = mysql.COM_STMT_RESET
			}
			long[a.slot] = nil
		default:
			a.cmd = mysql.COM_QUERY
			a.text = g.one("SHOW WARNINGS", "SELECT * FROM p ORDER BY id", "SELECT @x", "BEGIN", "COMMIT", "ROLLBACK", "SET sql_mode=''", "SET sql_mode=DEFAULT", "SELECT ROW_COUNT()", "ALTER TABLE p ADD extra INT", "ALTER TABLE p DROP extra")
			if g.mysql && strings.HasPrefix(a.text, "ALTER") { // see docs/reference/limits.md: the name of a type in an error
				a.text = "SELECT COUNT(*) FROM p"
			}
		}
		acts = append(acts, a)
	}
	for _, sql := range []string{"ROLLBACK", "SELECT * FROM p ORDER BY id"} {
		acts = append(acts, act{cmd: mysql.COM_QUERY, text: sql})
	}
	return acts
}

// TestParametersAlike plays sessions of prepared statements directly and through the proxy, with the flags of TestAlike.
func TestParametersAlike(t *testing.T) {
	if testserver.IsTiDB() {
		t.Skip("TestDifferentialOnTiDB has its prepared statements")
	}
	ways, at := allWays(t)
	until := time.Now().Add(*alikeFor)
	played, noise := 0, 0
	for seed := *alikeSeed; time.Now().Before(until) || *alikeFor == 0 && seed < *alikeSeed+uint64(*alikeRuns); seed++ {
		played++
		caps := alikeCaps(seed)
		if testserver.IsMySQL() {
			caps &^= uint64(mysql.CLIENT_SESSION_TRACK) // see docs/reference/limits.md: a definition that fails
		}
		acts := bindActs(&dice{Rand: rand.New(rand.NewPCG(seed, 1)), mysql: testserver.IsMySQL()}, 60)
		want := at(0, caps, acts)
		if strings.HasSuffix(want[len(want)-1], os.ErrDeadlineExceeded.Error()) {
			t.Logf("-alike-seed %d: the server does not end its answer to %v", seed, acts[:len(want)][max(0, len(want)-8):])
		}
		if strings.HasSuffix(want[len(want)-1], os.ErrDeadlineExceeded.Error()) || !slices.Equal(want, at(0, caps, acts)) { // the server never ends its answer, or does not repeat it
			noise++
			continue
		}
		for way := 1; way < len(ways); way++ {
			if slices.Equal(want, at(way, caps, acts)) {
				continue
			}
			begin := acts[:len(bindSetup):len(bindSetup)]
			differs := func(list []act) bool {
				list = append(begin, list...)
				return !slices.Equal(at(0, caps, list), at(way, caps, list))
			}
			short := acts[len(begin):]
			if !differs(short) {
				t.Logf("-alike-seed %d, %s: only once", seed, ways[way].name)
				noise++
				continue
			}
			short = append(begin, shorten(short, differs)...)
			t.Errorf("-alike-seed %d, capabilities %#x, %s:\n%s", seed, caps, ways[way].name, story(short, at(0, caps, short), at(way, caps, short), false))
		}
	}
	t.Log(fmt.Sprint(played, " sessions, ", noise, " of them not the same directly or only once"))
}

// TestTypesOfBefore executes without types behind an execution that the server refused: it may have kept those of before. The statement deletes, so that wirecheck
// executes another one of the server's.
func TestTypesOfBefore(t *testing.T) {
	if testserver.IsMySQL() || testserver.IsTiDB() {
		t.Skip("the types that are kept are MariaDB's")
	}
	prepare := act{cmd: mysql.COM_STMT_PREPARE, text: "DELETE FROM p WHERE i = ?"}
	execute := func(body string) act { return act{cmd: mysql.COM_STMT_EXECUTE, text: body} }
	q := func(sql string) act { return act{cmd: mysql.COM_QUERY, text: sql} }
	number, text, unknown, again := execute("\x00\x01\x03\x00\x05\x00\x00\x00"), execute("\x00\x01\xfd\x00\x011"), execute("\x00\x01\xf5\x00\x011"), execute("\x00\x00\x01\x00\x00\x00")
	long := func(param int) act {
		return act{cmd: mysql.COM_STMT_SEND_LONG_DATA, text: "1", params: []any{param}}
	}
	ways, at := allWays(t)
	for name, acts := range map[string][]act{
		"a type that is not known":        {prepare, number, unknown, again},
		"the first type is not known":     {prepare, unknown, again, number, again},
		"a type that is known":            {prepare, number, text, execute("\x00\x00\x011")},
		"long data of no parameter":       {prepare, number, long(1), text, {cmd: mysql.COM_STMT_RESET}, again},
		"long data of the parameter":      {prepare, long(0), execute("\x00\x01\xfc\x00"), execute("\x00\x00\x011"), {cmd: mysql.COM_STMT_RESET}, execute("\x00\x00\x011")},
		"a cursor of a locking statement": {{cmd: mysql.COM_STMT_PREPARE, text: "SELECT d FROM p WHERE id > ? FOR UPDATE"}, {cmd: mysql.COM_STMT_EXECUTE, text: "\x00\x01\x03\x00\x00\x00\x00\x00", flags: 1}, {cmd: mysql.COM_STMT_FETCH, params: []any{1}}, {cmd: mysql.COM_STMT_FETCH, params: []any{9}}, {cmd: mysql.COM_STMT_FETCH}},
	} {
		var session []act
		for _, sql := range bindSetup {
			session = append(session, q(sql))
		}
		session = append(append(session, acts...), q("SELECT id FROM p ORDER BY id"))
		want := at(0, baseCaps, session)
		for way := 1; way < len(ways); way++ {
			if got := at(way, baseCaps, session); !slices.Equal(want, got) {
				t.Errorf("%s, %s:\n%s", name, ways[way].name, story(session, want, got, true))
			}
		}
	}
}
