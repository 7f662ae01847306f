// Package messages promises that what actors say to each other can cross a
// process border: every message is protobuf, and none of them holds a secret.
//
// The plain values that all other packages share live here too: [Scope],
// [PoolKey] and [Transport]. A message that asks for an answer implements
// [Question]: it knows the answer that reports its own failure, so that an
// asker is answered even by an actor that panics.
package messages
