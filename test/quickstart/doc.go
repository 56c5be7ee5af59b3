// Package quickstart proves that make run does what it prints: the programs start,
// the limit holds, and nothing is left behind however it ends.
package quickstart
