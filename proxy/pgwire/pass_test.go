package pgwire_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"wirecheck/internal/testserver"
	"wirecheck/proxy"
)

func TestPassAuthentication(t *testing.T) {
	srv := testserver.Postgres(t)
	db := srv.Database(t)
	for _, mode := range []proxy.Mode{proxy.Pass, proxy.Observe} {
		r := start(t, proxy.Config{Upstream: upstream(srv), Mode: mode}, observer(&events{}))
		for _, user := range []string{testserver.App, testserver.AppMD5, testserver.AppClear, testserver.AppTrust} {
			t.Run(fmt.Sprintf("%s/%s", mode, user), func(t *testing.T) {
				conn := r.through(db).As(user).Postgres(t)
				var who string
				if err := conn.QueryRow(t.Context(), "select current_user").Scan(&who); err != nil || who != user {
					t.Fatalf("current_user = %q, %v; want %q", who, err, user)
				}
				out, err := psql(t.Context(), r.through(db).As(user), "select current_user")
				if err != nil || strings.TrimSpace(out) != user {
					t.Fatalf("psql: %q, %v", out, err)
				}
			})
		}
	}
}

func psql(ctx context.Context, d testserver.Database, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", d.URL())
	for _, a := range args {
		cmd.Args = append(cmd.Args, "-c", a)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}
