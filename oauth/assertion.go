package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/psych-systems/psych-go/secret"
)

// assertionLifetime is how long an assertion may be used. It goes out at once; the
// rest is for clocks that disagree.
const assertionLifetime = 2 * time.Minute

// assertion signs who the client is (RFC 7523 section 3). Its audience is the issuer
// alone: an assertion for a token endpoint's URL can be had by another server that
// claims that URL as its own.
func (i Identity) assertion(server Server) (secret.Text, error) {
	key, err := privateKeyOf(i.Key)
	if err != nil {
		return secret.Text{}, err
	}
	algorithm, err := algorithmFor(key, server)
	if err != nil {
		return secret.Text{}, err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, nil)
	if err != nil {
		return secret.Text{}, unauthorized("the client's private key cannot sign with %s", algorithm)
	}
	now := time.Now()
	signed, err := jwt.Signed(signer).Claims(jwt.Claims{
		Issuer:   i.ID,
		Subject:  i.ID,
		Audience: jwt.Audience{server.Issuer},
		ID:       rand.Text(),
		IssuedAt: jwt.NewNumericDate(now),
		Expiry:   jwt.NewNumericDate(now.Add(assertionLifetime)),
	}).Serialize()
	if err != nil {
		return secret.Text{}, unauthorized("the client's private key cannot sign with %s", algorithm)
	}
	return secret.NewText(signed), nil
}

// privateKeyOf reads a key. What a parser says of one is left behind: it may quote it.
func privateKeyOf(text secret.Text) (jose.JSONWebKey, error) {
	raw := strings.TrimSpace(text.Reveal())
	if strings.HasPrefix(raw, "{") {
		var key jose.JSONWebKey
		if json.Unmarshal([]byte(raw), &key) == nil && key.Valid() && !key.IsPublic() {
			return key, nil
		}
		return jose.JSONWebKey{}, unauthorized("the client's private key is no JSON Web Key with a private part")
	}
	for rest := []byte(raw); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return jose.JSONWebKey{}, unauthorized("the client's private key is neither PEM (PKCS #8, SEC 1, PKCS #1) nor a JSON Web Key")
		}
		if key, ok := readBlock(block); ok {
			return jose.JSONWebKey{Key: key}, nil
		}
	}
}

func readBlock(block *pem.Block) (crypto.PrivateKey, bool) {
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		return nil, false
	}
	return key, err == nil
}

// algorithmFor picks the algorithm by the key's type, within what the server names;
// a key that says for which algorithm it is serves that one only.
func algorithmFor(key jose.JSONWebKey, server Server) (jose.SignatureAlgorithm, error) {
	var possible []jose.SignatureAlgorithm
	switch private := key.Key.(type) {
	case *rsa.PrivateKey:
		possible = []jose.SignatureAlgorithm{jose.RS256, jose.PS256, jose.RS384, jose.PS384, jose.RS512, jose.PS512}
	case ed25519.PrivateKey:
		possible = []jose.SignatureAlgorithm{jose.EdDSA}
	case *ecdsa.PrivateKey:
		switch private.Curve {
		case elliptic.P256():
			possible = []jose.SignatureAlgorithm{jose.ES256}
		case elliptic.P384():
			possible = []jose.SignatureAlgorithm{jose.ES384}
		case elliptic.P521():
			possible = []jose.SignatureAlgorithm{jose.ES512}
		}
	}
	offered := server.TokenEndpointSigningAlgs
	for _, algorithm := range possible {
		if (key.Algorithm == "" || key.Algorithm == string(algorithm)) &&
			(len(offered) == 0 || slices.Contains(offered, string(algorithm))) {
			return algorithm, nil
		}
	}
	if len(possible) == 0 {
		return "", unauthorized("the client's private key is of a type that signs no assertion; use RSA, an elliptic curve (P-256, P-384, P-521) or Ed25519")
	}
	return "", unauthorized("the client's private key signs with none of the algorithms that the authorization server takes: %s",
		excerpt(strings.Join(offered, ", "), maxServerText))
}
