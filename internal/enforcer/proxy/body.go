package proxy

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// requestBody is a client's body on its way to the application. It knows how far
// that got, and brings the trailer fields along. It is not reused: the transport
// may try to read on after the exchange has ended.
type requestBody struct {
	io.ReadCloser
	in, out *http.Request
	ended   atomic.Bool // read to its end
	broken  atomic.Bool // the client's sending failed, or is not what it announced

	mu      sync.Mutex // held while reading
	stopped bool
}

// withBody returns r with a body that knows how far it got. r itself keeps its
// own, which net/http looks at when it answers.
func withBody(r *http.Request) (*http.Request, *requestBody) {
	body := &requestBody{ReadCloser: r.Body, in: r}
	tracked := *r
	tracked.Body = body
	return &tracked, body
}

// Read reads from the client.
func (b *requestBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		b.copyTrailer()
		b.ended.Store(true)
	case err != nil:
		b.broken.Store(true)
	}
	return n, err
}

// maxUnread is how much of a body that nobody wants is read before the connection
// is given up. It is what net/http reads, too.
const maxUnread = 256 << 10

// drain ends all reading by others, and reads and drops what is left.
func (b *requestBody) drain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	_, _ = io.CopyN(io.Discard, b.ReadCloser, maxUnread)
}

// copyTrailer passes on the trailer fields that were announced. Others may not be
// merged by anyone who has read the fields in front of the body.
func (b *requestBody) copyTrailer() {
	if b.out == nil {
		return
	}
	for name := range b.out.Trailer {
		b.out.Trailer[name] = b.in.Trailer[name]
	}
}
