//go:build faults

package faults

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// So many callers send a request each at this pace, in turns: 200 a second.
const (
	callers  = 20
	callPace = callers * 5 * time.Millisecond
)

// traffic is requests that go through an enforcer's proxy all the time.
type traffic struct {
	deployment *deployment
	client     *http.Client
	cancel     context.CancelFunc
	running    sync.WaitGroup
	answered   atomic.Int64
	failed     atomic.Int64
	first      atomic.Pointer[string] // failure
	slowest    atomic.Int64
}

// send begins to send requests. None is over its limit by the policies that stay.
func (d *deployment) send() *traffic {
	ctx, cancel := context.WithCancel(context.Background())
	tr := &traffic{deployment: d, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}, cancel: cancel}
	for i := range callers {
		tr.running.Go(func() { tr.call(ctx, i) })
	}
	d.t.Cleanup(tr.stop)
	return tr
}

func (tr *traffic) call(ctx context.Context, caller int) {
	<-time.After(time.Duration(caller) * callPace / callers)
	tick := time.NewTicker(callPace)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			began := time.Now()
			if wrong := tr.ask(caller); wrong != "" {
				tr.failed.Add(1)
				wrong += " after " + time.Since(began).String()
				tr.first.CompareAndSwap(nil, &wrong)
			} else {
				tr.answered.Add(1)
			}
			tr.note(time.Since(began))
		}
	}
}

func (tr *traffic) note(took time.Duration) {
	for slowest := tr.slowest.Load(); int64(took) > slowest && !tr.slowest.CompareAndSwap(slowest, int64(took)); {
		slowest = tr.slowest.Load()
	}
}

// ask sends one request, and says what is wrong with the answer.
func (tr *traffic) ask(caller int) string {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+tr.deployment.Addr()+"/", http.NoBody)
	if err != nil {
		return err.Error()
	}
	request.Header.Set("X-User-Id", fmt.Sprint("caller-", caller))
	response, err := tr.client.Do(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	if response.StatusCode != http.StatusOK {
		return response.Status
	}
	return ""
}

// goOn lets that many requests more be answered.
func (tr *traffic) goOn(requests int64) {
	until := tr.answered.Load() + requests
	tr.deployment.await("requests are answered", func() bool { return tr.answered.Load()+tr.failed.Load() >= until })
}

func (tr *traffic) stop() {
	tr.cancel()
	tr.running.Wait()
	tr.client.CloseIdleConnections()
}

// judge wants every decision to have been made.
func (tr *traffic) judge(t *testing.T) {
	t.Helper()
	if first := tr.first.Load(); first != nil {
		t.Errorf("%d of %d requests fail; the first: %s", tr.failed.Load(), tr.failed.Load()+tr.answered.Load(), *first)
	}
	for _, line := range tr.deployment.storeFailures() {
		t.Error(line)
	}
	t.Logf("%d requests were answered, the slowest after %v", tr.answered.Load(), time.Duration(tr.slowest.Load()).Round(time.Millisecond))
}
