// Package failure promises that whatever goes wrong can be told apart by what
// the caller does about it, and shown to a person as it is.
//
// Every kind of failure that users meet is one Go type here. Find one with
// [errors.As]; read its name with [KindOf]; never parse its text. The text is
// one sentence without a trailing colon and without a secret.
//
// The package imports nothing of this module.
package failure
