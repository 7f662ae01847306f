// Package spec promises that a Spec is either wholly valid, and then has one
// Version, or is refused with one sentence that says where and why.
//
// [Parse] reads a file, [New] takes a value from a program. A [Version] is named
// by the SHA-256 of the Spec's canonical form: JSON in the form of RFC 8785.
//
// What the canonical form holds decides which Specs are the same:
//
//   - A field that has its default is left out, and so is an object that only
//     has defaults, except oauth, whose presence says something. A field that is
//     added later with a default that means what its absence meant before
//     therefore changes no Version; a default, once given, never changes.
//   - allow is a set: sorted, without duplicates. Every other list counts in its
//     order, also that of servers and tools, because it is the order in which
//     the model is shown them.
//   - The deadline is a length of time: 600s is 10m.
//   - Line ends of the instructions are LF, whether CRLF or LF was written.
//   - Everything else counts as it was written.
package spec
