package answer

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

// IsGRPC tells that a request is a gRPC call.
func IsGRPC(h http.Header) bool {
	contentType := h.Get("Content-Type")
	rest, ok := strings.CutPrefix(contentType, "application/grpc")
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

var grpcCodes = map[limiter.Outcome]code.Code{
	limiter.Denied:      code.Code_RESOURCE_EXHAUSTED,
	limiter.Unavailable: code.Code_UNAVAILABLE,
	limiter.KeyMissing:  code.Code_PERMISSION_DENIED,
}

// setGRPC writes the refusal of a gRPC call, which is in trailers only. An HTTP 429
// would be taken for UNAVAILABLE, which many clients try again at once.
func setGRPC(h http.Header, d *limiter.Decision, p *problem) {
	h.Set("Content-Type", "application/grpc")
	h.Set("Grpc-Status", strconv.Itoa(int(grpcCodes[d.Outcome])))
	h.Set("Grpc-Message", p.Error)
	if p.RetryAfter > 0 {
		h.Set("Grpc-Retry-Pushback-Ms", strconv.FormatInt(p.RetryAfter*1000, 10))
		h.Set("Grpc-Status-Details-Bin", statusDetails(grpcCodes[d.Outcome], p))
	}
}

// statusDetails is google.rpc.Status with RetryInfo, as gRPC carries it.
func statusDetails(c code.Code, p *problem) string {
	retry, err := anypb.New(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Duration(p.RetryAfter) * time.Second)})
	if err != nil {
		return ""
	}
	data, err := proto.Marshal(&status.Status{Code: int32(c), Message: p.Error, Details: []*anypb.Any{retry}})
	if err != nil {
		return ""
	}
	return base64.RawStdEncoding.EncodeToString(data)
}
