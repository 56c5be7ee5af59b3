package redisstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

// diagnose tells what an error of the client means; "" if nothing that keeps a
// server from counting.
func diagnose(err error) Fault {
	var said redis.Error
	switch {
	case err == nil, errors.Is(err, redis.Nil):
		return ""
	case errors.As(err, &said):
		return diagnoseAnswer(said.Error())
	}
	if f := diagnoseTLS(err); f != "" {
		return f
	}
	return diagnoseNetwork(err)
}

// answers are faults by how a server's answer begins. What is not among them is
// about the command's arguments: the command itself may be given.
var answers = []struct {
	prefix string
	fault  Fault
}{
	{"NOAUTH", FaultLoginRequired},
	{"WRONGPASS", FaultWrongLogin},
	{"ERR invalid password", FaultWrongLogin},
	{"ERR AUTH <password> called without", FaultNoLogin},
	{"ERR Client sent AUTH, but no password", FaultNoLogin},
	{"NOPERM", FaultMissingRights},
	{"ERR unknown command", FaultMissingCommand},
	{"ERR DB index", FaultNoDatabase},
	{"ERR invalid DB index", FaultNoDatabase},
	{"ERR SELECT is not allowed", FaultNoDatabase},
	{"ERR max number of clients", FaultTooManyClients},
	{"DENIED", FaultProtected},
	{"READONLY", FaultReadOnly},
	{"LOADING", FaultLoading},
	{"BUSY", FaultBusy},
	{"OOM", FaultOutOfMemory},
	{"MISCONF", FaultWritesStopped},
	{"NOREPLICAS", FaultWritesStopped},
	{"MASTERDOWN", FaultReadOnly},
	{"CLUSTERDOWN", FaultClusterDown},
	{"ERR This instance has cluster support disabled", FaultNotCluster},
}

func diagnoseAnswer(text string) Fault {
	for _, a := range answers {
		if strings.HasPrefix(text, a.prefix) {
			return a.fault
		}
	}
	return ""
}

// diagnoseTLS returns "" for an error that is not one of TLS.
func diagnoseTLS(err error) Fault {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var header tls.RecordHeaderError
	var verification *tls.CertificateVerificationError
	switch {
	case errors.As(err, &authority):
		return FaultTLSUnknownAuthority
	case errors.As(err, &host):
		return FaultTLSNameMismatch
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return FaultTLSExpired
	case errors.As(err, &verification):
		return FaultTLSUnsuited
	case errors.As(err, &header):
		return FaultTLSNotSpoken
	}
	return diagnoseAlert(err)
}

// diagnoseAlert reads what the server's side of a handshake said. crypto/tls has
// words for each alert, and no names.
func diagnoseAlert(err error) Fault {
	var alert *net.OpError
	if !errors.As(err, &alert) || alert.Op != "remote error" {
		return ""
	}
	switch said := alert.Err.Error(); {
	case strings.Contains(said, "certificate required"):
		return FaultTLSClientCertificate
	case strings.Contains(said, "certificate"), strings.Contains(said, "access denied"):
		return FaultTLSClientNotAccepted
	case strings.Contains(said, "unrecognized name"):
		return FaultTLSNameMismatch
	}
	return FaultTLSHandshake
}

func diagnoseNetwork(err error) Fault {
	var name *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &name) && !name.IsTimeout:
		return FaultNameNotFound
	case errors.Is(err, syscall.ECONNREFUSED):
		return FaultRefused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EACCES):
		return FaultNoRoute
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, os.ErrDeadlineExceeded),
		errors.Is(err, redis.ErrPoolTimeout), errors.As(err, &timeout) && timeout.Timeout():
		return FaultNoAnswer
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return FaultClosed
	}
	return FaultUnintelligible
}

// diagnoseOp tells what the failure of an operation means.
func diagnoseOp(err error) Fault {
	for _, known := range []struct {
		err   error
		fault Fault
	}{
		{limiter.ErrTimeout, FaultNoAnswer},
		{limiter.ErrUnreachable, FaultClosed},
		{limiter.ErrOutOfMemory, FaultOutOfMemory},
		{limiter.ErrReadOnly, FaultReadOnly},
		{limiter.ErrLoading, FaultLoading},
		{limiter.ErrDenied, FaultMissingRights},
		{limiter.ErrPoisoned, FaultKeyTaken},
	} {
		if errors.Is(err, known.err) {
			return known.fault
		}
	}
	return FaultUnintelligible
}
