package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type text = wrapperspb.StringValue

// echo is a gRPC service that is written by hand: Say answers, Fail fails, Repeat
// answers three times, Talk answers each message.
var echo = grpc.ServiceDesc{
	ServiceName: "weir.test.Echo",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{
		{MethodName: "Say", Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			in := new(text)
			if err := decode(in); err != nil {
				return nil, err
			}
			md, _ := metadata.FromIncomingContext(ctx)
			_ = grpc.SetTrailer(ctx, metadata.Pairs("x-trailer", "t", "x-for", fmt.Sprint(md["x-forwarded-for"])))
			return in, nil
		}},
		{MethodName: "Fail", Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			_ = grpc.SetTrailer(ctx, metadata.Pairs("x-trailer", "t"))
			if err := decode(new(text)); err != nil {
				return nil, err
			}
			return nil, status.Error(codes.FailedPrecondition, "not now: 100 % sûr")
		}},
	},
	Streams: []grpc.StreamDesc{
		{StreamName: "Repeat", ServerStreams: true, Handler: func(_ any, s grpc.ServerStream) error {
			in := new(text)
			if err := s.RecvMsg(in); err != nil {
				return err
			}
			for range 3 {
				if err := s.SendMsg(in); err != nil {
					return err
				}
			}
			return status.Error(codes.DataLoss, "that was all")
		}},
		{StreamName: "Talk", ServerStreams: true, ClientStreams: true, Handler: func(_ any, s grpc.ServerStream) error {
			for {
				in := new(text)
				if err := s.RecvMsg(in); errors.Is(err, io.EOF) {
					return nil
				} else if err != nil {
					return err
				}
				if err := s.SendMsg(in); err != nil {
					return err
				}
			}
		}},
	},
}

// startGRPC runs the echo service behind a proxy and returns a client of that.
func startGRPC(t *testing.T, options ...grpc.ServerOption) (*running, *grpc.ClientConn) {
	t.Helper()
	server := grpc.NewServer(options...)
	server.RegisterService(&echo, nil)
	listener := listen(t)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	p := startProxy(t, "http://"+listener.Addr().String())
	client, err := grpc.NewClient("passthrough:///"+p.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return p, client
}

func TestGRPCCalls(t *testing.T) {
	p, client := startGRPC(t)
	t.Run("a call is answered, with metadata and trailer", func(t *testing.T) {
		out, header, trailer := new(text), metadata.MD{}, metadata.MD{}
		err := client.Invoke(t.Context(), "/weir.test.Echo/Say", wrapperspb.String("hello"), out, grpc.Header(&header), grpc.Trailer(&trailer))
		if err != nil || out.Value != "hello" {
			t.Errorf("received %q, %v", out.Value, err)
		}
		if fmt.Sprint(trailer["x-trailer"], trailer["x-for"], header["x-ratelimit-remaining"]) != "[t] [[127.0.0.1]] [42]" {
			t.Errorf("header %v, trailer %v", header, trailer)
		}
	})
	t.Run("an error keeps its status and trailer", func(t *testing.T) {
		trailer := metadata.MD{}
		err := client.Invoke(t.Context(), "/weir.test.Echo/Fail", wrapperspb.String("hello"), new(text), grpc.Trailer(&trailer))
		if status.Code(err) != codes.FailedPrecondition || status.Convert(err).Message() != "not now: 100 % sûr" || len(trailer["x-trailer"]) != 1 {
			t.Errorf("received %v, trailer %v", err, trailer)
		}
	})
	t.Run("an unknown method is the application's to refuse", func(t *testing.T) {
		err := client.Invoke(t.Context(), "/weir.test.Echo/Nothing", wrapperspb.String(""), new(text))
		if status.Code(err) != codes.Unimplemented {
			t.Errorf("received %v", err)
		}
	})
	t.Run("a stream of answers ends with its status", func(t *testing.T) {
		stream, err := client.NewStream(t.Context(), &echo.Streams[0], "/weir.test.Echo/Repeat")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(stream.SendMsg(wrapperspb.String("again")), stream.CloseSend()); err != nil {
			t.Fatal(err)
		}
		out, count := new(text), 0
		for err = stream.RecvMsg(out); err == nil; err = stream.RecvMsg(out) {
			count++
		}
		if count != 3 || status.Code(err) != codes.DataLoss {
			t.Errorf("%d answers, then %v", count, err)
		}
	})
	t.Run("both sides talk in turn", func(t *testing.T) {
		stream, err := client.NewStream(t.Context(), &echo.Streams[1], "/weir.test.Echo/Talk")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			out := new(text)
			if err := errors.Join(stream.SendMsg(wrapperspb.String(fmt.Sprint(i))), stream.RecvMsg(out)); err != nil || out.Value != fmt.Sprint(i) {
				t.Fatalf("received %q, %v", out.Value, err)
			}
		}
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if err := stream.RecvMsg(new(text)); !errors.Is(err, io.EOF) {
			t.Errorf("received %v, want the end", err)
		}
	})
	if got := len(p.requests()); got != 5 {
		t.Errorf("%d decisions for 5 calls", got)
	}
}

func TestARefusedGRPCCallIsExhausted(t *testing.T) {
	p, client := startGRPC(t)
	p.refuse = denyAll
	for _, stream := range []bool{false, true} {
		var err error
		if stream {
			var s grpc.ClientStream
			if s, err = client.NewStream(t.Context(), &echo.Streams[1], "/weir.test.Echo/Talk"); err == nil {
				err = s.RecvMsg(new(text))
			}
		} else {
			err = client.Invoke(t.Context(), "/weir.test.Echo/Say", wrapperspb.String("hello"), new(text))
		}
		if status.Code(err) != codes.ResourceExhausted {
			t.Errorf("received %v, want that the quota is exhausted", err)
		}
	}
}

func TestAThousandCallsAtOnceAreCountedOnceEach(t *testing.T) {
	p, client := startGRPC(t)
	var group errgroup.Group
	for i := range 1000 {
		group.Go(func() error {
			out, want := new(text), fmt.Sprint(i)
			if err := client.Invoke(t.Context(), "/weir.test.Echo/Say", wrapperspb.String(want), out); err != nil {
				return err
			}
			if out.Value != want {
				return fmt.Errorf("received %q for %q", out.Value, want)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	if got := len(p.requests()); got != 1000 {
		t.Errorf("%d decisions for 1000 calls", got)
	}
}

func TestACancelledCallIsCancelledForTheApplication(t *testing.T) {
	ended := make(chan error, 1)
	p, client := startGRPC(t, grpc.StreamInterceptor(
		func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			err := handler(srv, s)
			ended <- err
			return err
		}))
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := client.NewStream(ctx, &echo.Streams[1], "/weir.test.Echo/Talk")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(stream.SendMsg(wrapperspb.String("x")), stream.RecvMsg(new(text))); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := stream.RecvMsg(new(text)); status.Code(err) != codes.Canceled {
		t.Errorf("received %v", err)
	}
	if err := <-ended; status.Code(err) != codes.Canceled {
		t.Errorf("the application's side ended with %v", err)
	}
	if got := p.requests(); len(got) != 1 || got[0].Path != "/weir.test.Echo/Talk" {
		t.Errorf("%d decisions for one call", len(got))
	}
}
