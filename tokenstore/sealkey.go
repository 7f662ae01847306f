package tokenstore

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/secret"
)

const (
	// minSecret is the length of the shortest secret of a key, in bytes.
	minSecret = 16
	// format is the first byte of a sealed value: what follows is a nonce of 24
	// bytes and the ciphertext of the URL's length as an uvarint, the URL and the
	// value. Another layout has another byte.
	format byte = 1
	// purpose keeps this key apart from every other one derived from the same
	// secret.
	purpose = "psych-go tokenstore values 1"
	// digestPrefix marks a digest. It is the beginning of no URL of an MCP server.
	digestPrefix = "sha256:"
)

// sealKey seals and opens values. It is safe for concurrent use.
type sealKey struct{ aead cipher.AEAD }

func deriveSealKey(from secret.Text) (sealKey, error) {
	if len(from.Reveal()) < minSecret {
		return sealKey{}, failure.New(failure.KindSpecInvalid, "the secret of the token key must have at least 16 bytes; make one with openssl rand -base64 32", nil)
	}
	derived, err := hkdf.Key(sha256.New, []byte(from.Reveal()), nil, purpose, chacha20poly1305.KeySize)
	if err != nil {
		return sealKey{}, failure.New(failure.KindInternal, "the token key cannot be derived", err)
	}
	aead, err := chacha20poly1305.NewX(derived)
	if err != nil {
		return sealKey{}, failure.New(failure.KindInternal, "the token key cannot be used", err)
	}
	return sealKey{aead: aead}, nil
}

// seal encrypts a value for the key at which it is stored.
func (k sealKey) seal(at Key, url string, value []byte) []byte {
	plain := binary.AppendUvarint(make([]byte, 0, binary.MaxVarintLen64+len(url)+len(value)), uint64(len(url)))
	plain = append(append(plain, url...), value...)
	out := make([]byte, 1+chacha20poly1305.NonceSizeX, 1+chacha20poly1305.NonceSizeX+len(plain)+chacha20poly1305.Overhead)
	out[0] = format
	nonce := out[1:]
	_, _ = rand.Read(nonce) // it never fails, by its contract
	return k.aead.Seal(out, nonce, plain, bound(at))
}

// open decrypts what was stored at a key; ok is false for whatever this key did
// not seal for that place.
func (k sealKey) open(at Key, stored []byte) (url string, value []byte, ok bool) {
	if len(stored) < 1+chacha20poly1305.NonceSizeX || stored[0] != format {
		return "", nil, false
	}
	nonce, text := stored[1:1+chacha20poly1305.NonceSizeX], stored[1+chacha20poly1305.NonceSizeX:]
	plain, err := k.aead.Open(nil, nonce, text, bound(at))
	if err != nil {
		return "", nil, false
	}
	length, read := binary.Uvarint(plain)
	if read <= 0 || length > uint64(len(plain)-read) { //nolint:gosec // G115: read is at most the length of plain
		return "", nil, false
	}
	rest := plain[read:]
	return string(rest[:length]), rest[length:], true
}

// bound is what a sealed value is bound to: the format and each part of its key,
// behind its length, so that no two keys are written alike.
func bound(at Key) []byte {
	text := []byte{format}
	for _, part := range []string{at.Tenant, at.Principal, at.URL, at.Name} {
		text = binary.AppendUvarint(text, uint64(len(part)))
		text = append(text, part...)
	}
	return text
}

// digest is what stands for a URL beneath the seal. It is "" for "", and a digest
// is its own.
func digest(url string) string {
	if url == "" || isDigest(url) {
		return url
	}
	sum := sha256.Sum256([]byte(url))
	return digestPrefix + hex.EncodeToString(sum[:])
}

func isDigest(url string) bool {
	text, marked := strings.CutPrefix(url, digestPrefix)
	return marked && len(text) == hex.EncodedLen(sha256.Size) && strings.Trim(text, "0123456789abcdef") == ""
}
