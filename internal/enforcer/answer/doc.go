// Package answer turns a decision into what a caller is told: quota headers on
// answers that pass, and whole answers for requests that do not.
//
// Every door speaks through it, so a header means the same everywhere:
// X-RateLimit-Reset is Unix seconds, Retry-After is whole seconds to wait, at
// least one and never before the window that refused ends. An answer without a
// count (503, 403) carries no quota headers.
//
// Answers are header fields, a status and a body, whatever protocol a door speaks:
// Annotate is for requests that pass, RefusalOf for those that do not, and Refuse
// writes the latter to an http.ResponseWriter.
package answer
