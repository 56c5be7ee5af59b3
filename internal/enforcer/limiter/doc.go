// Package limiter decides whether a request may pass: it asks policy which rules
// count it, charges their counters in a Store, and turns the outcome into a
// Decision that says what to answer.
//
// It knows neither HTTP nor Redis. A Store is a place for counters: redisstore
// for real, memory for one process alone; both pass storetest. What happens when
// a store cannot answer (failureMode) is decided here, and nowhere else.
package limiter
