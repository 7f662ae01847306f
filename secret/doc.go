// Package secret promises that a secret's value is read where it is used and
// printed nowhere.
//
// [Text] holds a value and shows as "[redacted]" in every form. A [Resolver]
// turns a credential's name into a [Credential] for one scope, freshly at each
// use. The resolvers of this package read a file or the environment.
package secret
