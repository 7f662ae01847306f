// Package document promises that a file which a person wrote is read strictly
// or refused with one sentence that says where and why.
//
// [Decode] reads YAML 1.2, and JSON as a part of it, into plain structs. Nothing
// is guessed and nothing is passed over: an unknown field, a key that stands
// twice, a number where a text belongs, a key without a value, a second document
// in one file, and every YAML feature that makes a file say something other than
// what it shows (anchors, aliases, tags, merge keys, directives) is a
// failure.SpecInvalid whose sentence begins with FILE:LINE.
//
// What the decoded values mean is the caller's to judge: it collects [Problems]
// by path, and [Source.First] reports the one that stands first in the file.
package document
