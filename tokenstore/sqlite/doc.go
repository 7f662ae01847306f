// Package sqlite promises a token store in one file, which only its user can
// read, and in which whatever was acknowledged is still there after a kill or a
// loss of power.
//
// Several processes on one machine may use one file at once. The file does not
// belong on a network file system, whose locks do not keep that promise. It
// holds what it is given as it is: give the store to [tokenstore.Seal], which
// encrypts values and keeps the URLs of owners out of the file.
package sqlite
