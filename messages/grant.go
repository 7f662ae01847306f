package messages

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// grantPrefix begins the credential identity of every key with OAuth, and of no
// other: resolvers' own are hexadecimal or chosen by programs that do not mean one.
const grantPrefix = "oauth:"

// Identity is the credential identity of a key whose credential is this grant: a
// digest of its configuration and of the consent that was given. It is the same on
// every node, stays across refreshes, and holds no secret; "" for no grant.
func (g *Grant) Identity() string {
	if g == nil {
		return ""
	}
	return grantPrefix + g.digest(g.GetConsent())
}

// ConfigurationDigest is a digest of the configuration alone, whatever consent was
// given.
func (g *Grant) ConfigurationDigest() string { return g.digest("") }

func (g *Grant) digest(consent string) string {
	hash := sha256.New()
	write := func(part string) { fmt.Fprintf(hash, "%d:%s", len(part), part) }
	for _, part := range []string{
		g.GetType(), g.GetClientId(), g.GetClientSecretCredential(), g.GetPrivateKeyCredential(), g.GetIssuer(),
		g.GetTokenEndpointAuthMethod(), g.GetClientIdMetadataUrl(), strconv.FormatBool(g.GetAllowRegistration()),
		g.GetApplicationType(), g.GetClientName(), consent,
	} {
		write(part)
	}
	for _, list := range [][]string{g.GetScopes(), g.GetRedirectUris()} {
		fmt.Fprintf(hash, "%d[", len(list))
		for _, part := range list {
			write(part)
		}
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// IsGranted reports whether a key's credential is an OAuth grant.
func (k PoolKey) IsGranted() bool { return strings.HasPrefix(k.credentialIdentity, grantPrefix) }

// Fits reports whether a target's grant is the one that its key was made from. A
// message for which it is false is refused.
func (t *Target) Fits() bool {
	identity := t.GetKey().GetCredentialIdentity()
	if t.GetGrant() == nil {
		return !strings.HasPrefix(identity, grantPrefix)
	}
	return identity == t.GetGrant().Identity()
}
