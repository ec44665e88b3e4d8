module wirecheck

go 1.26.0

require (
	github.com/chromedp/cdproto v0.159.0 // tests: the commands that drive a browser
	github.com/chromedp/chromedp v0.23.0 // tests: a headless Chromium, which opens the pages
	github.com/coreos/go-systemd/v22 v22.7.0 // sd_notify
	github.com/go-mysql-org/go-mysql v1.14.0 // typed MySQL packets and constants at the edges of proxy/mysqlwire; logging in for the lab (backends/mysql)
	github.com/go-sql-driver/mysql v1.10.1 // our own connections to MariaDB and MySQL: backends, demo, tests
	github.com/goccy/go-yaml v1.19.2 // the configuration file: strict, errors with line and column
	github.com/google/go-cmp v0.7.0 // tests: differences that can be read
	github.com/gopacket/gopacket v1.7.5 // packet captures: files (pcap, pcapng) and the layers up to TCP
	github.com/jackc/pgproto3/v2 v2.3.3 // typed PostgreSQL messages at the edges of proxy/pgwire
	github.com/jackc/pgx/v5 v5.12.0 // our own connections to PostgreSQL: backends, demo, tests
	github.com/klauspost/compress v1.20.3 // zstd: the blocks of capture files
	github.com/pganalyze/pg_query_go/v6 v6.2.5 // PostgreSQL's own grammar (C)
	github.com/pingcap/tidb/pkg/parser v0.0.0-20260418072757-ce92298d1124 // the grammar of the MySQL family
	github.com/prometheus/client_golang v1.25.0 // metrics: what Prometheus asks a running proxy for
	github.com/rs/zerolog v1.35.1 // the log
	github.com/schollz/progressbar/v3 v3.19.1 // the progress line of a terminal
	github.com/spf13/cobra v1.10.2 // the command line, its help and completion
	github.com/spf13/pflag v1.0.9 // cobra's flags
	golang.org/x/sync v0.24.0 // errgroup: goroutines that are waited for
	golang.org/x/sys v0.49.0 // poll(2): whether a peer has ended its side of a connection; epoll(7): sessions whose bytes are only copied
	golang.org/x/term v0.47.0 // whether an output is a terminal
	google.golang.org/protobuf v1.36.12 // to compare pg_query_go's trees
	pgregory.net/rapid v1.3.0 // tests: random histories, shrunk
)

require (
	modernc.org/libc v1.79.0 // the C library that modernc.org/sqlite calls: memory and strings at its edge
	modernc.org/sqlite v1.61.1 // SQLite itself, as Go: the sqlite backend, without cgo
	olympos.io/encoding/edn v0.0.0-20201019073823-d3554ca0b0a3 // EDN: histories of Jepsen and Elle (trace/foreign)
)

require (
	github.com/nats-io/nats-server/v2 v2.15.2
	github.com/nats-io/nats.go v1.55.0
)

require (
	filippo.io/edwards25519 v1.2.0 // indirect
	github.com/andybalholm/brotli v1.2.0 // indirect
	github.com/antithesishq/antithesis-sdk-go v0.8.0-default-no-op // indirect
	github.com/apache/arrow-go/v18 v18.5.1 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/coreos/go-semver v0.3.1 // indirect
	github.com/cpuguy83/go-md2man/v2 v2.0.6 // indirect
	github.com/duckdb/duckdb-go-bindings v0.10506.0 // indirect
	github.com/duckdb/duckdb-go-bindings/lib/darwin-amd64 v0.10506.0 // indirect
	github.com/duckdb/duckdb-go-bindings/lib/darwin-arm64 v0.10506.0 // indirect
	github.com/duckdb/duckdb-go-bindings/lib/linux-amd64 v0.10506.0 // indirect
	github.com/duckdb/duckdb-go-bindings/lib/linux-arm64 v0.10506.0 // indirect
	github.com/duckdb/duckdb-go-bindings/lib/windows-amd64 v0.10506.0 // indirect
	github.com/dustin/go-humanize v1.1.0 // indirect
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/go-viper/mapstructure/v2 v2.5.0 // indirect
	github.com/goccy/go-json v0.10.5 // indirect
	github.com/google/flatbuffers v25.12.19+incompatible // indirect
	github.com/google/go-tpm v0.9.8 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/jackc/chunkreader/v2 v2.0.0 // indirect
	github.com/jackc/pgio v1.0.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/klauspost/cpuid/v2 v2.3.0 // indirect
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/minio/highwayhash v1.0.4 // indirect
	github.com/mitchellh/colorstring v0.0.0-20190213212951-d06e56a500db // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/nats-io/jwt/v2 v2.8.2 // indirect
	github.com/nats-io/nkeys v0.4.16 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	github.com/ncruces/go-strftime v1.1.0 // indirect
	github.com/parquet-go/bitpack v1.0.0 // indirect
	github.com/parquet-go/jsonlite v1.0.0 // indirect
	github.com/pierrec/lz4/v4 v4.1.25 // indirect
	github.com/pingcap/errors v0.11.5-0.20250523034308-74f78ae071ee // indirect
	github.com/pingcap/failpoint v0.0.0-20251231045439-91d91e123837 // indirect
	github.com/pingcap/log v1.1.1-0.20241212030209-7e3ff8601a2a // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0 // indirect
	github.com/prometheus/procfs v0.22.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
	github.com/russross/blackfriday/v2 v2.1.0 // indirect
	github.com/twpayne/go-geom v1.6.1 // indirect
	github.com/zeebo/xxh3 v1.1.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	go.uber.org/zap v1.27.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/exp v0.0.0-20260112195511-716be5621a96 // indirect
	golang.org/x/mod v0.42.0 // indirect
	golang.org/x/net v0.61.0 // indirect
	golang.org/x/telemetry v0.0.0-20261009151841-97e8ea77aa2a // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/time v0.16.0 // indirect
	golang.org/x/tools v0.52.0 // indirect
	golang.org/x/xerrors v0.0.0-20240903120638-7835f813f4da // indirect
	gopkg.in/natefinch/lumberjack.v2 v2.2.1 // indirect
	maragu.dev/gomponents v1.2.0 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
)

require (
	github.com/duckdb/duckdb-go/v2 v2.10506.0 // tests: executes the SQL of docs/how-to/sql.md (C++)
	github.com/parquet-go/parquet-go v0.32.0 // Parquet: histories in columns (report/columnar)
)
