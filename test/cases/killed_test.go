package cases

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-dev/weir/internal/enforcer/standalone"
)

// Variables that make this program an enforcer instead of a test.
const (
	policiesVariable = "WEIR_CASES_POLICIES"
	upstreamVariable = "WEIR_CASES_UPSTREAM"
)

func TestMain(m *testing.M) {
	if file := os.Getenv(policiesVariable); file != "" {
		fmt.Fprintln(os.Stderr, serve(file, os.Getenv(upstreamVariable)))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// serve runs an enforcer until it is killed. It prints its address.
func serve(file, upstream string) error {
	address, err := url.Parse(upstream)
	if err != nil {
		return err
	}
	server, err := standalone.New(context.Background(), standalone.Config{
		Policies: []string{file}, Upstream: address, Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	fmt.Println(server.Addr())
	return server.Run(context.Background())
}

// process is an enforcer in a process of its own.
type process struct {
	cmd  *exec.Cmd
	addr string
}

// launch starts one, and returns when it listens.
func (s *site) launch() (*process, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), policiesVariable+"="+s.file, upstreamVariable+"="+s.app.url.String())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	return &process{cmd, strings.TrimSpace(line)}, err
}

// kill ends it without a warning.
func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	_ = p.cmd.Wait()
}

// TestNoCounterIsEverWithoutExpiry calls at the pace of the window, as a health
// checker does, while enforcers are killed in the middle of it, and looks at every
// counter all the time.
func TestNoCounterIsEverWithoutExpiry(t *testing.T) {
	t.Parallel()
	const window = time.Second
	s := open(t, setup{}, policy("p", "  rules: [{name: r, limit: 5, window: 1s, key: [{type: Header, name: X-User-Id}]}]\n"))
	var target atomic.Pointer[caller]
	start := func() *process {
		p, err := s.launch()
		if err != nil {
			t.Fatal(err)
		}
		target.Store(&caller{t: t, base: "http://" + p.addr, http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}})
		return p
	}
	p := start()
	ended, end := context.WithCancel(t.Context())
	var background sync.WaitGroup
	var allowed, looks atomic.Int64
	for client := range 4 {
		background.Go(func() {
			for i := client; ended.Err() == nil; i++ {
				r, err := target.Load().try(http.MethodGet, "/", "X-User-Id", fmt.Sprint("checker", i%20))
				if err == nil && r.status == http.StatusOK {
					allowed.Add(1)
				}
				if i%20 == 0 {
					<-time.After(window / 8)
				}
			}
		})
	}
	background.Go(func() {
		for ended.Err() == nil && !t.Failed() {
			looks.Add(s.checkExpiry(window))
		}
	})
	for range 4 {
		before := allowed.Load()
		eventually(t, "requests pass", func() bool { return allowed.Load() > before+100 })
		p.kill()
		p = start()
	}
	end()
	background.Wait()
	p.kill()
	if looks.Load() < 100 {
		t.Errorf("only %d counters were looked at", looks.Load())
	}
}

// checkExpiry looks at each counter once and returns how many there were.
func (s *site) checkExpiry(window time.Duration) (looks int64) {
	redis := s.redis.Client()
	keys := redis.Scan(context.Background(), 0, "*", 1000).Iterator()
	for keys.Next(context.Background()) {
		ttl := redis.PTTL(context.Background(), keys.Val()).Val()
		if ttl == -1 || ttl > window {
			s.t.Errorf("%s lives for %v", keys.Val(), ttl)
		}
		looks++
	}
	return looks
}
