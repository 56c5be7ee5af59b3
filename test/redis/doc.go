// Package redis starts real Redis servers for tests, on loopback, breaks them on
// purpose, and stops them with the test, whatever happens.
package redis
