// Package front is what every enforcer in front of an application has: the proxy, the
// admin pages, and an end in good order. Where policies come from is for others.
package front
