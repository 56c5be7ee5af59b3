package policy

import "net/netip"

// Request is the one model of a request that every door fills and that matching
// and keys read. It is never written to here, and nothing of it is kept.
type Request struct {
	// Method as sent; case matters.
	Method string
	// Host as sent, with port if there was one.
	Host string
	// Path as sent, still encoded, without query.
	Path string
	// RawQuery as sent, without the question mark.
	RawQuery string
	// Header holds the fields by canonical MIME name (net/textproto), as
	// http.Header does.
	Header map[string][]string
	// Peer is the address at the other end of the connection.
	Peer netip.Addr
	// Cost is how much the request counts; 0 means 1.
	Cost uint64
	// Descriptors come from Envoy's rate limit service only.
	Descriptors []Descriptor
}

// Descriptor is one descriptor of Envoy's rate limit service.
type Descriptor struct {
	Entries []DescriptorEntry
}

// DescriptorEntry is one entry of a Descriptor.
type DescriptorEntry struct {
	Key, Value string
}
