// Package approval promises that a call which someone has to agree to is held
// back before anything runs, and that every doubt holds.
//
// [Rules] decide by a tool's class and by its public name.
package approval
