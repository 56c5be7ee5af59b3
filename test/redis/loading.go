package redis

import (
	"strconv"
	"strings"
	"time"
)

// loadedKeys are big enough for the server to look at its clients after each.
const loadedKeys = 500

// RestartLoading restarts the server, which keeps its data and takes that long at
// least to load it. Meanwhile it answers LOADING; Await waits for the end. The
// server loads the same data whenever it is run again.
func (s *Server) RestartLoading(takes time.Duration) {
	s.t.Helper()
	s.Do("CONFIG", "SET", "rdbcompression", "no")
	value := strings.Repeat("x", 1024)
	for i := range loadedKeys {
		s.Do("SET", "loading:"+strconv.Itoa(i), value)
	}
	s.Do("SAVE")
	s.Stop()
	delay := takes / loadedKeys / time.Microsecond
	s.Launch("--loading-process-events-interval-bytes", "1024", "--key-load-delay", strconv.Itoa(int(delay)))
}
