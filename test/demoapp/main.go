// Command demoapp is a small application to put a limiter in front of. It answers
// every path with the path and the caller's X-User-Id, and limits nothing.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:3000", "address to serve at")
	flag.Parse()
	server := &http.Server{Addr: *listen, Handler: http.HandlerFunc(answer), ReadHeaderTimeout: 10 * time.Second}
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		log.Print(err)
		os.Exit(1)
	}
}

func answer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	user := r.Header.Get("X-User-Id")
	if user == "" {
		user = "stranger"
	}
	_, _ = fmt.Fprintf(w, "hello %q, this is %q\n", user, r.URL.Path)
}
