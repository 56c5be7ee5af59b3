// Command demoapp is a small application to put a limiter in front of. It answers
// every path with the path and the caller's X-User-Id, and limits nothing. It does
// next to nothing for it, so that benchmarks measure what stands in front.
//
//	/healthz   ok, for probes
//	/events    a server-sent event every second, until the client goes
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:3000", "address to serve at; port 0 is any free one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := serve(ctx, *listen, os.Stdout)
	stop()
	if err != nil {
		log.Fatalf("demoapp: %v", err)
	}
}

// serve answers until ctx ends. It says its URL first.
func serve(ctx context.Context, address string, out io.Writer) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", answer)
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("/events", events)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if _, err := fmt.Fprintf(out, "http://%s\n", listener.Addr()); err != nil {
		return err
	}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func answer(w http.ResponseWriter, r *http.Request) {
	w.Header()["Content-Type"] = []string{"text/plain; charset=utf-8"}
	user := r.Header.Get("X-User-Id")
	if user == "" {
		user = "stranger"
	}
	text := make([]byte, 0, 128)
	text = append(text, "hello "...)
	text = strconv.AppendQuote(text, user)
	text = append(text, ", this is "...)
	text = strconv.AppendQuote(text, r.URL.Path)
	_, _ = w.Write(append(text, '\n'))
}

func events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 1; ; n++ {
		if _, err := fmt.Fprintf(w, "data: %d\n\n", n); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}
