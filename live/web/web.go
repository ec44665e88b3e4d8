// Package web serves what a running proxy finds: the page of its findings, which goes on as they come, metrics for Prometheus, whether the
// proxy lives, and profiles of it. It reads what the proxy counts anyway, when it is asked, and changes nothing.
package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"

	"wirecheck/live"
	"wirecheck/report/page"
)

// Options are what a server serves.
type Options struct {
	Address string // host and port
	Status  func() live.Status
	// Document makes the page of the findings.
	Document func(live.Status) page.Document
	// Explained says that reasons are counted for statements that were not seen exactly.
	Explained bool
	Log       zerolog.Logger
	Now       func() time.Time
}

// Server serves over HTTP.
type Server struct {
	o        Options
	socket   net.Listener
	began    time.Time
	loopback bool
	draining <-chan struct{}

	mu     sync.Mutex // guards what follows
	status live.Status
	asked  time.Time // when it was
}

const (
	fresh       = time.Second // how old a status may be that is shown
	patience    = 10 * time.Second
	maxFindings = 1000 // on the page
)

// Listen opens the socket, and says so if other machines can reach it.
func Listen(ctx context.Context, o Options) (*Server, error) {
	var lc net.ListenConfig
	socket, err := lc.Listen(ctx, "tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("serve the findings: %w", err)
	}
	s := &Server{o: o, socket: socket, began: o.Now()}
	at, ok := socket.Addr().(*net.TCPAddr)
	s.loopback = ok && at.IP.IsLoopback()
	if !s.loopback {
		o.Log.Warn().Stringer("address", socket.Addr()).Msg("other machines can reach the page: it shows statements with their values to everyone who asks")
	}
	o.Log.Info().Str("page", "http://"+socket.Addr().String()+"/").Msg("serving the findings")
	return s, nil
}

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.socket.Addr() }

// Close ends a server that does not serve.
func (s *Server) Close() error { return s.socket.Close() }

// Serve serves until ctx ends. The proxy is not ready any more from the moment that draining says so.
func (s *Server) Serve(ctx context.Context, draining <-chan struct{}) error {
	s.draining = draining
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: patience, ReadTimeout: patience, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 16}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), fresh)
		defer cancel()
		stopped <- errors.Join(server.Shutdown(closing), server.Close())
	}()
	if err := server.Serve(s.socket); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-stopped // a client that holds its connection is no error
	return nil
}

func (s *Server) handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics{s}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page)
	mux.HandleFunc("GET /state", s.state)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", s.ready)
	for path, profile := range map[string]http.HandlerFunc{"": pprof.Index, "cmdline": pprof.Cmdline, "profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace} {
		mux.HandleFunc("GET /debug/pprof/"+path, func(w http.ResponseWriter, r *http.Request) {
			if !fromHere(r) {
				http.Error(w, "profiles are for this machine alone", http.StatusForbidden)
				return
			}
			profile(w, r)
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A page of elsewhere that gives its own name this machine's address must not read here.
		if s.loopback && !local(r.Host) {
			http.Error(w, "this address is for this machine alone", http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Content-Security-Policy", "frame-ancestors 'none'")
		mux.ServeHTTP(w, r)
	})
}

// local reports whether a request names this machine.
func local(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

func fromHere(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}

// now is the status, at most a second old, however many ask.
func (s *Server) now() live.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.o.Now(); s.asked.IsZero() || now.Sub(s.asked) >= fresh {
		s.status = s.o.Status()
		s.asked = now
	}
	return s.status
}

func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	select {
	case <-s.draining:
		http.Error(w, "the proxy ends", http.StatusServiceUnavailable)
		return
	default:
	}
	if why := s.now().Coverage.Broken; why != "" {
		http.Error(w, "judging has ended: "+why, http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}

func (s *Server) page(w http.ResponseWriter, _ *http.Request) {
	status := s.now()
	s.write(w, "text/html; charset=utf-8", func(b *bytes.Buffer) error {
		return page.WriteLive(b, s.document(status), s.live(status))
	})
}

// state says what is new to a page that has the first findings already.
func (s *Server) state(w http.ResponseWriter, r *http.Request) {
	have, err := strconv.Atoi(r.URL.Query().Get("have"))
	if err != nil || have < 0 {
		http.Error(w, "have: expected a number", http.StatusBadRequest)
		return
	}
	status := s.now()
	s.write(w, "application/json", func(b *bytes.Buffer) error {
		return page.Update(b, s.document(status), s.live(status), have)
	})
}

func (s *Server) write(w http.ResponseWriter, kind string, do func(*bytes.Buffer) error) {
	var b bytes.Buffer
	if err := do(&b); err != nil {
		s.o.Log.Error().Err(err).Msg("the page cannot be made")
		http.Error(w, "the page cannot be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(b.Bytes()) // who is gone is gone
}

// document is the page of the findings; of very many it has the first ones.
func (s *Server) document(status live.Status) page.Document {
	left := len(status.Findings) - maxFindings
	if left > 0 {
		status.Findings = status.Findings[:maxFindings]
	}
	d := s.o.Document(status)
	if left > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("%d more are not on this page: --report and --stream have all", left))
	}
	return d
}
