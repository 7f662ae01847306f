// Package storetest promises that a token store which passes it keeps the
// contract of [tokenstore.Store], whatever it is made of.
package storetest
