// Package memory promises a token store as long as the process lives, of which
// nothing reaches a disk.
package memory
