package secret

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
)

// Identities makes the identities of credentials: keyed digests of their
// values. Under one key, equal values have equal identities; without the key, an
// identity tells nothing about its value.
type Identities struct{ key []byte }

// NewIdentities uses a key that all nodes share, so that a credential has the
// same identity on each. A zero key makes one for this process alone.
func NewIdentities(key Text) Identities {
	if key.IsZero() {
		random := make([]byte, sha256.Size)
		_, _ = rand.Read(random)
		return Identities{key: random}
	}
	return Identities{key: []byte(key.Reveal())}
}

// Of returns a value's credential.
func (i Identities) Of(value string) Credential {
	mac := hmac.New(sha256.New, i.key)
	mac.Write([]byte(value))
	return Credential{Value: NewText(value), Identity: hex.EncodeToString(mac.Sum(nil)[:16])}
}
