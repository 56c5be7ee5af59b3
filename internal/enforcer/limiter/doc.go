// Package limiter decides whether a request may pass: it asks policy which rules
// count it, charges their counters in Stores, and turns what came out into a
// Decision that says what to answer.
//
//	Request ─Set.Match─► matches ─by backend─► one Op each ─Store.Do─► Decision
//
// It knows neither HTTP nor Redis. A Store is a place for counters: redisstore
// for real, memstore for one process alone; both pass storetest. What happens
// when a store cannot answer (failureMode) is decided here, and nowhere else.
//
// What always holds:
//
//   - A refused request is charged nowhere: the counters that refused it keep the
//     attempt, and whatever else was charged is given back.
//   - A missing key whose onMissing is Deny refuses a request before any counter
//     is touched. After that, over a limit outweighs a store that cannot answer.
//   - A store that fails is an outcome of its own. It is never taken for "within
//     the limit", nor for "over" it.
//   - A rule in Shadow mode is counted and reported like any other, but refuses
//     nothing: not for its limit, nor its missing key, nor its store's failure.
//     Callers don't see its quota.
package limiter
