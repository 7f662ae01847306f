// Package config promises that a deployment's configuration file is either
// wholly usable, and then every default in it is written out, or refused with
// one sentence that says where and why.
//
// [Load] reads a file, [Parse] its text. What comes back are plain values: this
// package opens no store, reads no secret and dials nothing.
package config
