// Package spec promises that a Spec is either wholly valid, and then has one
// Version, or is refused with one sentence that says where and why.
//
// [Parse] reads a file, [New] takes a value from a program. The Version is the
// SHA-256 of the Spec's canonical form (RFC 8785). In it a field that has its
// default is left out, so that a field which is added later changes no Version;
// allow is a sorted set; line ends are LF. Everything else counts: another order
// of servers or tools is another Version.
package spec
