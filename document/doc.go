// Package document promises that a file which a person wrote is read strictly
// or refused with one sentence that says where and why.
//
// [Decode] reads YAML, and JSON as a part of it, into plain structs. Every
// unknown field, key that stands twice, wrong type, and value out of range is a
// failure.SpecInvalid that begins with FILE:LINE.
package document
