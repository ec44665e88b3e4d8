package wss

// locksReads reports whether a product's SERIALIZABLE locks what a transaction reads until it ends, so that the order of the ends is
// the serial order of reads too. MySQL manual, 17.7.2.1 (SERIALIZABLE: plain SELECTs become FOR SHARE); MariaDB manual, SET TRANSACTION.
// PostgreSQL's is serializable snapshot isolation: a reader may come before a writer that committed earlier (WriteCheck, 5.4, footnote 4).
func locksReads(product string) bool { return product == "mysql" || product == "mariadb" }
