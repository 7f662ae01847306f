// Package bench promises numbers that can be compared: each stands beside the same
// work done by go-sdk's bare client, in the same process, against the same server,
// in rounds that take turns. The ratio counts, not the number.
//
// The server is a process of its own, so that neither its time nor its garbage is
// the client's. "make bench" prints the table and keeps it in RESULTS.md; as a part
// of the tests the same measures run once and shortly, to see that they can, and
// what is exact is checked: how many requests a call costs, and how many bytes a
// turn sends.
package bench
