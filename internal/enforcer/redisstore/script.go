package redisstore

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by SHA-1
	_ "embed"
	"encoding/hex"
	"regexp"
)

//go:embed check.lua
var commented string

var comments = regexp.MustCompile(`(?m)^\s*--.*\n|^\s+|\s+--.*$`)

// Script is the text that is sent to Redis: check.lua without its comments.
var Script = comments.ReplaceAllString(commented, "")

// ScriptSHA is the name under which Redis keeps Script.
var ScriptSHA = func() string {
	sum := sha1.Sum([]byte(Script)) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}()
