// Package standalone turns files into what an enforcer enforces, without a
// cluster: it reads RateLimitPolicy, RedisBackend, Secret and ConfigMap
// documents, checks them, and keeps a Limiter up to date while they change.
//
// A set of files is taken as a whole or not at all: while something is wrong
// with it, the last good set stays in force. Problems name file, line and field.
// Stores of backends that did not change are kept over an edit, so that neither
// a connection nor a count is lost. Values of Secrets are in no message.
package standalone
