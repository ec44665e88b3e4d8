package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"wirecheck/configs"
	"wirecheck/history/prose"
)

// newHealthCommand makes "wirecheck health". An image has nothing else that could ask.
func newHealthCommand(c *common) *cobra.Command {
	var limit time.Duration
	cmd := &cobra.Command{
		Use:   "health [ADDRESS]",
		Short: "Ask a running proxy whether it is ready",
		Long: `health asks a proxy that runs with --http whether it is ready, and prints the
answer. ADDRESS is what --http says (default: 127.0.0.1:9090), or a URL, as of
/healthz, which answers while the process lives.

Exit status: 0 it is ready; 1 it is not, or nobody answers; 2 the address is
none.`,
		Example: `  wirecheck health
  wirecheck health 127.0.0.1:9090 --limit 2s
  wirecheck health http://127.0.0.1:9090/healthz`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			target := "127.0.0.1:9090"
			if len(args) > 0 {
				target = args[0]
			}
			target, err := healthURL(target)
			if err != nil {
				return err
			}
			if limit <= 0 {
				return fmt.Errorf("limit %v: expected more than 0", limit)
			}
			said, ok := ready(cmd.Context(), target, limit)
			if !ok {
				fmt.Fprintf(c.stderr, "wirecheck: %s\n", said)
				return exitFound
			}
			_, err = fmt.Fprintln(c.stdout, said)
			return err
		},
	}
	cmd.Flags().DurationVar(&limit, "limit", 5*time.Second, "how long the proxy may take to answer")
	return cmd
}

// healthURL is the URL that an address stands for.
func healthURL(text string) (string, error) {
	if !strings.Contains(text, "://") {
		address, err := configs.HTTPAddress(text)
		return "http://" + address + "/readyz", err
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" || u.Host == "" || u.User != nil {
		return "", fmt.Errorf("this is no address of a proxy's page: expected one as in http://127.0.0.1:9090/readyz")
	}
	return u.String(), nil
}

// ready asks, and gives what is answered. Nobody stands between us and the proxy: HTTP_PROXY is not meant for it.
func ready(ctx context.Context, target string, limit time.Duration) (said string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return prose.Line(err.Error(), 200), false
	}
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return prose.Line(fmt.Sprintf("%s: nobody answers: %v", target, err), 300), false
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 200))
	if err != nil {
		return prose.Line(fmt.Sprintf("%s: the answer breaks off: %v", target, err), 300), false
	}
	said = prose.Line(strings.TrimSpace(string(body)), 200)
	if answer.StatusCode != http.StatusOK {
		return fmt.Sprintf("%s: not ready: %d %s", target, answer.StatusCode, said), false
	}
	return said, true
}
