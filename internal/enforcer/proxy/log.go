package proxy

import (
	"bytes"
	"io"
	"log"
	"log/slog"
)

// serverLog passes on what http.Server has to say that is the operator's business:
// panics, and connections that cannot be accepted. The rest is about single
// clients and quotes them.
func serverLog(logger *slog.Logger) *log.Logger {
	return log.New(logWriter{logger}, "", 0)
}

// discardLog keeps ReverseProxy quiet; failures are told to the Observer.
func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }

// logWriter receives one call for each line of http.Server.
type logWriter struct{ logger *slog.Logger }

// Write picks the lines by how they begin, which is all there is to tell them
// apart.
func (w logWriter) Write(line []byte) (int, error) {
	text := bytes.TrimSpace(line)
	switch {
	case bytes.HasPrefix(text, []byte("http: panic serving")), bytes.HasPrefix(text, []byte("http2: panic serving")):
		// The panic's value, on the first line, may quote the request.
		_, stack, _ := bytes.Cut(text, []byte("\n"))
		w.logger.Error("panic while serving a request", "stack", string(stack))
	case bytes.HasPrefix(text, []byte("http: Accept error")):
		w.logger.Warn("cannot accept connections", "error", string(text))
	}
	return len(line), nil
}
