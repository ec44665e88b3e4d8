package mariadb

import (
	"context"
	"wirecheck/backends/engine"
)

func Watch(ctx context.Context, t engine.Target) (engine.Watcher, error) { return nil, nil }
