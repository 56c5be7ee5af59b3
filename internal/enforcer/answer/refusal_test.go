package answer

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

// problemBody is WIRE.md's, in one line.
const problemBody = `{"error":"rate limit exceeded","retry_after":18,"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",` +
	`"title":"Too Many Requests","status":429,"policy":"shop/storefront","rule":"per-user","violated-policies":["per-user"]}` + "\n"

// refuse writes a refusal of a request.
func refuse(d *limiter.Decision, method string, header http.Header) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, "/", http.NoBody)
	r.Header = header
	Refuse(w, r, d)
	return w
}

func TestDeniedAnswer(t *testing.T) {
	user, _ := storefront(t, "")
	headers := map[string]string{
		"Content-Type": "application/problem+json", "Content-Length": strconv.Itoa(len(problemBody)), "Cache-Control": "no-store", "Retry-After": "18",
		"X-RateLimit-Limit": "100", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1796076018",
		"RateLimit-Policy": `"per-user";q=100;w=60`, "RateLimit": `"per-user";r=0;t=18`,
	}
	for _, c := range []struct{ reason, method, body string }{
		{"GET", http.MethodGet, problemBody},
		{"HEAD has no body and the length of it", http.MethodHead, ""},
	} {
		t.Run(c.reason, func(t *testing.T) {
			w := refuse(denied(user), c.method, http.Header{})
			want(t, "status", w.Code, http.StatusTooManyRequests)
			want(t, "headers", written(w.Header()), headers)
			want(t, "body", w.Body.String(), c.body)
		})
	}
}

func TestAnswersWithoutCount(t *testing.T) {
	user, _ := storefront(t, "")
	hidden, _ := storefront(t, "response: {detail: Minimal},")
	silent, _ := storefront(t, "response: {headers: []},")
	for _, c := range []struct {
		reason  string
		d       *limiter.Decision
		status  int
		headers map[string]string // beside those of every refusal
		body    string
	}{
		{"a store that cannot answer", &limiter.Decision{Outcome: limiter.Unavailable, Cause: user, RetryAfter: 1}, 503, map[string]string{"Retry-After": "1"},
			`{"error":"rate limiter unavailable","retry_after":1,"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"Service Unavailable","status":503,"policy":"shop/storefront","rule":"per-user"}`},
		{"a missing key", &limiter.Decision{Outcome: limiter.KeyMissing, Cause: user}, 403, nil,
			`{"error":"what this request is counted by is missing","type":"about:blank","title":"Forbidden","status":403,"policy":"shop/storefront","rule":"per-user"}`},
		{"a missing key with hidden names", &limiter.Decision{Outcome: limiter.KeyMissing, Cause: hidden}, 403, nil,
			`{"error":"what this request is counted by is missing","type":"about:blank","title":"Forbidden","status":403}`},
		{"a denial without quota headers", denied(silent), 429, map[string]string{"Retry-After": "18"}, strings.TrimSpace(problemBody)},
	} {
		t.Run(c.reason, func(t *testing.T) {
			w := refuse(c.d, http.MethodGet, http.Header{})
			want(t, "status", w.Code, c.status)
			want(t, "body", strings.TrimSpace(w.Body.String()), c.body)
			got := written(w.Header())
			for name, value := range map[string]string{"Cache-Control": "no-store", "Content-Type": "application/problem+json"} {
				want(t, name, got[name], value)
				delete(got, name)
			}
			delete(got, "Content-Length")
			want(t, "headers", got, c.headers)
		})
	}
}

func TestMinimalHidesNamesEverywhere(t *testing.T) {
	user, day := storefront(t, "response: {detail: Minimal},")
	d := denied(user)
	d.Quotas = append(d.Quotas, limiter.Quota{Rule: day, Wait: 18, Over: true})
	for _, contentType := range []string{"", "application/grpc"} {
		w := refuse(d, http.MethodGet, http.Header{"Content-Type": {contentType}})
		var all strings.Builder
		_ = w.Header().Write(&all)
		all.WriteString(w.Body.String())
		for _, name := range []string{"shop", "storefront", "per-user", "per-day"} {
			if strings.Contains(all.String(), name) {
				t.Errorf("the answer to content type %q holds %q: %s", contentType, name, all.String())
			}
		}
	}
}

// TestRetryAfterFollowsTheDenyingRule while the legacy headers show another.
func TestRetryAfterFollowsTheDenyingRule(t *testing.T) {
	user, day := storefront(t, "")
	d := &limiter.Decision{Outcome: limiter.Denied, Cause: day, RetryAfter: 7200, Quotas: []limiter.Quota{
		{Rule: user, Remaining: 2, Reset: userReset, Wait: 18},
		{Rule: day, Remaining: 3, Reset: dayReset, Wait: 7200, Over: true}, // a cost of 4 does not fit
	}}
	w := refuse(d, http.MethodGet, http.Header{})
	got := written(w.Header())
	want(t, "Retry-After", got["Retry-After"], "7200")
	want(t, "limit", got["X-RateLimit-Limit"], "100")
	want(t, "remaining", got["X-RateLimit-Remaining"], "2")
	if !strings.Contains(w.Body.String(), `"rule":"per-day","violated-policies":["per-day"]`) {
		t.Errorf("the body names another rule: %s", w.Body)
	}
}

// TestRefusalsForOtherProtocols are what a door without a ResponseWriter gets.
func TestRefusalsForOtherProtocols(t *testing.T) {
	user, _ := storefront(t, "")
	for _, c := range []struct {
		reason  string
		request http.Header
		status  int
		header  map[string]string // some of them
		body    string
	}{
		{"a problem", nil, 429, map[string]string{"Retry-After": "18", "X-RateLimit-Limit": "100", "Content-Type": "application/problem+json", "Content-Length": ""}, problemBody},
		{"a status for gRPC", http.Header{"Content-Type": {"application/grpc"}}, 200, map[string]string{"Grpc-Status": "8", "Retry-After": "", "Content-Type": "application/grpc"}, ""},
	} {
		t.Run(c.reason, func(t *testing.T) {
			got := RefusalOf(c.request, denied(user))
			want(t, "status", got.Status, c.status)
			want(t, "body", string(got.Body), c.body)
			header := written(got.Header)
			for name, value := range c.header {
				want(t, name, header[name], value)
			}
			w := refuse(denied(user), http.MethodGet, c.request)
			w.Header().Del("Content-Length")
			want(t, "header fields of what Refuse writes", written(w.Header()), header)
		})
	}
}

func TestIsGRPC(t *testing.T) {
	for contentType, expected := range map[string]bool{
		"application/grpc": true, "application/grpc+proto": true, "application/grpc;charset=utf-8": true,
		"application/grpc-web": false, "application/json": false, "": false,
	} {
		if got := IsGRPC(http.Header{"Content-Type": {contentType}}); got != expected {
			t.Errorf("%q: %v, want %v", contentType, got, expected)
		}
	}
}

// callGRPC makes a real call to a server that refuses all.
func callGRPC(t *testing.T, d *limiter.Decision) (*status.Status, metadata.MD) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { Refuse(w, r, d) }))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	conn, err := grpc.NewClient(server.Listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var trailer metadata.MD
	err = conn.Invoke(ctx, "/shop.Cart/Add", &emptypb.Empty{}, &emptypb.Empty{}, grpc.Trailer(&trailer))
	return status.Convert(err), trailer
}

func TestGRPCClientsUnderstandRefusals(t *testing.T) {
	user, _ := storefront(t, "")
	for _, c := range []struct {
		reason   string
		d        *limiter.Decision
		code     codes.Code
		message  string
		retry    time.Duration
		pushback []string
	}{
		{"over the limit", denied(user), codes.ResourceExhausted, "rate limit exceeded", 18 * time.Second, []string{"18000"}},
		{"a store that cannot answer", &limiter.Decision{Outcome: limiter.Unavailable, Cause: user, RetryAfter: 1}, codes.Unavailable, "rate limiter unavailable", time.Second, []string{"1000"}},
		{"a missing key", &limiter.Decision{Outcome: limiter.KeyMissing, Cause: user}, codes.PermissionDenied, "what this request is counted by is missing", 0, nil},
	} {
		t.Run(c.reason, func(t *testing.T) {
			s, trailer := callGRPC(t, c.d)
			want(t, "code", s.Code(), c.code)
			want(t, "message", s.Message(), c.message)
			want(t, "pushback", trailer.Get("grpc-retry-pushback-ms"), c.pushback)
			var retry time.Duration
			for _, detail := range s.Details() {
				if info, ok := detail.(*errdetails.RetryInfo); ok {
					retry = info.RetryDelay.AsDuration()
				}
			}
			want(t, "retry", retry, c.retry)
		})
	}
}
