package grant

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/oauth"
	"github.com/psych-systems/psych-go/secret"
	"github.com/psych-systems/psych-go/tokenstore"
)

// record is a grant as it is held and stored.
type record struct {
	// version is the store's, by which another owner's write is told; it names the
	// access token too.
	version uint64
	server  oauth.Server
	// client is who the grant was given to. Its secret is kept with it only where the
	// client was registered dynamically; others are resolved by name.
	client     oauth.Identity
	registered bool
	// redirectURIs are those that it was registered with, and secretName and keyName the
	// names of its credentials.
	redirectURIs        []string
	secretName, keyName string
	// resource is sent with each request for a token, as it was with the first.
	resource string
	// scopes are what was granted, asked what was asked for.
	scopes, asked     []string
	access, refresh   secret.Text
	obtained, expires time.Time
}

// written is a record as it is stored. It holds secrets: only the store sees it.
type written struct {
	Server        oauth.Server `json:"server"`
	ClientID      string       `json:"client_id"`
	ClientMethod  string       `json:"client_method"`
	ClientSecret  string       `json:"client_secret,omitempty"`
	SecretExpires time.Time    `json:"client_secret_expires,omitzero"`
	SecretName    string       `json:"client_secret_credential,omitempty"`
	KeyName       string       `json:"private_key_credential,omitempty"`
	Registered    bool         `json:"registered,omitempty"`
	RedirectURIs  []string     `json:"redirect_uris,omitempty"`
	Resource      string       `json:"resource"`
	Scopes        []string     `json:"scopes,omitempty"`
	Asked         []string     `json:"asked,omitempty"`
	Access        string       `json:"access"`
	Refresh       string       `json:"refresh,omitempty"`
	Obtained      time.Time    `json:"obtained"`
	Expires       time.Time    `json:"expires,omitzero"`
}

func (r *record) encode() ([]byte, error) {
	w := written{
		Server: r.server, ClientID: r.client.ID, ClientMethod: r.client.Method, Registered: r.registered,
		RedirectURIs: r.redirectURIs, SecretName: r.secretName, KeyName: r.keyName, Resource: r.resource, Scopes: r.scopes, Asked: r.asked,
		Access: r.access.Reveal(), Refresh: r.refresh.Reveal(), Obtained: r.obtained, Expires: r.expires,
	}
	if r.registered {
		w.ClientSecret, w.SecretExpires = r.client.Secret.Reveal(), r.client.SecretExpires
	}
	return json.Marshal(w) //nolint:gosec // G117: what is written goes to the token store, which is where secrets are kept
}

func decode(stored tokenstore.Record) (*record, error) {
	var w written
	if err := json.Unmarshal(stored.Value, &w); err != nil {
		return nil, fmt.Errorf("a stored grant cannot be read: %w", err)
	}
	return &record{
		version: stored.Version, server: w.Server, registered: w.Registered, resource: w.Resource,
		client:       oauth.Identity{ID: w.ClientID, Method: w.ClientMethod, Secret: secret.NewText(w.ClientSecret), SecretExpires: w.SecretExpires},
		redirectURIs: w.RedirectURIs, secretName: w.SecretName, keyName: w.KeyName, scopes: w.Scopes, asked: w.Asked,
		access: secret.NewText(w.Access), refresh: secret.NewText(w.Refresh), obtained: w.Obtained, expires: w.Expires,
	}, nil
}

// spent reports whether the access token has run out.
func (r *record) spent(now time.Time) bool { return !r.expires.IsZero() && !now.Before(r.expires) }

const (
	grantPrefix   = "grant/"
	clientPrefix  = "client/"
	consentPrefix = "consent/"
)

func ownerOf(key messages.PoolKey) tokenstore.Owner {
	return tokenstore.Owner{Tenant: key.Scope().Tenant, Principal: key.Scope().Principal, URL: key.URL()}
}

// keyOf is where the grant of a pool key with an issuer is stored. The pool key
// holds the grant's configuration.
func keyOf(key messages.PoolKey, issuer string) tokenstore.Key {
	return tokenstore.Key{Owner: ownerOf(key), Name: prefixOf(key) + digest(issuer)}
}

// prefixOf begins the names of all grants of a pool key.
func prefixOf(key messages.PoolKey) string { return grantPrefix + key.Digest() + "/" }

// digest names something by its parts.
func digest(parts ...string) string {
	hash := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// isGrant reports whether a key is a grant's.
func isGrant(key tokenstore.Key) bool { return strings.HasPrefix(key.Name, grantPrefix) }
