package redis

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
)

// readFrame reads one value of the Redis protocol, RESP2 or RESP3, as it is on
// the wire, and appends its bytes to raw. For an array of strings, which a request
// is, those are returned too.
func readFrame(r *bufio.Reader, raw []byte) (frame []byte, words []string, err error) {
	line, err := r.ReadBytes('\n')
	raw = append(raw, line...)
	if err != nil {
		return raw, nil, err
	}
	if len(line) < 3 {
		return raw, nil, fmt.Errorf("not the Redis protocol: %q", line)
	}
	kind, text := line[0], string(line[1:len(line)-2])
	switch kind {
	case '+', '-', ':', '_', ',', '#', '(':
		return raw, []string{text}, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return raw, nil, fmt.Errorf("not the Redis protocol: %q", line)
	}
	switch kind {
	case '$', '=', '!':
		return readBulk(r, raw, n)
	case '%', '|':
		n *= 2
	}
	for range n {
		var word []string
		if raw, word, err = readFrame(r, raw); err != nil {
			return raw, nil, err
		}
		words = append(words, word...)
	}
	return raw, words, nil
}

func readBulk(r *bufio.Reader, raw []byte, n int) ([]byte, []string, error) {
	if n < 0 {
		return raw, []string{""}, nil
	}
	content := make([]byte, n+2)
	if _, err := io.ReadFull(r, content); err != nil {
		return raw, nil, err
	}
	return append(raw, content...), []string{string(content[:n])}, nil
}
