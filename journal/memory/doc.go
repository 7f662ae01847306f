// Package memory promises a journal as long as the process lives: nothing in it
// survives, and it does not grow without bound.
package memory
