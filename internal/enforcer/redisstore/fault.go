package redisstore

import (
	"fmt"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// Fault is something that keeps a Redis from counting. Each has words of its own,
// because what servers say may hold anything.
type Fault string

// Faults of the way to a server.
const (
	FaultRefused        Fault = "ConnectionRefused"
	FaultNoRoute        Fault = "NoRoute"
	FaultNameNotFound   Fault = "NameNotFound"
	FaultNoAnswer       Fault = "NoAnswer"
	FaultClosed         Fault = "ConnectionClosed"
	FaultTooManyClients Fault = "TooManyClients"
	FaultProtected      Fault = "ProtectedMode"
	FaultUnintelligible Fault = "Unintelligible"
)

// Faults of TLS.
const (
	FaultTLSRequired          Fault = "TLSRequired"
	FaultTLSNotSpoken         Fault = "TLSNotSpoken"
	FaultTLSUnknownAuthority  Fault = "TLSUnknownAuthority"
	FaultTLSNameMismatch      Fault = "TLSNameMismatch"
	FaultTLSExpired           Fault = "TLSExpired"
	FaultTLSUnsuited          Fault = "TLSCertificateUnsuited"
	FaultTLSClientCertificate Fault = "TLSClientCertificateRequired"
	FaultTLSClientNotAccepted Fault = "TLSClientCertificateNotAccepted"
	FaultTLSHandshake         Fault = "TLSHandshakeFailed"
)

// Faults of the login and of what it may do.
const (
	FaultLoginRequired  Fault = "LoginRequired"
	FaultWrongLogin     Fault = "WrongCredentials"
	FaultNoLogin        Fault = "LoginNotExpected"
	FaultMissingRights  Fault = "PermissionMissing"
	FaultMissingCommand Fault = "CommandUnknown"
	FaultNoDatabase     Fault = "DatabaseUnknown"
)

// Faults of how servers work together.
const (
	FaultSentinelLoginRequired Fault = "SentinelLoginRequired"
	FaultSentinelWrongLogin    Fault = "SentinelWrongCredentials"
	FaultSentinelNoMaster      Fault = "SentinelNoMaster"
	FaultNotSentinel           Fault = "NotASentinel"
	FaultIsSentinel            Fault = "IsASentinel"
	FaultNotCluster            Fault = "NotACluster"
	FaultIsCluster             Fault = "IsACluster"
	FaultClusterDown           Fault = "ClusterDown"
	FaultReadOnly              Fault = "ReadOnly"
	FaultLoading               Fault = "Loading"
	FaultBusy                  Fault = "Busy"
	FaultWritesStopped         Fault = "WritesStopped"
	FaultOutOfMemory           Fault = "OutOfMemory"
	FaultKeyTaken              Fault = "KeyTaken"
)

// faults say of each fault which reason of a RedisBackend's Ready stands for it,
// what is wrong with a server, and how to mend it.
var faults = map[Fault]struct{ reason, wrong, mend string }{
	FaultRefused:        {v1alpha1.ReasonUnreachable, "%s refuses connections", "check host and port, and that it runs"},
	FaultNoRoute:        {v1alpha1.ReasonUnreachable, "no way leads to %s", "check the address, routes and network policies"},
	FaultNameNotFound:   {v1alpha1.ReasonUnreachable, "the name of %s is not known to DNS", "check its spelling; in a cluster it is service.namespace.svc"},
	FaultNoAnswer:       {v1alpha1.ReasonUnreachable, "%s does not answer in time", "check that it runs, network policies and firewalls; a slow one may need more timeouts.dial"},
	FaultClosed:         {v1alpha1.ReasonUnreachable, "%s ends the connection", "check that a Redis listens at this port; if it wants TLS, set tls"},
	FaultTooManyClients: {v1alpha1.ReasonUnreachable, "%s takes no more clients", "raise its maxclients, or lower poolSize"},
	FaultProtected:      {v1alpha1.ReasonUnreachable, "%s is in protected mode and takes local clients only", "give it a password or a user, then name it in credentialsSecretRef"},
	FaultUnintelligible: {v1alpha1.ReasonUnreachable, "%s does not answer as a Redis does", "check the port; Weir needs Redis 6.2 or newer, or what behaves like it"},

	FaultTLSRequired:          {v1alpha1.ReasonTLSFailed, "%s wants TLS", "set tls"},
	FaultTLSNotSpoken:         {v1alpha1.ReasonTLSFailed, "%s does not speak TLS", "use its port for TLS, or leave tls out"},
	FaultTLSUnknownAuthority:  {v1alpha1.ReasonTLSFailed, "the certificate of %s goes back to an authority that is not trusted", "put the certificate of that authority into ca.crt of tls.caSecretRef or tls.caConfigMapRef"},
	FaultTLSNameMismatch:      {v1alpha1.ReasonTLSFailed, "the certificate of %s is not made out to that host", "set tls.serverName to a name in the certificate, or let the certificate hold the host"},
	FaultTLSExpired:           {v1alpha1.ReasonTLSFailed, "the certificate of %s has expired, or is not valid yet", "renew it, or set the clocks"},
	FaultTLSClientCertificate: {v1alpha1.ReasonTLSFailed, "%s asks for a certificate of its client", "name a Secret with tls.crt and tls.key in tls.certSecretRef"},
	FaultTLSClientNotAccepted: {v1alpha1.ReasonTLSFailed, "%s does not accept the certificate of tls.certSecretRef", "use one that its authorities have signed and that has not expired"},
	FaultTLSHandshake:         {v1alpha1.ReasonTLSFailed, "%s and Weir agree on no way to speak TLS", "let it offer TLS 1.2 or newer; if it asks for a certificate of its client, name one in tls.certSecretRef"},
	FaultTLSUnsuited:          {v1alpha1.ReasonTLSFailed, "the certificate of %s is not one for a server", "issue one with the extended key usage of servers, signed by an authority"},

	FaultLoginRequired:  {v1alpha1.ReasonWrongCredentials, "%s asks for a login", "name a Secret with username and password in credentialsSecretRef"},
	FaultWrongLogin:     {v1alpha1.ReasonWrongCredentials, "%s does not accept username and password, or the user is turned off", "check both in the Secret, and ACL GETUSER on the server: its flags must say on"},
	FaultNoLogin:        {v1alpha1.ReasonWrongCredentials, "%s has no passwords", "leave credentialsSecretRef out, or set a password on the server"},
	FaultMissingRights:  {v1alpha1.ReasonPermissionMissing, "the user lacks rights on %s", "grant them with ACL SETUSER"},
	FaultMissingCommand: {v1alpha1.ReasonPermissionMissing, "commands are renamed or turned off on %s", "give them back under their own names"},
	FaultNoDatabase:     {v1alpha1.ReasonUnexpectedMode, "%s has no database of that number", "lower database, or raise databases on the server"},

	FaultSentinelLoginRequired: {v1alpha1.ReasonSentinelWrongCredentials, "%s asks for a login of its own", "name a Secret with the password of the Sentinels in sentinel.credentialsSecretRef"},
	FaultSentinelWrongLogin:    {v1alpha1.ReasonSentinelWrongCredentials, "%s does not accept username and password, or the user is turned off", "check the Secret of sentinel.credentialsSecretRef; it is not the one of the servers with the data"},
	FaultSentinelNoMaster:      {v1alpha1.ReasonSentinelNoMaster, "%s watches no primary of that name", "set sentinel.masterName to a name that SENTINEL MASTERS lists"},
	FaultNotSentinel:           {v1alpha1.ReasonUnexpectedMode, "%s is no Sentinel", "list the Sentinels in addresses (their port is usually 26379), or set mode"},
	FaultIsSentinel:            {v1alpha1.ReasonUnexpectedMode, "%s is a Sentinel and holds no data", "set mode: Sentinel, or give the address of a server"},
	FaultNotCluster:            {v1alpha1.ReasonUnexpectedMode, "%s is not part of a Cluster", "set mode: Standalone, or list nodes of the Cluster in addresses"},
	FaultIsCluster:             {v1alpha1.ReasonUnexpectedMode, "%s is part of a Cluster", "set mode: Cluster"},
	FaultClusterDown:           {v1alpha1.ReasonNotReady, "the Cluster of %s does not serve all slots", "see CLUSTER INFO on the server"},
	FaultReadOnly:              {v1alpha1.ReasonReadOnly, "%s is a replica and takes no writes", "give the address of the primary, or use mode Sentinel, which follows it"},
	FaultLoading:               {v1alpha1.ReasonNotReady, "%s is starting and still reads its data", "wait"},
	FaultBusy:                  {v1alpha1.ReasonNotReady, "%s is kept busy by a script", "end it with SCRIPT KILL on the server"},
	FaultWritesStopped:         {v1alpha1.ReasonNotReady, "%s has stopped to take writes: it can't save, or too few replicas follow it", "see its log"},
	FaultOutOfMemory:           {v1alpha1.ReasonOutOfMemory, "%s has reached maxmemory and takes no more data", "raise maxmemory on the server, or take other data off it"},
	FaultKeyTaken:              {v1alpha1.ReasonUnexpectedMode, "something else is kept on %s where counters should be", "choose another keyPrefix"},
}

// Reason is the reason of a RedisBackend's condition Ready that stands for the
// fault: Connected for none.
func (f Fault) Reason() string {
	if f == "" {
		return v1alpha1.ReasonConnected
	}
	return faults[f].reason
}

// describe says what is wrong with a server and how to mend it. details may be
// empty.
func (f Fault) describe(server, details string) string {
	words := faults[f]
	text := fmt.Sprintf(words.wrong, server)
	if details != "" {
		text += " (" + details + ")"
	}
	return text + ": " + words.mend
}
