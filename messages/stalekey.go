package messages

import "errors"

// ErrStaleKey says that a credential no longer resolves to the identity in the
// pool key: it was rotated. Whoever holds the key makes it anew; nothing was
// sent.
var ErrStaleKey = errors.New("the credential was rotated")

// TokenSpentError says that a grant's token has run out, or that the grant has
// none any more. Nothing was sent; another token has to be had first.
type TokenSpentError struct {
	// Version is the one of that token.
	Version uint64
}

// Error is a sentence without a subject's name.
func (*TokenSpentError) Error() string { return "the token has run out" }
