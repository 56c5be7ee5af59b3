package quickstart

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// script is hack/run.sh at work.
type script struct {
	cmd           *exec.Cmd
	listen, admin string
	mu            sync.Mutex
	text          bytes.Buffer
}

func (s *script) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *script) output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func runScript(t *testing.T) *script {
	t.Helper()
	s := &script{cmd: exec.Command("../../hack/run.sh"), listen: freeAddress(t), admin: freeAddress(t)}
	s.cmd.Env = append(os.Environ(), "LISTEN="+s.listen, "ADMIN="+s.admin)
	s.cmd.Stdout, s.cmd.Stderr = s, s
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Programs that outlive the script hold its output open.
	s.cmd.WaitDelay = 30 * time.Second
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		if t.Failed() {
			t.Log(s.output())
		}
	})
	eventually(t, "the script says what to try", func() bool { return strings.Contains(s.output(), "Ctrl-C ends everything.") })
	return s
}

func TestRunLimitsAndEndsEverything(t *testing.T) {
	for name, end := range map[string]struct {
		signal syscall.Signal
		clean  bool
	}{
		"by Ctrl-C":  {syscall.SIGINT, true},
		"by SIGTERM": {syscall.SIGTERM, true},
		"by kill -9": {syscall.SIGKILL, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := runScript(t)
			s.sendAsPrinted(t)
			if err := s.cmd.Process.Signal(end.signal); err != nil {
				t.Fatal(err)
			}
			if err := s.cmd.Wait(); (err == nil) != end.clean {
				t.Errorf("the script ends with %v", err)
			}
			for _, address := range []string{s.listen, s.admin} {
				eventually(t, "nothing listens at "+address, func() bool { return !listens(t, address) })
			}
		})
	}
}

// sendAsPrinted sends the 105 requests that the script suggests. If the minute
// turns meanwhile, another user tries again.
func (s *script) sendAsPrinted(t *testing.T) {
	t.Helper()
	for attempt := range 3 {
		minute := time.Now().Unix() / 60
		var got [2]int
		for i := range 105 {
			status := s.get(t, fmt.Sprintf("bob_%d", attempt))
			switch want := map[bool]int{true: http.StatusOK, false: http.StatusTooManyRequests}[i < 100]; status {
			case want:
				got[i/100]++
			case http.StatusOK, http.StatusTooManyRequests:
			default:
				t.Fatalf("answered %d", status)
			}
		}
		if time.Now().Unix()/60 != minute {
			continue
		}
		if got != [2]int{100, 5} {
			t.Errorf("of the first 100 requests %d pass, of the other 5 %d are refused", got[0], got[1])
		}
		return
	}
	t.Error("three times a minute turned during 105 requests")
}

func (s *script) get(t *testing.T, user string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.listen+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-User-Id", user)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func TestRunSaysThatAnAddressIsTaken(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	cmd := exec.Command("../../hack/run.sh")
	cmd.Env = append(os.Environ(), "LISTEN="+taken.Addr().String(), "ADMIN="+freeAddress(t))
	output, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(output), "something listens at "+taken.Addr().String()+" already; choose other addresses: LISTEN=") {
		t.Errorf("%v: %s", err, output)
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline, tick := time.After(5*time.Minute), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("not so in 5 minutes: %s", what)
		case <-tick.C:
		}
	}
}

func listens(t *testing.T, address string) bool {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}
