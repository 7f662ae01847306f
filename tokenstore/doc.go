// Package tokenstore promises that what was stored is there after a crash, is
// read by nobody without the key, and is overwritten by nobody who had not read
// it.
//
// A [Store] keeps small records for owners: grants, client registrations,
// consents. A record is written by [Store.Swap] against the version that the
// writer read, so that of two refreshers of one grant one loses and knows it.
// [Seal] encrypts what a store keeps. The stores are in packages underneath:
// memory lasts as long as the process, and sqlite as long as its file. A store of
// another make is tested with package storetest.
package tokenstore
