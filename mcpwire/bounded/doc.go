// Package bounded promises that bytes of a stranger never take more memory than
// the limit that was set for them.
package bounded
