package messages

import "errors"

// ErrStaleKey says that a credential no longer resolves to the identity in the
// pool key: it was rotated. Whoever holds the key makes it anew; nothing was
// sent.
var ErrStaleKey = errors.New("the credential was rotated")
