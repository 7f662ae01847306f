// Package bench promises numbers that can be compared: each measure of a Run
// stands beside the same work done by go-sdk's bare client, against the same
// hand-written server, in the same process. The ratio counts, not the number.
package bench
