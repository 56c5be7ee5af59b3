//go:build faults

package faults

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	process "github.com/weir-dev/weir/internal/enforcer/standalone"
)

// deployment is an enforcer in front of an application, and the file that it
// takes everything from.
type deployment struct {
	t    *testing.T
	path string
	*process.Server
	told notices
}

// notices count what an enforcer logs about its file.
type notices struct {
	taken, refused atomic.Int64
	why            atomic.Pointer[string]
}

// Write implements io.Writer for lines of a log.
func (n *notices) Write(line []byte) (int, error) {
	switch {
	case bytes.Contains(line, []byte(`"policies are in force"`)):
		n.taken.Add(1)
	case bytes.Contains(line, []byte(`"policies are broken`)):
		why := string(line)
		n.why.Store(&why)
		n.refused.Add(1)
	}
	return len(line), nil
}

// deploy runs an enforcer until the test ends.
func deploy(t *testing.T, text string) *deployment {
	t.Helper()
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(app.Close)
	upstream, err := url.Parse(app.URL)
	if err != nil {
		t.Fatal(err)
	}
	d := &deployment{t: t, path: filepath.Join(t.TempDir(), "policies.yaml")}
	d.write(text)
	server, err := process.New(t.Context(), process.Config{
		Policies: []string{d.path}, Watch: true, Upstream: upstream, Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0",
		DrainTimeout: healing, Logger: slog.New(slog.NewTextHandler(&d.told, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	d.Server = server
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("run ends with %v", err)
		}
	})
	d.await("policies are in force", func() bool { return d.told.taken.Load() == 1 })
	return d
}

// write replaces the file as a whole.
func (d *deployment) write(text string) {
	d.t.Helper()
	next := d.path + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Rename(next, d.path); err != nil {
		d.t.Fatal(err)
	}
}

// put has the enforcer take a text over.
func (d *deployment) put(text string) {
	d.t.Helper()
	taken, refused := d.told.taken.Load(), d.told.refused.Load()
	d.write(text)
	d.await("the text is taken", func() bool { return d.told.taken.Load() > taken || d.told.refused.Load() > refused })
	if d.told.refused.Load() > refused {
		d.t.Fatalf("the enforcer refuses a good text: %s", *d.told.why.Load())
	}
}

// putBroken has the enforcer refuse a text.
func (d *deployment) putBroken(text string) {
	d.t.Helper()
	taken, refused := d.told.taken.Load(), d.told.refused.Load()
	d.write(text)
	d.await("the text is refused", func() bool { return d.told.taken.Load() > taken || d.told.refused.Load() > refused })
	if d.told.taken.Load() > taken {
		d.t.Fatal("the enforcer takes a broken text")
	}
}

// await waits for a condition for longer than a store lingers that nothing uses.
func (d *deployment) await(what string, holds func() bool) {
	d.t.Helper()
	const patience = 40 * time.Second
	for began := time.Now(); !holds(); <-time.After(budget) {
		if time.Since(began) > patience {
			d.t.Fatalf("not so after %v: %s", patience, what)
		}
	}
}

// storeFailures is what the metrics say, by backend and kind, of decisions that no
// store made.
func (d *deployment) storeFailures() (lines []string) {
	d.t.Helper()
	response, err := http.Get("http://" + d.AdminAddr() + "/metrics")
	if err != nil {
		d.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	seen := false
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(name, "weir_store_failures_total{") {
			continue
		}
		seen = true
		if n, err := strconv.ParseFloat(value, 64); err != nil || n > 0 {
			lines = append(lines, fmt.Sprint(name, " ", value))
		}
	}
	if !seen {
		d.t.Error("there is no metric of failures")
	}
	return lines
}
