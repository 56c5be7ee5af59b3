package redisstore

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"time"
)

// maxLook bounds each look at what a server speaks.
const maxLook = 2 * time.Second

// look finds out why a server that was dialled did not answer as a Redis. Nothing
// secret is sent.
type look struct {
	address string
	tls     *tls.Config // nil for none
	most    time.Duration
}

// fault is a better one than that which was seen first, if there is one.
func (l look) fault(ctx context.Context, first Fault) Fault {
	answer := l.plainAnswer(ctx)
	switch {
	case l.tls != nil && answer != "":
		return FaultTLSNotSpoken
	case l.tls != nil:
		if f := l.shake(ctx, l.tls); f != "" && f != FaultUnintelligible {
			return f
		}
	case answer != "":
		if f := diagnoseAnswer(answer[1:]); f != "" {
			return f
		}
	default:
		switch l.shake(ctx, &tls.Config{MinVersion: tls.VersionTLS12}) {
		case FaultTLSNotSpoken, FaultUnintelligible:
		default:
			return FaultTLSRequired
		}
	}
	return first
}

// shake goes through a handshake and listens: a server refuses a client's
// certificate, or the lack of one, only after the client's part is over.
// FaultUnintelligible is no handshake, "" a successful one.
func (l look) shake(ctx context.Context, config *tls.Config) Fault {
	conn := l.dial(ctx)
	if conn == nil {
		return FaultUnintelligible
	}
	defer func() { _ = conn.Close() }()
	config = config.Clone()
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(l.address)
	}
	secure := tls.Client(conn, config)
	err := secure.HandshakeContext(ctx)
	if err == nil {
		_, err = secure.Read(make([]byte, 1))
		return diagnoseTLS(err)
	}
	if f := diagnoseTLS(err); f != "" {
		return f
	}
	return FaultUnintelligible
}

// plainAnswer is how a server answers to what is not encrypted; "" if not as a
// Redis does. One that turns clients away says so and ends the connection, which
// a client that was about to log in doesn't see.
func (l look) plainAnswer(ctx context.Context) string {
	conn := l.dial(ctx)
	if conn == nil {
		return ""
	}
	defer func() { _ = conn.Close() }()
	_, _ = conn.Write([]byte("PING\r\n"))
	line, err := bufio.NewReader(io.LimitReader(conn, 256)).ReadString('\n')
	if err != nil || line[0] != '+' && line[0] != '-' {
		return ""
	}
	return line
}

// dial returns a connection that ends with the look, nil for none.
func (l look) dial(ctx context.Context) net.Conn {
	end := time.Now().Add(min(l.most, maxLook))
	conn, err := (&net.Dialer{Deadline: end}).DialContext(ctx, "tcp", l.address)
	if err != nil {
		return nil
	}
	if limit, ok := ctx.Deadline(); ok && limit.Before(end) {
		end = limit
	}
	_ = conn.SetDeadline(end)
	return conn
}
